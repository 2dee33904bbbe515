"""The listeners of a gateway, planned.

In: the servers that a gateway serves, and the VirtualServices bound to their Gateways. Out: `GatewayPlan` values, one
for each bind and port; a listener without any chain is none. HTTP is routed by name, everything else by chains.
Golden cases: gateway/merge-one-port, gateway/conflicting-servers, gateway/tcp-servers, gateway/passthrough-sni,
gateway/auto-passthrough.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from mizzen.api.networking.virtual_service import L4MatchAttributes, RouteDestination, TLSMatchAttributes
from mizzen.compile.addresses import Bind, Network
from mizzen.compile.filters import alpn, sds
from mizzen.compile.filters.dialect import Dialect
from mizzen.compile.filters.network import TcpRoute
from mizzen.compile.filters.tls import ServerTls
from mizzen.compile.listeners import destinations, streams
from mizzen.compile.listeners.destinations import Client
from mizzen.compile.listeners.plans import Match
from mizzen.compile.listeners.server_tls import server_tls
from mizzen.incremental import Engine, attempt, query
from mizzen.model import destination_rules, gateways, mesh, names, scope
from mizzen.model.gateways import GatewayServer, GatewayWorkload
from mizzen.model.protocols import Protocol
from mizzen.model.virtual_services import VirtualServiceRef, qualify_gateway, visible_virtual_services


class Router(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A gateway, as far as its listeners follow from it."""

    dialect: Dialect
    client: Client
    workload: GatewayWorkload
    network: Network
    external_sds: bool = False
    """Whether the proxy has a socket for secrets named `sds://…`."""
    file_credential: bool = False


class HttpServer(msgspec.Struct, frozen=True, kw_only=True):
    """A chain that serves HTTP."""

    route_name: str
    stat_name: str = ""
    """The name under which it counts; empty means the listener's."""
    match: Match = Match()
    tls: ServerTls | None = None
    grpc_web: bool = False


class TcpServer(msgspec.Struct, frozen=True, kw_only=True):
    """A chain that passes bytes on."""

    route: TcpRoute
    match: Match = Match()
    tls: ServerTls | None = None
    guarded: bool = True
    """Whether policies apply; traffic of the mesh that only passes through is its server's to judge."""

    @property
    def in_mesh(self) -> bool:
        """Whether it terminates TLS of the mesh."""
        return self.tls is not None and self.tls.mode == "ISTIO_MUTUAL"


class GatewayPlan(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A listener of a gateway."""

    bind: Bind
    port: int
    chains: tuple[HttpServer | TcpServer, ...]

    @property
    def name(self) -> str:
        """The listener's name."""
        return f"{self.bind.address}_{self.port}"


@query
def gateway_plans(db: Engine, router: Router) -> tuple[GatewayPlan, ...]:
    """The listeners, in the order in which servers first ask for them."""
    found: dict[tuple[str, int], list[GatewayServer]] = {}
    for server in gateways.gateway_servers(db, router.workload):
        found.setdefault((server.bind, server.port), []).append(server)
    planned = (
        GatewayPlan(
            bind=Bind(bind) if bind else router.network.virtual_wildcard,
            port=port,
            chains=tuple(_chains(db, router, servers)),
        )
        for (bind, port), servers in found.items()
    )
    return tuple(plan for plan in planned if plan.chains)


def _chains(db: Engine, router: Router, servers: Iterable[GatewayServer]) -> Iterator[HttpServer | TcpServer]:
    """The chains of the servers of one listener; routes and SNI that an earlier one took are not served twice."""
    routes: set[str] = set()
    taken: set[str] = set()
    for server in servers:
        if server.route_name in routes:
            continue
        routes.update({server.route_name} if server.route_name else ())
        by_sni = server.passes_tls_through or server.is_gateway_api
        for chain in attempt(server_chains, db, router, server) or ():
            if by_sni and taken.intersection(chain.match.server_names):
                continue
            taken.update(chain.match.server_names)
            yield chain


@query
def server_chains(db: Engine, router: Router, server: GatewayServer) -> tuple[HttpServer | TcpServer, ...]:
    """The chains that one server asks for."""
    if server.route_name:
        return (_http_server(db, router, server),)
    if not server.passes_tls_through:
        by_name = tuple(_sni_servers(db, router, server)) if server.is_gateway_api and server.is_tls else ()
        return by_name or tuple(_tcp_servers(db, router, server))
    if server.server.tls is not None and server.server.tls.mode == "AUTO_PASSTHROUGH":
        return tuple(_mesh_servers(db, router, server))
    return tuple(_sni_servers(db, router, server))


def _http_server(db: Engine, router: Router, server: GatewayServer) -> HttpServer:
    tls = _tls(db, router, server)
    return HttpServer(
        route_name=server.route_name,
        stat_name=server.server.name if tls is not None else "",
        match=_match(server) if tls is not None else Match(),
        tls=tls,
        grpc_web=server.protocol is Protocol.GRPC_WEB,
    )


def _tls(db: Engine, router: Router, server: GatewayServer) -> ServerTls | None:
    settings = server.server.tls
    if settings is None or not server.is_tls:
        return None
    defaults = mesh.mesh_config(db).tls_defaults
    external = external_sds(db, router.external_sds)
    return server_tls(settings, defaults, external, router.dialect, file_credential=router.file_credential)


@query
def external_sds(db: Engine, socket: bool) -> sds.ExternalSds:
    """How a gateway reaches secrets that neither it nor the control plane has."""
    for provider in mesh.mesh_config(db).extension_providers:
        if provider.sds is not None:
            cluster = names.subset_key(names.OUTBOUND, provider.sds.port, "", provider.sds.service)
            return sds.ExternalSds(socket=socket, cluster=cluster, authority=provider.sds.service)
    return sds.ExternalSds(socket=socket)


def _match(server: GatewayServer) -> Match:
    """The names of a server; one that takes any name takes any connection."""
    hosts = server.bare_hosts
    return Match() if "*" in hosts else Match(server_names=hosts)


# -- routes of VirtualServices ----------------------------------------------------------------------------------------


def _bound(db: Engine, router: Router, server: GatewayServer) -> Iterator[tuple[VirtualServiceRef, streams.Streams]]:
    """The VirtualServices with TLS or TCP routes for a server's hosts."""
    for ref in visible_virtual_services(db, router.client.namespace, server.qualified_gateway):
        narrowed = (gateways.narrower_host(own, ref.namespace, theirs) for own in server.hosts for theirs in ref.hosts)
        if any(host is not None for host in narrowed) and (found := streams.streams(db, ref)) is not None:
            yield ref, found


def _is_for(match: TLSMatchAttributes | L4MatchAttributes, ref: VirtualServiceRef, server: GatewayServer) -> bool:
    if match.port and match.port != server.number:
        return False
    return not match.gateways or any(
        qualify_gateway(g, ref.namespace) == server.qualified_gateway for g in match.gateways
    )


def _tcp_servers(db: Engine, router: Router, server: GatewayServer) -> Iterator[TcpServer]:
    """The first rule for the server gets everything; without one there is nothing to serve."""
    for ref, found in _bound(db, router, server):
        for rule in found.tcp:
            if rule.match and not any(_is_for(m, ref, server) for m in rule.match):
                continue
            route = _route(db, router, server, ref, rule.route)
            if route is None:
                continue
            tls = _tls(db, router, server)
            yield TcpServer(route=route, match=_match(server) if tls is not None else Match(), tls=tls)
            return


def _sni_servers(db: Engine, router: Router, server: GatewayServer) -> Iterator[TcpServer]:
    """One chain for each match by SNI; a server that terminates TLS, as only the Gateway API has it, lends its TLS."""
    for ref, found in _bound(db, router, server):
        for rule in found.tls:
            for match in rule.match:
                if not _is_for(match, ref, server):
                    continue
                route = _route(db, router, server, ref, rule.route)
                if route is not None:
                    tls = _tls(db, router, server)
                    yield TcpServer(route=route, match=Match(server_names=match.sni_hosts), tls=tls)


def _route(
    db: Engine, router: Router, server: GatewayServer, ref: VirtualServiceRef, written: Sequence[RouteDestination]
) -> TcpRoute | None:
    return destinations.route_to_destinations(
        db,
        router.client,
        written,
        origin=(ref.key.name, ref.namespace),
        port=server.number,
        protocol=server.protocol,
    )


def _mesh_servers(db: Engine, router: Router, server: GatewayServer) -> Iterator[TcpServer]:
    """One chain for each port and subset of the services that the server admits, by the SNI of mesh TLS."""
    client = router.client
    for service in scope.scope_services(db, client.scope):
        if service.external or service.resolution == "alias" or not _admits(server, service.namespace, service.host):
            continue
        rule = destination_rules.destination_rule(
            db, client.namespace, service.host, service.namespace, client.rule_labels
        )
        subsets = ("", *(s.name for s in rule.subsets)) if rule is not None else ("",)
        policy = destinations.tcp_policy(db, client.namespace, client.rule_labels, service.host, service.namespace, "")
        for port in service.ports:
            if port.protocol is Protocol.UDP:
                continue
            for subset in subsets:
                name = names.sni_key(port.number, subset, service.host)
                route = TcpRoute(
                    stat_prefix=name,
                    cluster=name,
                    idle_timeout=policy.idle_timeout,
                    max_connection_duration=policy.max_connection_duration,
                    hash_source_ip=policy.hash_source_ip,
                )
                yield TcpServer(route=route, match=Match(server_names=(name,), alpn=alpn.MESH_ALL), guarded=False)


def _admits(server: GatewayServer, namespace: str, host: str) -> bool:
    for own in server.hosts:
        space, _, pattern = own.partition("/")
        if space in ("*", namespace) and names.matches(pattern, host):
            return True
    return False
