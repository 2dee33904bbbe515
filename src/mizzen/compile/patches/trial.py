"""Trial: patches are applied together, and one whose outcome Envoy would refuse is left out alone.

In: a pristine resource, how to apply patches, and the patches. Out: `Outcome`, with a Problem for each patch that is
left out. As a rule everything passes at once; only when it does not are patches tried one after the other. Towards
Istio's proxies nothing is refused: they get what the reference sends.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from mizzen.api.problems import Problem
from mizzen.compile.patches import forms
from mizzen.compile.patches.refusals import constraints, shape
from mizzen.compile.patches.values import ReadyPatch, build_problem
from mizzen.compile.resource import Resource, encode_resource
from mizzen.incremental import Engine, attempt
from mizzen.model.proxy import Dialect

Apply = Callable[[Any, Sequence[ReadyPatch]], bool | None]
"""Changes a message in place: whether it did, or None where the message is to be removed."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What patches made of a resource: itself, another or none, and what is wrong with those left out."""

    resource: Resource | None
    problems: tuple[Problem, ...] = ()


Patched = Callable[..., Outcome]
"""A query of one patched resource: its arguments begin with the pristine one."""


def refusal(message: Any, dialect: Dialect) -> str | None:
    """Why proxies of a dialect would refuse the message; None for one that they take, as far as can be known."""
    if dialect == "istio":
        return None
    return constraints.violation(message) or shape.fault(message)


def patch_one(patched: Patched, db: Engine, pristine: Resource, *arguments: Any) -> Resource | None:
    """What patches made of the resource; where applying them fails, it stays as it was, and so do its neighbours.

    Problems are remarked, for the list of what is not in force.
    """
    outcome = attempt(patched, db, pristine, *arguments) or Outcome(resource=pristine)
    for problem in outcome.problems:
        db.remark(problem)
    return outcome.resource


def settle(pristine: Resource, apply: Apply, patches: Sequence[ReadyPatch], dialect: Dialect) -> Outcome:
    """The resource with all patches that can stand, and the Problems of those that cannot.

    What is refused without any patch is not the patches' fault, and then none is left out.
    """
    attempt = _Attempt(pristine, apply, patches, dialect)
    if attempt.refused() is None or refusal(pristine.message(), dialect) is not None:
        return Outcome(resource=attempt.resource())
    kept: list[ReadyPatch] = []
    problems: list[Problem] = []
    for patch in patches:
        reason = _Attempt(pristine, apply, [*kept, patch], dialect).refused()
        if reason is None:
            kept.append(patch)
        else:
            problems.append(build_refusal(patch, reason))
    return Outcome(resource=_Attempt(pristine, apply, kept, dialect).resource(), problems=tuple(problems))


def build_refusal(patch: ReadyPatch, reason: str) -> Problem:
    """The Problem of a patch that Envoy would not take."""
    return build_problem(patch.id, "patch", f"left out, for Envoy would refuse the outcome: {reason}")


def encode_patched(message: Any, dialect: Dialect) -> Resource:
    """A message as patches left it, as a resource of its own name."""
    if dialect == "envoy":
        forms.to_upstream(message)
    return encode_resource(message.name, message)


class _Attempt:
    """One try: the patched message, and what became of it."""

    def __init__(self, pristine: Resource, apply: Apply, patches: Sequence[ReadyPatch], dialect: Dialect) -> None:
        self._pristine = pristine
        self._message: Any = pristine.message()
        if dialect == "envoy":
            forms.to_istio(self._message)
        self._changed = apply(self._message, patches)
        self._dialect = dialect

    def refused(self) -> str | None:
        return refusal(self._message, self._dialect) if self._changed else None

    def resource(self) -> Resource | None:
        if self._changed is None:
            return None
        return encode_patched(self._message, self._dialect) if self._changed else self._pristine
