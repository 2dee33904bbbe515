"""Conditions: one finding each, made from a fault or from its absence."""

from mizzen.api.gateway_api.statuses import Condition
from mizzen.model.convert.faults import Fault

ACCEPTED = "Accepted"
PROGRAMMED = "Programmed"
RESOLVED_REFS = "ResolvedRefs"
CONFLICTED = "Conflicted"
INSECURE_FRONTEND = "InsecureFrontendValidationMode"

CONDITIONS = frozenset({ACCEPTED, PROGRAMMED, RESOLVED_REFS, CONFLICTED, INSECURE_FRONTEND})
"""Every type there is; conditions of other types are somebody else's."""

_PENDING = "Pending"


def holds(kind: str, message: str, *, reason: str = "") -> Condition:
    """A condition that is true; its reason is its own name if nothing else is."""
    return Condition(type=kind, status="True", reason=reason or kind, message=message)


def fails(kind: str, fault: Fault) -> Condition:
    """A condition that a fault makes false."""
    return Condition(type=kind, status="False", reason=fault.reason, message=fault.message)


def judge(kind: str, fault: Fault | None, message: str) -> Condition:
    """A condition that is true, with this message, if there is no fault."""
    return fails(kind, fault) if fault is not None else holds(kind, message)


def pending(*kinds: str) -> tuple[Condition, ...]:
    """The conditions of an object that no controller of ours serves: those that its CRD declares."""
    return tuple(
        Condition(type=kind, status="Unknown", reason=_PENDING, message="Waiting for controller") for kind in kinds
    )


def is_pending(conditions: tuple[Condition, ...]) -> bool:
    """Whether they are of an object that no controller of ours serves."""
    return all(one.status == "Unknown" and one.reason == _PENDING for one in conditions)
