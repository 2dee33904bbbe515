"""Inbound clusters: one for each port that a sidecar's own workload serves.

In: the workload's service targets. Out: clusters that reach the application itself. Sidecar ingress listeners have
theirs in `ingress`. Golden cases: golden base, networking/shared-workloads, networking/dr-connection-pool.
"""

from typing import Any

from mizzen.api.networking.traffic_policy import ConnectionPoolSettings, TrafficPolicy
from mizzen.compile.clusters.draft import Draft
from mizzen.compile.clusters.pools import apply_connection_pool, apply_http_version, apply_retry_budget
from mizzen.compile.clusters.static import LOOPBACK_SOURCE
from mizzen.compile.context import ClientTraits
from mizzen.compile.filters.stat_names import fill_pattern
from mizzen.compile.resource import Resource, encode_resource
from mizzen.compile.values import socket_address
from mizzen.incremental import Engine, query
from mizzen.model import destination_rules, mesh, names
from mizzen.model.destination_rules import port_policy
from mizzen.model.protocols import Protocol
from mizzen.model.services import Service
from mizzen.model.targets import ServiceTarget

_NEVER = {"seconds": 9223372035}
"""Idle destinations of the application itself are never cleaned up."""


@query
def inbound_clusters(
    db: Engine,
    client: ClientTraits,
    namespace: str,
    targets: tuple[ServiceTarget, ...],
    pool: ConnectionPoolSettings | None,
) -> tuple[Resource, ...]:
    """A cluster for each target port, shaped by its oldest service; `pool` is the Sidecar's, if it sets one."""
    by_port: dict[int, list[ServiceTarget]] = {}
    for target in targets:
        by_port.setdefault(target.target_port, []).append(target)
    return tuple(_build(db, client, namespace, number, tuple(by_port[number]), pool) for number in sorted(by_port))


def _build(
    db: Engine,
    client: ClientTraits,
    namespace: str,
    number: int,
    targets: tuple[ServiceTarget, ...],
    pool: ConnectionPoolSettings | None,
) -> Resource:
    config = mesh.mesh_config(db)
    primary = targets[0]
    name = names.subset_key(names.INBOUND, number, "", "")
    pattern, port = config.inbound_cluster_stat_name, primary.port
    filled = fill_pattern(pattern, primary.service, port=port.number, port_name=port.name, target_port=number)
    draft = Draft(name, stat_name=filled or name)
    draft.set_default_thresholds()
    _apply_address(db, draft, client, number)
    rule = destination_rules.destination_rule(db, namespace, primary.service.host, primary.service.namespace, ())
    policy = port_policy(rule.traffic_policy, primary.port.number) if rule is not None else None
    if rule is not None and rule.traffic_policy is not None:
        draft.istio_metadata["config"] = rule.config_path
    apply_policy(db, draft, client, policy or TrafficPolicy(), pool, primary.port.protocol)
    describe(draft, primary, targets)
    return encode_resource(name, draft.message(client.dialect))


def apply_policy(
    db: Engine,
    draft: Draft,
    client: ClientTraits,
    policy: TrafficPolicy,
    pool: ConnectionPoolSettings | None,
    protocol: Protocol,
) -> None:
    """Limits and HTTP version: the Sidecar's pool, else the rule's, else the mesh's."""
    config = mesh.mesh_config(db)
    default = config.default_traffic_policy
    chosen = pool or policy.connection_pool or (default.connection_pool if default is not None else None)
    apply_connection_pool(draft, chosen, config)
    apply_http_version(draft, chosen, protocol, config, sniffs=True, upgrades=False)
    draft.preserve_header_case = client.preserve_header_case and not protocol.is_tcp
    apply_retry_budget(draft, policy.retry_budget)
    draft.fields["common_lb_config"] = {}


def _apply_address(db: Engine, draft: Draft, client: ClientTraits, number: int) -> None:
    policy = mesh.mesh_config(db).inbound_traffic_policy
    if policy is not None and policy.mode == "LOCALHOST":
        fixed_endpoint(draft, socket_address("::1" if client.families == "IPv6" else "127.0.0.1", number))
        return
    apply_loopback(db, draft, client)


def fixed_endpoint(draft: Draft, address: dict[str, Any]) -> None:
    """One endpoint, known now."""
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": address}}]}]
    draft.fields.update(type="STATIC", load_assignment={"cluster_name": draft.fields["name"], "endpoints": endpoints})


def apply_loopback(db: Engine, draft: Draft, client: ClientTraits) -> None:
    """The connection's original destination, reached from an address that capture lets pass."""
    source: dict[str, Any] = {"address": LOOPBACK_SOURCE[client.families], "port_value": 0}
    bind: dict[str, Any] = {"source_address": source}
    if client.families == "dual" and mesh.control_plane(db).dual_stack:
        bind["extra_source_addresses"] = [{"address": {"address": LOOPBACK_SOURCE["IPv6"], "port_value": 0}}]
    draft.fields.update(
        type="ORIGINAL_DST", lb_policy="CLUSTER_PROVIDED", cleanup_interval=_NEVER, upstream_bind_config=bind
    )


def describe(draft: Draft, primary: ServiceTarget, targets: tuple[ServiceTarget, ...]) -> None:
    """The services that share the primary's port; what a ServiceEntry outside the mesh selects names none."""
    service = primary.service
    draft.peer_metadata = {"host": service.host, "service": service.name, "namespace": service.namespace}
    if service.external:
        return
    same = (t.service for t in targets if t.port.number == primary.port.number)
    unique: dict[str, Service] = {}
    for found in same:
        unique.setdefault(found.host, found)
    draft.istio_metadata["services"] = [
        {"host": s.host, "name": s.name, "namespace": s.namespace} for s in unique.values()
    ]
