"""Destinations of routes: which cluster a host, subset and port mean, and what its rule says about requests to it.

In: a client and a Destination. Out: a `Target`. Golden cases: networking/subset-split,
networking/dr-consistent-hash, networking/missing-destinations, networking/service-types.
"""

from typing import Any

import msgspec

from mizzen import protos
from mizzen.api.networking.destination import Destination
from mizzen.api.networking.traffic_policy import ConsistentHashLB, TrafficPolicy
from mizzen.compile.filters import alpn
from mizzen.compile.filters.alpn import ROUTE_FILTER
from mizzen.compile.values import duration
from mizzen.incremental import Engine, query
from mizzen.model import destination_rules, mesh, names, scope
from mizzen.model.proxy import Dialect, Labels
from mizzen.model.scope import ScopeId
from mizzen.model.services import Service, visible_service

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


def find_service(db: Engine, client: RouteClient, host: str) -> Service | None:
    """The service that a destination's host means within the client's scope; an alias means what it stands for."""
    found = scope.scoped_service(db, client.scope, host)
    if found is not None or client.scope.sidecar is None:
        return found
    return visible_service(db, host, client.namespace)


@query
def resolve(
    db: Engine, client: RouteClient, destination: Destination, namespace: str, listen_port: int, listed: bool
) -> Target:
    """The cluster of a destination written in `namespace`.

    Without a port of its own the service's only port is meant, else the listener's. `listed` says that the service is
    among those the listener itself knows; one that is imported only as a destination counts as unknown.
    """
    host = names.resolve_host(destination.host.lower(), namespace, mesh.domain(db))
    if not host:
        return Target(cluster="UnknownService", host="", port=listen_port)
    found = scope.scoped_service(db, client.scope, host)
    host = _unalias(db, client, host)
    port = listen_port
    if destination.port is not None and destination.port.number:
        port = destination.port.number
    elif found is not None and listed and len(found.ports) == 1:
        port = found.ports[0].number
    cluster = names.subset_key(names.OUTBOUND, port, destination.subset, host)
    policy = _policy(db, client, host, port, destination.subset)
    hashing = policy.load_balancer.consistent_hash if policy.load_balancer is not None else None
    entry = hash_entry(hashing) if hashing is not None else None
    return Target(
        cluster=cluster,
        host=host,
        port=port,
        hashes=hashing is not None,
        hash_policy=protos.encode(_route_v3.RouteAction(hash_policy=[entry])) if entry is not None else b"",
        alpn=_alpn_override(db, client, host, port, policy),
    )


def _unalias(db: Engine, client: RouteClient, host: str) -> str:
    """The host that an ExternalName service leads to; another host as it is."""
    passed: set[str] = set()
    while host not in passed:
        passed.add(host)
        service = visible_service(db, host, client.namespace)
        if service is None or service.resolution != "alias" or not service.alias_of:
            return host
        host = service.alias_of
    return host


def _policy(db: Engine, client: RouteClient, host: str, port: int, subset_name: str) -> TrafficPolicy:
    service = scope.scoped_service(db, client.scope, host)
    service_namespace = service.namespace if service is not None else ""
    rule = destination_rules.destination_rule(db, client.namespace, host, service_namespace, client.rule_labels)
    if rule is None:
        return TrafficPolicy()
    policy = destination_rules.port_policy(rule.traffic_policy, port)
    subset = rule.subset(subset_name) if subset_name else None
    if subset is not None:
        policy = destination_rules.subset_policy(policy, subset, port)
    return policy or TrafficPolicy()


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


def _alpn_override(db: Engine, client: RouteClient, host: str, port: int, policy: TrafficPolicy) -> bytes:
    """What the listener's ALPN filter must say for this destination instead of its default for HTTP/1.1."""
    if client.dialect != "envoy":
        return b""
    service = scope.scoped_service(db, client.scope, host)
    if service is None or service.external or (policy.tls is not None and policy.tls.mode != "ISTIO_MUTUAL"):
        return protos.encode(alpn.build_route_override(None))
    found = service.port(port)
    http = policy.connection_pool.http if policy.connection_pool is not None else None
    upgraded = http is not None and http.h2_upgrade_policy == "UPGRADE"
    if found is not None and (found.protocol.is_http2 or upgraded):
        return protos.encode(alpn.build_route_override("http2"))
    return b""


def alpn_config(target: Target) -> dict[str, Any]:
    """The per-filter configuration that carries a target's ALPN override."""
    if not target.alpn:
        return {}
    return {ROUTE_FILTER: protos.message_class("google.protobuf.Any").FromString(target.alpn)}
