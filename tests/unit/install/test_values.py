"""Values of an installation."""

from typing import Any

import pytest

from mizzen.errors import DecodeError
from mizzen.install.values import default_values, lay_over, merge


def test_later_layers_lie_on_top_of_earlier_ones_and_null_takes_away() -> None:
    values = lay_over(
        [
            {"pilot": {"resources": {"requests": {"cpu": "1"}}}, "global": {"hub": "a"}},
            {"pilot": {"resources": {"requests": {"memory": None}}}, "global": {"hub": "b"}},
        ]
    )
    assert values.get("pilot.resources") == {"requests": {"cpu": "1"}}
    assert values.text("global.hub") == "b"
    assert values.get("pilot.autoscaleMax") == default_values()["pilot"]["autoscaleMax"]
    assert values.warnings == ()


def test_defaults_are_never_changed() -> None:
    before = repr(default_values())
    lay_over([{"pilot": {"env": {"A": "b"}, "resources": None}, "gateways": {"new": {}}}])
    assert repr(default_values()) == before


@pytest.mark.parametrize(
    ("layer", "warning"),
    [
        ({"pilot": {"autoscaleMinn": 2}}, "pilot.autoscaleMinn has no effect; did you mean pilot.autoscaleMin?"),
        ({"globl": {"hub": "x"}}, "globl has no effect; did you mean global?"),
        ({"ztunnel": {}}, "ztunnel has no effect"),
        ({"gateways": {"edge": {"servic": {}}}}, "gateways.edge.servic has no effect"),
        ({"gateways": {"edge": {"service": {"typ": "x"}}}}, "gateways.edge.service.typ has no effect"),
    ],
)
def test_values_that_nothing_reads_are_told_with_the_nearest(layer: dict[str, Any], warning: str) -> None:
    (found,) = lay_over([layer]).warnings
    assert found.startswith(f"unknown value {warning}")


@pytest.mark.parametrize(
    ("written", "warning"),
    [
        ({"nothing": {"at": "all"}}, "nothing: unknown field"),
        ({"acessLogFile": "/dev/stdout"}, "acessLogFile: unknown field; did you mean accessLogFile?"),
        ({"defaultConfig": {"holdUntil": True}}, "defaultConfig.holdUntil: unknown field"),
        ({"extensionProviders": [{"name": "x", "y": {}}]}, "extensionProviders[0].y: unknown field"),
    ],
)
def test_fields_that_the_mesh_config_does_not_have_are_told(written: dict[str, Any], warning: str) -> None:
    assert lay_over([{"meshConfig": written}]).warnings == (f"values.meshConfig.{warning}",)


@pytest.mark.parametrize(
    "layer",
    [
        {"meshConfig": {"defaultConfig": {"proxyMetadata": {"ANY": "x"}}, "default_providers": {"metrics": []}}},
        {"pilot": {"env": {"X": 1}, "pdb": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}, "podLabels": {"a": "b"}}},
        {"gateways": {"edge": {"resources": {"limits": {"nvidia.com/gpu": 1}}, "labels": {"x": "y"}}}},
        {"dashboards": {"labels": {"own": 1}}},
    ],
)
def test_maps_that_are_the_user_s_take_any_key(layer: dict[str, Any]) -> None:
    assert lay_over([layer]).warnings == ()


@pytest.mark.parametrize(
    ("layer", "place"),
    [
        ({"pilot": "x"}, "values.pilot: expected a map"),
        ({"global": {"imagePullSecrets": "x"}}, "values.global.imagePullSecrets: expected a list"),
        ({"pilot": {"replicaCount": [1]}}, "values.pilot.replicaCount: expected a whole number, got a list"),
        ({"pilot": {"replicaCount": "abc"}}, "values.pilot.replicaCount: expected a whole number, got 'abc'"),
        ({"pilot": {"replicaCount": True}}, "values.pilot.replicaCount: expected a whole number, got true"),
        ({"pilot": {"replicaCount": 1.5}}, "values.pilot.replicaCount: expected a whole number, got 1.5"),
        ({"pilot": {"traceSampling": "all"}}, "values.pilot.traceSampling: expected a number, got 'all'"),
        ({"pilot": {"autoscaleEnabled": "no"}}, "values.pilot.autoscaleEnabled: expected true or false, got 'no'"),
        ({"revision": {}}, "values.revision: expected a single value, got a map"),
        ({"gateways": {"edge": "x"}}, "values.gateways.edge: expected a map, got 'x'"),
        ({"gateways": {"edge": {"replicaCount": "x"}}}, "values.gateways.edge.replicaCount: expected a whole number"),
        ({"meshConfig": {"accessLogFile": []}}, "values.meshConfig.accessLogFile: expected string, got a list"),
        ({"meshConfig": {"outboundTrafficPolicy": {"mode": "X"}}}, "values.meshConfig.outboundTrafficPolicy.mode: "),
        ({"revision": "No_Name"}, "values.revision: 'No_Name'"),
        ({"revisionTags": ["prod", "no.dots"]}, r"values.revisionTags\[1\]: 'no.dots'"),
        ({"gateways": {"UP": {}}}, "values.gateways.UP: 'UP'"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(layer: dict[str, Any], place: str) -> None:
    with pytest.raises(DecodeError, match=place):
        lay_over([layer])


@pytest.mark.parametrize(
    "layer",
    [
        {"pilot": {"traceSampling": 100, "rollingMaxSurge": 1, "pdb": {"minAvailable": "50%"}, "replicaCount": None}},
        {"gateways": {"edge": {"podDisruptionBudget": {"minAvailable": "50%"}, "replicaCount": 3}, "gone": None}},
        {"revision": 2, "global": {"tag": 1.2}},
    ],
)
def test_values_of_another_type_that_mean_the_same_are_taken(layer: dict[str, Any]) -> None:
    assert lay_over([layer]).warnings == ()


def test_gateways_lie_over_their_defaults_and_only_enabled_ones_count() -> None:
    values = lay_over([{"gateways": {"edge": {"service": {"type": "NodePort"}}, "off": {"enabled": False}}}])
    assert list(values.gateways) == ["edge"]
    assert values.gateways["edge"]["service"]["type"] == "NodePort"
    assert values.gateways["edge"]["service"]["ports"] == default_values()["gatewayDefaults"]["service"]["ports"]


def test_merging_leaves_both_sides_as_they_are() -> None:
    lower, upper = {"a": {"b": 1, "c": 2}}, {"a": {"b": None}}
    assert merge(lower, upper) == {"a": {"c": 2}}
    assert (lower, upper) == ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}})
