"""The per-port listeners of a sidecar, planned.

In: a client's scope and where its proxy may listen. Out: `OutboundPlan` values, one for each address and port. HTTP of
a port shares the wildcard address, every other service has a listener of its own. Sidecar egress listeners with a port
come first and keep their places; a headless service has a listener for each of its endpoints.
Golden cases: base, networking/protocol-conflicts, networking/headless-services, networking/sidecar-egress-listeners,
networking/se-static-and-none, networking/se-wildcards.
"""

from collections.abc import Iterator

import msgspec

from mizzen.compile import addresses, observed
from mizzen.compile.addresses import Bind, Network
from mizzen.compile.filters.network import DnsCache
from mizzen.compile.listeners import streams
from mizzen.compile.listeners.conflicts import Entry, Kind, Place, Standing
from mizzen.compile.listeners.destinations import Client
from mizzen.compile.listeners.plans import Chain, HttpChain, Match, OutboundPlan
from mizzen.compile.listeners.streams import Target
from mizzen.incremental import Engine, attempt, barrier, query
from mizzen.model import endpoints, mesh, names, scope
from mizzen.model.protocols import Protocol
from mizzen.model.scope import ScopeId
from mizzen.model.services import UNSPECIFIED, Port, Service
from mizzen.model.virtual_services import VirtualServiceRef

_FIRST_UNPRIVILEGED = 1024


class Ground(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Where a proxy may listen; the same for most proxies of a mesh."""

    network: Network
    captured: bool = True
    """False in interception mode NONE: listeners really listen."""
    reserved: tuple[int, ...] = ()
    """Ports that a listener on all addresses may not take."""
    unprivileged: bool = False
    plain_alpn: tuple[str, ...] = ("http/1.1", "h2c")


class Egress(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """An egress listener without what it carries."""

    port: int
    protocol: Protocol
    bind: str
    captured: bool
    catch_all: bool


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A place that a service asks for, before it is known who connects to it and how."""

    bind: Bind
    port: int
    kind: Kind
    protocol: Protocol
    bound: bool
    target: Target | None = None
    """The TCP side; the chains follow from the client's routes and rules."""
    http: HttpChain | None = None
    endpoint: bool = False
    """Whether it is for one endpoint of a headless service."""
    overwrites: bool = False


@query
def outbound_plans(db: Engine, client: Client, ground: Ground, own_address: str) -> tuple[OutboundPlan, ...]:
    """The listeners, in the order in which their places were first taken.

    `own_address` is the proxy's first address where it is an endpoint of a headless service that it imports, else
    empty: a workload does not reach itself through such a listener.
    """
    standing: dict[Place, Standing] = {}
    locked: frozenset[Place] = frozenset()
    for index, shape in enumerate(scope.egress_shapes(db, client.scope)):
        if shape.is_catch_all:
            locked = frozenset(standing)
        for entry in _listener_entries(db, client, ground, own_address, index):
            place = entry.place
            if place in locked:
                continue
            if (current := standing.get(place)) is None:
                standing[place] = Standing(entry)
            elif current.add(entry):
                observed.observe(db, observed.OUTBOUND_CONFLICT, f"{place.address}_{place.port}")
    return tuple(
        OutboundPlan(bind=s.entry.bind, port=s.entry.port, chains=tuple(s.chains), bound=s.entry.bound)
        for s in standing.values()
        if s.chains
    )


def _listener_entries(db: Engine, client: Client, ground: Ground, own_address: str, index: int) -> Iterator[Entry]:
    selected = scope.services_scope(db, client.scope)
    aliases = scope.egress_aliases(db, selected, index)
    own_domain = f"{client.namespace}.svc.{mesh.domain(db)}" if aliases else ""
    refs = streams.stream_services(db, client.scope, index)
    for asked in _listener_places(db, selected, ground, index, own_domain):
        if asked.endpoint and asked.bind.address == own_address:
            continue
        own_refs = streams.select_for_host(refs, asked.target.service.host) if refs and asked.target else ()
        yield _entry(db, client, asked, own_refs)


@barrier
def _listener_places(db: Engine, selected: ScopeId, ground: Ground, index: int, own_domain: str) -> tuple[Asked, ...]:
    """The places that the services of an egress listener ask for, the same for all clients that see these services.

    `own_domain` is where the client looks up short names, if there are aliases. Of HTTP at one place the first counts,
    whatever comes between: those of a port need not be looked at one by one for each client.
    """
    listener = scope.egress_services(db, selected)[index]
    egress = Egress(
        port=listener.port,
        protocol=listener.protocol,
        bind=listener.bind,
        captured=ground.captured and listener.capture_mode != "NONE" and not listener.bind.startswith(addresses.UNIX),
        catch_all=listener.is_catch_all,
    )
    aliases: dict[str, tuple[str, ...]] = {}
    for alias, host in listener.aliases:
        aliases[host] = (*aliases.get(host, ()), alias, *names.alternates(alias, own_domain))
    found: list[Asked] = []
    served: dict[Place, Kind] = {}
    for service in listener.services:
        if service.resolution == "alias":
            continue
        for asked in attempt(asked_places, db, ground, egress, service, aliases.get(service.host, ())) or ():
            if asked.target is None:
                place = Place(asked.bind.address, asked.port)
                if served.get(place) in ("auto", asked.kind) and not asked.overwrites:
                    continue
                served[place] = asked.kind
            found.append(asked)
    return tuple(found)


def _entry(db: Engine, client: Client, asked: Asked, refs: tuple[VirtualServiceRef, ...]) -> Entry:
    chains: tuple[Chain, ...] = streams.chains(db, client, asked.target, refs) if asked.target is not None else ()
    return Entry(
        bind=asked.bind,
        port=asked.port,
        kind=asked.kind,
        protocol=asked.protocol,
        chains=(*chains, asked.http) if asked.http is not None else chains,
        bound=asked.bound,
        overwrites=asked.overwrites,
    )


def headless_addresses(db: Engine, scope_id: ScopeId) -> frozenset[str]:
    """The endpoint addresses of headless services in a scope: proxies there have no listener for themselves."""
    return _headless_addresses(db, scope.services_scope(db, scope_id))


@barrier
def _headless_addresses(db: Engine, scope_id: ScopeId) -> frozenset[str]:
    return frozenset(
        endpoint.address
        for listener in scope.egress_services(db, scope_id)
        if listener.is_catch_all
        for service in listener.services
        if _by_endpoint(service)
        for endpoint in endpoints.service_endpoints(db, service.id)
    )


def _by_endpoint(service: Service) -> bool:
    return service.is_headless and service.address == UNSPECIFIED


# -- what one service asks for ----------------------------------------------------------------------------------------


@query
def asked_places(
    db: Engine, ground: Ground, egress: Egress, service: Service, aliases: tuple[str, ...]
) -> tuple[Asked, ...]:
    """The places that a service asks for, on each of its ports that the egress listener carries.

    On a listener with a port, that port's number and protocol count, whatever the service says.
    """
    ports = service.ports if egress.catch_all else (Port(egress.port, "", egress.protocol),)
    return tuple(
        asked
        for port in ports
        if port.protocol is not Protocol.UDP and _may_listen(ground, egress, port)
        for asked in _port_places(db, ground, egress, service, port, aliases)
    )


def _may_listen(ground: Ground, egress: Egress, port: Port) -> bool:
    if not egress.captured and ground.unprivileged and port.number < _FIRST_UNPRIVILEGED:
        return False
    on_all = ground.network.is_wildcard(egress.bind) if egress.bind else egress.captured and port.protocol.is_http
    return not (on_all and port.number in ground.reserved)


def _port_places(
    db: Engine, ground: Ground, egress: Egress, service: Service, port: Port, aliases: tuple[str, ...]
) -> Iterator[Asked]:
    bind, cidr = _bind(ground, egress, service, port)
    if port.protocol.is_http:
        yield _asked_http(ground, egress, service, port, bind)
        return
    if egress.catch_all and egress.captured and not egress.bind and _by_endpoint(service):
        found = endpoints.port_endpoints(db, service.id, port.name)
        if found or service.is_kubernetes or service.selector:
            for address in dict.fromkeys(e.address for e in found if e.is_ip):
                yield _asked_stream(ground, egress, service, port, Bind(address), "", aliases, endpoint=True)
            return
    yield _asked_stream(ground, egress, service, port, bind, cidr, aliases)


def _bind(ground: Ground, egress: Egress, service: Service, port: Port) -> tuple[Bind, str]:
    """Where to listen, and the range of addresses that only a chain's match can tell from others."""
    if egress.bind:
        return Bind(egress.bind), ""
    if not egress.captured:
        return ground.network.localhost, ""
    if port.protocol.is_http:
        return ground.network.wildcard, ""
    bind = addresses.service_bind(service, ground.network)
    if "/" in bind.address:
        return ground.network.wildcard, bind.address
    return (ground.network.wildcard if bind.address == UNSPECIFIED else bind), ""


def _asked_http(ground: Ground, egress: Egress, service: Service, port: Port, bind: Bind) -> Asked:
    proxied = port.protocol is Protocol.HTTP_PROXY
    everywhere = ground.network.is_wildcard(bind.address) and not proxied
    return Asked(
        bind=bind,
        port=port.number,
        kind="auto" if everywhere else "http",
        protocol=port.protocol,
        bound=not egress.captured,
        overwrites=proxied,
        http=HttpChain(
            route_name=bind.address if bind.is_unix else str(port.number),
            match=Match(transport="raw_buffer", alpn=ground.plain_alpn) if everywhere else Match(),
            dynamic_dns=_dynamic_dns(ground, service),
            grpc_web=port.protocol is Protocol.GRPC_WEB,
        ),
    )


def _dynamic_dns(ground: Ground, service: Service, port: int = 0) -> DnsCache | None:
    if service.resolution != "dynamic_dns" or not service.host.startswith("*"):
        return None
    return DnsCache(name=f"{service.host}_dfp_dns_cache", family=ground.network.dns_family, port=port)


def _asked_stream(
    ground: Ground,
    egress: Egress,
    service: Service,
    port: Port,
    bind: Bind,
    cidr: str,
    aliases: tuple[str, ...],
    *,
    endpoint: bool = False,
) -> Asked:
    """The place of a TCP port or of one whose protocol is looked at."""
    everywhere = ground.network.is_wildcard(bind.address)
    cache = _dynamic_dns(ground, service, port.number) if port.protocol.is_tls else None
    http = None
    if port.protocol.is_auto:
        http = HttpChain(
            route_name=str(port.number) if everywhere else f"{service.host}:{port.number}",
            match=Match(transport="raw_buffer", alpn=ground.plain_alpn),
            dynamic_dns=_dynamic_dns(ground, service),
        )
    return Asked(
        bind=bind,
        port=port.number,
        kind="auto" if http is not None else "tcp",
        protocol=port.protocol,
        bound=not egress.captured,
        endpoint=endpoint,
        http=http,
        target=Target(
            service=service,
            port=0 if bind.is_unix else port.number,
            protocol=port.protocol,
            cidr=cidr,
            by_name=cache is not None or (everywhere and service.address == UNSPECIFIED),
            aliases=aliases,
            sni_forward=cache,
        ),
    )
