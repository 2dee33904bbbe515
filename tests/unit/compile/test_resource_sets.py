"""Sets of resources: equal by what they hold, in whatever parts, and compared by the parts that differ."""

import gc
import weakref

from hypothesis import given
from hypothesis import strategies as st

from mizzen.compile.resource import CLUSTER, ENDPOINT, Resource, ResourceSet, shared, shared_set

CONTENTS = st.dictionaries(st.sampled_from("abcdefgh"), st.binary(max_size=1), max_size=8)


def flat(contents: dict[str, bytes]) -> ResourceSet:
    return ResourceSet(CLUSTER, [Resource(name, data) for name, data in contents.items()])


def joined(contents: dict[str, bytes], cuts: int) -> ResourceSet:
    """The same in parts, by the bits of `cuts`."""
    parts: tuple[dict[str, bytes], dict[str, bytes]] = ({}, {})
    for place, (name, data) in enumerate(contents.items()):
        parts[cuts >> place & 1][name] = data
    return ResourceSet.join(CLUSTER, map(flat, parts))


@given(CONTENTS, st.integers(0, 255))
def test_parts_make_no_difference_to_what_a_set_is(contents, cuts):
    whole, parted = flat(contents), joined(contents, cuts)
    assert (whole, whole.version, len(whole)) == (parted, parted.version, len(parted))
    assert list(whole) == list(parted)
    assert whole.names == parted.names == tuple(sorted(contents))
    assert all(parted.get(name) == whole.get(name) for name in "abcdefgh")
    assert {name for name in "abcdefgh" if name in parted} == set(contents)


@given(CONTENTS, st.integers(0, 255), st.frozensets(st.sampled_from("abcdefghxy")))
def test_names_are_looked_up_in_whatever_parts(contents, cuts, names):
    found = joined(contents, cuts)
    assert {resource.name for resource in found.among(names)} == names & contents.keys()
    assert found.lacks(names) == names - contents.keys()


@given(CONTENTS, CONTENTS, st.integers(0, 255), st.integers(0, 255))
def test_what_differs_is_found_in_whatever_parts(before, after, one, other):
    held, target = joined(before, one), joined(after, other)
    changed = {name for name, data in after.items() if before.get(name) != data}
    assert {resource.name for resource in target.upserts_since(held)} == changed
    assert set(target.names_gone_since(held)) == before.keys() - after.keys()
    assert (held == target) == (before == after)


def test_shared_parts_are_not_looked_at():
    shared, changed = flat({"a": b"1"}), flat({"b": b"2"})
    held = ResourceSet.join(CLUSTER, (shared, flat({"b": b"1"})))
    shared._by_name.clear()
    target = ResourceSet.join(CLUSTER, (shared, changed))
    assert [resource.name for resource in target.upserts_since(held)] == ["b"]
    assert list(target.names_gone_since(held)) == []


def test_sets_of_sets_are_flat_and_a_single_part_stands_for_itself():
    one, two, three = (flat({name: b""}) for name in "abc")
    nested = ResourceSet.join(CLUSTER, (ResourceSet.join(CLUSTER, (one, two)), three))
    assert nested.parts == (one, two, three)
    assert ResourceSet.join(CLUSTER, (one, flat({}))) is one
    assert len(ResourceSet.join(CLUSTER, ())) == 0


def test_types_are_part_of_what_a_set_is():
    assert ResourceSet(CLUSTER, ()) != ResourceSet(ENDPOINT, ())
    assert ResourceSet(CLUSTER, ()).version != ResourceSet(ENDPOINT, ()).version
    assert ResourceSet.join(CLUSTER, ()) == ResourceSet(CLUSTER, ())


def test_an_outdated_set_goes_without_a_collector_of_cycles():
    gc.collect()
    gc.disable()
    try:
        before = _sets()
        sets = [flat({"a": b"1"}), joined({"a": b"1", "b": b"2"}, 1), joined({}, 0)]
        assert [len(each.parts) for each in sets] == [1, 2, 1]
        assert [each.versions().keys() for each in sets] == [{"a"}, {"a", "b"}, set()]
        assert _sets() > before
        del sets
        assert _sets() == before
    finally:
        gc.enable()


def _sets() -> int:
    return sum(1 for each in gc.get_objects() if type(each) is ResourceSet)


def test_equal_resources_are_one_as_long_as_somebody_holds_them() -> None:
    made = shared(Resource("a", b"1"))
    assert shared(Resource("a", b"1")) is made
    others = [shared(Resource("b", b"1")), shared(Resource("a", b"2"))]
    assert [(other.name, other.data) for other in others] == [("b", b"1"), ("a", b"2")]
    known = weakref.ref(made)
    del made
    assert known() is None


def test_equal_sets_of_one_type_are_one_as_long_as_somebody_holds_them() -> None:
    made = shared_set(flat({"a": b"1", "b": b"2"}))
    assert shared_set(flat({"b": b"2", "a": b"1"})) is made
    assert shared_set(ResourceSet(ENDPOINT, made)) is not made
    known = weakref.ref(made)
    del made
    assert known() is None
