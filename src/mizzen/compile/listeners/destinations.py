"""Where TCP connections go: destinations of routes as clusters, with what the destination's rule says about TCP.

In: a client and the destinations of one route, or one service as the default. Out: a `TcpRoute`. Idle timeouts, hashing
and tunnels are those of the first destination's DestinationRule, at its top level, as Istio does.
Golden cases: networking/vs-tls-tcp-routes, networking/dr-proxy-protocol-tunnel, networking/mesh-connections.
"""

from collections.abc import Sequence

import msgspec

from mizzen.api.networking.destination import Destination
from mizzen.api.networking.traffic_policy import LoadBalancerSettings, TrafficPolicy, TunnelSettings
from mizzen.api.networking.virtual_service import RouteDestination
from mizzen.api.scalars import Duration
from mizzen.compile.filters.network import TcpRoute, Tunnel, Weighted
from mizzen.compile.filters.stat_names import fill_pattern
from mizzen.incremental import Engine, query
from mizzen.model import destination_rules, mesh, names, scope
from mizzen.model.destination_rules import MergedRule
from mizzen.model.protocols import Protocol
from mizzen.model.proxy import Labels
from mizzen.model.scope import ScopeId
from mizzen.model.services import Service


class Client(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Who connects, as far as routes and rules tell clients apart."""

    scope: ScopeId
    labels: Labels = ()
    """Only those that TLS and TCP routes ask for."""
    rule_labels: Labels = ()
    """Only those that DestinationRules of the client's namespace select by."""

    @property
    def namespace(self) -> str:
        """The client's namespace."""
        return self.scope.namespace


class TcpPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a DestinationRule says about the TCP proxy in front of its host."""

    idle_timeout: Duration | None = None
    max_connection_duration: Duration | None = None
    hash_source_ip: bool = False
    tunnel: Tunnel | None = None


_NOTHING = TcpPolicy()


@query
def tcp_policy(db: Engine, namespace: str, labels: Labels, host: str, service_namespace: str, subset: str) -> TcpPolicy:
    """The policy of a host (and subset) for clients of a namespace."""
    rule = destination_rules.destination_rule(db, namespace, host, service_namespace, labels)
    if rule is None:
        return _NOTHING
    pool = rule.traffic_policy.connection_pool if rule.traffic_policy is not None else None
    tcp = pool.tcp if pool is not None else None
    return TcpPolicy(
        idle_timeout=tcp.idle_timeout if tcp is not None else None,
        max_connection_duration=tcp.max_connection_duration if tcp is not None else None,
        hash_source_ip=_hashes_source_ip(rule, subset),
        tunnel=_tunnel(rule, subset),
    )


def _subset_policy(rule: MergedRule, subset: str) -> TrafficPolicy | None:
    found = rule.subset(subset) if subset else None
    return found.traffic_policy if found is not None else None


def _hashes_source_ip(rule: MergedRule, subset: str) -> bool:
    balancing: LoadBalancerSettings | None = rule.traffic_policy.load_balancer if rule.traffic_policy else None
    own = _subset_policy(rule, subset)
    if own is not None and own.load_balancer is not None:
        balancing = own.load_balancer
    hashing = balancing.consistent_hash if balancing is not None else None
    return hashing is not None and bool(hashing.use_source_ip)


def _tunnel(rule: MergedRule, subset: str) -> Tunnel | None:
    policy = _subset_policy(rule, subset) if subset else rule.traffic_policy
    settings: TunnelSettings | None = policy.tunnel if policy is not None else None
    if settings is None:
        return None
    return Tunnel(
        target=f"{names.bracketed(settings.target_host)}:{settings.target_port}",
        use_post=settings.protocol.upper() == "POST",
    )


def route_to_service(db: Engine, client: Client, service: Service, port: int, protocol: Protocol) -> TcpRoute:
    """Everything to one service. A service of one port is reached there, whatever the listener's port."""
    number = service.ports[0].number if len(service.ports) == 1 else port
    policy = tcp_policy(db, client.namespace, client.rule_labels, service.host, service.namespace, "")
    return _single(db, names.subset_key(names.OUTBOUND, number, "", service.host), service, number, policy, protocol)


def route_to_destinations(
    db: Engine,
    client: Client,
    destinations: Sequence[RouteDestination],
    *,
    origin: tuple[str, str],
    port: int,
    protocol: Protocol,
) -> TcpRoute | None:
    """The route of a VirtualService named `origin` (name, namespace); None where nothing gets anything."""
    name, namespace = origin
    targets = [(d.destination, d.weight) for d in destinations if d.destination is not None]
    if not targets:
        return None
    first = targets[0][0]
    host = names.resolve_host(first.host.lower(), namespace, mesh.domain(db))
    service = scope.scoped_service(db, client.scope, host)
    service_namespace = service.namespace if service is not None else ""
    subset = first.subset if len(targets) == 1 else ""
    policy = tcp_policy(db, client.namespace, client.rule_labels, host, service_namespace, subset)
    if len(targets) == 1:
        number = _port(first, service, port)
        cluster = names.subset_key(names.OUTBOUND, number, first.subset, host) if host else names.UNKNOWN
        return _single(db, cluster, service, number, policy, protocol)
    weighted = tuple(
        Weighted(cluster=_cluster(db, client, destination, namespace, port), weight=weight)
        for destination, weight in targets
        if weight > 0
    )
    if not weighted:
        return None
    return _with_policy(TcpRoute(stat_prefix=f"{name}.{namespace}", weighted=weighted), policy, protocol)


def _cluster(db: Engine, client: Client, destination: Destination, namespace: str, port: int) -> str:
    host = names.resolve_host(destination.host.lower(), namespace, mesh.domain(db))
    if not host:
        return names.UNKNOWN
    service = scope.scoped_service(db, client.scope, host)
    return names.subset_key(names.OUTBOUND, _port(destination, service, port), destination.subset, host)


def _port(destination: Destination, service: Service | None, listener_port: int) -> int:
    if destination.port is not None and destination.port.number:
        return destination.port.number
    if service is not None and len(service.ports) == 1:
        return service.ports[0].number
    return listener_port


def _single(
    db: Engine, cluster: str, service: Service | None, port: int, policy: TcpPolicy, protocol: Protocol
) -> TcpRoute:
    pattern = mesh.mesh_config(db).outbound_cluster_stat_name
    stat_prefix = fill_pattern(pattern, service, port=port) if pattern and service is not None else cluster
    return _with_policy(TcpRoute(stat_prefix=stat_prefix, cluster=cluster), policy, protocol)


def _with_policy(route: TcpRoute, policy: TcpPolicy, protocol: Protocol) -> TcpRoute:
    if policy is _NOTHING and protocol is not Protocol.MONGO:
        return route
    return msgspec.structs.replace(
        route,
        idle_timeout=policy.idle_timeout,
        max_connection_duration=policy.max_connection_duration,
        hash_source_ip=policy.hash_source_ip,
        tunnel=policy.tunnel,
        mongo=protocol is Protocol.MONGO,
    )
