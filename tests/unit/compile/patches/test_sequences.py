"""Places of added elements."""

import pytest
from envoy_patches import rbac, read_one

from mizzen.compile.patches import sequences
from mizzen.compile.patches.sequences import named


class _Named:
    def __init__(self, name: str) -> None:
        self.name = name


def _placed(operation: str, sought: str | None) -> str:
    elements = [_Named("a"), _Named("b"), _Named("b")]
    patch = read_one("NETWORK_FILTER", operation, None if operation == "REMOVE" else rbac("new"))
    changed = sequences.place(elements, patch, named(sought) if sought is not None else None)
    names = " ".join(each.name for each in elements)
    assert changed == (names != "a b b")
    return names


@pytest.mark.parametrize(
    ("operation", "sought", "names"),
    [
        ("ADD", None, "a b b new"),
        ("ADD", "a", "a b b new"),
        ("INSERT_FIRST", None, "new a b b"),
        ("INSERT_FIRST", "b", "new a b b"),
        ("INSERT_BEFORE", None, "new a b b"),
        ("INSERT_BEFORE", "b", "a new b b"),
        ("INSERT_AFTER", None, "a b b new"),
        ("INSERT_AFTER", "b", "a b new b"),
        ("REPLACE", "b", "a new b"),
        ("REMOVE", "b", "a"),
        ("REPLACE", None, "a b b"),
        ("REMOVE", None, "a b b"),
        ("INSERT_BEFORE", "no such", "a b b"),
        ("INSERT_AFTER", "no such", "a b b"),
        ("MERGE", "b", "a b b"),
    ],
)
def test_where_an_element_goes(operation: str, sought: str | None, names: str):
    assert _placed(operation, sought) == names


def test_what_is_added_is_a_copy():
    patch = read_one("NETWORK_FILTER", "ADD", rbac("new"))
    elements: list = []
    sequences.place(elements, patch, None)
    elements[0].name = "other"
    assert patch.value.name == "new"
