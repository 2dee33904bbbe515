from typing import Any

import pytest
from injected_pods import build_pod

from mizzen.api.meta import LabelSelector
from mizzen.inject.pod import inject_pod
from mizzen.inject.selection import Decision, decide, decide_pod, match_webhook
from mizzen.inject.values import InjectionConfig

INJECT, REV = "sidecar.istio.io/inject", "istio.io/rev"
ON, OFF = {"istio-injection": "enabled"}, {"istio-injection": "disabled"}
CANARY = InjectionConfig(revision="canary")


@pytest.mark.parametrize(
    ("namespace", "pod", "config", "inject", "reason"),
    [
        (ON, {}, None, True, "Namespace label istio-injection=enabled matches"),
        (ON, {INJECT: "false"}, None, False, "Pod has sidecar.istio.io/inject=false label, preventing injection"),
        (OFF, {INJECT: "true"}, None, False, "Namespace has istio-injection=disabled label, preventing injection"),
        (ON | {REV: "canary"}, {}, CANARY, False, "No matching namespace labels"),
        (ON | {REV: "canary"}, {}, None, True, "Namespace label istio-injection=enabled matches"),
        ({REV: "canary"}, {}, CANARY, True, "Namespace label istio.io/rev=canary matches"),
        ({REV: "canary"}, {}, None, False, "No matching namespace labels (istio.io/rev=canary) or pod labels (none)"),
        ({REV: "default"}, {}, None, True, "Namespace label istio.io/rev=default matches"),
        ({REV: "prod"}, {}, InjectionConfig(revision="canary", revision_tags=("prod",)), True, "istio.io/rev=prod"),
        ({}, {}, None, False, "No matching namespace labels (none) or pod labels (none)"),
        ({}, {INJECT: "true"}, None, True, "Pod label sidecar.istio.io/inject=true matches"),
        ({}, {INJECT: "true"}, CANARY, False, "No matching namespace labels"),
        ({}, {INJECT: "true", REV: "canary"}, CANARY, True, "Pod label istio.io/rev=canary matches"),
        ({}, {INJECT: "true", REV: "canary"}, None, False, "No matching namespace labels"),
        ({}, {INJECT: "false", REV: "canary"}, CANARY, False, "Pod has sidecar.istio.io/inject=false label"),
        ({REV: "other"}, {REV: "canary"}, CANARY, False, "No matching namespace labels (istio.io/rev=other)"),
        ({}, {}, InjectionConfig(enable_namespaces_by_default=True), True, "Namespaces are injected by default"),
        ({}, {REV: "x"}, InjectionConfig(enable_namespaces_by_default=True), False, "No matching"),
    ],
)
def test_the_webhook_selects_by_labels_of_namespace_and_pod(
    namespace: dict[str, str], pod: dict[str, str], config: InjectionConfig | None, inject: bool, reason: str
) -> None:
    decision = match_webhook(namespace, pod, namespace_name="ns", config=config or InjectionConfig())
    assert decision.inject is inject
    assert reason in decision.reason


def test_system_namespaces_are_not_injected_by_default() -> None:
    config = InjectionConfig(enable_namespaces_by_default=True)
    assert not match_webhook({}, {}, namespace_name="kube-public", config=config).inject


def _selector(**labels: str) -> tuple[LabelSelector, ...]:
    return (LabelSelector(match_labels=labels),)


@pytest.mark.parametrize(
    ("pod", "config", "expected"),
    [
        (build_pod(hostNetwork=True, labels={INJECT: "true"}), {}, (False, "Pod uses the host's network")),
        (
            build_pod(labels={INJECT: "true"}, annotations={INJECT: "false"}),
            {},
            (True, f"Pod label {INJECT}=true matches"),
        ),
        (build_pod(annotations={INJECT: "false"}), {}, (False, f"Pod annotation {INJECT}=false matches")),
        (build_pod(labels={INJECT: "maybe"}), {}, (True, "Injection policy is enabled")),
        (
            build_pod(labels={"a": "b"}),
            {"never_inject": _selector(a="b"), "always_inject": _selector(a="b")},
            (False, "A selector of neverInjectSelector matches"),
        ),
        (
            build_pod(labels={"a": "b"}),
            {"always_inject": _selector(a="b"), "policy": "disabled"},
            (True, "A selector of alwaysInjectSelector matches"),
        ),
        (build_pod(), {"never_inject": (LabelSelector(),)}, (True, "Injection policy is enabled")),
        (build_pod(), {"policy": "disabled"}, (False, "Injection policy is disabled")),
        (build_pod(labels={INJECT: "true"}), {"policy": "disabled"}, (True, f"Pod label {INJECT}=true matches")),
        (
            build_pod(labels={INJECT: "true"}),
            {"policy": "perhaps"},
            (False, "Injection policy 'perhaps' is unknown, nothing is injected"),
        ),
    ],
)
def test_the_injector_decides_by_pod_selectors_and_policy(
    pod: Any, config: dict[str, Any], expected: tuple[bool, str]
) -> None:
    assert decide_pod(pod, namespace_name="ns", config=InjectionConfig(**config)) == Decision(*expected)


def test_system_namespaces_are_never_injected() -> None:
    decision = decide_pod(build_pod(labels={INJECT: "true"}), namespace_name="kube-system", config=InjectionConfig())
    assert decision == Decision(False, "Namespace kube-system is never injected")


def test_both_stages_must_agree_and_without_a_namespace_only_the_second_counts() -> None:
    config = InjectionConfig()
    quiet = {"metadata": {"name": "ns"}}
    loud = {"metadata": {"name": "ns", "labels": ON}}
    assert not decide(build_pod(), namespace=quiet, namespace_name="ns", config=config).inject
    assert decide(build_pod(), namespace=None, namespace_name="ns", config=config).inject
    host = build_pod(hostNetwork=True)
    assert decide(host, namespace=loud, namespace_name="ns", config=config).reason == "Pod uses the host's network"
    assert decide(build_pod(), namespace=loud, namespace_name="ns", config=config).reason.startswith("Namespace label")


def test_a_skipped_pod_comes_back_with_the_reason() -> None:
    pod = build_pod()
    outcome = inject_pod(pod, namespace={"metadata": {"labels": OFF}})
    assert outcome.pod == pod
    assert not outcome.injected
    assert outcome.skipped_reason == "Namespace has istio-injection=disabled label, preventing injection"
