"""Endpoints behind DestinationRules: empty subsets, and locality without outlier detection or the reverse.

In: DestinationRules, services and their endpoints or pods. Out: MZ0102, MZ0114, MZ0115. Unlike IST0173, only endpoints
of the host itself count.
"""

from collections.abc import Iterator

from mizzen.analysis import objects, own_codes
from mizzen.analysis.findings import Finding, format_labels, report
from mizzen.api.meta import Key
from mizzen.api.networking.destination_rule import DestinationRule
from mizzen.api.networking.traffic_policy import (
    LoadBalancerSettings,
    LocalityLoadBalancerSetting,
    OutlierDetection,
    PortTrafficPolicy,
    TrafficPolicy,
)
from mizzen.incremental import Engine, query
from mizzen.model import endpoints, mesh, names, services, workloads
from mizzen.model.proxy import Labels, Locality
from mizzen.model.services import ServiceId
from mizzen.model.workloads import freeze


@query
def _target(db: Engine, key: Key) -> ServiceId | None:
    """The service that a rule is for, as its own namespace sees it; None for wildcards and unknown hosts."""
    found: DestinationRule | None = db.input(key)
    if found is None:
        return None
    host = names.resolve_host(found.spec.host, key.namespace, mesh.domain(db)).lower()
    service = services.visible_service(db, host, key.namespace)
    return service.id if service is not None else None


@query
def _members(db: Engine, target: ServiceId) -> tuple[tuple[Labels, Locality], ...]:
    """Labels and localities of what is behind a service: its endpoints, or the pods that it selects."""
    found = {
        (e.workload.labels if e.workload is not None else (), e.locality)
        for e in endpoints.service_endpoints(db, target)
    }
    service = services.service(db, target)
    if service is not None and service.selector:
        for pod in objects.matching_pods(db, service.namespace, service.selector):
            found.add((freeze(objects.pod_labels(db, pod)), _locality(db, pod)))
    return tuple(sorted(found))


def _locality(db: Engine, key: Key) -> Locality:
    pod = objects.pod(db, key)
    if pod is None:
        return Locality()
    return workloads.label_locality(pod.metadata.labels) or workloads.node_locality(db, pod.spec.node_name)


@query
def check_subsets(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Subsets that no endpoint of the host is in, while the host has endpoints."""
    found: DestinationRule | None = db.input(key)
    target = _target(db, key)
    if found is None or target is None:
        return ()
    members = _members(db, target)
    return tuple(
        report(
            own_codes.SUBSET_WITHOUT_ENDPOINTS,
            key,
            target.host,
            subset.name,
            format_labels(subset.labels.items()),
            path=f"spec.subsets[{index}]",
        )
        for index, subset in enumerate(found.spec.subsets)
        if members and not any(_is_in(freeze(subset.labels), *member) for member in members)
    )


def _is_in(wanted: Labels, labels: Labels, locality: Locality) -> bool:
    return workloads.selects(wanted, workloads.augment(dict(labels), locality, "", "", ""))


# -- locality -------------------------------------------------------------------------------------------------------


@query
def check_locality(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Failover that never happens, and preference for the own locality that nobody wrote down."""
    found: DestinationRule | None = db.input(key)
    return tuple(_check_locality(db, key, found)) if found is not None else ()


def _check_locality(db: Engine, key: Key, found: DestinationRule) -> Iterator[Finding]:
    top = found.spec.traffic_policy
    for path, policy in _policies(found):
        balancer = policy.load_balancer or (top.load_balancer if top is not None else None)
        outliers = policy.outlier_detection or (top.outlier_detection if top is not None else None)
        if policy.load_balancer is not None and _fails_over(policy.load_balancer) and outliers is None:
            where = f"{path}.loadBalancer"
            yield report(own_codes.FAILOVER_WITHOUT_OUTLIER_DETECTION, key, found.spec.host, path=where)
        if policy is top and _prefers_silently(db, key, balancer, outliers):
            where = f"{path}.outlierDetection"
            yield report(own_codes.OUTLIER_DETECTION_WITHOUT_FAILOVER, key, found.spec.host, path=where)


def _policies(found: DestinationRule) -> Iterator[tuple[str, TrafficPolicy | PortTrafficPolicy]]:
    named = [("spec.trafficPolicy", found.spec.traffic_policy)]
    named += [(f"spec.subsets[{i}].trafficPolicy", s.traffic_policy) for i, s in enumerate(found.spec.subsets)]
    for path, policy in named:
        if policy is not None:
            yield path, policy
            for index, setting in enumerate(policy.port_level_settings):
                yield f"{path}.portLevelSettings[{index}]", setting


def _fails_over(balancer: LoadBalancerSettings) -> bool:
    setting = balancer.locality_lb_setting
    return setting is not None and setting.enabled is not False and _says_where(setting) and not setting.distribute


def _says_where(setting: LocalityLoadBalancerSetting) -> bool:
    return bool(setting.failover or setting.failover_priority or setting.distribute)


def _prefers_silently(
    db: Engine, key: Key, balancer: LoadBalancerSettings | None, outliers: OutlierDetection | None
) -> bool:
    if outliers is None or (balancer is not None and (balancer.locality_lb_setting or balancer.zone_aware_lb_setting)):
        return False
    of_mesh = mesh.mesh_config(db).locality_lb_setting
    if of_mesh is not None and (of_mesh.enabled is False or _says_where(of_mesh)):
        return False
    target = _target(db, key)
    return target is not None and len({locality for _, locality in _members(db, target) if locality}) > 1
