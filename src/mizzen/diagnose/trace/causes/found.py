"""What a reasoning comes to, and what all of them ask of the world.

In: the world, the request, the answer and the steps. Out: `Case`, which the reasonings read, and `Found`, which they
give: the object at fault, the reason in words, the fix.
"""

from collections.abc import Mapping

import msgspec

from mizzen.api.meta import Key
from mizzen.diagnose.trace.request import Request
from mizzen.diagnose.trace.verdict import Answer, Cause, Step
from mizzen.diagnose.trace.world import Workload, World
from mizzen.incremental import Engine
from mizzen.model import scope, workloads
from mizzen.model.scope import ScopeId


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The object at fault, what is wrong with it, and what mends it."""

    cause: Cause | None = None
    reason: str = ""
    fix: str = ""


NOTHING = Found()


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One answer whose cause is looked for, in a world with objects."""

    world: World
    db: Engine
    request: Request
    answer: Answer
    steps: tuple[Step, ...]

    def blame(self, key: Key, reason: str, fix: str) -> Found:
        """This object."""
        return Found(cause=self.world.cause(key), reason=reason, fix=fix)

    def origin(self, *links: str, side: str = "") -> Cause | None:
        """The object behind the last step of these links, at one proxy if it is named."""
        return next(
            (s.object for s in reversed(self.steps) if s.object and s.link in links and side in ("", s.side)), None
        )

    def pod(self, reference: str) -> Workload | None:
        """The pod of that reference."""
        return next((p for p in self.world.pods if p.reference == reference), None)

    @property
    def first(self) -> Workload | None:
        """The pod of the first step that has one."""
        return next((pod for step in self.steps if (pod := self.pod(step.side)) is not None), None)

    def scope_of(self, pod: Workload) -> ScopeId:
        """What the pod imports."""
        if pod.proxy != "sidecar":
            return ScopeId(pod.namespace)
        return scope.select_scope(self.db, pod.namespace, workloads.freeze(pod.labels))


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether a selector's labels all stand in the pod's; an empty one selects everything."""
    return selector.items() <= labels.items()
