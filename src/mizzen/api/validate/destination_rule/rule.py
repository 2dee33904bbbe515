"""DestinationRule: its host, its subsets and for whom it is."""

from mizzen.api.networking.destination_rule import DestinationRule, Subset
from mizzen.api.validate.destination_rule.policies import check_traffic_policy
from mizzen.api.validate.faults import Faults, at, error, errors_only
from mizzen.api.validate.values.names import check_export_to, check_labels, is_label, wildcard_fault
from mizzen.api.validate.values.selectors import check_match_labels


def check_destination_rule(rule: DestinationRule, path: str) -> Faults:
    """All rules of a DestinationRule."""
    spec, namespace = rule.spec, rule.metadata.namespace
    yield from at(f"{path}.host", wildcard_fault(spec.host))
    if spec.traffic_policy is not None:
        yield from check_traffic_policy(spec.traffic_policy, namespace, f"{path}.trafficPolicy")
    names: set[str] = set()
    for index, subset in enumerate(spec.subsets):
        if subset.name in names:
            yield error(f"{path}.subsets[{index}].name", f"duplicate subset names: {subset.name}")
        names.add(subset.name)
        yield from _check_subset(subset, namespace, f"{path}.subsets[{index}]")
    selecting = spec.workload_selector is not None
    yield from check_export_to(spec.export_to, namespace, f"{path}.exportTo", selecting=selecting)
    yield from check_match_labels(spec.workload_selector, f"{path}.workloadSelector")


def _check_subset(subset: Subset, namespace: str, path: str) -> Faults:
    """A subset; as in the reference, warnings of its policy are kept back."""
    if not subset.name:
        yield error(f"{path}.name", "subset name cannot be empty")
    elif not is_label(subset.name):
        yield error(f"{path}.name", f"subset name is invalid: {subset.name}")
    yield from check_labels(subset.labels, f"{path}.labels")
    if subset.traffic_policy is not None:
        policy = check_traffic_policy(subset.traffic_policy, namespace, f"{path}.trafficPolicy")
        yield from errors_only(policy)
