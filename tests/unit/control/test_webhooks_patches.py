"""The difference of two documents: applied, it gives the second one, and it says no more than it must."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kube_webhooks import apply_patch

from mizzen.control.webhooks.patches import diff

words = st.text("ab~/0", min_size=1, max_size=3)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)
named = st.lists(
    st.builds(lambda name, more: {**more, "name": name}, st.sampled_from("vwxyz"), st.dictionaries(words, plain)),
    max_size=5,
    unique_by=lambda item: item["name"],
)


def _equals(one: Any, other: Any) -> bool:
    """Equal, and `true` is no 1."""
    return one == other and repr(_sorted(one)) == repr(_sorted(other))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


@settings(deadline=None)
@given(plain, plain)
def test_any_two_documents(before: Any, after: Any) -> None:
    kept = copy.deepcopy(before)
    assert _equals(apply_patch(before, list(diff(before, after))), after)
    assert before == kept


@settings(deadline=None)
@given(named, named)
def test_lists_of_named_items(before: Any, after: Any) -> None:
    assert _equals(apply_patch(before, list(diff(before, after))), after)


@settings(deadline=None)
@given(plain)
def test_what_is_equal_needs_nothing(document: Any) -> None:
    assert list(diff(document, copy.deepcopy(document))) == []


def items(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "image": f"{name}:1"} for name in names]


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        (items("a"), items("a", "p"), [{"op": "add", "path": "/1", "value": items("p")[0]}]),
        (items("a", "b"), items("p", "a", "b"), [{"op": "add", "path": "/0", "value": items("p")[0]}]),
        (items("a", "b", "c"), items("b"), [{"op": "remove", "path": "/2"}, {"op": "remove", "path": "/0"}]),
        (items("a", "b", "c"), items("c", "a", "b"), [{"op": "move", "from": "/2", "path": "/0"}]),
        ({"a/b": 1}, {"a/b": 2}, [{"op": "replace", "path": "/a~1b", "value": 2}]),
        ({}, {"c~d": 3}, [{"op": "add", "path": "/c~0d", "value": 3}]),
        ({"a": 1, "b": 2}, {"b": 2}, [{"op": "remove", "path": "/a"}]),
        ([1, 2, 3, 4], [1, 3, 4], [{"op": "remove", "path": "/1"}]),
        (["x"], ["x", "y"], [{"op": "add", "path": "/1", "value": "y"}]),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
    ],
)
def test_the_least_that_must_be_said(before: Any, after: Any, operations: list[dict[str, Any]]) -> None:
    assert list(diff(before, after)) == operations


def test_an_item_that_stays_is_changed_in_place() -> None:
    before = [{"name": "app", "image": "i", "readinessProbe": {"httpGet": {"port": 80}}}]
    after = [{"name": "app", "image": "i", "readinessProbe": {"httpGet": {"port": 15020}}}, {"name": "istio-proxy"}]
    paths = [operation["path"] for operation in diff(before, after, "/spec/containers")]
    assert paths == ["/spec/containers/0/readinessProbe/httpGet/port", "/spec/containers/1"]


def test_items_of_one_name_twice_are_told_by_position() -> None:
    before = [{"name": "e", "value": "1"}, {"name": "e", "value": "2"}]
    after = [{"name": "e", "value": "1"}, {"name": "e", "value": "3"}, {"name": "f"}]
    assert apply_patch(before, list(diff(before, after))) == after
