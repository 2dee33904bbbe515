"""Windows on long lists: which part of a list a question asks for, and the answer around that part.

In: a query with `offset`, `limit` and `filter`. Out: `Window`, which cuts. A limit above the largest is lowered to it,
so that no answer grows with the mesh.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from mizzen.control.debug.console import PageError, Query

T = TypeVar("T")

USUAL, MOST = 50, 200
"""How many entries an answer holds where the question does not say, and at most."""


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list."""

    offset: int = 0
    limit: int = USUAL
    words: tuple[str, ...] = ()
    """What an entry must contain, in lower case."""

    def keeps(self, *texts: str) -> bool:
        """Whether an entry with these texts holds every word of the filter."""
        if not self.words:
            return True
        joined = "\n".join(texts).lower()
        return all(word in joined for word in self.words)

    def cut(self, entries: Sequence[T]) -> Sequence[T]:
        """The entries that are asked for."""
        return entries[self.offset : self.offset + self.limit]

    def frame(self, total: int) -> dict[str, Any]:
        """What an answer says of the window itself."""
        return {"offset": self.offset, "limit": self.limit, "total": total}


def read_window(query: Query) -> Window:
    """The window that the query asks for; raises PageError for numbers that are none."""
    return Window(
        offset=_number(query, "offset", 0),
        limit=max(1, min(_number(query, "limit", USUAL), MOST)),
        words=tuple(query["filter"].lower().split()),
    )


def _number(query: Query, name: str, default: int) -> int:
    text = query[name]
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise PageError(400, f"{name} is not a number")
    return int(text)
