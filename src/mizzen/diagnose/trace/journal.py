"""The record of a walk: steps, what the outcome hangs on, and what else callers of `trace` want to know.

In: what the walk notes as it goes. Out: tuples for the `Trace`. Branches of a walk write into journals of their own,
of which the one that is followed is taken over.
"""

from collections.abc import Iterable

from mizzen.diagnose.trace.request import Message
from mizzen.diagnose.trace.verdict import Cause, Link, Passage, State, Step, Visit


class Journal:
    """One walk's notes, in order."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.depends_on: dict[str, None] = {}
        self.shares: tuple[tuple[str, int], ...] = ()
        self.message: Message | None = None
        self.policy = ""
        self.divides = False
        self.visits: list[Visit] = []
        self.response: dict[str, str | None] = {}
        self.first_log: tuple[int, str, str] | None = None
        self.passages: list[Passage] = []
        self.forks: list[tuple[Passage, ...]] = []
        """How it may go on after the passages, where that is left open."""

    @property
    def ways(self) -> tuple[tuple[Passage, ...], ...]:
        """All that a connection may pass, each from start to end."""
        return tuple((*self.passages, *fork) for fork in self.forks or [()])

    def fork(self, branches: Iterable["Journal"]) -> None:
        """It goes on in one of these ways."""
        self.forks = [way for branch in branches for way in branch.ways]

    def note(
        self,
        side: str,
        link: Link,
        title: str,
        *facts: tuple[str, object],
        state: State = "ok",
        passed_over: Iterable[str] = (),
        origin: Cause | None = None,
    ) -> None:
        """One step; facts without a value are left out."""
        kept = tuple((name, str(value)) for name, value in facts if value not in ("", None, (), []))
        self.steps.append(
            Step(
                side=side,
                link=link,
                title=title,
                state=state,
                facts=kept,
                passed_over=tuple(passed_over),
                object=origin,
            )
        )

    def hang_on(self, *things: str) -> None:
        """The outcome depends on this, which configuration does not say."""
        self.depends_on.update(dict.fromkeys(things))

    def branch(self) -> "Journal":
        """A journal for one of several ways on."""
        return Journal()

    def adopt(self, followed: "Journal") -> None:
        """Take over a branch's notes."""
        self.steps += followed.steps
        self.depends_on.update(followed.depends_on)
        self.shares = self.shares or followed.shares
        self.message = followed.message or self.message
        self.policy = followed.policy or self.policy
        self.divides = self.divides or followed.divides
        self.visits += followed.visits
        self.response.update(followed.response)
        self.first_log = followed.first_log or self.first_log
        self.passages += followed.passages
        self.forks = followed.forks
