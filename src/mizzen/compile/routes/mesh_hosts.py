"""The virtual hosts of a sidecar's route configuration: those of VirtualServices, then those of services left.

In: the client's scope, the port or socket. Out: virtual hosts sorted by name, each domain in one of them. They are
worked out by VirtualService and by group of hosts, so that what changes one looks at the others only to list them.
Golden cases: networking/vs-*, networking/sidecar-*, networking/se-*.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from mizzen import protos
from mizzen.api.meta import Key
from mizzen.api.networking.destination import Destination, PortSelector
from mizzen.compile import observed
from mizzen.compile.addresses import Network, service_bind
from mizzen.compile.filters.timeouts import build_timeouts
from mizzen.compile.routes import domains, retries
from mizzen.compile.routes.destinations import (
    Place,
    RouteClient,
    Target,
    alpn_config,
    find_target,
    groups_listed,
    listed_group,
    listed_services,
    route_aliases,
    route_listener,
)
from mizzen.compile.routes.virtual_hosts import (
    Part,
    VirtualHost,
    encoded,
    join_apart,
    part_of,
    with_domains,
    without_duplicates,
)
from mizzen.compile.routes.virtual_service import EncodedRoute, routes
from mizzen.incremental import Engine, attempt, barrier, query
from mizzen.model import mesh, names, scope
from mizzen.model.protocols import Protocol
from mizzen.model.scope import EgressListener, ScopeId
from mizzen.model.services import UNSPECIFIED, Port, Service
from mizzen.model.virtual_services import VirtualServiceRef

_route_v3 = protos.package("envoy.config.route.v3")


class SidecarClient(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A sidecar as its route configurations depend on it."""

    routes: RouteClient
    network: Network
    dns_domain: str


def serves_every_port(db: Engine, client: SidecarClient, port: int, bind: str) -> bool:
    """Whether hosts of all ports meet here, so that domains carry theirs.

    The reference looks hosts up without their port even then, and thereby finds those of port 80 only; in our own
    dialect such domains count as they are written.
    """
    listener = route_listener(db, client.routes.scope, port, bind)
    return _is_every_port(port, listener)


def _is_every_port(port: int, listener: EgressListener | None) -> bool:
    return port == 0 or (listener is not None and listener.protocol is Protocol.HTTP_PROXY)


class PortHosts(msgspec.Struct, frozen=True):
    """The virtual hosts of a port, sorted by name, each with the domains that are its own."""

    hosts: tuple[VirtualHost, ...] = ()
    sound: bool = False
    """Whether it is known that Envoy takes every domain, that none is said twice, and that none is `*`."""


@query
def port_hosts(db: Engine, client: SidecarClient, port: int, bind: str) -> PortHosts:
    """Those of VirtualServices, then those of services that none of them took."""
    claims = _claims(db, scope.routes_scope(db, client.routes.scope), port, bind)
    if claims is None:
        return PortHosts()
    place, own_port = Place(port=port, bind=bind), 0 if claims.all_ports else port
    routed = _routed(db, client, own_port, place, claims)
    left = _left(db, client, own_port, place, claims, routed.keys())
    found = join_apart((*routed.values(), *left)) if not claims.all_ports else None
    if found is not None:
        return PortHosts(found, sound=True)
    listed = [host for part in routed.values() for host in part.hosts]
    listed += _in_order(left, listed_services(db, client.routes.scope, port, bind), own_port)
    return PortHosts(_sorted_out(db, listed, by_port=claims.all_ports))


def _sorted_out(db: Engine, listed: list[VirtualHost], *, by_port: bool) -> tuple[VirtualHost, ...]:
    """Each with what the ones before have left it."""
    found = without_duplicates(listed)
    if len(found) < len(listed):
        for name, times in Counter(host.name for host in listed).items():
            if times > 1:
                observed.observe(db, observed.DUPLICATE_DOMAIN, name)
    if by_port:
        found = [h for h in (_with_ports_only(h) for h in found) if h.domains]
    return tuple(sorted(found, key=lambda h: h.name))


def _with_ports_only(host: VirtualHost) -> VirtualHost:
    """On a listener of every port, only names on port 80 may go without the port."""
    if host.name.endswith(":80"):
        return host
    return with_domains(host, tuple(d for d in host.domains if ":" in d))


def _in_order(left: Iterable[Part], carried: Mapping[str, Service], port: int) -> Iterator[VirtualHost]:
    """The hosts of services in the services' order."""
    by_name = {host.name: host for part in left for host in part.hosts}
    names_in_order = (_name(service, own) for service in carried.values() for own in _http_ports(service, port))
    return (by_name[name] for name in names_in_order if name in by_name)


# -- who takes which services ---------------------------------------------------------------------------------------


class Claim(NamedTuple):
    """The hosts of services that a VirtualService's hosts name, and those that are no service's."""

    key: Key
    services: tuple[str, ...]
    others: tuple[str, ...]


class Claims(msgspec.Struct, frozen=True):
    """What VirtualServices ask for at one listener, whoever the client is."""

    all_ports: bool
    by_routes: tuple[Claim, ...]
    groups: tuple[tuple[str, frozenset[str]], ...]
    """The groups of services, with the hosts of each that are asked for."""


@barrier
def _claims(db: Engine, scope_id: ScopeId, port: int, bind: str) -> Claims | None:
    """None where there is no listener. The same for all namespaces that see the same services and VirtualServices."""
    listener = route_listener(db, scope_id, port, bind)
    if listener is None:
        return None
    carried = listed_services(db, scope_id, port, bind)
    owners = _owners(listener.virtual_services, carried)
    for host in _listed_again(listener.virtual_services) & carried.keys():
        observed.observe(db, observed.DUPLICATE_DOMAIN, f"{host}:{port}")
    all_ports = _is_every_port(port, listener)
    found = tuple(
        Claim(ref.key, *_hosts_of(ref, carried, owners))
        for ref in listener.virtual_services
        if all_ports or port == 80 or any(_touches(h, carried) for h in ref.hosts)
    )
    groups = groups_listed(db, scope_id, port, bind)
    return Claims(all_ports, found, _taken(groups, found))


def _taken(groups: Iterable[str], claims: Iterable[Claim]) -> tuple[tuple[str, frozenset[str]], ...]:
    taken: dict[str, set[str]] = {group: set() for group in groups}
    for claim in claims:
        for host in claim.services:
            taken[names.group_of(host)].add(host)
    return tuple((group, frozenset(hosts)) for group, hosts in taken.items())


def _routed(db: Engine, client: SidecarClient, port: int, place: Place, claims: Claims) -> dict[Claim, Part]:
    """The virtual hosts of VirtualServices; of those without any route there are none."""
    found = ((claim, _virtual_service_hosts(db, client, port, place, *claim)) for claim in claims.by_routes)
    return {claim: part for claim, part in found if part is not None}


def _left(
    db: Engine, client: SidecarClient, port: int, place: Place, claims: Claims, routed: Collection[Claim]
) -> list[Part]:
    """The virtual hosts of services that none of these took."""
    groups = claims.groups
    if len(routed) < len(claims.by_routes):
        groups = _taken([group for group, _ in groups], routed)
    return [_default_hosts(db, client, port, place, group, taken) for group, taken in groups]


def _listed_again(refs: tuple[VirtualServiceRef, ...]) -> set[str]:
    """The hosts that more than one VirtualService names."""
    times = Counter(host for ref in refs for host in set(ref.hosts))
    return {host for host, number in times.items() if number > 1}


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
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The hosts of services that the VirtualService's hosts name, and those that are no service's."""
    services: dict[str, None] = {}
    others: list[str] = []
    for host in ref.hosts:
        if not host.startswith("*"):
            if host in carried:
                services[host] = None
            elif not ref.is_gateway_api:
                others.append(host)
            continue
        if ref.is_gateway_api:
            others.append(host)
            continue
        covered = [h for h in carried if names.matches(host, h)]
        if not covered:
            others.append(host)
        services.update((h, None) for h in covered if owners.get(h) is ref)
    return tuple(services), tuple(others)


# -- by VirtualService --------------------------------------------------------------------------------------------


@query
def _virtual_service_hosts(
    db: Engine,
    client: SidecarClient,
    port: int,
    place: Place,
    key: Key,
    services: tuple[str, ...],
    others: tuple[str, ...],
) -> Part | None:
    """The virtual hosts of a VirtualService for services, by host, and for hosts of none; None without any route."""
    found = attempt(routes, db, client.routes, key, place)
    if not found:
        return None
    groups: dict[int, list[tuple[Service, Port]]] = {}
    for service in (_carried(db, client, place, host) for host in services):
        for own in _http_ports(service, port):
            groups.setdefault(own.number, []).append((service, own))
    if not groups and port == 80:
        groups[80] = []
    aliases = _aliases(db, client, place)
    made: list[VirtualHost] = []
    for number, members in groups.items():
        for host in others:
            name = f"{names.bracketed(host)}:{number}" if names.is_ip(host) else f"{host}:{number}"
            meant = (host,) if port else (host, f"{host}:{number}")
            made.append(_virtual_host(client, name, meant, found))
        made.extend(_service_host(client, aliases, service, own, found, by_port=port == 0) for service, own in members)
    return part_of(made)


def _carried(db: Engine, client: SidecarClient, place: Place, host: str) -> Service:
    return listed_group(db, client.routes.scope, place.port, place.bind, names.group_of(host))[host]


def _aliases(db: Engine, client: SidecarClient, place: Place) -> tuple[tuple[str, str], ...]:
    return route_aliases(db, client.routes.scope, place.port, place.bind)


def _http_ports(service: Service, port: int) -> Iterator[Port]:
    """The ports of a service that have a virtual host here; `port` 0 means all."""
    return (p for p in service.ports if port in (0, p.number) and (p.protocol.is_http or p.protocol.is_auto))


def _service_host(
    client: SidecarClient,
    aliases: Iterable[tuple[str, str]],
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
    meant = domains.service_domains(
        [service.host, *(alias for alias, host in aliases if host == service.host)],
        client.dns_domain,
        addresses=addresses,
        headless=service.is_kubernetes and service.is_headless,
        port=port.number if by_port else None,
    )
    return _virtual_host(client, _name(service, port), tuple(meant), found)


def _name(service: Service, port: Port) -> str:
    return f"{names.bracketed(service.host)}:{port.number}"


def _virtual_host(
    client: SidecarClient, name: str, meant: tuple[str, ...], found: tuple[EncodedRoute, ...]
) -> VirtualHost:
    return encoded(VirtualHost(name=name, domains=meant, routes=found, attempt_count=client.routes.attempt_count))


# -- services that no VirtualService takes ------------------------------------------------------------------------


@query
def _default_hosts(
    db: Engine, client: SidecarClient, port: int, place: Place, group: str, taken: frozenset[str]
) -> Part:
    """The virtual hosts of the services of a group but for those that are `taken`."""
    aliases = _aliases(db, client, place)
    found: list[VirtualHost] = []
    for host, service in listed_group(db, client.routes.scope, place.port, place.bind, group).items():
        if host not in taken and service.resolution != "alias":
            for own in _http_ports(service, port):
                route = default_route(db, client.routes, host, own.number)
                found.append(_service_host(client, aliases, service, own, (route,), by_port=port == 0))
    return part_of(found)


def default_route(db: Engine, client: RouteClient, host: str, port: int) -> EncodedRoute:
    """The route of a service that no VirtualService takes: everything to its cluster of that port."""
    destination = Destination(host=host, port=PortSelector(number=port))
    target = find_target(db, client, destination, "", Place(port=port))
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
