"""Mutual TLS between sides that do not agree: clients without sidecars, DestinationRules against PeerAuthentications.

In: PeerAuthentications, DestinationRules, services, pods. Out: MZ0104, MZ0105. The modes are those that proxies are
told (`model.policies`).
"""

from collections.abc import Iterator

from mizzen.analysis import membership, objects, own_codes
from mizzen.analysis.findings import Finding, report
from mizzen.api.meta import Key
from mizzen.api.networking.destination_rule import DestinationRule
from mizzen.api.networking.traffic_policy import ClientTLSSettings
from mizzen.api.policy import PeerAuthentication
from mizzen.incremental import Engine, query
from mizzen.model import mesh, names, policies, services
from mizzen.model.services import Port, Service
from mizzen.model.workloads import freeze

_MOST_NAMES = 5


# -- clients without a sidecar --------------------------------------------------------------------------------------


@query
def check_strict(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Pods beside the workloads of a STRICT policy that cannot speak mutual TLS; of each namespace for the mesh's."""
    found: PeerAuthentication | None = db.input(key)
    if found is None or found.spec.mtls is None or found.spec.mtls.mode != "STRICT":
        return ()
    is_mesh_wide = key.namespace == mesh.root_namespace(db) and not _selector(found)
    spaces = objects.namespaces(db) if is_mesh_wide else (key.namespace,)
    findings = []
    for space in spaces:
        names_ = _outsiders(db, space) if space not in membership.SYSTEM_NAMESPACES else ()
        if names_:
            more = f" and {len(names_) - _MOST_NAMES} more" if len(names_) > _MOST_NAMES else ""
            text = ", ".join(names_[:_MOST_NAMES]) + more
            findings.append(report(own_codes.STRICT_WITHOUT_SIDECAR, key, space, text, path="spec.mtls.mode"))
    return tuple(findings)


def _selector(found: PeerAuthentication) -> bool:
    return found.spec.selector is not None and bool(found.spec.selector.match_labels)


@query
def _outsiders(db: Engine, namespace: str) -> tuple[str, ...]:
    """Pods of a namespace that are in no mesh and no part of the control plane."""
    found = []
    for key in objects.matching_pods(db, namespace, ()):
        pod = objects.pod(db, key)
        if pod is None or membership.is_control_plane(pod.metadata) or pod.metadata.labels.get("app") == "istiod":
            continue
        if not membership.pod_is_meshed(db, key) and not membership.pod_is_ambient(db, key):
            found.append(key.name)
    return tuple(found)


# -- clients against servers ----------------------------------------------------------------------------------------


@query
def check_rule(db: Engine, key: Key) -> tuple[Finding, ...]:
    """TLS settings that the workloads of the host refuse."""
    found: DestinationRule | None = db.input(key)
    if found is None or found.spec.traffic_policy is None:
        return ()
    host = names.resolve_host(found.spec.host, key.namespace, mesh.domain(db)).lower()
    service = services.visible_service(db, host, key.namespace)
    if service is None or not service.selector:
        return ()
    return tuple(_check_rule(db, key, found, service))


def _check_rule(db: Engine, key: Key, found: DestinationRule, service: Service) -> Iterator[Finding]:
    for port in service.ports:
        path, tls = _settings(found, port.number)
        if tls is None:
            continue
        taken = _taken(db, service, port)
        if taken and not _suits(tls.mode, taken):
            spoken = "plain text" if tls.mode == "DISABLE" else f"TLS ({tls.mode})"
            yield report(own_codes.TLS_CONFLICT, key, spoken, port.number, service.host, taken, path=path)


def _settings(found: DestinationRule, port: int) -> tuple[str, ClientTLSSettings | None]:
    policy = found.spec.traffic_policy
    assert policy is not None
    for index, setting in enumerate(policy.port_level_settings):
        if setting.port is not None and setting.port.number == port:
            return f"spec.trafficPolicy.portLevelSettings[{index}].tls.mode", setting.tls
    return "spec.trafficPolicy.tls.mode", policy.tls


_MUTUAL, _PLAIN = "mutual TLS of the mesh only", "plain text only"


def _taken(db: Engine, service: Service, port: Port) -> str:
    """What all workloads of a service port insist on; empty where they take several things, or differ."""
    insisted = set()
    for pod in objects.matching_pods(db, service.namespace, service.selector):
        if not membership.pod_is_meshed(db, pod):
            insisted.add(_PLAIN if not port.protocol.is_tls else "")
            continue
        target = port.target if isinstance(port.target, int) else port.number
        mode = policies.peer_modes(db, service.namespace, freeze(objects.pod_labels(db, pod))).of(target)
        plain = _PLAIN if not port.protocol.is_tls else ""
        insisted.add({"STRICT": _MUTUAL, "DISABLE": plain}.get(mode, ""))
    return insisted.pop() if len(insisted) == 1 else ""


def _suits(mode: str, taken: str) -> bool:
    return mode == "ISTIO_MUTUAL" if taken == _MUTUAL else mode != "ISTIO_MUTUAL"
