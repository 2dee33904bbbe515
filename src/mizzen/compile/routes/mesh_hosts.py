"""The virtual hosts of a sidecar's route configuration: those of VirtualServices, then those of services left.

In: the client's scope, the port or socket. Out: virtual hosts sorted by name, each domain in one of them. They are
worked out by VirtualService and by group of hosts, so that what changes one looks at the others only to list them.
Golden cases: networking/vs-*, networking/sidecar-*, networking/se-*.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

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
    route_listener,
)
from mizzen.compile.routes.virtual_hosts import VirtualHost, encoded, with_domains, without_duplicates
from mizzen.compile.routes.virtual_service import EncodedRoute, routes
from mizzen.incremental import Engine, attempt, query
from mizzen.model import mesh, names
from mizzen.model.protocols import Protocol
from mizzen.model.scope import EgressListener
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
    return port == 0 or (listener is not None and listener.protocol is Protocol.HTTP_PROXY)


@query
def port_hosts(db: Engine, client: SidecarClient, port: int, bind: str) -> tuple[VirtualHost, ...]:
    """The virtual hosts of a port, sorted by name, each with the domains that are its own."""
    listener = route_listener(db, client.routes.scope, port, bind)
    if listener is None:
        return ()
    all_ports = serves_every_port(db, client, port, bind)
    listed = list(_hosts(db, client, listener, 0 if all_ports else port, Place(port=port, bind=bind)))
    found = without_duplicates(listed)
    if len(found) < len(listed):
        for name, times in Counter(host.name for host in listed).items():
            if times > 1:
                observed.observe(db, observed.DUPLICATE_DOMAIN, name)
    if all_ports:
        found = [h for h in (_with_ports_only(h) for h in found) if h.domains]
    return tuple(sorted(found, key=lambda h: h.name))


def _with_ports_only(host: VirtualHost) -> VirtualHost:
    """On a listener of every port, only names on port 80 may go without the port."""
    if host.name.endswith(":80"):
        return host
    return with_domains(host, tuple(d for d in host.domains if ":" in d))


def _hosts(
    db: Engine, client: SidecarClient, listener: EgressListener, port: int, place: Place
) -> Iterator[VirtualHost]:
    """Virtual hosts of VirtualServices first, then those of services that none of them took."""
    carried = listed_services(db, client.routes.scope, place.port, place.bind)
    owners = _owners(listener.virtual_services, carried)
    for host in _listed_again(listener.virtual_services) & carried.keys():
        observed.observe(db, observed.DUPLICATE_DOMAIN, f"{host}:{place.port}")
    taken: dict[str, set[str]] = {}
    for ref in listener.virtual_services:
        if port not in (0, 80) and not any(_touches(h, carried) for h in ref.hosts):
            continue
        services, others = _hosts_of(ref, carried, owners)
        found = _virtual_service_hosts(db, client, port, place, ref.key, services, others)
        if found is None:
            continue
        for host in services:
            taken.setdefault(names.group_of(host), set()).add(host)
        yield from found
    left: dict[str, tuple[VirtualHost, ...]] = {}
    for group in groups_listed(db, client.routes.scope, place.port, place.bind):
        left.update(_default_hosts(db, client, port, place, group, frozenset(taken.get(group, ()))))
    for host in carried:
        yield from left.get(host, ())


def _listed_again(refs: tuple[VirtualServiceRef, ...]) -> set[str]:
    """The hosts that more than one VirtualService names."""
    times = Counter(host for ref in refs for host in set(ref.hosts))
    return {host for host, number in times.items() if number > 1}


# -- by VirtualService --------------------------------------------------------------------------------------------


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


@query
def _virtual_service_hosts(
    db: Engine,
    client: SidecarClient,
    port: int,
    place: Place,
    key: Key,
    services: tuple[str, ...],
    others: tuple[str, ...],
) -> tuple[VirtualHost, ...] | None:
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
    return tuple(made)


def _carried(db: Engine, client: SidecarClient, place: Place, host: str) -> Service:
    return listed_group(db, client.routes.scope, place.port, place.bind, names.group_of(host))[host]


def _aliases(db: Engine, client: SidecarClient, place: Place) -> tuple[tuple[str, str], ...]:
    listener = route_listener(db, client.routes.scope, place.port, place.bind)
    return listener.aliases if listener is not None else ()


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
    return _virtual_host(client, f"{names.bracketed(service.host)}:{port.number}", tuple(meant), found)


def _virtual_host(
    client: SidecarClient, name: str, meant: tuple[str, ...], found: tuple[EncodedRoute, ...]
) -> VirtualHost:
    return encoded(VirtualHost(name=name, domains=meant, routes=found, attempt_count=client.routes.attempt_count))


# -- services that no VirtualService takes ------------------------------------------------------------------------


@query
def _default_hosts(
    db: Engine, client: SidecarClient, port: int, place: Place, group: str, taken: frozenset[str]
) -> Mapping[str, tuple[VirtualHost, ...]]:
    """The virtual hosts of the services of a group, by host, but for those that are `taken`."""
    aliases = _aliases(db, client, place)
    found: dict[str, tuple[VirtualHost, ...]] = {}
    for host, service in listed_group(db, client.routes.scope, place.port, place.bind, group).items():
        if host not in taken and service.resolution != "alias":
            made = []
            for own in _http_ports(service, port):
                route = default_route(db, client.routes, host, own.number)
                made.append(_service_host(client, aliases, service, own, (route,), by_port=port == 0))
            found[host] = tuple(made)
    return found


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
