"""The difference of two documents as a JSON Patch (RFC 6902).

In: plain data before and after. Out: operations that, applied in their order, make the one of the other, and say no
more than what differs. Lists whose items have names of their own (containers, volumes, variables) are told by these:
an item that stays is changed in place, one that goes is removed, one that comes is added, and one that stands
elsewhere is moved. Other lists keep their common beginning and end, and are changed position by position between them.
"""

from collections.abc import Iterator
from typing import Any

Operation = dict[str, Any]


def diff(before: Any, after: Any, path: str = "") -> Iterator[Operation]:
    """The operations at and below a path."""
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _diff_maps(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        if _are_named(before) and _are_named(after):
            yield from _diff_named(before, after, path)
        else:
            yield from _diff_positions(before, after, path)
    elif type(before) is not type(after) or before != after:
        yield {"op": "replace", "path": path, "value": after}


def _diff_maps(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[Operation]:
    for name in before:
        if name not in after:
            yield {"op": "remove", "path": f"{path}/{_escape(name)}"}
    for name, value in after.items():
        place = f"{path}/{_escape(name)}"
        if name in before:
            yield from diff(before[name], value, place)
        else:
            yield {"op": "add", "path": place, "value": value}


def _diff_named(before: list[Any], after: list[Any], path: str) -> Iterator[Operation]:
    wanted = {item["name"] for item in after}
    left = list(before)
    for position in range(len(left) - 1, -1, -1):
        if left[position]["name"] not in wanted:
            yield {"op": "remove", "path": f"{path}/{position}"}
            del left[position]
    for position, item in enumerate(after):
        place = f"{path}/{position}"
        names = [other["name"] for other in left]
        if item["name"] not in names:
            yield {"op": "add", "path": place, "value": item}
            left.insert(position, item)
            continue
        at = names.index(item["name"])
        if at != position:
            yield {"op": "move", "from": f"{path}/{at}", "path": place}
            left.insert(position, left.pop(at))
        yield from diff(left[position], item, place)


def _diff_positions(before: list[Any], after: list[Any], path: str) -> Iterator[Operation]:
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and _is_same(before[start], after[start]):
        start += 1
    end = 0
    while end < shorter - start and _is_same(before[-1 - end], after[-1 - end]):
        end += 1
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    both = min(len(old), len(new))
    for position in range(both):
        yield from diff(old[position], new[position], f"{path}/{start + position}")
    for position in range(len(old) - 1, both - 1, -1):
        yield {"op": "remove", "path": f"{path}/{start + position}"}
    for position in range(both, len(new)):
        yield {"op": "add", "path": f"{path}/{start + position}", "value": new[position]}


def _are_named(items: list[Any]) -> bool:
    names = [item.get("name") for item in items if isinstance(item, dict)]
    return len(names) == len(items) == len({name for name in names if isinstance(name, str)})


def _is_same(before: Any, after: Any) -> bool:
    return next(diff(before, after), None) is None


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
