"""DestinationRules: TLS without a way to know the server, hosts that nobody has, subsets without pods.

In: DestinationRules, pods, Services, ServiceEntries, Nodes. Out: IST0128, IST0129, IST0173, IST0174.
A subset counts as selecting if a pod of any namespace carries its labels, as in the reference; whether the host
itself has such an endpoint is `own.endpoints`'.
"""

from collections.abc import Iterator, Mapping
from typing import TypeGuard

from mizzen.analysis import catalogue, hosts, objects
from mizzen.analysis.findings import Finding, full_name, report
from mizzen.api.meta import Key
from mizzen.api.networking.destination_rule import DestinationRule, DestinationRuleSpec
from mizzen.api.networking.traffic_policy import ClientTLSSettings
from mizzen.incremental import Engine, query
from mizzen.model import mesh, workloads
from mizzen.model.proxy import Labels
from mizzen.model.workloads import CLUSTER, HOSTNAME, NETWORK, REGION, SUBZONE, ZONE, freeze

_TOPOLOGY = frozenset({REGION, ZONE, SUBZONE, CLUSTER, HOSTNAME, NETWORK})


@query
def check_certificates(db: Engine, key: Key) -> tuple[Finding, ...]:
    """TLS settings by which any server would do. Subsets' policies are not looked at."""
    found: DestinationRule | None = db.input(key)
    policy = found.spec.traffic_policy if found is not None else None
    if found is None or policy is None:
        return ()
    spec, name = found.spec, full_name(key)
    findings = []
    if _trusts_anybody(policy.tls, spec):
        args = (name, key.namespace, policy.tls.mode, spec.host)
        message = catalogue.NO_SERVER_CERTIFICATE_VERIFICATION_DESTINATION_LEVEL
        findings.append(report(message, key, *args, path="spec.trafficPolicy.tls"))
    for index, setting in enumerate(policy.port_level_settings):
        if _trusts_anybody(setting.tls, spec):
            port = f"number:{setting.port.number}" if setting.port is not None else ""
            args_of_port = (name, key.namespace, setting.tls.mode, spec.host, port)
            message = catalogue.NO_SERVER_CERTIFICATE_VERIFICATION_PORT_LEVEL
            path = f"spec.trafficPolicy.portLevelSettings[{index}].tls"
            findings.append(report(message, key, *args_of_port, path=path))
    return tuple(findings)


def _trusts_anybody(tls: ClientTLSSettings | None, spec: DestinationRuleSpec) -> TypeGuard[ClientTLSSettings]:
    if tls is None or tls.mode not in ("SIMPLE", "MUTUAL") or tls.ca_certificates:
        return False
    return not (tls.credential_name and spec.workload_selector is not None)


@query
def check_subsets(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A host that means nothing, or subsets that no pod is in."""
    found: DestinationRule | None = db.input(key)
    if found is None or not (objects.exists(db, "Service") or objects.exists(db, "ServiceEntry")):
        return ()
    target = hosts.find_target(db, found.spec.host, key.namespace, tuple(found.spec.export_to))
    if target is None:
        return (report(catalogue.UNKNOWN_DESTINATION_RULE_HOST, key, found.spec.host, path="spec.host"),)
    if not objects.has_pods(db):
        return ()
    return tuple(_empty_subsets(db, key, found, dict(target.labels)))


def _empty_subsets(db: Engine, key: Key, found: DestinationRule, common: Mapping[str, str]) -> Iterator[Finding]:
    for index, subset in enumerate(found.spec.subsets):
        if not has_pod(db, freeze({**common, **subset.labels})):
            path = f"spec.subsets[{index}]"
            yield report(catalogue.DESTINATION_RULE_SUBSET_NOT_SELECT_PODS, key, subset.name, path=path)


@query
def has_pod(db: Engine, labels: Labels) -> bool:
    """Whether a pod of any namespace carries these labels, those of its place included."""
    placed = tuple(pair for pair in labels if pair[0] in _TOPOLOGY)
    if not placed:
        return bool(objects.matching_pods(db, "", labels))
    plain = tuple(pair for pair in labels if pair[0] not in _TOPOLOGY)
    return any(workloads.selects(placed, _placed_labels(db, pod)) for pod in objects.matching_pods(db, "", plain))


@query
def _placed_labels(db: Engine, key: Key) -> Labels:
    """A pod's labels with those of its place."""
    pod = objects.pod(db, key)
    if pod is None:
        return ()
    labels = pod.metadata.labels
    locality = workloads.label_locality(labels) or workloads.node_locality(db, pod.spec.node_name)
    cluster = mesh.control_plane(db).cluster_id
    return workloads.augment(labels, locality, cluster, pod.spec.node_name, labels.get(NETWORK, ""))
