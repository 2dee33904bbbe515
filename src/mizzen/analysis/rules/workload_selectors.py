"""Workload selectors: Sidecars and Telemetries that select nobody, or that contend for a pod.

In: Sidecars, Telemetries, pods, Namespaces. Out: IST0101 (selector), IST0110, IST0111, IST0159, IST0160, IST0167.
A selector without labels counts as none for Sidecars, and as a selector of all for Telemetries, as in the reference.
"""

from typing import Any

from mizzen.analysis import catalogue, membership, objects
from mizzen.analysis.findings import Finding, format_labels, report
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query
from mizzen.model.proxy import Labels
from mizzen.model.workloads import freeze

_SIDECAR, _TELEMETRY = "Sidecar", "Telemetry"
_PATHS = {_SIDECAR: "spec.workloadSelector", _TELEMETRY: "spec.selector"}
_CONTENDING = {
    _SIDECAR: catalogue.CONFLICTING_SIDECAR_WORKLOAD_SELECTORS,
    _TELEMETRY: catalogue.CONFLICTING_TELEMETRY_WORKLOAD_SELECTORS,
}
_WITHOUT = {
    _SIDECAR: catalogue.MULTIPLE_SIDECARS_WITHOUT_WORKLOAD_SELECTORS,
    _TELEMETRY: catalogue.MULTIPLE_TELEMETRIES_WITHOUT_WORKLOAD_SELECTORS,
}


@query
def _selector(db: Engine, key: Key) -> Labels | None:
    """The labels that an object selects by, or None if it is for its whole namespace."""
    found: Any = db.input(key)
    if found is None:
        return None
    if key.kind == _SIDECAR:
        selector = found.spec.workload_selector
        return freeze(selector.labels) if selector is not None and selector.labels else None
    return freeze(found.spec.selector.match_labels) if found.spec.selector is not None else None


@query
def check_selected(db: Engine, key: Key) -> tuple[Finding, ...]:
    """An object that selects nobody, or pods that others of its kind select too."""
    selector = _selector(db, key)
    if selector is None or not objects.has_pods(db):
        return ()
    pods = objects.matching_pods(db, key.namespace, selector)
    if not pods:
        text = format_labels(selector)
        message = catalogue.REFERENCED_RESOURCE_NOT_FOUND
        return (report(message, key, "selector", text, path=_PATHS[key.kind]),)
    findings = []
    for pod in pods:
        names = _selecting(db, key.kind, pod)
        if len(names) > 1 and not (key.kind == _SIDECAR and membership.pod_is_ambient(db, pod)):
            args = (names, key.namespace, pod.name)
            findings.append(report(_CONTENDING[key.kind], key, *args, path=_PATHS[key.kind]))
    return tuple(findings)


@query
def _selecting(db: Engine, kind: str, pod: Key) -> tuple[str, ...]:
    """The names of the objects of a kind that select a pod."""
    labels = set(freeze(objects.pod_labels(db, pod)))
    selectors = ((key, _selector(db, key)) for key in objects.keys_in(db, kind, pod.namespace))
    return tuple(key.name for key, selector in selectors if selector is not None and set(selector) <= labels)


@query
def check_unselecting(db: Engine, key: Key) -> tuple[Finding, ...]:
    """An object for its whole namespace, of which there is more than one."""
    if _selector(db, key) is not None:
        return ()
    if key.kind == _SIDECAR and membership.namespace_is_ambient(db, key.namespace):
        return ()
    names = _unselecting(db, key.kind, key.namespace)
    return (report(_WITHOUT[key.kind], key, names, key.namespace),) if len(names) > 1 else ()


@query
def _unselecting(db: Engine, kind: str, namespace: str) -> tuple[str, ...]:
    return tuple(key.name for key in objects.keys_in(db, kind, namespace) if _selector(db, key) is None)


@query
def check_ambient(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A Sidecar for workloads that have none."""
    if db.input(key) is None:
        return ()
    selector = _selector(db, key)
    if selector is None:
        where = "namespace" if membership.namespace_is_ambient(db, key.namespace) else ""
    else:
        pods = objects.matching_pods(db, key.namespace, selector)
        where = "selected workload" if any(membership.pod_is_ambient(db, pod) for pod in pods) else ""
    if not where:
        return ()
    return (report(catalogue.INEFFECTIVE_POLICY, key, f"{where} is in ambient mode, the policy has no impact"),)
