"""A world made of dumps: every proxy holds what its Envoy, or its control plane, says it holds.

In: configuration dumps of any number of proxies, Envoy's (best with endpoints: `/config_dump?include_eds`) or a control
plane's. Out: a `World`, or the `Holdings` of one proxy to be laid over a world of objects. Who a proxy is stands in the
node of its bootstrap. `differences` names the resources in which two holdings of one proxy differ.
"""

import datetime
import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from mizzen.diagnose import dump, spelling
from mizzen.diagnose.dump import Dump, Json
from mizzen.diagnose.trace import endpoints
from mizzen.diagnose.trace.capture import Capture
from mizzen.diagnose.trace.world import Holdings, Resources, Workload, World
from mizzen.errors import DecodeError
from mizzen.model.proxy import Proxy, parse_node

_KINDS = ("clusters", "listeners", "routes", "endpoints")
_PLACES: Mapping[str, tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]] = {
    "clusters": (("Clusters", ("static_clusters", "dynamic_active_clusters"), ("cluster",)),),
    "listeners": (
        ("Listeners", ("static_listeners",), ("listener",)),
        ("Listeners", ("dynamic_listeners",), ("active_state", "listener")),
    ),
    "routes": (("Routes", ("static_route_configs", "dynamic_route_configs"), ("route_config",)),),
    "endpoints": (("Endpoints", ("static_endpoint_configs", "dynamic_endpoint_configs"), ("endpoint_config",)),),
    "secrets": (("Secrets", ("static_secrets", "dynamic_active_secrets"), ("secret",)),),
    "extensions": (("Ecds", ("ecds_filters",), ("ecds_filter",)),),
}
"""Where each kind stands: section, lists, path to the message."""


def of_dumps(dumps: Iterable[Dump], *, now: datetime.datetime | None = None) -> World:
    """The world of these proxies; raises DecodeError for a dump that does not say whose it is."""
    held: dict[str, Holdings] = {}
    pods: list[Workload] = []
    for each in dumps:
        pod = read_workload(each)
        held[pod.reference] = read_holdings(each)
        pods.append(pod)
    return World(pods, lambda pod: held[pod.reference], now=now)


def read_holdings(source: Dump, names: Mapping[str, tuple[str, ...]] | None = None) -> Holdings:
    """What the dump says the proxy holds; its name table stands in no dump."""
    found: dict[str, Any] = {kind: dict(_read(source, kind)) for kind in _PLACES}
    return Holdings(**found, names=names or {})


def _read(source: Dump, kind: str) -> Iterator[tuple[str, Json]]:
    for section, lists, path in _PLACES[kind]:
        for configs in source.sections(section):
            for name in lists:
                for entry in dump.items(configs, name):
                    message = dump.message(entry, *path)
                    if message:
                        respelled = spelling.respell(message)
                        yield _name(respelled, entry, kind), respelled


def _name(message: Json, entry: Json, kind: str) -> str:
    own = dump.text(message, "cluster_name") if kind == "endpoints" else dump.text(message, "name")
    return own or dump.text(entry, "name")


def complete(actual: Holdings, told: Holdings) -> Holdings:
    """What a proxy on demand holds, and what it would be told once it asks; of any other what it holds."""
    asking = {name for name, route in actual.routes.items() if "vhds" in route}
    if not asking:
        return actual
    hosts = (host for name in asking for host in dump.items(actual.routes[name], "virtual_hosts"))
    return msgspec.structs.replace(
        actual,
        routes={**actual.routes, **{name: told.routes[name] for name in asking & told.routes.keys()}},
        clusters={**told.clusters, **actual.clusters},
        endpoints={**told.endpoints, **actual.endpoints},
        on_demand=frozenset(dump.text(host, "name") for host in hosts),
    )


def read_proxy(source: Dump) -> Proxy:
    """The proxy that the node of its bootstrap describes."""
    node = next((dump.message(s, "bootstrap", "node") for s in source.sections("Bootstrap")), {})
    if not dump.text(node, "id"):
        raise DecodeError("the dump has no bootstrap, so it does not say whose it is")
    return parse_node(node)


def read_workload(source: Dump) -> Workload:
    """Whose dump it is, by the node of its bootstrap."""
    who = read_proxy(source)
    return Workload(
        name=who.name,
        namespace=who.namespace,
        addresses=tuple(a for a in who.ip_addresses if not ipaddress.ip_address(a).is_loopback),
        labels=dict(who.labels),
        account=who.service_account or "default",
        proxy=who.kind,
        ports=tuple(_ports(who)),
        capture=Capture(mode=who.interception),
        dns_capture=who.dns_capture,
    )


def _ports(who: Proxy) -> Iterator[int]:
    return (int(number) for _, number in who.pod_ports if number.isdigit())


def differences(sent: Holdings, actual: Holdings) -> tuple[str, ...]:
    """Resources that one side has and the other lacks, or has otherwise; static ones of the bootstrap do not count."""
    found = []
    for kind in _KINDS:
        mine: Resources = getattr(sent, kind)
        theirs: Resources = getattr(actual, kind)
        for name in sorted(mine.keys() | (theirs.keys() if kind in ("listeners", "routes") else set())):
            if name not in theirs:
                found.append(f"{kind[:-1]} {name} is not in the proxy")
            elif name in mine and _plain(_bare(mine[name])) != _plain(_bare(theirs[name])):
                detail = _detail(_bare(mine[name]), _bare(theirs[name]))
                found.append(f"{kind[:-1]} {name} is not what the control plane says{detail}")
    return tuple(found)


def _bare(message: Json) -> Any:
    """A resource as it is compared: of an assignment its hosts, since Envoy rewrites what is around them.

    Their health is left out: Envoy says unhealthy of hosts that it has ejected itself.
    """
    if "clusterName" not in message:
        return message
    hosts = endpoints.choose({}, message).all
    return sorted([str(h), h.weight, h.priority, h.locality, endpoints.socket_labels(h.metadata)] for h in hosts)


def _detail(mine: Any, theirs: Any) -> str:
    """Of hosts: the first that one side has and the other has not, or has otherwise."""
    if not isinstance(mine, list) or not isinstance(theirs, list):
        return ""
    lacks = next((item for item in mine if item not in theirs), None)
    has = next((item for item in theirs if item not in mine), None)
    return f": {_words(lacks)} is told, {_words(has)} is there"


def _words(item: Any) -> str:
    return " ".join(str(part) for part in item if part != "") if item else "nothing else"


def _plain(value: Any) -> Any:
    """A message without what readers of protobuf JSON may leave out: defaults, and how numbers are written."""
    if isinstance(value, Mapping):
        kept = {name: _plain(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item not in (None, "", 0, False, [], {})}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
