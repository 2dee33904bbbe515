"""One object as plain data: decoded, validated, and what is served in its place when it cannot be.

The same rules for every source: an object of the Gateway API that no API server would have counts as one that failed;
a policy of security.istio.io that failed is closed (`api.closed`), for all that it selects or for its whole namespace.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from mizzen.api.closed import EFFECTS, Closed, closed_namespace, closed_policy
from mizzen.api.decode import Decoded, decode_object
from mizzen.api.kinds import KINDS
from mizzen.api.meta import Key, Object
from mizzen.api.problems import Problem
from mizzen.api.validate.objects import is_refused, validate_object

_KINDS = frozenset(kind.kind for kind in KINDS)


class Judgement(NamedTuple):
    """What became of one object."""

    decoded: Decoded
    problems: tuple[Problem, ...]
    """Of decoding and of validation."""
    stand_in: Closed | None
    """What to serve when there is no earlier version of an object that failed."""


def claims_to_be_object(value: object) -> bool:
    """Whether plain data is meant as an object: it has a kind, and an apiVersion unless the kind is one that is read.

    Values, patches and charts' own files have one or the other at most.
    """
    if not isinstance(value, Mapping):
        return False
    kind = value.get("kind")
    return bool(kind) and ("apiVersion" in value or (isinstance(kind, str) and kind in _KINDS))


def judge(value: object) -> Judgement:
    """Never raises for what a user wrote: a fault of ours in reading one object must not cost anybody the others."""
    try:
        decoded = decode_object(value)
    except Exception as error:
        problem = Problem(code="not-readable", message=_fault("reading it", error))
        decoded = Decoded(outcome="failed", problems=(problem,))
    problems = decoded.problems
    if decoded.object is not None and decoded.key is not None:
        problems += _validate(decoded.key, decoded.object)
        if is_refused(decoded.object, problems):
            decoded = msgspec.structs.replace(decoded, outcome="failed", object=None)
    return Judgement(decoded, problems, find_stand_in(decoded, value))


def _validate(key: Key, found: Object) -> tuple[Problem, ...]:
    try:
        return validate_object(key, found)
    except Exception as error:
        return (Problem(key=key, code="not-validated", message=_fault("validating it", error), level="warning"),)


def _fault(what: str, error: Exception) -> str:
    return f"{what} failed, which is a fault of Mizzen: {type(error).__name__}: {error}"


def close_namespace(kind: Any, name: object, namespace: object) -> Closed:
    """What stands for a policy of which no more than this is known."""
    return closed_namespace(
        kind,
        name if isinstance(name, str) and name else "unreadable",
        namespace if isinstance(namespace, str) and namespace else "default",
    )


def find_stand_in(decoded: Decoded, value: object) -> Closed | None:
    """What stands in for a policy that failed."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if decoded.outcome != "failed" or not isinstance(value, dict) or not isinstance(kind, str) or kind not in EFFECTS:
        return None
    closed = closed_policy(decoded)
    if closed is not None:
        return closed
    metadata = value.get("metadata")
    names: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    return close_namespace(kind, names.get("name"), names.get("namespace"))
