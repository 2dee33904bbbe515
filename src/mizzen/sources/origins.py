"""Where something stands in files: for messages, findings and traces."""

from typing import NamedTuple

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
