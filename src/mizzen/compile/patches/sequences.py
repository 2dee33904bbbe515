"""Sequences: where an added element goes among filters or routes, and which one is replaced or removed.

In: the elements, a patch and what it looks for. Out: the list changed in place, and whether it was. An element is
inserted once, beside the first that matches; without anything to look for, before is first and after is last.
Golden cases: networking/ef-filters, networking/ef-listeners, networking/ef-routes.
"""

from collections.abc import Callable
from typing import Any

Matcher = Callable[[Any], bool]


def place(elements: list[Any], operation: str, value: Any, matches: Matcher | None) -> bool:
    """Apply one patch to the list; `matches` None means that the patch looks for nothing in particular.

    REPLACE and REMOVE of nothing in particular do nothing. A removal takes all that match, the rest only the first.
    """
    if operation == "ADD" or (operation == "INSERT_AFTER" and matches is None):
        elements.append(value)
        return True
    if operation == "INSERT_FIRST" or (operation == "INSERT_BEFORE" and matches is None):
        elements.insert(0, value)
        return True
    if matches is None:
        return False
    found = [i for i, element in enumerate(elements) if matches(element)]
    if not found:
        return False
    if operation == "REMOVE":
        elements[:] = [element for i, element in enumerate(elements) if i not in found]
    elif operation == "REPLACE":
        elements[found[0]] = value
    elif operation in ("INSERT_BEFORE", "INSERT_AFTER"):
        elements.insert(found[0] + (operation == "INSERT_AFTER"), value)
    else:
        return False
    return True


def store(field: Any, elements: list[Any]) -> None:
    """Put the elements into a repeated field in this order."""
    del field[:]
    field.extend(elements)
