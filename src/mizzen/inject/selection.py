"""Whether a pod gets a sidecar, with the reason.

Two stages, as with Istio's webhook. The API server asks only for pods whose namespace and pod labels match one of the
webhook's entries; then the injector itself decides by the pod. Offline, without a Namespace object, only the second
stage applies. The reasons of the first stage are those that `check-inject` prints.
"""

from collections.abc import Mapping

import msgspec

from mizzen.api.meta import LabelSelector
from mizzen.api.selectors import selects
from mizzen.inject.values import InjectionConfig
from mizzen.inject.workload import Manifest, mapping, texts

INJECT = "sidecar.istio.io/inject"
NAMESPACE_INJECT = "istio-injection"
REVISION = "istio.io/rev"
SYSTEM_NAMESPACES = frozenset({"kube-system", "kube-public", "kube-node-lease", "local-path-storage"})

Labels = Mapping[str, str]


class Decision(msgspec.Struct, frozen=True):
    """Yes or no, and why."""

    inject: bool
    reason: str


def decide(pod: Manifest, *, namespace: Manifest | None, namespace_name: str, config: InjectionConfig) -> Decision:
    """The whole decision for one pod; `namespace` is the Namespace object, None where labels of it play no part."""
    if namespace is not None:
        labels = texts(mapping(namespace, "metadata"), "labels")
        asked = match_webhook(labels, _labels(pod), namespace_name=namespace_name, config=config)
        if not asked.inject:
            return asked
        chosen = decide_pod(pod, namespace_name=namespace_name, config=config)
        return asked if chosen.inject else chosen
    return decide_pod(pod, namespace_name=namespace_name, config=config)


def match_webhook(namespace: Labels, pod: Labels, *, namespace_name: str, config: InjectionConfig) -> Decision:
    """Whether any entry of the webhook matches: the namespace's `istio-injection` beats its `istio.io/rev`."""
    revisions = {config.revision_name, *config.revision_tags}
    refused = pod.get(INJECT) == "false"
    by_namespace = _namespace_label(namespace, revisions)
    if by_namespace is not None and refused:
        return Decision(False, f"Pod has {INJECT}=false label, preventing injection")
    if by_namespace is not None:
        return Decision(True, f"Namespace label {by_namespace} matches")
    if NAMESPACE_INJECT in namespace and namespace[NAMESPACE_INJECT] != "enabled":
        label = f"{NAMESPACE_INJECT}={namespace[NAMESPACE_INJECT]}"
        return Decision(False, f"Namespace has {label} label, preventing injection")
    if NAMESPACE_INJECT in namespace or REVISION in namespace:
        return _no_match(namespace, pod)
    if refused:
        return Decision(False, f"Pod has {INJECT}=false label, preventing injection")
    return _match_pod_labels(pod, revisions, namespace_name=namespace_name, config=config)


def decide_pod(pod: Manifest, *, namespace_name: str, config: InjectionConfig) -> Decision:
    """The injector's own decision, in Istio's order: the pod's word first, selectors next, the policy last."""
    if mapping(pod, "spec").get("hostNetwork") is True:
        return Decision(False, "Pod uses the host's network")
    if namespace_name in SYSTEM_NAMESPACES:
        return Decision(False, f"Namespace {namespace_name} is never injected")
    if config.policy not in ("enabled", "disabled"):
        return Decision(False, f"Injection policy {config.policy!r} is unknown, nothing is injected")
    labels = _labels(pod)
    annotations = texts(mapping(pod, "metadata"), "annotations")
    word = labels.get(INJECT, annotations.get(INJECT, ""))
    place = "label" if INJECT in labels else "annotation"
    if word in ("true", "false"):
        return Decision(word == "true", f"Pod {place} {INJECT}={word} matches")
    if _any_selects(config.never_inject, labels):
        return Decision(False, "A selector of neverInjectSelector matches")
    if _any_selects(config.always_inject, labels):
        return Decision(True, "A selector of alwaysInjectSelector matches")
    return Decision(config.policy == "enabled", f"Injection policy is {config.policy}")


def _namespace_label(namespace: Labels, revisions: set[str]) -> str | None:
    if NAMESPACE_INJECT in namespace:
        enabled = namespace[NAMESPACE_INJECT] == "enabled" and "default" in revisions
        return f"{NAMESPACE_INJECT}=enabled" if enabled else None
    if namespace.get(REVISION) in revisions:
        return f"{REVISION}={namespace[REVISION]}"
    return None


def _match_pod_labels(pod: Labels, revisions: set[str], *, namespace_name: str, config: InjectionConfig) -> Decision:
    if pod.get(REVISION) in revisions:
        return Decision(True, f"Pod label {REVISION}={pod[REVISION]} matches")
    if REVISION not in pod and pod.get(INJECT) == "true" and "default" in revisions:
        return Decision(True, f"Pod label {INJECT}=true matches")
    silent = not {INJECT, REVISION} & set(pod) and namespace_name not in SYSTEM_NAMESPACES
    if config.enable_namespaces_by_default and silent:
        return Decision(True, "Namespaces are injected by default")
    return _no_match({}, pod)


def _no_match(namespace: Labels, pod: Labels) -> Decision:
    def shown(labels: Labels, names: tuple[str, ...]) -> str:
        return ", ".join(f"{name}={labels[name]}" for name in names if name in labels) or "none"

    spaces, pods = shown(namespace, (NAMESPACE_INJECT, REVISION)), shown(pod, (INJECT, REVISION))
    return Decision(False, f"No matching namespace labels ({spaces}) or pod labels ({pods})")


def _any_selects(selectors: tuple[LabelSelector, ...], labels: Labels) -> bool:
    """Empty selectors are ignored here: one of them would take in, or leave out, every pod."""
    empty = LabelSelector()
    return any(selects(selector, labels) for selector in selectors if selector != empty)


def _labels(pod: Manifest) -> Labels:
    return texts(mapping(pod, "metadata"), "labels")
