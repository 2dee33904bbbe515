"""Label selectors: what they hold for, and which of them nobody could mean."""

import pytest

from mizzen.api.mesh import config as mesh
from mizzen.api.meta import LabelSelector, LabelSelectorRequirement
from mizzen.api.selectors import find_fault, selects


def expressing(key: str, operator: str, *values: str) -> LabelSelector:
    rule = LabelSelectorRequirement(key=key, operator=operator, values=values)
    return LabelSelector(match_expressions=(rule,))


@pytest.mark.parametrize(
    ("operator", "values", "matches"),
    [
        ("In", ("b",), True),
        ("In", ("c",), False),
        ("NotIn", ("b",), False),
        ("NotIn", ("c",), True),
        ("Exists", (), True),
        ("DoesNotExist", (), False),
        ("Near", (), False),
    ],
)
def test_an_expression_holds_for_the_value_of_its_key(operator: str, values: tuple[str, ...], matches: bool) -> None:
    assert selects(expressing("a", operator, *values), {"a": "b"}) is matches


def test_an_absent_label_is_not_in_any_list() -> None:
    assert selects(expressing("z", "NotIn", "b"), {"a": "b"})
    assert not selects(expressing("z", "In", "b"), {"a": "b"})


def test_labels_and_expressions_must_all_hold() -> None:
    both = LabelSelector(match_labels={"a": "b"}, match_expressions=expressing("c", "Exists").match_expressions)
    assert selects(both, {"a": "b", "c": "d"})
    assert not selects(both, {"a": "b"})
    assert not selects(both, {"c": "d"})
    assert selects(LabelSelector(), {})


def test_the_mesh_configs_own_spelling_of_a_selector_is_answered_alike() -> None:
    assert selects(mesh.LabelSelector(match_labels={"a": "b"}), {"a": "b"})
    assert not selects(mesh.LabelSelector(match_labels={"a": "b"}), {})


@pytest.mark.parametrize(
    ("selector", "says"),
    [
        (expressing("a", "Near"), "'Near' is not a valid label selector operator"),
        (expressing("", "Exists"), "names no key"),
        (expressing("a", "In"), "values cannot be empty"),
        (expressing("a", "DoesNotExist", "b"), "values must be empty"),
    ],
)
def test_what_the_api_machinery_would_refuse_has_a_fault(selector: LabelSelector, says: str) -> None:
    assert says in find_fault(selector)


@pytest.mark.parametrize(
    "selector", [LabelSelector(), LabelSelector(match_labels={"a": "b"}), expressing("a", "In", "b")]
)
def test_what_it_would_take_has_none(selector: LabelSelector) -> None:
    assert find_fault(selector) == ""
