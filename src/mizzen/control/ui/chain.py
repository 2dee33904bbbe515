"""One proxy's resources as a tree: listener → filter chain → route configuration → virtual host → route → cluster →
endpoint, asked for branch by branch.

In: what a proxy was sent, and the place of a node: the names on the way to it. Out: the nodes below that place, in
windows. A resource is decoded when its branch is opened; only chosen fields are shown, none of which can hold a secret.
What the proxy refused is marked with its words. How a single message reads is in `chain_texts`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mizzen import protos
from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, VIRTUAL_HOST, Resource, ResourceSet
from mizzen.compile.routes.on_demand import with_hosts
from mizzen.control.debug import clients
from mizzen.control.debug.console import Page, PageError, Query, Write
from mizzen.control.ui import chain_texts
from mizzen.control.ui.paging import Window, read_window
from mizzen.errors import DecodeError
from mizzen.xds.status import Connection, Connections, proxy_id

Place = tuple[str, ...]
"""A node: its kind, then the names by which it is found."""
Facts = tuple[tuple[str, str], ...]

_GONE = "The proxy has no such resource (any more)."
_DEPTH, _NAME = 8, 1000
_HTTP, _TCP = "HttpConnectionManager", "TcpProxy"
_RDS, _INLINE = "rds", "inline"


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node, closed."""

    kind: str
    title: str
    place: Place = ()
    """Where its branches are asked for; empty for a leaf."""
    facts: Facts = ()
    object: str = ""
    """The object that it was made of."""
    error: str = ""
    """The proxy's words, where it refused this."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a proxy was sent, and what it refused of it."""

    sets: Mapping[str, ResourceSet]
    refused: Mapping[tuple[str, str], str] = {}
    """By type and name: the proxy's words."""

    def resource(self, type_url: str, name: str) -> Resource | None:
        """The resource of that name."""
        found = self.sets.get(type_url)
        resource = found.get(name) if found is not None else None
        if resource is not None and type_url == ROUTE:
            return with_hosts(resource, self.sets.get(VIRTUAL_HOST, ()))
        return resource

    def message(self, type_url: str, name: str) -> Any:
        """The same, decoded; raises PageError where the proxy has none."""
        found = self.resource(type_url, name)
        if found is None:
            raise PageError(404, _GONE)
        return found.message()


def page(connections: Connections) -> Page:
    """The page of data: `proxyID`, and `at` as a JSON list."""

    def read(query: Query) -> Write:
        window, place = read_window(query), parse_place(query["at"])
        connection = find(connections, query)
        held, name = read_held(connection), proxy_id(connection.proxy)
        return lambda: {"proxy": name, "id": connection.id, **build_branch(held, place, window)}

    return Page("What the proxy proxyID was sent, as a tree.", read)


def find(connections: Iterable[Connection], query: Query) -> Connection:
    """The proxy of that connection's id, else the one of that name, else the one that the debug pages would find."""
    asked, seen = query["proxyID"], list(clients.in_namespace(connections, query.namespace))
    exact = (each for each in seen if each.id == asked)
    named = (each for each in seen if proxy_id(each.proxy) == asked)
    return next(exact, None) or next(named, None) or clients.find(seen, query)


def parse_place(text: str) -> Place:
    """The place of a node as its JSON says it; raises PageError for anything else."""
    if not text:
        return ()
    try:
        place = msgspec.json.decode(text, type=Place)
    except msgspec.DecodeError as bad:
        raise PageError(400, f"at: {bad}") from bad
    if len(place) > _DEPTH or any(len(name) > _NAME for name in place):
        raise PageError(400, "at: too long")
    return place


def read_held(connection: Connection) -> Held:
    """What the proxy was sent; to be asked on the event loop."""
    sets, refused = {}, {}
    for type_url, watch in connection.session.watches.items():
        if watch.sent is not None:
            sets[type_url] = watch.sent
        if watch.rejection is not None:
            refused.update({(type_url, name): str(watch.rejection) for name in watch.culprits})
    return Held(sets=sets, refused=refused)


def build_branch(held: Held, place: Place, window: Window) -> dict[str, Any]:
    """The nodes below a place, as plain data."""
    kind, names = (place[0], place[1:]) if place else ("", ())
    branch = _BRANCHES.get((kind, len(names)))
    if branch is None:
        raise PageError(400, "at: there is no such kind of node")
    total, nodes = branch(held, window, *names)
    return {**window.frame(total), "nodes": msgspec.to_builtins(list(nodes))}


Branch = tuple[int, Iterable[Node]]


def _window(window: Window, entries: Sequence[Any], show: Callable[[Any], Node]) -> Branch:
    return len(entries), map(show, window.cut(entries))


# -- listeners and chains ---------------------------------------------------------------------------------------------


def _listeners(held: Held, window: Window) -> Branch:
    found = [(resource.name, resource.message()) for resource in held.sets.get(LISTENER, ())]
    nodes = [_listener(held, name, message) for name, message in sorted(found, key=lambda f: _order(f[1]))]
    return _window(window, [n for n in nodes if window.keeps(n.title, *(v for _, v in n.facts))], lambda node: node)


def _order(listener: Any) -> tuple[int, int, str, str]:
    """What catches everything first, then by port."""
    rank = ("virtualOutbound", "virtualInbound").index(listener.name) if listener.name in _CATCHING else len(_CATCHING)
    socket = listener.address.socket_address
    return rank, socket.port_value, socket.address, listener.name


_CATCHING = ("virtualOutbound", "virtualInbound")


def _listener(held: Held, name: str, message: Any) -> Node:
    return Node(
        kind="listener",
        title=name,
        place=("listener", name),
        facts=chain_texts.listener_facts(message),
        object=chain_texts.origin(message),
        error=held.refused.get((LISTENER, name), ""),
    )


def _all_chains(listener: Any) -> list[Any]:
    default = [listener.default_filter_chain] if listener.HasField("default_filter_chain") else []
    return [*listener.filter_chains, *default]


def _chains(held: Held, window: Window, listener: str) -> Branch:
    chains = list(enumerate(_all_chains(held.message(LISTENER, listener))))

    def show(entry: tuple[int, Any]) -> Node:
        index, chain = entry
        leads, http = _deciding(chain)
        return Node(
            kind="chain",
            title=chain_texts.chain_match(chain),
            place=("chain", listener, str(index)) if leads is not None else (),
            facts=chain_texts.chain_facts(chain, leads if http else None),
            object=chain_texts.origin(chain),
        )

    return _window(window, chains, show)


def _deciding(chain: Any) -> tuple[Any, bool]:
    """The configuration of the filter that says where the chain leads, and whether that is HTTP's."""
    for filter_ in chain.filters:
        kind = filter_.typed_config.type_url.rpartition(".")[2]
        if kind in (_HTTP, _TCP):
            try:
                return protos.unpack(filter_.typed_config), kind == _HTTP
            except DecodeError:
                return None, False
    return None, False


def _chain(held: Held, listener: str, index: str) -> Any:
    chains = _all_chains(held.message(LISTENER, listener))
    if not index.isdigit() or int(index) >= len(chains):
        raise PageError(404, _GONE)
    return chains[int(index)]


def _leads(held: Held, window: Window, listener: str, index: str) -> Branch:
    """Below a chain: its route configuration, or its clusters."""
    config, http = _deciding(_chain(held, listener, index))
    if config is None:
        return 0, ()
    if not http:
        return _window(window, chain_texts.tcp_clusters(config), lambda found: _cluster(held, *found))
    if config.HasField("rds"):
        return 1, (_configuration(held, config.rds.route_config_name),)
    return _virtual_hosts(held, window, _INLINE, listener, index)


# -- routes -----------------------------------------------------------------------------------------------------------


def _configuration(held: Held, name: str) -> Node:
    resource = held.resource(ROUTE, name)
    if resource is None:
        return Node(kind="routes", title=name, facts=(("not sent", "the proxy has not asked for it, or waits"),))
    hosts = len(resource.message().virtual_hosts)  # type: ignore[attr-defined]
    return Node(
        kind="routes",
        title=name,
        place=("routes", _RDS, name, ""),
        facts=(("virtual hosts", str(hosts)), ("version", resource.version)),
        error=held.refused.get((ROUTE, name), ""),
    )


def _route_config(held: Held, how: str, name: str, index: str) -> Any:
    if how == _RDS:
        return held.message(ROUTE, name)
    config, http = _deciding(_chain(held, name, index))
    if not http:
        raise PageError(404, _GONE)
    return config.route_config


def _virtual_hosts(held: Held, window: Window, how: str, name: str, index: str) -> Branch:
    hosts = _route_config(held, how, name, index).virtual_hosts
    return _window(
        window,
        [host for host in hosts if window.keeps(host.name, *host.domains)],
        lambda host: Node(
            kind="host",
            title=host.name,
            place=("host", how, name, index, host.name) if host.routes else (),
            facts=chain_texts.host_facts(host),
        ),
    )


def _virtual_host(held: Held, how: str, name: str, index: str, host: str) -> Any:
    hosts = _route_config(held, how, name, index).virtual_hosts
    found = next((each for each in hosts if each.name == host), None)
    if found is None:
        raise PageError(404, _GONE)
    return found


def _routes(held: Held, window: Window, how: str, name: str, index: str, host: str) -> Branch:
    routes = list(enumerate(_virtual_host(held, how, name, index, host).routes))

    def show(entry: tuple[int, Any]) -> Node:
        number, route = entry
        return Node(
            kind="route",
            title=chain_texts.route_match(route),
            place=("route", how, name, index, host, str(number)) if route.HasField("route") else (),
            facts=chain_texts.route_facts(route),
            object=chain_texts.origin(route),
        )

    return _window(window, routes, show)


def _targets(held: Held, window: Window, how: str, name: str, index: str, host: str, number: str) -> Branch:
    routes = _virtual_host(held, how, name, index, host).routes
    if not number.isdigit() or int(number) >= len(routes):
        raise PageError(404, _GONE)
    found = chain_texts.http_clusters(routes[int(number)])
    return _window(window, found, lambda target: _cluster(held, *target))


# -- clusters and endpoints -------------------------------------------------------------------------------------------


def _cluster(held: Held, name: str, share: str) -> Node:
    told: Facts = (("weight", share),) if share else ()
    resource = held.resource(CLUSTER, name)
    if resource is None:
        return Node(
            kind="cluster", title=name, facts=(*told, ("missing", "the proxy was sent no cluster of this name"))
        )
    message: Any = resource.message()
    return Node(
        kind="cluster",
        title=name,
        place=("cluster", name),
        facts=(*told, *chain_texts.cluster_facts(message)),
        object=chain_texts.origin(message),
        error=held.refused.get((CLUSTER, name), ""),
    )


def _endpoints(held: Held, window: Window, name: str) -> Branch:
    cluster = held.message(CLUSTER, name)
    assignment = cluster.load_assignment
    if cluster.HasField("eds_cluster_config"):
        found = held.resource(ENDPOINT, cluster.eds_cluster_config.service_name or name)
        if found is None:
            return 1, (Node(kind="endpoint", title="endpoints were not sent"),)
        assignment = found.message()
    if not cluster.HasField("eds_cluster_config") and not assignment.endpoints:
        return 1, (Node(kind="endpoint", title=chain_texts.elsewhere(cluster)),)
    return _window(window, list(_placed(assignment)), lambda placed: _endpoint(*placed))


def _placed(assignment: Any) -> Iterator[tuple[Any, Any]]:
    for group in assignment.endpoints:
        for endpoint in group.lb_endpoints:
            yield group, endpoint


def _endpoint(group: Any, endpoint: Any) -> Node:
    return Node(
        kind="endpoint",
        title=chain_texts.address(endpoint.endpoint.address),
        facts=chain_texts.endpoint_facts(group, endpoint),
    )


_BRANCHES: Mapping[tuple[str, int], Callable[..., Branch]] = {
    ("", 0): _listeners,
    ("listener", 1): _chains,
    ("chain", 2): _leads,
    ("routes", 3): _virtual_hosts,
    ("host", 4): _routes,
    ("route", 5): _targets,
    ("cluster", 1): _endpoints,
}
"""By the kind of node, and how many names lead to it."""
