"""Route configurations of a sidecar: by port number, by sniffed `host:port`, for the HTTP proxy port or a Unix socket.

In: the name asked for, the client's scope. Out: one encoded RouteConfiguration. VirtualServices take the services
they name, the most specific host winning; every service left gets its default route; calls of unknown hosts meet the
scope's outbound policy. Golden cases: golden base, networking/vs-*, networking/sidecar-*, networking/se-*.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from mizzen import protos
from mizzen.api.networking.destination import Destination, PortSelector
from mizzen.compile import resource
from mizzen.compile.addresses import Network, service_bind
from mizzen.compile.filters.timeouts import build_timeouts
from mizzen.compile.resource import Resource, ResourceSet
from mizzen.compile.routes import domains, retries
from mizzen.compile.routes.destinations import (
    Place,
    RouteClient,
    Target,
    alpn_config,
    listed_services,
    resolve,
    select_listener,
)
from mizzen.compile.routes.virtual_hosts import VirtualHost, encode_configuration, without_duplicates
from mizzen.compile.routes.virtual_service import EncodedRoute, routes
from mizzen.incremental import Engine, attempt, query
from mizzen.model import mesh, names, scope
from mizzen.model.protocols import Protocol
from mizzen.model.scope import EgressListener
from mizzen.model.services import UNSPECIFIED, Port, Service
from mizzen.model.virtual_services import VirtualServiceRef

_route_v3 = protos.package("envoy.config.route.v3")

HTTP_PROXY = "http_proxy"


class SidecarClient(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A sidecar as its route configurations depend on it."""

    routes: RouteClient
    network: Network
    dns_domain: str


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A route configuration's name, taken apart."""

    port: int = 0
    host: str = ""
    """The host of a sniffed name."""
    bind: str = ""
    """The Unix socket."""


@query
def configurations(db: Engine, client: SidecarClient, asked: frozenset[str]) -> ResourceSet:
    """The route configurations of these names; each is answered, if only with an empty one."""
    return ResourceSet(resource.ROUTE, (configuration(db, client, name) for name in sorted(asked)))


@query
def configuration(db: Engine, client: SidecarClient, name: str) -> Resource:
    """The route configuration of one name."""
    wanted = parse_name(name)
    if wanted is None:
        return encode_configuration(name, (), known=False)
    hosts = port_hosts(db, client, wanted.port, wanted.bind)
    if wanted.host:
        full = f"{wanted.host}:{wanted.port}"
        matching = [h for h in hosts if full in h.domains or wanted.host in h.domains]
        if len(matching) != 1:
            return encode_configuration(name, ())
        return encode_configuration(name, [msgspec.structs.replace(matching[0], domains=("*",))])
    ignores_port = client.routes.dialect != "envoy" or not _serves_every_port(db, client, wanted.port, wanted.bind)
    return encode_configuration(name, (*hosts, _unknown_hosts(db, client)), ignores_port=ignores_port)


def _serves_every_port(db: Engine, client: SidecarClient, port: int, bind: str) -> bool:
    """Whether hosts of all ports meet here, so that domains carry theirs.

    The reference looks hosts up without their port even then, and thereby finds those of port 80 only; in our own
    dialect such domains count as they are written.
    """
    listener = select_listener(scope.egress_listeners(db, client.routes.scope), port, bind)
    return port == 0 or (listener is not None and listener.protocol is Protocol.HTTP_PROXY)


def parse_name(name: str) -> Wanted | None:
    """The parts of a name that a sidecar may ask for; None for any other."""
    if name == HTTP_PROXY:
        return Wanted()
    if name.startswith("unix://"):
        return Wanted(bind=name)
    if name.isdigit():
        return Wanted(port=int(name))
    host, colon, port = name.rpartition(":")
    return Wanted(port=int(port), host=host) if colon and host and port.isdigit() else None


@query
def port_hosts(db: Engine, client: SidecarClient, port: int, bind: str) -> tuple[VirtualHost, ...]:
    """The virtual hosts of a port, sorted by name, each with the domains that are its own."""
    listener = select_listener(scope.egress_listeners(db, client.routes.scope), port, bind)
    if listener is None:
        return ()
    all_ports = _serves_every_port(db, client, port, bind)
    wrappers = list(_wrappers(db, client, listener, 0 if all_ports else port, Place(port=port, bind=bind)))
    hosts = without_duplicates(wrappers)
    if all_ports:
        hosts = [h for h in (_with_ports_only(h) for h in hosts) if h.domains]
    return tuple(sorted(hosts, key=lambda h: h.name))


def _with_ports_only(host: VirtualHost) -> VirtualHost:
    """On a listener of every port, only names on port 80 may go without the port."""
    if host.name.endswith(":80"):
        return host
    return msgspec.structs.replace(host, domains=tuple(d for d in host.domains if ":" in d))


# -- which virtual hosts ------------------------------------------------------------------------------------------


def _wrappers(
    db: Engine, client: SidecarClient, listener: EgressListener, port: int, place: Place
) -> Iterator[VirtualHost]:
    """Virtual hosts of VirtualServices first, then those of services that none of them took."""
    carried = listed_services(db, client.routes.scope, place.port, place.bind)
    owners = _owners(listener.virtual_services, carried)
    taken: set[str] = set()
    for ref in listener.virtual_services:
        if port not in (0, 80) and not any(_touches(h, carried) for h in ref.hosts):
            continue
        found = attempt(routes, db, client.routes, ref.key, place)
        if not found:
            continue
        services, others = _hosts_of(ref, carried, owners)
        taken.update(s.host for s in services)
        yield from _of_virtual_service(client, listener, services, others, found, port)
    for service in carried.values():
        if service.host in taken or service.resolution == "alias":
            continue
        for own in service.ports:
            if (port in (0, own.number)) and (own.protocol.is_http or own.protocol.is_auto):
                route = default_route(db, client.routes, service.host, own.number)
                yield _service_host(client, listener, service, own, (route,), by_port=port == 0)


def _touches(host: str, carried: dict[str, Service]) -> bool:
    if not host.startswith("*"):
        return host in carried or any(h.startswith("*") and names.matches(h, host) for h in carried)
    return any(names.overlap(host, h) for h in carried)


def _owners(refs: tuple[VirtualServiceRef, ...], carried: dict[str, Service]) -> dict[str, VirtualServiceRef]:
    """For each service the VirtualService with the most specific host that covers it; earlier ones win ties."""
    exact: dict[str, VirtualServiceRef] = {}
    wild: list[tuple[str, VirtualServiceRef]] = []
    for ref in refs:
        for host in ref.hosts:
            if host.startswith("*"):
                wild.append((host, ref))
            else:
                exact.setdefault(host, ref)
    wild.sort(key=lambda entry: -len(entry[0]))
    owners = {}
    for host in carried:
        owner = exact.get(host) or next((ref for pattern, ref in wild if names.matches(pattern, host)), None)
        if owner is not None:
            owners[host] = owner
    return owners


def _hosts_of(
    ref: VirtualServiceRef, carried: dict[str, Service], owners: dict[str, VirtualServiceRef]
) -> tuple[list[Service], list[str]]:
    """The services that the VirtualService's hosts name, and the hosts that are no service's."""
    services: dict[str, Service] = {}
    others: list[str] = []
    for host in ref.hosts:
        if not host.startswith("*"):
            if host in carried:
                services[host] = carried[host]
            elif not ref.is_gateway_api:
                others.append(host)
            continue
        if ref.is_gateway_api:
            others.append(host)
            continue
        covered = [s for h, s in carried.items() if names.matches(host, h)]
        if not covered:
            others.append(host)
        services.update((s.host, s) for s in covered if owners.get(s.host) is ref)
    return list(services.values()), others


def _of_virtual_service(
    client: SidecarClient,
    listener: EgressListener,
    services: list[Service],
    others: list[str],
    found: tuple[EncodedRoute, ...],
    port: int,
) -> Iterator[VirtualHost]:
    groups: dict[int, list[tuple[Service, Port]]] = {}
    for service in services:
        for own in service.ports:
            if port in (0, own.number) and (own.protocol.is_http or own.protocol.is_auto):
                groups.setdefault(own.number, []).append((service, own))
    if not groups and port == 80:
        groups[80] = []
    for number, members in groups.items():
        for host in others:
            yield VirtualHost(
                name=f"{names.bracketed(host)}:{number}" if names.is_ip(host) else f"{host}:{number}",
                domains=(host,) if port else (host, f"{host}:{number}"),
                routes=found,
                attempt_count=client.routes.attempt_count,
            )
        for service, own in members:
            yield _service_host(client, listener, service, own, found, by_port=port == 0)


def _service_host(
    client: SidecarClient,
    listener: EgressListener,
    service: Service,
    port: Port,
    found: tuple[EncodedRoute, ...],
    *,
    by_port: bool,
) -> VirtualHost:
    bind = service_bind(service, client.network)
    addresses = [a for a in (bind.address, *bind.extra) if a != UNSPECIFIED]
    if service.is_kubernetes or len(service.addresses) < 2:
        addresses = [a for a in addresses if client.network.reaches(a)]
    aliases = [alias for alias, host in listener.aliases if host == service.host]
    return VirtualHost(
        name=f"{names.bracketed(service.host)}:{port.number}",
        domains=tuple(
            domains.service_domains(
                [service.host, *aliases],
                client.dns_domain,
                addresses=addresses,
                headless=service.is_kubernetes and service.is_headless,
                port=port.number if by_port else None,
            )
        ),
        routes=found,
        attempt_count=client.routes.attempt_count,
    )


# -- routes that no VirtualService wrote --------------------------------------------------------------------------


@query
def default_route(db: Engine, client: RouteClient, host: str, port: int) -> EncodedRoute:
    """The route of a service that no VirtualService takes: everything to its cluster of that port."""
    destination = Destination(host=host, port=PortSelector(number=port))
    target = resolve(db, client, destination, "", Place(port=port))
    policy = retries.default_policy(mesh.mesh_config(db).default_http_retry_policy)
    action: dict[str, Any] = {"cluster": target.cluster, **build_timeouts({}, client.dialect)}
    if policy is not None:
        action["retry_policy"] = policy
    if target.hash_policy:
        action["hash_policy"] = _hash_policies(target)
    route = _route_v3.Route(
        name="default",
        match={"prefix": "/"},
        decorator={"operation": f"{host}:{port}/*"},
        route=action,
        typed_per_filter_config=alpn_config(target),
    )
    return EncodedRoute(protos.encode(route), is_catch_all=True)


def _hash_policies(target: Target) -> list[Any]:
    return list(_route_v3.RouteAction.FromString(target.hash_policy).hash_policy)


def _unknown_hosts(db: Engine, client: SidecarClient) -> VirtualHost:
    """What meets calls of hosts that nobody knows."""
    policy = scope.outbound_policy(db, client.routes.scope)
    if policy.mode == "REGISTRY_ONLY":
        return _catch_all(client, "block_all", {"direct_response": {"status": 502}})
    if policy.mode == "ALLOW_ANY_DYNAMIC_DNS":
        return _catch_all(client, "allow_any_dynamic_dns", {"route": _forward(client, names.DYNAMIC_DNS)})
    proxy = policy.egress_proxy
    if proxy is None:
        return _catch_all(client, "allow_any", {"route": _forward(client, names.PASSTHROUGH)})
    target = resolve(db, client.routes, proxy, policy.namespace, Place(port=0))
    port = proxy.port.number if proxy.port is not None else 0
    cluster = names.subset_key(names.OUTBOUND, port, proxy.subset, target.host)
    overrides = {"typed_per_filter_config": alpn_config(target)}
    return _catch_all(client, "allow_any", {"route": _forward(client, cluster), **overrides})


def _forward(client: SidecarClient, cluster: str) -> dict[str, Any]:
    action: dict[str, Any] = {"cluster": cluster, **build_timeouts({}, client.routes.dialect)}
    if client.routes.forwarded_host:
        action["append_x_forwarded_host"] = True
    return action


def _catch_all(client: SidecarClient, name: str, action: dict[str, Any]) -> VirtualHost:
    route = protos.encode(_route_v3.Route(name=name, match={"prefix": "/"}, **action))
    return VirtualHost(
        name=name,
        domains=("*",),
        routes=(EncodedRoute(route, is_catch_all=True),),
        attempt_count=client.routes.attempt_count,
    )
