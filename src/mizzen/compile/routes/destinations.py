"""Destinations of routes: which cluster a host, subset and port mean, and what its rule says about requests to it.

In: a client and a Destination. Out: a `Target`. Golden cases: networking/subset-split,
networking/dr-consistent-hash, networking/missing-destinations, networking/service-types.
"""

from typing import Any

import msgspec

from mizzen import protos
from mizzen.api.networking.destination import Destination
from mizzen.api.networking.traffic_policy import ConsistentHashLB, LoadBalancerSettings
from mizzen.compile.filters import alpn
from mizzen.compile.filters.alpn import ROUTE_FILTER
from mizzen.compile.upstreams import select_upstream
from mizzen.compile.values import duration
from mizzen.incremental import Engine, barrier, query
from mizzen.model import destination_rules, mesh, names, scope
from mizzen.model.destination_rules import MergedRule
from mizzen.model.protocols import Protocol
from mizzen.model.proxy import Dialect, Labels
from mizzen.model.scope import EgressListener, ScopeId
from mizzen.model.services import Service, visible_service
from mizzen.model.virtual_services import MESH_GATEWAY

_route_v3 = protos.package("envoy.config.route.v3")


class RouteClient(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A client as its routes depend on it."""

    scope: ScopeId
    dialect: Dialect
    source_labels: Labels = ()
    """Its labels, as far as VirtualServices match sources by them."""
    rule_labels: Labels = ()
    """Its labels, as far as DestinationRules select by them."""
    attempt_count: bool = True
    forwarded_host: bool = False
    is_router: bool = False

    @property
    def namespace(self) -> str:
        """The client's namespace."""
        return self.scope.namespace


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A destination as one cluster."""

    cluster: str
    host: str
    port: int
    hashes: bool = False
    """Whether requests are hashed, so that retries should stay with the chosen host."""
    hash_policy: bytes = b""
    """An encoded RouteAction that holds nothing but the hash policies."""
    alpn: bytes = b""
    """Dialect `envoy`: the encoded override of the ALPN filter, where the destination needs one."""


class Place(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Where routes are rendered: on which port, for which gateway."""

    port: int
    """The route's port, 0 for routes of every port; on a gateway the server's port."""
    bind: str = ""
    """The Unix socket of a Sidecar's listener."""
    gateway: str = MESH_GATEWAY
    is_tls: bool = False
    http3: bool = False


def _select(listeners: tuple[EgressListener, ...], port: int, bind: str) -> int | None:
    """The place of a route's egress listener: the one of its port or socket, else the catch-all."""
    for place, listener in enumerate(listeners):
        if (bind and listener.bind == bind) or (port and not bind and listener.port == port):
            return place
    return next((place for place, listener in enumerate(listeners) if listener.is_catch_all), None)


def route_listener(db: Engine, scope_id: ScopeId, port: int, bind: str) -> EgressListener | None:
    """The egress listener of a route, without its services: those are asked for apart, as they change more often."""
    place = _select(scope.egress_shapes(db, scope_id), port, bind)
    return scope.egress_routes(db, scope_id, place) if place is not None else None


def route_aliases(db: Engine, scope_id: ScopeId, port: int, bind: str) -> tuple[tuple[str, str], ...]:
    """The aliases and the hosts that they stand for, of the same listener."""
    place = _select(scope.egress_shapes(db, scope_id), port, bind)
    return scope.egress_aliases(db, scope.services_scope(db, scope_id), place) if place is not None else ()


@query
def _services_by_port(db: Engine, scope_id: ScopeId, place: int) -> dict[int, dict[str, Service]]:
    """The services of an egress listener by port and host, those of every port under 0; of several objects the last."""
    by_port: dict[int, dict[str, Service]] = {0: {}}
    for service in scope.egress_services(db, scope_id)[place].services:
        by_port[0][service.host] = service
        for port in service.ports:
            by_port.setdefault(port.number, {})[service.host] = service
    return by_port


def listed_services(db: Engine, scope_id: ScopeId, port: int, bind: str) -> dict[str, Service]:
    """The services that a sidecar's route of that port knows, by host."""
    return _listed_services(db, scope.services_scope(db, scope_id), port, bind)


@query
def _listed_services(db: Engine, scope_id: ScopeId, port: int, bind: str) -> dict[str, Service]:
    listeners = scope.egress_shapes(db, scope_id)
    place = _select(listeners, port, bind)
    if place is None:
        return {}
    every = listeners[place].protocol is Protocol.HTTP_PROXY
    return _services_by_port(db, scope_id, place).get(0 if every else port, {})


@query
def _listed_groups(db: Engine, scope_id: ScopeId, port: int, bind: str) -> dict[str, dict[str, Service]]:
    groups: dict[str, dict[str, Service]] = {}
    for host, service in _listed_services(db, scope_id, port, bind).items():
        groups.setdefault(names.group_of(host), {})[host] = service
    return groups


def listed_group(db: Engine, scope_id: ScopeId, port: int, bind: str, group: str) -> dict[str, Service]:
    """Those of one group of hosts (`names.group_of`). Reads all of them, but changes only with the group's."""
    return _listed_group(db, scope.services_scope(db, scope_id), port, bind, group)


@barrier
def _listed_group(db: Engine, scope_id: ScopeId, port: int, bind: str, group: str) -> dict[str, Service]:
    return _listed_groups(db, scope_id, port, bind).get(group, {})


def groups_listed(db: Engine, scope_id: ScopeId, port: int, bind: str) -> tuple[str, ...]:
    """The groups that are not empty."""
    return tuple(_listed_groups(db, scope.services_scope(db, scope_id), port, bind))


def is_listed(db: Engine, scope_id: ScopeId, place: Place, host: str) -> bool:
    """Whether a destination is known where the route is; one imported only as a destination is not, nor is one
    without the route's port."""
    if place.gateway != MESH_GATEWAY:
        return scope.scoped_service(db, scope_id, host) is not None
    return host in listed_group(db, scope_id, place.port, place.bind, names.group_of(host))


@query
def resolve(db: Engine, client: RouteClient, destination: Destination, namespace: str, place: Place) -> Target:
    """The cluster of a destination written in `namespace`; `find_target` for those who ask for many."""
    return find_target(db, client, destination, namespace, place)


def find_target(db: Engine, client: RouteClient, destination: Destination, namespace: str, place: Place) -> Target:
    """The cluster of a destination written in `namespace`, not remembered for itself.

    Without a port of its own the only port of a service that is known here is meant, else the route's.
    """
    host = names.resolve_host(destination.host.lower(), namespace, mesh.domain(db))
    if not host:
        return Target(cluster=names.UNKNOWN, host="", port=place.port)
    host = _unalias(db, client, host, place)
    port = place.port
    if destination.port is not None and destination.port.number:
        port = destination.port.number
    elif is_listed(db, client.scope, place, host):
        found = scope.scoped_service(db, client.scope, host)
        if found is not None and len(found.ports) == 1:
            port = found.ports[0].number
    cluster = names.subset_key(names.OUTBOUND, port, destination.subset, host)
    named_port = destination.port.number if destination.port is not None else 0
    hashing = _consistent_hash(db, client, host, named_port, destination.subset)
    entry = hash_entry(hashing) if hashing is not None else None
    return Target(
        cluster=cluster,
        host=host,
        port=port,
        hashes=hashing is not None,
        hash_policy=protos.encode(_route_v3.RouteAction(hash_policy=[entry])) if entry is not None else b"",
        alpn=_alpn_override(db, client, host, port, destination.subset),
    )


def _unalias(db: Engine, client: RouteClient, host: str, place: Place) -> str:
    """The host that an ExternalName service stands for, one step on, where the alias itself is known."""
    service = visible_service(db, host, client.namespace)
    if service is None or service.resolution != "alias" or not is_listed(db, client.scope, place, host):
        return host
    return service.alias_of


def _rule(db: Engine, client: RouteClient, host: str) -> MergedRule | None:
    service = scope.scoped_service(db, client.scope, host)
    service_namespace = service.namespace if service is not None else ""
    return destination_rules.destination_rule(db, client.namespace, host, service_namespace, client.rule_labels)


def _consistent_hash(
    db: Engine, client: RouteClient, host: str, port: int, subset_name: str
) -> ConsistentHashLB | None:
    """The first hash that the rule sets: for the subset's port, the subset, the port (if named), the host."""
    rule = _rule(db, client, host)
    if rule is None:
        return None
    subset = rule.subset(subset_name) if subset_name else None
    levels: list[LoadBalancerSettings | None] = []
    for policy in (subset.traffic_policy if subset is not None else None, rule.traffic_policy):
        if policy is None:
            continue
        levels += [p.load_balancer for p in policy.port_level_settings if p.port is not None and p.port.number == port]
        levels.append(policy.load_balancer)
    return next((b.consistent_hash for b in levels if b is not None and b.consistent_hash is not None), None)


def hash_entry(settings: ConsistentHashLB) -> dict[str, Any] | None:
    """What to hash on, as one entry of a hash policy."""
    if settings.http_header_name is not None:
        return {"header": {"header_name": settings.http_header_name}}
    if settings.http_cookie is not None:
        cookie = settings.http_cookie
        fields: dict[str, Any] = {"name": cookie.name, "path": cookie.path}
        if cookie.ttl is not None:
            fields["ttl"] = duration(cookie.ttl)
        if cookie.attributes:
            fields["attributes"] = [{"name": a.name, "value": a.value} for a in cookie.attributes]
        return {"cookie": fields}
    if settings.use_source_ip is not None:
        return {"connection_properties": {"source_ip": settings.use_source_ip}}
    if settings.http_query_parameter_name is not None:
        return {"query_parameter": {"name": settings.http_query_parameter_name}}
    return None


def _alpn_override(db: Engine, client: RouteClient, host: str, port: int, subset_name: str) -> bytes:
    """What the listener's ALPN filter must say for this destination instead of its default for HTTP/1.1."""
    if client.dialect != "envoy":
        return b""
    policy = destination_rules.effective_policy(_rule(db, client, host), port, subset_name)
    if policy.tls is not None and policy.tls.mode in ("SIMPLE", "MUTUAL"):
        return protos.encode(alpn.build_route_override(None))
    service = scope.scoped_service(db, client.scope, host)
    found = service.port(port) if service is not None else None
    if found is None:
        return b""
    config = mesh.mesh_config(db)
    pool = policy.connection_pool
    if pool is None and config.default_traffic_policy is not None:
        pool = config.default_traffic_policy.connection_pool
    http = pool.http if pool is not None else None
    upstream = select_upstream(http, found.protocol, config, sniffs=not client.is_router)
    return protos.encode(alpn.build_route_override(upstream)) if upstream else b""


def alpn_config(target: Target) -> dict[str, Any]:
    """The per-filter configuration that carries a target's ALPN override."""
    if not target.alpn:
        return {}
    return {ROUTE_FILTER: protos.message_class("google.protobuf.Any").FromString(target.alpn)}
