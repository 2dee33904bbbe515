"""The clusters of one service as its clients see it: one for each port, and one for each subset of the rule.

In: a service, the DestinationRule that a client applies to it, and the client's traits; never the client's namespace,
so that namespaces that see the same rule share the clusters. Out: encoded clusters.
Golden cases: golden base, networking/dr-*, networking/se-*, networking/headless-services.
"""

from typing import Any

import msgspec

from mizzen.api.networking.destination_rule import Subset
from mizzen.api.networking.traffic_policy import TrafficPolicy
from mizzen.compile.assignments import ClientPlace
from mizzen.compile.clusters import dns
from mizzen.compile.clusters.balancing import apply_load_balancer, apply_locality
from mizzen.compile.clusters.draft import Draft
from mizzen.compile.clusters.pools import (
    apply_connection_pool,
    apply_http_version,
    apply_outlier_detection,
    apply_retry_budget,
)
from mizzen.compile.clusters.transport import MeshTls, Peer, apply_transport, wrap_in_proxy_protocol
from mizzen.compile.context import ClientTraits
from mizzen.compile.filters import peers
from mizzen.compile.filters.stat_names import fill_pattern
from mizzen.compile.resource import Resource, encode_resource
from mizzen.compile.values import ADS_SOURCE, percent
from mizzen.incremental import Engine, query
from mizzen.model import destination_rules, endpoints, identities, mesh, names, policies
from mizzen.model.destination_rules import MergedRule, RuleId, find_rule, port_policy, subset_policy
from mizzen.model.localities import locality_setting
from mizzen.model.protocols import Protocol
from mizzen.model.services import Port, Service, ServiceId, port_of, service

DNS_RESOLUTIONS = ("dns", "dns_round_robin", "dynamic_dns")


@query
def service_clusters(
    db: Engine,
    client: ClientTraits,
    service_id: ServiceId,
    ports: tuple[int, ...],
    rule: RuleId | None,
    place: ClientPlace,
    sni_routed: bool = False,
) -> tuple[Resource, ...]:
    """The clusters of a service on these ports: for each the default one, then the rule's subsets in order.

    `sni_routed` gives their twins on a gateway that passes mutual TLS of the mesh through by its SNI.

    `place` is where the client is, for services that DNS resolves: their clusters carry their endpoints. Pass an
    empty one for all others.
    """
    found = service(db, service_id)
    merged = find_rule(db, rule)
    if found is None or found.resolution == "alias":
        return ()
    resources = []
    for number in ports:
        port = port_of(db, found, number)
        if port is None or port.protocol is Protocol.UDP:
            continue
        resources.append(_build(db, client, found, port, merged, None, place, sni_routed))
        if merged is not None and not _is_wildcard_dns(found):
            resources.extend(
                _build(db, client, found, port, merged, subset, place, sni_routed) for subset in merged.subsets
            )
    return tuple(r for r in resources if r is not None)


def _is_wildcard_dns(found: Service) -> bool:
    return found.resolution == "dynamic_dns" and found.host.startswith("*")


@query
def mesh_tls(db: Engine) -> MeshTls:
    """The mesh's TLS defaults for the outside."""
    defaults = mesh.mesh_config(db).tls_defaults
    if defaults is None:
        return MeshTls()
    return MeshTls(cipher_suites=tuple(defaults.cipher_suites), ecdh_curves=tuple(defaults.ecdh_curves))


def effective_policy(db: Engine, rule: MergedRule | None, port: int, subset: Subset | None) -> TrafficPolicy:
    """What the rule says for this port and subset, over the mesh's default for whole missing blocks."""
    policy = port_policy(rule.traffic_policy, port) if rule is not None else None
    if subset is not None:
        policy = subset_policy(policy, subset, port)
    policy = policy or TrafficPolicy()
    default = mesh.mesh_config(db).default_traffic_policy
    if default is None:
        return policy
    return msgspec.structs.replace(
        policy,
        connection_pool=policy.connection_pool or default.connection_pool,
        outlier_detection=policy.outlier_detection or default.outlier_detection,
    )


def _build(
    db: Engine,
    client: ClientTraits,
    found: Service,
    port: Port,
    rule: MergedRule | None,
    subset: Subset | None,
    place: ClientPlace,
    sni_routed: bool,
) -> Resource | None:
    config = mesh.mesh_config(db)
    subset_name = subset.name if subset is not None else ""
    key = (port.number, subset_name, found.host)
    name = names.sni_key(*key) if sni_routed else names.subset_key(names.OUTBOUND, *key)
    policy = effective_policy(db, rule, port.number, subset)
    pattern = config.outbound_cluster_stat_name
    filled = fill_pattern(pattern, found, port=port.number, port_name=port.name, subset=subset_name)
    draft = Draft(name, stat_name=filled or name)
    draft.set_default_thresholds()
    setting = locality_setting(policy.load_balancer, found.traffic_distribution, config)
    if found.resolution in DNS_RESOLUTIONS:
        members = dns.Members(place=place, setting=setting, has_detection=_ejects(rule, port, subset))
        if not dns.apply_dns(db, draft, client, found, port, subset, members):
            return None
    else:
        _apply_discovery(draft, client, found, port)
    apply_connection_pool(draft, policy.connection_pool, config)
    apply_http_version(draft, policy.connection_pool, port.protocol, config, sniffs=not client.is_router)
    draft.preserve_header_case = client.preserve_header_case and not port.protocol.is_tcp
    apply_retry_budget(draft, policy.retry_budget)
    apply_outlier_detection(draft, policy.outlier_detection)
    if draft.fields["lb_policy"] != "CLUSTER_PROVIDED":
        apply_load_balancer(draft, policy.load_balancer)
    _apply_health(draft, found, policy, is_subset=subset is not None)
    if "common_lb_config" in draft.fields:
        apply_locality(draft, setting, policy.outlier_detection)
    _describe(draft, found, rule, subset)
    _apply_filters(draft, client, found, port)
    if not sni_routed:
        peer = _peer(db, found, port, subset_name, rule, draft)
        apply_transport(draft, policy.tls, peer, client, mesh_tls(db))
    wrap_in_proxy_protocol(draft, policy.proxy_protocol)
    return encode_resource(name, draft.message(client.dialect))


def _ejects(rule: MergedRule | None, port: Port, subset: Subset | None) -> bool:
    """Whether the rule itself ejects endpoints; the mesh's default does not make them fail over."""
    policy = destination_rules.effective_policy(rule, port.number, subset.name if subset is not None else "")
    return policy.outlier_detection is not None


def _apply_discovery(draft: Draft, client: ClientTraits, found: Service, port: Port) -> None:
    """How endpoints are found, other than by DNS."""
    if found.resolution == "client_side_lb" or client.is_router:
        draft.fields.update(
            type="EDS",
            lb_policy="LEAST_REQUEST",
            eds_cluster_config={"eds_config": ADS_SOURCE, "service_name": draft.fields["name"]},
        )
        return
    draft.fields.update(type="ORIGINAL_DST", lb_policy="CLUSTER_PROVIDED")
    if not found.is_kubernetes and isinstance(port.target, int) and port.target != port.number:
        draft.fields["original_dst_lb_config"] = {"upstream_port_override": {"value": port.target}}


def _apply_health(draft: Draft, found: Service, policy: TrafficPolicy, *, is_subset: bool) -> None:
    if draft.fields.get("cluster_type") is not None:
        return
    detection = policy.outlier_detection
    threshold = detection.min_health_percent if detection is not None and not found.traffic_distribution else 0
    common: dict[str, Any] = {"healthy_panic_threshold": percent(threshold)}
    if not is_subset and any(label == endpoints.PERSISTENT_SESSION for label, _ in found.labels):
        common["override_host_status"] = {"statuses": ["HEALTHY", "DRAINING", "UNKNOWN", "DEGRADED"]}
    draft.fields["common_lb_config"] = common


def _describe(draft: Draft, found: Service, rule: MergedRule | None, subset: Subset | None) -> None:
    """The metadata by which telemetry and operators know where a cluster comes from."""
    if not _is_wildcard_dns(found):
        draft.istio_metadata["services"] = [{"host": found.host, "name": found.name, "namespace": found.namespace}]
    if found.external and subset is None:
        draft.istio_metadata["external"] = True
    if rule is not None:
        draft.istio_metadata["config"] = rule.config_path
        if subset is not None:
            draft.istio_metadata["subset"] = subset.name
    draft.peer_metadata = {"host": found.host, "service": found.name, "namespace": found.namespace}


def _apply_filters(draft: Draft, client: ClientTraits, found: Service, port: Port) -> None:
    filters = peers.build_network_filters(client.dialect)
    if filters:
        draft.fields["filters"] = [{"name": f.name, "typed_config": f.typed_config} for f in filters]
    draft.tell_peer = client.dialect == "envoy" and not found.external and not port.protocol.is_tcp


def _peer(db: Engine, found: Service, port: Port, subset: str, rule: MergedRule | None, draft: Draft) -> Peer:
    return Peer(
        port=port.number,
        subset=subset,
        host=found.host,
        accounts=identities.expand(db, endpoints.service_accounts(db, found.id)),
        declared_accounts=found.accounts,
        external=found.external,
        auto=mutual_by_default(db, found.id, draft.fields.get("type") == "ORIGINAL_DST"),
        original_destination=draft.fields.get("type") == "ORIGINAL_DST",
        selected_by_label=rule is not None and bool(rule.selector),
    )


@query
def mutual_by_default(db: Engine, service_id: ServiceId, original_destination: bool) -> bool:
    """Whether clients without TLS settings of their own speak mutual TLS to the service.

    Only the policies of the server's namespace and of the mesh are asked; exceptions of single workloads and ports
    reach clients through endpoints. Where endpoints are not told, all of them must have a sidecar.
    """
    found = service(db, service_id)
    if found is None or found.external or not mesh.mesh_config(db).enable_auto_mtls:
        return False
    if original_destination or found.resolution == "passthrough":
        known = endpoints.service_endpoints(db, service_id)
        if not known or any(e.tls_mode == "disabled" for e in known):
            return False
    return policies.namespace_mode(db, found.namespace) != "DISABLE"
