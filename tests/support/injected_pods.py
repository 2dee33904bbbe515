"""Small pods and short questions to injected ones, for tests of injection."""

from collections.abc import Mapping
from typing import Any

from mizzen.inject.pod import Injection, inject_pod


def build_pod(
    *containers: Mapping[str, Any],
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod named `p` in the namespace `ns`, with one container `app` unless told otherwise."""
    metadata = {"name": "p", "namespace": "ns", "labels": dict(labels or {}), "annotations": dict(annotations or {})}
    return {"metadata": metadata, "spec": {"containers": list(containers) or [{"name": "app", "image": "i"}], **spec}}


def inject(pod: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """The injected pod; fails the test if it was skipped or refused."""
    outcome = inject_pod(pod, **options)
    assert outcome.injected, (outcome.skipped_reason, outcome.problems)
    return outcome.pod


def refuse(pod: Mapping[str, Any], **options: Any) -> list[str]:
    """What is wrong with a pod that must not be injected."""
    outcome: Injection = inject_pod(pod, **options)
    assert outcome.problems
    assert outcome.pod == pod
    return [str(problem) for problem in outcome.problems]


def container(pod: Mapping[str, Any], name: str = "istio-proxy") -> dict[str, Any]:
    """A container or init container by name."""
    everything = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    (found,) = [each for each in everything if each["name"] == name]
    return dict(found)


def environment(pod: Mapping[str, Any], name: str = "istio-proxy") -> dict[str, str]:
    """The variables of a container that have a plain value."""
    return {each["name"]: each["value"] for each in container(pod, name).get("env", []) if "value" in each}


def names(pod: Mapping[str, Any], field: str = "containers") -> list[str]:
    """Names in a list of the pod's spec, in order."""
    return [each["name"] for each in pod["spec"].get(field, [])]


def annotations(pod: Mapping[str, Any]) -> dict[str, str]:
    return dict(pod["metadata"]["annotations"])


def labels(pod: Mapping[str, Any]) -> dict[str, str]:
    return dict(pod["metadata"]["labels"])
