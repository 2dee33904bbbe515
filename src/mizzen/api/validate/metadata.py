"""Metadata: annotations that admission refuses, on every kind of Istio's."""

from mizzen.api.meta import Key, Object
from mizzen.api.policy import AuthorizationPolicy
from mizzen.api.validate.faults import REFUSED_METADATA, Fault, Faults, quote

_DRY_RUN = "istio.io/dry-run"
_ALWAYS_REJECT = "internal.istio.io/webhook-always-reject"
_INTERNAL = ("internal.istio.io/parent-namespace", "internal.istio.io/parents")
_BOOLEANS = ("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False")


def check_metadata(key: Key, found: Object) -> Faults:
    """What is wrong with the annotations of an object, whatever its spec says."""
    annotations = found.metadata.annotations
    if _DRY_RUN in annotations:
        message = _dry_run_fault(f"{key.namespace}/{key.name}", found, annotations[_DRY_RUN])
        if message is not None:
            yield _refused(_DRY_RUN, message)
    if _ALWAYS_REJECT in annotations:
        yield _refused(_ALWAYS_REJECT, f"{quote(_ALWAYS_REJECT)} annotation found, rejecting")
    for name in _INTERNAL:
        if name in annotations:
            yield _refused(name, f"{quote(name)} annotation found, this may not be set by users")


def _refused(annotation: str, message: str) -> Fault:
    return Fault(f"metadata.annotations[{annotation}]", message, "error", REFUSED_METADATA)


def _dry_run_fault(name: str, found: Object, value: str) -> str | None:
    """Only what allows or denies can be tried without effect."""
    if not isinstance(found, AuthorizationPolicy):
        return f"{name} has unsupported annotation {_DRY_RUN}, please remove the annotation"
    action = found.spec.action
    if action not in ("ALLOW", "DENY"):
        only = f"the annotation {_DRY_RUN} currently only supports action ALLOW/DENY"
        return f"{only}, found action {action} in {name}"
    if value in _BOOLEANS:
        return None
    reason = f"strconv.ParseBool: parsing {quote(value)}: invalid syntax"
    return f"{name} has annotation {_DRY_RUN} with invalid value ({value}): {reason}"
