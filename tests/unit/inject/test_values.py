import json

import pytest

from mizzen.api.meta import LabelSelector
from mizzen.errors import DecodeError
from mizzen.inject.values import Cni, InjectionConfig, Resources, decode_injector, decode_values


def test_no_values_are_the_defaults() -> None:
    assert decode_values({}) == InjectionConfig()


def test_helm_values_set_fields_and_others_are_left_alone() -> None:
    values = {
        "global": {
            "hub": "h",
            "tag": 1.5,
            "imagePullSecrets": ["s"],
            "multiCluster": {"clusterName": "c"},
            "proxy": {
                "statusPort": "15555",
                "resources": {"requests": {"cpu": 1}},
                "startupProbe": {"enabled": False},
                "lifecycle": {"preStop": {"exec": {"command": ["x"]}}},
                "unknown": 1,
            },
        },
        "pilot": {"cni": {"enabled": True}},
        "sidecarInjectorWebhook": {"rewriteAppHTTPProbe": False},
        "gateways": None,
    }
    assert decode_values(values) == InjectionConfig(
        hub="h",
        tag="1.5",
        image_pull_secrets=("s",),
        cluster_id="c",
        status_port=15555,
        resources=Resources(requests={"cpu": "1"}),
        startup_probe=False,
        lifecycle={"preStop": {"exec": {"command": ["x"]}}},
        cni=Cni(enabled=True),
        rewrite_probes=False,
    )


def test_values_lie_over_a_base() -> None:
    base = InjectionConfig(tag="t", cni=Cni(enabled=True, provider="multus"))
    assert decode_values({"pilot": {"cni": {"provider": "other"}}}, base) == InjectionConfig(
        tag="t", cni=Cni(enabled=True, provider="other")
    )


def test_the_injectors_config_map_gives_policy_selectors_and_values() -> None:
    config = """
    policy: disabled
    defaultTemplates: [gateway]
    aliases: {all: [sidecar, gateway]}
    neverInjectSelector: [{matchLabels: {a: b}}]
    alwaysInjectSelector: [{matchExpressions: [{key: k, operator: Exists}]}]
    injectedAnnotations: {x: y}
    templates: {sidecar: "{{ .Whatever }}"}
    """
    found = decode_injector({"data": {"config": config, "values": json.dumps({"global": {"hub": "h"}})}})
    assert (found.policy, found.default_templates, found.aliases) == (
        "disabled",
        ("gateway",),
        {"all": ("sidecar", "gateway")},
    )
    assert found.never_inject == (LabelSelector(match_labels={"a": "b"}),)
    assert found.always_inject[0].match_expressions[0].operator == "Exists"
    assert (found.injected_annotations, found.hub) == ({"x": "y"}, "h")


@pytest.mark.parametrize(
    "config_map",
    [
        {"data": {"values": "{"}},
        {"data": {"config": "["}},
        {"data": {"config": "[]"}},
        {"data": {"config": "policy"}},
        {"data": {"values": '{"a":' * 50_000}},
        {"data": {"values": '{"global": {"proxy": {"statusPort": "many"}}}'}},
        {"data": {"config": "neverInjectSelector: 1"}},
    ],
    ids=lambda config_map: str(config_map)[:40],
)
def test_what_does_not_read_is_an_error_that_says_where(config_map: dict[str, object]) -> None:
    with pytest.raises(DecodeError, match=r"^(data|values): "):
        decode_injector(config_map)


@pytest.mark.parametrize(("revision", "host"), [("", "istiod"), ("default", "istiod"), ("canary", "istiod-canary")])
def test_the_control_plane_is_called_by_revision(revision: str, host: str) -> None:
    assert InjectionConfig(revision=revision).control_plane == f"{host}.istio-system.svc"
