"""Decoding under data that nobody would write: right objects made from the Structs' shapes, then spoiled anywhere."""

import copy
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mizzen.api.careful import read_carefully
from mizzen.api.decode import decode_object
from mizzen.api.kinds import KINDS, Kind
from mizzen.api.message import FreeForm
from mizzen.api.scalars import Duration, Quantity, encode_scalar
from mizzen.api.shape import Field, Shape, shape_of

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=6)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.sampled_from(["\ud800", "1s", 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT | st.integers(), inner, max_size=3),
    max_leaves=8,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
LEAVES: dict[Any, st.SearchStrategy[Any]] = {
    Duration: st.sampled_from(["1s", "1.5s", "1h30m", "0"]),
    Quantity: st.sampled_from(["1", "100m", "2Gi", 3]),
    FreeForm: st.dictionaries(TEXT, JSON, max_size=3),
    bytes: st.sampled_from(["", "aGk="]),
    str: TEXT,
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
}
LENIENT = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


def leaf_values(field: Field) -> st.SearchStrategy[Any]:
    """Right values of a leaf."""
    if field.expected.startswith("one of "):
        return st.sampled_from(msgspec.inspect.type_info(field.leaf).values)  # type: ignore[attr-defined]
    if field.expected.startswith("a time"):
        return st.just("2024-01-31T12:00:00Z")
    return LEAVES.get(field.leaf, st.integers(min_value=0, max_value=2**31 - 1))


def field_values(field: Field) -> st.SearchStrategy[Any]:
    """Right values of a field."""
    one = messages(field.shape) if field.shape else leaf_values(field)
    if field.container == "list":
        return st.lists(one, max_size=2)
    keys = TEXT if field.key is str else st.integers(min_value=0, max_value=2**32 - 1).map(str)
    return st.dictionaries(keys, one, max_size=2) if field.container == "map" else one


@st.composite
def messages(draw: st.DrawFn, shape: Shape) -> dict[str, Any]:
    """Right data of a message, with a few of its fields."""
    names = draw(st.lists(st.sampled_from(sorted(shape.fields)), unique=True, max_size=5)) if shape.fields else []
    return {name: draw(field_values(shape.fields[name])) for name in names}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A right object of any kind."""
    kind: Kind = draw(st.sampled_from(KINDS))
    body = draw(messages(shape_of(kind.type)))
    group = f"{kind.group}/" if kind.group else ""
    version = draw(st.sampled_from(kind.versions))
    metadata = {**body.get("metadata", {}), "name": "a", "namespace": "shop"}
    return {**body, "apiVersion": f"{group}{version}", "kind": kind.kind, "metadata": metadata}


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in data."""
    here: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        here = [(value, key) for key in value]
    elif isinstance(value, list):
        here = [(value, index) for index in range(len(value))]
    return here + [place for container, key in here for place in places(container[key])]


@st.composite
def spoiled_documents(draw: st.DrawFn) -> Any:
    """An object with a few places replaced, added to or taken away."""
    document = draw(documents())
    for _ in range(draw(st.integers(min_value=1, max_value=3))):
        container, key = draw(st.sampled_from(places(document) or [({}, "")]))
        if isinstance(container, dict) and draw(st.booleans()):
            container[draw(TEXT | st.integers())] = draw(ANYTHING)
        else:
            container[key] = draw(ANYTHING)
    return document


@LENIENT
@given(documents())
def test_right_objects_decode_without_a_word(document: dict[str, Any]) -> None:
    decoded = decode_object(document)
    assert [str(problem) for problem in decoded.problems] == []
    assert decoded.outcome == "decoded"


@LENIENT
@given(documents())
def test_the_fast_and_the_careful_way_agree(document: dict[str, Any]) -> None:
    fast = decode_object(document)
    assert fast.object is not None
    # What is dropped before either is not theirs to agree about.
    kept = fast.object.metadata
    metadata = {**document["metadata"], "namespace": kept.namespace, "annotations": dict(kept.annotations)}
    careful, problems = read_carefully({**document, "metadata": metadata}, type(fast.object))
    assert problems == ()
    assert careful == fast.object


@LENIENT
@given(documents())
def test_an_object_written_again_is_the_same(document: dict[str, Any]) -> None:
    first = decode_object(document)
    written = msgspec.to_builtins(first.object, enc_hook=encode_scalar, str_keys=True)
    again = decode_object({**written, "apiVersion": document["apiVersion"], "kind": document["kind"]})
    assert again.object == first.object


@LENIENT
@given(spoiled_documents() | ANYTHING)
def test_nothing_a_user_writes_makes_decoding_fail(document: Any) -> None:
    before = copy.deepcopy(document)
    decoded = decode_object(document)
    assert repr(document) == repr(before)
    has_error = any(problem.level == "error" for problem in decoded.problems)
    assert (decoded.outcome == "decoded") == (decoded.object is not None)
    assert (decoded.outcome == "failed") == has_error
    for problem in decoded.problems:
        assert str(problem)
