"""Kubernetes' label selectors, answered.

In: a selector, as the API machinery or the mesh config spells it, and labels. Out: whether it holds. One that the API
machinery would refuse has a fault, and an expression of an unknown operator holds for nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol


class Requirement(Protocol):
    """One expression."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> Sequence[str]: ...


class Selector(Protocol):
    """Labels, and expressions about labels."""

    @property
    def match_labels(self) -> Mapping[str, str]: ...
    @property
    def match_expressions(self) -> Sequence[Requirement]: ...


_WITH_VALUES = frozenset({"In", "NotIn"})
_WITHOUT_VALUES = frozenset({"Exists", "DoesNotExist"})


def selects(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether it holds for these labels; an empty one holds for all."""
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(_holds(rule, labels) for rule in selector.match_expressions)


def _holds(rule: Requirement, labels: Mapping[str, str]) -> bool:
    match rule.operator:
        case "In":
            return labels.get(rule.key) in rule.values
        case "NotIn":
            return labels.get(rule.key) not in rule.values
        case "Exists":
            return rule.key in labels
        case "DoesNotExist":
            return rule.key not in labels
    return False


def find_fault(selector: Selector) -> str:
    """Why the API machinery would refuse it; empty where it would not."""
    for rule in selector.match_expressions:
        if rule.operator not in _WITH_VALUES | _WITHOUT_VALUES:
            return f"{rule.operator!r} is not a valid label selector operator"
        if not rule.key:
            return "a label selector expression names no key"
        if rule.operator in _WITH_VALUES and not rule.values:
            return f"{rule.key}: for In and NotIn, values cannot be empty"
        if rule.operator in _WITHOUT_VALUES and rule.values:
            return f"{rule.key}: for Exists and DoesNotExist, values must be empty"
    return ""
