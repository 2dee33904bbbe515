"""Selectors: which workloads an object is for, by labels or by what it targets."""

from collections.abc import Iterable, Mapping, Sequence

from mizzen.api.networking.selectors import MatchLabels, PolicyTargetReference, WorkloadSelector
from mizzen.api.validate.faults import Fault, Faults, at, error, first_error, list_of, quote, warning

NO_LABELS = "workload selector specified without labels"

_TARGETS = (
    ("core", "v1", "Service"),
    ("networking.istio.io", "v1", "ServiceEntry"),
    ("gateway.networking.k8s.io", "v1", "Gateway"),
    ("gateway.networking.k8s.io", "v1", "GatewayClass"),
)


def check_match_labels(selector: MatchLabels | None, path: str) -> Faults:
    """A selector of the policy kinds."""
    if selector is None:
        return
    yield from _check_labels(selector.match_labels, f"{path}.matchLabels")
    if not selector.match_labels:
        yield warning(path, NO_LABELS)


def check_workload_selector(selector: WorkloadSelector | None, path: str, subject: str) -> Faults:
    """A selector of the networking kinds; as in the reference only the first of its errors is told."""
    if selector is None:
        return
    first = first_error(_check_labels(selector.labels, f"{path}.labels"))
    if first is not None:
        yield first
    elif not selector.labels:
        yield warning(path, f"{subject}: {NO_LABELS}, will be applied to all services in namespace")


def _check_labels(labels: Mapping[str, str], path: str) -> Faults:
    for key, value in labels.items():
        here, shown = f"{path}[{key}]", quote(f"{key}={value}")
        if not key:
            yield error(here, f"empty key is not supported in selector: {shown}")
        if "*" in key or "*" in value:
            yield error(here, f"wildcard is not supported in selector: {shown}")


def check_attachment(
    selector: MatchLabels | WorkloadSelector | None,
    target: PolicyTargetReference | None,
    targets: Sequence[PolicyTargetReference],
    path: str,
) -> Faults:
    """The references to targets, and that nothing else selects workloads beside them."""
    if (selector is not None) + (target is not None) + bool(targets) > 1:
        yield error(path, "only one of targetRefs or workloadSelector can be set")
    for here, reference in _with_paths(target, targets, path):
        yield from at(f"{here}.name", None if reference.name else "targetRef name must be set")
        if reference.namespace:
            message = "targetRef namespace must not be set; cross namespace referencing is not supported"
            yield error(f"{here}.namespace", message)
        yield from _check_target_kind(reference, here)


def _with_paths(
    target: PolicyTargetReference | None, targets: Sequence[PolicyTargetReference], path: str
) -> Iterable[tuple[str, PolicyTargetReference]]:
    if target is not None:
        yield f"{path}.targetRef", target
    for index, reference in enumerate(targets):
        yield f"{path}.targetRefs[{index}]", reference


def _check_target_kind(reference: PolicyTargetReference, path: str) -> Iterable[Fault]:
    group = reference.group or "core"
    if not any((group, reference.kind) == (known, kind) for known, _, kind in _TARGETS):
        allowed = list_of("/".join(target) for target in _TARGETS)
        yield error(path, f"targetRef must be to one of {allowed} but was {reference.group}/{reference.kind}")
