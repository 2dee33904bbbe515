"""Services: port names that say no protocol, and Services that differ between clusters.

In: Services of this cluster and of remote ones. Out: IST0118, IST0150, IST0170.
"""

from collections.abc import Mapping

from mizzen.analysis import catalogue, membership
from mizzen.analysis import settings as analysis_settings
from mizzen.analysis.findings import Finding, report
from mizzen.api.kube.services import Service
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query
from mizzen.model import mesh
from mizzen.model.protocols import protocol_of

REMOTE = "RemoteService"
"""The table of other clusters' Services: (REMOTE, namespace, `cluster/name`)."""
_MANAGED = "gateway.istio.io/managed"
_MANAGERS = frozenset({"istio.io-gateway-controller", "istio.io-mesh-controller", "istio.io-eastwest-controller"})


@query
def check_port_names(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Ports of which nobody can tell the protocol."""
    found: Service | None = db.input(key)
    if found is None or membership.is_control_plane(found.metadata):
        return ()
    if found.metadata.labels.get(_MANAGED) in _MANAGERS:
        return ()
    is_alias = found.spec.type == "ExternalName"
    findings = []
    for index, port in enumerate(found.spec.ports):
        if not protocol_of(port).is_auto and not (is_alias and port.name == "tcp"):
            continue
        path = f"spec.ports[{index}].name" if port.name else f"spec.ports[{index}]"
        if is_alias:
            findings.append(report(catalogue.EXTERNAL_NAME_SERVICE_TYPE_INVALID_PORT_NAME, key, path=path))
        else:
            args = (port.name, port.port, port.target_port or port.port)
            findings.append(report(catalogue.PORT_NAME_IS_NOT_UNDER_NAMING_CONVENTION, key, *args, path=path))
    return tuple(findings)


@query
def check_clusters(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A Service that another cluster has in another shape."""
    found: Service | None = db.input(key)
    clusters = analysis_settings.settings(db).clusters
    if found is None or not clusters:
        return ()
    remote = ((name, db.input(Key(REMOTE, key.namespace, f"{name}/{key.name}"))) for name in clusters)
    services: dict[str, Service] = {mesh.control_plane(db).cluster_id: found}
    services |= {name: service for name, service in remote if service is not None}
    reasons = _inconsistencies(services)
    if not reasons:
        return ()
    args = (key.name, key.namespace, sorted(services), "; ".join(reasons))
    return (report(catalogue.MULTI_CLUSTER_INCONSISTENT_SERVICE, key, *args),)


def _inconsistencies(services: Mapping[str, Service]) -> list[str]:
    specs = [service.spec for service in services.values()]
    ports = [tuple(sorted(spec.ports, key=lambda port: port.name)) for spec in specs]
    told = (
        ("service has mixed mode like headless and clusterIP", {spec.cluster_ip == "None" for spec in specs}),
        ("service type is inconsistent", {spec.type for spec in specs}),
    )
    reasons = [reason for reason, variants in told if len(variants) > 1]
    if any(each != ports[0] for each in ports):
        reasons.append("service ports are inconsistent")
    return reasons
