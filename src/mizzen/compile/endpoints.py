"""Endpoints (EDS): the load assignment of each cluster that a proxy asks for.

In: cluster names, the client's scope and place. Out: one ClusterLoadAssignment for each name of a service in scope.
Golden cases: golden base, networking/endpoint-states, networking/se-*, gateway/auto-passthrough.
"""

from collections.abc import Iterable, Iterator

import msgspec

from mizzen import protos
from mizzen.api.networking.traffic_policy import TrafficPolicy
from mizzen.compile import observed, resource
from mizzen.compile.assignments import ClientPlace, apply_locality_setting, build_groups, build_localities
from mizzen.compile.peer_facts import telling
from mizzen.compile.resource import Resource, ResourceSet, encode_resource, shared_set
from mizzen.incremental import Engine, attempt, barrier, query
from mizzen.model import destination_rules, endpoints, mesh, names, policies, scope
from mizzen.model.destination_rules import RuleId, find_rule, port_policy, rule_id, subset_policy
from mizzen.model.endpoints import Endpoint
from mizzen.model.localities import LocalitySetting, locality_setting
from mizzen.model.proxy import Dialect, Labels
from mizzen.model.scope import ScopeId
from mizzen.model.services import Port, Service, ServiceId, port_of, service

_endpoint_v3 = protos.package("envoy.config.endpoint.v3")


class EndpointClient(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A client as its endpoints depend on it."""

    scope: ScopeId
    dialect: Dialect
    is_router: bool = False
    rule_labels: Labels = ()
    """Its labels, as far as DestinationRules select by them."""
    place: ClientPlace = ClientPlace()
    node_name: str = ""
    networks: tuple[str, ...] = ()
    """The networks it wants endpoints of; none means all."""


@query
def assignments(db: Engine, client: EndpointClient, cluster_names: frozenset[str]) -> ResourceSet:
    """The load assignments of these clusters, those of no service left out."""
    groups = _groups(db, cluster_names)
    return ResourceSet.join(resource.ENDPOINT, (_group_assignments(db, client, group) for group in groups))


@query
def _groups(db: Engine, cluster_names: frozenset[str]) -> tuple[frozenset[str], ...]:  # noqa: ARG001 (worked out once)
    groups: dict[str, set[str]] = {}
    for name in cluster_names:
        key = names.parse_subset_key(name)
        groups.setdefault(names.group_of(key.host if key is not None else ""), set()).add(name)
    return tuple(frozenset(groups[group]) for group in sorted(groups))


@query
def _group_assignments(db: Engine, client: EndpointClient, cluster_names: frozenset[str]) -> ResourceSet:
    found = (_of_name(db, client, name) for name in sorted(cluster_names))
    return shared_set(ResourceSet(resource.ENDPOINT, (each for each in found if each is not None)))


def unknown_assignments(cluster_names: Iterable[str]) -> ResourceSet:
    """What is answered for clusters of no service where an absence cannot be told: assignments without endpoints."""
    return ResourceSet(resource.ENDPOINT, map(_empty, sorted(cluster_names)))


def _of_name(db: Engine, client: EndpointClient, name: str) -> Resource | None:
    key = names.parse_subset_key(name)
    found = scope.scoped_service(db, client.scope, key.host) if key is not None else None
    port = found.port(key.port) if found is not None and key is not None else None
    if key is None or found is None or port is None:
        return None
    rule = destination_rules.destination_rule(
        db, client.scope.namespace, found.host, found.namespace, client.rule_labels
    )
    rule_key = rule_id(rule)
    asks = asked_place(db, found.id, port.number, key.subset, rule_key)
    place = client.place if asks is not None else ClientPlace()
    built = attempt(
        load_assignment,
        db,
        Target(name=name, service=found.id, port=port.number, subset=key.subset, rule=rule_key),
        client.dialect,
        place,
        client.node_name if found.node_local else "",
        client.networks,
    )
    return built if built is not None else _empty(name)


class Target(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A cluster whose endpoints are asked for, with the rule that its client applies."""

    name: str
    service: ServiceId
    port: int
    subset: str
    rule: RuleId | None


def _empty(name: str) -> Resource:
    return encode_resource(name, _endpoint_v3.ClusterLoadAssignment(cluster_name=name))


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a client's rule says about the endpoints of one cluster."""

    policy: TrafficPolicy
    labels: Labels = ()
    """Labels that the subset asks for."""

    @property
    def has_detection(self) -> bool:
        """Whether failing endpoints are ejected, which failover depends on."""
        return self.policy.outlier_detection is not None


def _rules(db: Engine, rule_key: RuleId | None, port: int, subset_name: str) -> Rules:
    rule = find_rule(db, rule_key)
    policy = port_policy(rule.traffic_policy, port) if rule is not None else None
    subset = rule.subset(subset_name) if rule is not None and subset_name else None
    if subset is None:
        return Rules(policy=policy or TrafficPolicy())
    labels = tuple(sorted(subset.labels.items()))
    return Rules(policy=subset_policy(policy, subset, port) or TrafficPolicy(), labels=labels)


def _setting(db: Engine, found: Service, rules: Rules) -> LocalitySetting | None:
    return locality_setting(rules.policy.load_balancer, found.traffic_distribution, mesh.mesh_config(db))


@query
def asked_place(
    db: Engine, service_id: ServiceId, port: int, subset: str, rule_key: RuleId | None
) -> tuple[str, ...] | None:
    """The labels of the client that its endpoints' order depends on; None where not even its locality matters."""
    found = service(db, service_id)
    if found is None:
        return None
    rules = _rules(db, rule_key, port, subset)
    setting = _setting(db, found, rules)
    if setting is None:
        return None
    if not (setting.distribute or setting.zone_aware or setting.forced or rules.has_detection):
        return None
    return tuple(name.partition("=")[0] for name in setting.failover_priority)


@query
def scope_place(db: Engine, scope_id: ScopeId, rule_labels: Labels) -> frozenset[str] | None:
    """The labels by which any service in scope orders its endpoints; None where none asks where its client is."""
    return _all_asked(_group_place(db, scope_id, rule_labels, group) for group in scope.service_groups(db, scope_id))


@query
def _group_place(db: Engine, scope_id: ScopeId, rule_labels: Labels, group: str) -> frozenset[str] | None:
    services = scope.group_services(db, scope_id, group).values()
    return _all_asked(_service_place(db, found, scope_id.namespace, rule_labels) for found in services)


def _all_asked(every: Iterable[Iterable[str] | None]) -> frozenset[str] | None:
    asked = [each for each in every if each is not None]
    return frozenset(name for each in asked for name in each) if asked else None


def scope_is_node_local(db: Engine, scope_id: ScopeId) -> bool:
    """Whether any service in scope gives its clients only endpoints of their own node."""
    return _is_node_local(db, scope.services_scope(db, scope_id))


@barrier
def _is_node_local(db: Engine, scope_id: ScopeId) -> bool:
    return any(s.node_local for s in scope.scope_services(db, scope_id))


def _service_place(db: Engine, found: Service, namespace: str, rule_labels: Labels) -> tuple[str, ...] | None:
    rule = destination_rules.destination_rule(db, namespace, found.host, found.namespace, rule_labels)
    return service_place(db, found.id, rule_id(rule))


@query
def service_place(db: Engine, service_id: ServiceId, rule_key: RuleId | None) -> tuple[str, ...] | None:
    """As `asked_place`, for all ports and subsets of a service together."""
    found, rule = service(db, service_id), find_rule(db, rule_key)
    if found is None:
        return None
    subsets = ("", *(s.name for s in rule.subsets)) if rule is not None else ("",)
    every = (asked_place(db, service_id, p.number, subset, rule_key) for p in found.ports for subset in subsets)
    asked = [wanted for wanted in every if wanted is not None]
    return tuple(dict.fromkeys(name for wanted in asked for name in wanted)) if asked else None


@query
def load_assignment(
    db: Engine, target: Target, dialect: Dialect, place: ClientPlace, node_name: str, networks: tuple[str, ...]
) -> Resource:
    """The load assignment of one cluster for every client of which these arguments are true."""
    found = service(db, target.service)
    port = port_of(db, found, target.port) if found is not None else None
    if found is None or port is None or found.resolution in ("dns", "dns_round_robin", "dynamic_dns", "alias"):
        return _empty(target.name)
    rules = _rules(db, target.rule, target.port, target.subset)
    sni_routed = target.name.startswith("outbound_.")
    members = _members(db, found, port, rules, node_name, networks)
    groups = build_groups(members, telling(db, dialect))
    if sni_routed:
        for group in groups:
            group.members = [m for m in group.members if _is_mutual(m[1])]
            group.weight = sum(e.weight or 1 for e, _ in group.members)
    groups = apply_locality_setting(groups, _setting(db, found, rules), place, has_detection=rules.has_detection)
    assignment = _endpoint_v3.ClusterLoadAssignment(cluster_name=target.name, endpoints=build_localities(groups))
    if not assignment.endpoints:
        observed.observe(db, observed.NO_INSTANCES, target.name)
    return encode_resource(target.name, assignment)


def _is_mutual(message: object) -> bool:
    return "envoy.transport_socket_match" in message.metadata.filter_metadata  # type: ignore[attr-defined]


def _members(
    db: Engine, found: Service, port: Port, rules: Rules, node_name: str, networks: tuple[str, ...]
) -> Iterator[tuple[Endpoint, bool]]:
    detection = rules.policy.outlier_detection
    healthy_only = detection is not None and detection.min_health_percent > 0
    session = any(label == endpoints.PERSISTENT_SESSION for label, _ in found.labels)
    for endpoint in endpoints.port_endpoints(db, found.id, port.name):
        workload = endpoint.workload
        if endpoint.port and not endpoint.is_ip:
            continue
        if not set(rules.labels) <= set(workload.labels if workload is not None else ()):
            continue
        if found.node_local and (workload.node_name if workload is not None else "") != node_name:
            continue
        if networks and (workload.network if workload is not None else "") not in networks:
            continue
        if endpoint.health == "TERMINATING":
            continue
        if (endpoint.health == "UNHEALTHY" and healthy_only) or (endpoint.health == "DRAINING" and not session):
            continue
        yield endpoint, speaks_mutual_tls(db, endpoint, rules.policy)


def speaks_mutual_tls(db: Engine, endpoint: Endpoint, policy: TrafficPolicy) -> bool:
    """Whether a client under this policy speaks mutual TLS to the endpoint: the rule's mode decides where it has one,
    else the endpoint must have a sidecar whose policy for that port is not DISABLE."""
    if policy.tls is not None:
        return policy.tls.mode == "ISTIO_MUTUAL"
    workload = endpoint.workload
    if endpoint.tls_mode != "istio" or workload is None:
        return endpoint.tls_mode not in ("", "disabled")
    return policies.peer_modes(db, workload.namespace, workload.labels).of(endpoint.port) != "DISABLE"
