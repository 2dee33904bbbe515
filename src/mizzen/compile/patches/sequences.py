"""Sequences: where an added element goes among filters or routes, and which one is replaced or removed.

In: the elements, a patch and what it looks for. Out: the list changed in place, and whether it was. An element is
inserted once, beside the first that matches; without anything to look for, before is first and after is last.
Golden cases: networking/ef-filters, networking/ef-listeners, networking/ef-routes.
"""

from collections.abc import Callable
from typing import Any

from mizzen.compile.patches.values import ReadyPatch

Matcher = Callable[[Any], bool]


def place(elements: list[Any], patch: ReadyPatch, matches: Matcher | None) -> bool:
    """Apply a patch that is no merge; `matches` None means that it looks for nothing in particular.

    REPLACE and REMOVE of nothing in particular do nothing. A removal takes all that match, the rest only the first.
    """
    operation = patch.operation
    if operation == "ADD" or (operation == "INSERT_AFTER" and matches is None):
        elements.append(_copy(patch.value))
        return True
    if operation == "INSERT_FIRST" or (operation == "INSERT_BEFORE" and matches is None):
        elements.insert(0, _copy(patch.value))
        return True
    found = [i for i, element in enumerate(elements) if matches(element)] if matches is not None else []
    if not found:
        return False
    if operation == "REMOVE":
        elements[:] = [element for i, element in enumerate(elements) if i not in found]
    elif operation == "REPLACE":
        elements[found[0]] = _copy(patch.value)
    elif operation in ("INSERT_BEFORE", "INSERT_AFTER"):
        elements.insert(found[0] + (operation == "INSERT_AFTER"), _copy(patch.value))
    else:
        return False
    return True


def _copy(value: Any) -> Any:
    """A patch's value is shared by all that it is added to."""
    copy = type(value)()
    copy.CopyFrom(value)
    return copy


def named(name: str) -> Matcher:
    """Matches elements of that name."""
    return lambda element: bool(element.name == name)


def store(field: Any, elements: list[Any]) -> None:
    """Put the elements into a repeated field in this order."""
    del field[:]
    field.extend(elements)
