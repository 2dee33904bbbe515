"""Trying patches, and leaving one out."""

from collections.abc import Sequence
from typing import Any

from envoy_patches import read, resource_of, write_patch

from mizzen.compile.patches import trial
from mizzen.compile.patches.values import ReadyPatch

PRISTINE = resource_of("cluster", name="a", type="STATIC")


def _apply(cluster: Any, patches: Sequence[ReadyPatch]) -> bool | None:
    for patch in patches:
        if patch.operation == "REMOVE":
            return None
        cluster.MergeFrom(patch.value)
    return bool(patches)


def _patches(*values: dict | None) -> list[ReadyPatch]:
    return read(*(write_patch("CLUSTER", "MERGE" if v is not None else "REMOVE", v) for v in values))


BAD = {"connectTimeout": "0s"}


def test_istios_proxies_get_what_the_patches_say():
    outcome = trial.settle(PRISTINE, _apply, _patches(BAD, {"altStatName": "x"}), "istio")
    assert outcome.resource is not None
    assert outcome.resource.message().HasField("connect_timeout")
    assert outcome.problems == ()


def test_only_the_refused_patch_is_left_out():
    outcome = trial.settle(PRISTINE, _apply, _patches({"altStatName": "x"}, BAD, {"altStatName": "y"}), "envoy")
    assert outcome.resource is not None
    assert outcome.resource.message().alt_stat_name == "y"
    assert not outcome.resource.message().HasField("connect_timeout")
    assert [p.path for p in outcome.problems] == ["spec.configPatches[1].patch"]


def test_patches_that_only_stand_together_stand():
    both = _patches({"type": "EDS"}, {"edsClusterConfig": {"edsConfig": {"ads": {}}}})
    assert trial.settle(PRISTINE, _apply, both, "envoy").problems == ()


def test_what_was_refused_before_is_not_the_patches_fault():
    broken = resource_of("cluster", name="a", type="EDS")
    outcome = trial.settle(broken, _apply, _patches(BAD, {"altStatName": "x"}), "envoy")
    assert outcome.resource is not None
    assert outcome.resource.message().alt_stat_name == "x"
    assert outcome.problems == ()


def test_a_removal_is_never_refused():
    assert trial.settle(PRISTINE, _apply, _patches(BAD, None), "envoy").resource is None


def test_without_a_change_the_resource_is_the_same():
    assert trial.settle(PRISTINE, _apply, [], "envoy").resource is PRISTINE
    assert trial.settle(PRISTINE, _apply, _patches(BAD), "envoy").resource is PRISTINE


def test_a_merge_may_rename():
    outcome = trial.settle(PRISTINE, _apply, _patches({"name": "b"}), "istio")
    assert outcome.resource is not None
    assert outcome.resource.name == "b"
