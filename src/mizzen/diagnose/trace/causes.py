"""Reasoning backwards: which object is behind a broken link.

In: the world's objects, the answer, the steps. Out: `Found`.
"""

import msgspec

from mizzen.diagnose.trace.request import Request
from mizzen.diagnose.trace.verdict import Answer, Cause, Step
from mizzen.diagnose.trace.world import World


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The object at fault, what is wrong with it, and what mends it."""

    cause: Cause | None = None
    reason: str = ""
    fix: str = ""


def find(world: World, request: Request, answer: Answer, steps: list[Step]) -> Found:
    """The cause of an answer."""
    return Found()
