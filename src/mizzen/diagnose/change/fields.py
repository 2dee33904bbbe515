"""Two messages field by field: the way of telling a difference that needs no knowledge of what a field means.

In: protobuf JSON on both sides. Out: `Field`s with path, before and after. Items of a list are held against each other
by name where they have names, else by their longest common run, so that one item more is one difference.
"""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

_SHOWN = 60
_ABSENT = "nothing"


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One place in which two messages differ; None stands for an absent side."""

    path: str
    before: Any = None
    after: Any = None

    def __str__(self) -> str:
        return f"{self.path}: {show(self.before)} → {show(self.after)}"


def differences(old: Any, new: Any, path: str = "") -> Iterator[Field]:
    """Every place, from the outside in, as deep as both sides have it."""
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys((*old, *new)):
            yield from differences(old.get(name), new.get(name), f"{path}.{name}" if path else name)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _items(old, new, path)
    else:
        yield Field(path=path, before=old, after=new)


def show(value: Any) -> str:
    """A value on one line, cut where it is long."""
    if value is None:
        return _ABSENT
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def canonical(value: Any) -> str:
    """Text that is equal exactly for equal values."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def equivalent(value: Any) -> str:
    """The same where neither the order of lists counts nor whether a default is stated."""
    return canonical(_sorted(value))


def without(message: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The message without these fields."""
    return {name: value for name, value in message.items() if name not in names}


_ZERO_DURATION = "0s"


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        parts = {name: _sorted(item) for name, item in value.items()}
        return {name: part for name, part in parts.items() if part} or None
    if isinstance(value, list):
        return sorted((_sorted(item) for item in value), key=canonical) or None
    return None if value == _ZERO_DURATION else value or None


def _items(old: list[Any], new: list[Any], path: str) -> Iterator[Field]:
    before, after = _by_name(old), _by_name(new)
    if before is not None and after is not None and _same_order(list(before), list(after)):
        for name in dict.fromkeys((*before, *after)):
            yield from differences(before.get(name), after.get(name), f"{path}[{name}]")
        return
    for first, last, start, end in _blocks([canonical(item) for item in old], [canonical(item) for item in new]):
        for offset in range(max(last - first, end - start)):
            left = old[first + offset] if first + offset < last else None
            right = new[start + offset] if start + offset < end else None
            place = first + offset if left is not None else start + offset
            yield from differences(left, right, f"{path}[{place}]")


def _same_order(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether what stays keeps its order; else names alone would hide the difference."""
    return [name for name in before if name in after] == [name for name in after if name in before]


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    named = {item["name"]: item for item in items if isinstance(item, dict) and isinstance(item.get("name"), str)}
    return named if len(named) == len(items) else None


def _blocks(old: list[str], new: list[str]) -> Iterator[tuple[int, int, int, int]]:
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag != "equal":
            yield first, last, start, end
