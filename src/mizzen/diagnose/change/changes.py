"""One change in what a proxy is told, in words.

In: nothing of its own. Out: `Change`, and `generic`, by which a module tells of fields that it has no words for.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from mizzen.diagnose.change.fields import Field, differences
from mizzen.diagnose.dump import Json

Kind = Literal["listener", "route", "cluster", "endpoint", "secret", "extension"]
Action = Literal["added", "removed", "changed"]

_MOST_FIELDS = 6


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change."""

    kind: Kind
    subject: str
    """What it is about, as operators name it."""
    action: Action
    text: str = ""
    """What of it; empty where the action says all."""

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}: {self.text}" if self.text else f"{self.kind} {self.subject} {self.action}"


def changed(kind: Kind, subject: str, texts: Iterable[str]) -> Iterator[Change]:
    """Changes of one thing; each text once."""
    for text in dict.fromkeys(texts):
        yield Change(kind=kind, subject=subject, action="changed", text=text)


def worded(texts: Iterable[str], old: Json, new: Json) -> Iterator[str]:
    """The texts; of a change that none of them tells, its fields."""
    found = list(texts)
    yield from found or (generic(differences(dict(old), dict(new))) if old != new else ())


def generic(fields: Iterable[Field]) -> Iterator[str]:
    """Fields by path; of very many only the first."""
    found = list(fields)
    yield from (str(field) for field in found[:_MOST_FIELDS])
    if len(found) > _MOST_FIELDS:
        yield f"and {len(found) - _MOST_FIELDS} more fields"


def few(names: Sequence[str], most: int = 3) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def plural(number: int, noun: str) -> str:
    """`1 proxy`, `2 proxies`, `3 chains`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") else f"{number} {noun}s"
