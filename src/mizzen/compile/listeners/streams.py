"""TLS and TCP routes of VirtualServices as chains of a sidecar's listener.

In: a client, a service and its port, and the VirtualServices that may speak for the host. Out: chains, most specific
matches beside each other; what a proxy can check itself (gateway, labels, port, namespace) is decided here, what only
a connection shows (SNI, destination subnets) becomes the chain's match.
Golden cases: networking/vs-tls-tcp-routes, networking/missing-destinations, networking/service-types.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from mizzen.api.networking.virtual_service import L4MatchAttributes, TCPRoute, TLSMatchAttributes, TLSRoute
from mizzen.compile.filters.network import DnsCache
from mizzen.compile.listeners import destinations
from mizzen.compile.listeners.destinations import Client
from mizzen.compile.listeners.plans import Match, TcpChain
from mizzen.incremental import Engine, attempt, barrier, query
from mizzen.model import names, scope, virtual_services
from mizzen.model.protocols import Protocol
from mizzen.model.proxy import Labels
from mizzen.model.scope import ScopeId
from mizzen.model.services import Service
from mizzen.model.virtual_services import MESH_GATEWAY, VirtualServiceRef


class Streams(msgspec.Struct, frozen=True, kw_only=True):
    """The TLS and TCP routes of one VirtualService."""

    tls: tuple[TLSRoute, ...]
    tcp: tuple[TCPRoute, ...]


class Target(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """One port of a service as a listener carries it."""

    service: Service
    port: int
    """The listener's port; 0 for a Unix socket."""
    protocol: Protocol
    cidr: str = ""
    """The service's own range of addresses, if that is its address."""
    by_name: bool = False
    """Whether only the SNI tells the service's TLS from others'."""
    aliases: tuple[str, ...] = ()
    """Further names that clients may ask for."""
    sni_forward: DnsCache | None = None
    """The cache by which a host with a wildcard is resolved as its names are asked for."""


@query
def streams(db: Engine, ref: VirtualServiceRef) -> Streams | None:
    """The routes for other than HTTP; None for a VirtualService without any."""
    found = virtual_services.virtual_service(db, ref.key)
    if found is None or not (found.spec.tls or found.spec.tcp):
        return None
    return Streams(tls=found.spec.tls, tcp=found.spec.tcp)


def stream_services(db: Engine, scope_id: ScopeId, listener: int) -> tuple[VirtualServiceRef, ...]:
    """The VirtualServices of an egress listener (by its place in the scope) that have TLS or TCP routes."""
    return _stream_services(db, scope.routes_scope(db, scope_id), listener)


@barrier
def _stream_services(db: Engine, scope_id: ScopeId, listener: int) -> tuple[VirtualServiceRef, ...]:
    refs = scope.egress_routes(db, scope_id, listener).virtual_services
    return tuple(ref for ref in refs if attempt(streams, db, ref) is not None)


def source_labels(db: Engine, scope_id: ScopeId, labels: Labels) -> Labels:
    """Those of a client's labels that TLS and TCP routes ask for; the rest makes no difference."""
    asked = _asked_labels(db, scope_id)
    return tuple(pair for pair in labels if pair[0] in asked)


@query
def _asked_labels(db: Engine, scope_id: ScopeId) -> frozenset[str]:
    found: set[str] = set()
    for index in range(len(scope.egress_shapes(db, scope_id))):
        for ref in stream_services(db, scope_id, index):
            routes = streams(db, ref)
            if routes is not None:
                found.update(name for route in routes.tls for match in route.match for name in match.source_labels)
                found.update(name for route in routes.tcp for match in route.match for name in match.source_labels)
    return frozenset(found)


def select_for_host(refs: Iterable[VirtualServiceRef], host: str) -> tuple[VirtualServiceRef, ...]:
    """Those that speak for the host; either side's wildcard may cover the other."""
    return tuple(ref for ref in refs if any(names.overlap(h, host) for h in ref.hosts))


def chains(db: Engine, client: Client, target: Target, refs: tuple[VirtualServiceRef, ...]) -> tuple[TcpChain, ...]:
    """The TCP chains of a service's port; where no VirtualService speaks for it, not worth a query of its own.

    Where the VirtualServices together cannot be compiled, those that can be by themselves remain.
    """
    if refs:
        found = attempt(routed_chains, db, client, target, refs)
        if found is not None:
            return found
        refs = tuple(ref for ref in refs if attempt(routed_chains, db, client, target, (ref,)) is not None)
    return _build_chains(db, client, target, refs)


@query
def routed_chains(
    db: Engine, client: Client, target: Target, refs: tuple[VirtualServiceRef, ...]
) -> tuple[TcpChain, ...]:
    """The TCP chains of a port whose host VirtualServices speak for."""
    return _build_chains(db, client, target, refs)


def _build_chains(
    db: Engine, client: Client, target: Target, refs: tuple[VirtualServiceRef, ...]
) -> tuple[TcpChain, ...]:
    if target.protocol.is_tls:
        return tuple(_tls_chains(db, client, target, refs)) or (_default_tls_chain(db, client, target),)
    return tuple(_tcp_chains(db, client, target, refs))


# -- TLS --------------------------------------------------------------------------------------------------------------


def _tls_chains(db: Engine, client: Client, target: Target, refs: Iterable[VirtualServiceRef]) -> Iterator[TcpChain]:
    handled: set[tuple[frozenset[str], frozenset[str]]] = set()
    prefixes: tuple[str, ...] = (target.cidr,) if target.cidr else ()
    for ref, route, match in _tls_matches(db, refs):
        if not _may_match(match, client, target):
            continue
        if match.destination_subnets and target.port:
            prefixes = match.destination_subnets
        key = (frozenset(match.sni_hosts), frozenset(match.destination_subnets))
        if key in handled:
            continue
        handled.add(key)
        chain = _chain(db, client, target, ref, route, Match(server_names=match.sni_hosts, prefixes=prefixes))
        if chain is not None:
            yield chain


def _tls_matches(
    db: Engine, refs: Iterable[VirtualServiceRef]
) -> Iterator[tuple[VirtualServiceRef, TLSRoute, TLSMatchAttributes]]:
    for ref, found in _routes(db, refs):
        for route in found.tls:
            yield from ((ref, route, match) for match in route.match)


def _default_tls_chain(db: Engine, client: Client, target: Target) -> TcpChain:
    server_names = (target.service.host, *target.aliases) if target.cidr or target.by_name else ()
    match = Match(server_names=server_names, prefixes=(target.cidr,) if target.cidr else ())
    route = destinations.route_to_service(db, client, target.service, target.port, target.protocol)
    if target.sni_forward is not None:
        route = msgspec.structs.replace(route, sni_forward=target.sni_forward)
    return TcpChain(match=match, route=route)


# -- TCP --------------------------------------------------------------------------------------------------------------


def _tcp_chains(db: Engine, client: Client, target: Target, refs: Iterable[VirtualServiceRef]) -> Iterator[TcpChain]:
    own: tuple[str, ...] = (target.cidr,) if target.cidr else ()
    taken = False
    for ref, route in ((ref, route) for ref, found in _routes(db, refs) for route in found.tcp):
        matches = [m for m in route.match if _may_match(m, client, target)]
        if not route.match or any(not m.destination_subnets or not target.port for m in matches):
            chain = _chain(db, client, target, ref, route, Match(prefixes=own))
            if chain is None:
                continue
            yield chain
            return
        subnets = tuple(subnet for m in matches for subnet in m.destination_subnets)
        if not subnets:
            continue
        chain = _chain(db, client, target, ref, route, Match(prefixes=subnets))
        if chain is not None:
            yield msgspec.structs.replace(chain, origin="")
            taken = taken or sorted(subnets) == sorted(own)
    if not taken:
        route_to = destinations.route_to_service(db, client, target.service, target.port, target.protocol)
        yield TcpChain(match=Match(prefixes=own), route=route_to)


# -- both -------------------------------------------------------------------------------------------------------------


def _routes(db: Engine, refs: Iterable[VirtualServiceRef]) -> Iterator[tuple[VirtualServiceRef, Streams]]:
    for ref in refs:
        found = streams(db, ref)
        if found is not None:
            yield ref, found


def _chain(
    db: Engine,
    client: Client,
    target: Target,
    ref: VirtualServiceRef,
    route: TLSRoute | TCPRoute,
    match: Match,
) -> TcpChain | None:
    origin = (ref.key.name, ref.key.namespace)
    found = destinations.route_to_destinations(
        db, client, route.route, origin=origin, port=target.port, protocol=target.protocol
    )
    return TcpChain(match=match, route=found, origin=ref.config_path) if found is not None else None


def _may_match(match: TLSMatchAttributes | L4MatchAttributes, client: Client, target: Target) -> bool:
    """Whether what is known of the client and the listener fits; the rest is for the connection to show."""
    if match.gateways and MESH_GATEWAY not in match.gateways:
        return False
    if match.port and match.port != target.port:
        return False
    if match.source_namespace and match.source_namespace != client.namespace:
        return False
    return _has(client.labels, match.source_labels)


def _has(labels: Labels, asked: Mapping[str, str]) -> bool:
    return set(asked.items()) <= set(labels)
