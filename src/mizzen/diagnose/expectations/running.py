"""All tests of a file, one after the other, over one world.

In: a suite, its world, and the texts of the files that its tests name. Out: a `Result` for each test. A test that
cannot be asked (a source that does not exist, a URL that is none) is an error of that test; the others run.
"""

from collections.abc import Mapping, Sequence

import msgspec

from mizzen.diagnose.expectations import asking, checks
from mizzen.diagnose.expectations.checks import Mismatch
from mizzen.diagnose.expectations.seen import Seen, look
from mizzen.diagnose.expectations.tables import Case, Suite
from mizzen.diagnose.trace import walk
from mizzen.diagnose.trace.world import World
from mizzen.errors import MizzenError


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one test."""

    case: Case
    mismatches: tuple[Mismatch, ...] = ()
    error: str = ""
    """Why it could not be asked."""
    seen: Seen | None = None

    @property
    def holds(self) -> bool:
        """Whether it is as expected."""
        return not self.error and not self.mismatches


def run(suite: Suite, world: World, texts: Mapping[str, str]) -> list[Result]:
    """The results, in the file's order."""
    return [_run(case, suite, world, texts) for case in suite.tests]


def _run(case: Case, suite: Suite, world: World, texts: Mapping[str, str]) -> Result:
    try:
        request = asking.build_request(case, suite.defaults, texts)
        found = look(world, request, walk.trace(world, request))
    except MizzenError as error:
        return Result(case=case, error=str(error))
    if case.expect is None:
        return Result(case=case, seen=found, error="it expects nothing: write `expect`, or run with --record")
    return Result(case=case, seen=found, mismatches=checks.check(case.expect, found))


def failures(results: Sequence[Result]) -> int:
    """How many do not hold."""
    return sum(not result.holds for result in results)
