"""Differences and their bytes: right, shared, and bounded in memory."""

import gc
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen import protos
from mizzen.compile.resource import CLUSTER, Resource, ResourceSet
from mizzen.xds.requests import intern_versions
from mizzen.xds.responses import Responses

_discovery = protos.package("envoy.service.discovery.v3")
_any = protos.package("google.protobuf").Any
NOTHING = frozenset()


def resources(**contents: str) -> ResourceSet:
    return ResourceSet(CLUSTER, [encoded(name, content) for name, content in contents.items()])


def encoded(name: str, content: str) -> Resource:
    return Resource(name, protos.encode(_any(type_url=CLUSTER, value=content.encode())))


def names(difference) -> tuple[list[str], list[str]]:
    return [r.name for r in difference.upserts], list(difference.removed)


@pytest.fixture
def responses():
    return Responses()


def test_new_changed_and_absent_resources_are_told(responses):
    old, new = resources(a="1", b="1", c="1"), resources(b="2", c="1", d="1")
    assert names(responses.difference(old, new, None)) == (["b", "d"], ["a"])
    assert names(responses.difference(None, new, None)) == (["b", "c", "d"], [])
    assert not responses.difference(new, resources(b="2", c="1", d="1"), None)


def test_only_absences_in_scope_are_told(responses):
    old, new = resources(a="1", b="1"), resources()
    assert names(responses.difference(old, new, frozenset("b"))) == ([], ["b"])
    assert names(responses.difference(old, new, NOTHING)) == ([], [])


def test_extra_names_are_always_spoken_of(responses):
    held = resources(a="1", b="1")
    assert names(responses.difference(held, held, None, frozenset(("a", "x")))) == (["a"], ["x"])
    assert names(responses.difference(None, held, frozenset("y"), frozenset(("x", "y")))) == (["a", "b"], ["y"])


def test_a_difference_from_versions_is_that_from_a_set(responses):
    old, new = resources(a="1", b="1", c="1"), resources(b="2", c="1", d="1")
    versions = {r.name: r.version for r in old}
    for scope, extra in ((None, NOTHING), (frozenset("ab"), frozenset("cz")), (NOTHING, frozenset("c"))):
        expected = responses.difference(old, new, scope, extra)
        assert names(responses.since(intern_versions(versions), new, scope, extra)) == names(expected)


def test_the_same_step_is_compared_and_encoded_once(responses):
    for nonce in "123":
        difference = responses.difference(resources(a="1"), resources(a="2"), None)
        responses.delta(difference, nonce)
    assert (responses.compared, responses.encoded) == (1, 1)
    responses.sotw(difference, "4")
    assert responses.encoded == 2


def test_what_different_steps_have_in_common_is_encoded_once(responses):
    shared = resources(a="1", b="1")
    for own in ("x", "y"):
        target = ResourceSet.join(CLUSTER, (shared, resources(own=own)))
        message = _discovery.DeltaDiscoveryResponse.FromString(
            responses.delta(responses.difference(None, target, None), "1")
        )
        assert {r.name: r.version for r in message.resources} == target.versions()
    assert responses.encoded == 3
    for old in ("x", "y"):
        held = ResourceSet.join(CLUSTER, (shared, resources(own=old)))
        target = ResourceSet.join(CLUSTER, (shared, resources(own="z")))
        responses.delta(responses.difference(held, target, None), "2")
    assert responses.encoded == 4


def test_clients_that_come_back_with_the_same_are_compared_once(responses):
    new = resources(a="2", b="1")
    for _ in range(3):
        difference = responses.since(intern_versions({"a": "old", "gone": "1"}), new, None)
    assert names(difference) == (["a", "b"], ["gone"])
    assert responses.compared == 1


def test_clients_that_need_the_same_share_what_is_encoded(responses):
    new = resources(a="2", b="1")
    current = new.get("b").version
    for held in ("old", "older"):
        difference = responses.since(intern_versions({"a": held, "b": current}), new, None)
        assert names(difference) == (["a"], [])
        responses.delta(difference, held)
    assert responses.encoded == 1


def test_additions_are_encoded_once_too(responses):
    difference = responses.difference(resources(a="1"), resources(b="1"), None)
    assert names(difference.additions) == (["b"], [])
    assert difference.additions.upserts is difference.upserts
    without = responses.difference(None, resources(b="1"), None)
    assert without.additions is without


def test_touched_names_are_all_that_is_spoken_of(responses):
    difference = responses.difference(resources(a="1", c="1"), resources(b="1", c="2"), None)
    assert difference.touched == frozenset("abc")


def test_a_union_prefers_the_first_set(responses):
    one, other = resources(a="1", b="1"), resources(b="2", c="2")
    union = responses.union(one, other)
    assert {r.name: r for r in union} == {"a": one.get("a"), "b": one.get("b"), "c": other.get("c")}
    assert responses.union(one, other) is union
    assert responses.union(one, resources(a="9")) is one


@given(
    st.dictionaries(st.text("abc/|é", min_size=1, max_size=300), st.text(max_size=400), max_size=5),
    st.sets(st.text("xyz", min_size=1)),
    st.text("n0123/-", min_size=1, max_size=200),
)
def test_bodies_decode_to_what_was_meant(contents, gone, nonce):
    responses = Responses()
    target = ResourceSet(CLUSTER, [encoded(name, content) for name, content in contents.items()])
    difference = responses.difference(None, target, None, frozenset(gone))
    delta = _discovery.DeltaDiscoveryResponse.FromString(responses.delta(difference, nonce))
    assert (delta.type_url, delta.nonce, delta.system_version_info) == (CLUSTER, nonce, target.version)
    assert [(r.name, r.version, protos.encode(r.resource)) for r in delta.resources] == [
        (r.name, r.version, r.data) for r in target
    ]
    assert list(delta.removed_resources) == sorted(gone)
    sotw = _discovery.DiscoveryResponse.FromString(responses.sotw(difference, nonce))
    assert (sotw.type_url, sotw.nonce, sotw.version_info) == (CLUSTER, nonce, target.version)
    assert [protos.encode(packed) for packed in sotw.resources] == [r.data for r in target]


@pytest.mark.parametrize("size", [0, 100, 127, 128, 16_383, 16_384, 3_000_000])
def test_sizes_are_written_as_protobuf_reads_them(responses, size):
    difference = responses.difference(None, resources(a="x" * size), None)
    message = _discovery.DeltaDiscoveryResponse.FromString(responses.delta(difference, "1"))
    assert len(message.resources[0].resource.value) == size


def test_what_was_used_least_recently_goes_first():
    responses = Responses(max_bytes=20_000)
    nothing = resources()
    first = responses.difference(nothing, resources(a="0"), None)
    responses.delta(first, "1")
    for number in range(1, 100):
        responses.delta(responses.difference(nothing, resources(a=str(number) * 400), None), "1")
    assert responses.encoded == 100
    responses.delta(first, "2")
    assert responses.encoded == 101
    assert responses.difference(nothing, resources(a="0"), None) is not first


@pytest.mark.parametrize("way", ["from another set", "from nothing", "from versions", "united"])
def test_what_is_outdated_does_not_pile_up(way):
    """Clients of all kinds are told of thousands of changes; the memory of it is that of the last few."""
    responses, held, sizes = Responses(max_bytes=1 << 18), resources(), []
    tracemalloc.start()
    for number in range(1500):
        shared = [encoded(f"shared-{part}", str(part)) for part in range(5)]
        target = ResourceSet(CLUSTER, [*shared, encoded("a", f"{number:04}" * 1000)])
        if way == "from another set":
            difference = responses.difference(held, target, frozenset((f"name-{number}", "a")))
        elif way == "from nothing":
            difference = responses.difference(None, target, None)
        elif way == "from versions":
            difference = responses.since(intern_versions({"a": str(number)}), target, None)
        else:
            difference = responses.difference(None, responses.union(target, held), None)
        responses.delta(difference, "1")
        held = target
        if number in (499, 1499):
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert sizes[1] < sizes[0] + (1 << 18)


def test_one_body_larger_than_the_bound_is_still_kept():
    responses = Responses(max_bytes=10)
    difference = responses.difference(None, resources(a="1" * 100), None)
    responses.delta(difference, "1")
    responses.delta(difference, "2")
    assert responses.encoded == 1
