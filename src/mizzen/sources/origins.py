"""Where something stands in files: for messages, findings and traces."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mizzen.api.meta import Key
from mizzen.api.problems import Problem


class Origin(NamedTuple):
    """A place in a file; line 0 means the whole file."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Finding(NamedTuple):
    """A Problem and the place it was found at; a place without a file is unknown."""

    origin: Origin
    problem: Problem

    def __str__(self) -> str:
        return f"{self.origin}: {self.problem}" if self.origin.file else str(self.problem)


def untold(problems: Iterable[Problem], told: Iterable[Finding]) -> Iterator[Problem]:
    """The Problems without those of which a source has told: of the same field of the object, or one within it."""
    fields: dict[Key | None, list[str]] = {}
    for _, each in told:
        if each.level == "error" and each.path:
            fields.setdefault(each.key, []).append(each.path)
    for problem in problems:
        path = problem.path
        known = fields.get(problem.key, ()) if path else ()
        if not any(each.startswith(path) or path.startswith(each) for each in known):
            yield problem
