"""Where this control plane has its objects from, and how old what it knows has become.

In: the sources that follow somebody else. Out: the page `sources`, our own; `mizzen proxy-status` warns by it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mizzen.control.debug.console import Page, Pages, Query, Write


class Followed(Protocol):
    """A source that somebody else feeds, who may be away."""

    def age(self) -> float:
        """Seconds since it was last in step; 0 while it is."""
        ...

    @property
    def troubles(self) -> Sequence[str]:
        """Why it is not."""
        ...


def pages(sources: Mapping[str, Followed]) -> Pages:
    """The page about sources."""

    def read(_: Query) -> Write:
        document = [describe(name, source) for name, source in sources.items()]
        return lambda: document

    return {"sources": Page("Where objects come from, and since when nothing is heard of that.", read)}


def describe(name: str, source: Followed) -> dict[str, Any]:
    """One source."""
    return {"name": name, "ageSeconds": round(source.age(), 3), "troubles": list(source.troubles)}
