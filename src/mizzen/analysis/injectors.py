"""Injectors: which webhooks put a sidecar into which pods, and which pods have one of another revision.

In: webhook configurations, namespaces and pods of a cluster. Out: `Verdict`s of webhooks about one pod, and the two
listings of namespaces and of hooks. Reasons are worded as istioctl words them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mizzen.analysis.cluster import Webhook, WebhookConfiguration
from mizzen.analysis.membership import INJECT, INJECTION, REVISION, SYSTEM_NAMESPACES
from mizzen.api.kube.cluster import Namespace
from mizzen.api.kube.pods import Pod
from mizzen.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from mizzen.api.selectors import selects

_STATUS = "sidecar.istio.io/status"
_INJECTOR_APP = ("app", "sidecar-injector")
_UNLISTED = SYSTEM_NAMESPACES | {"istio-system"}
_DEACTIVATED = "istio.io/deactivated"
_FOREIGN = "<non-Istio>"

Labels = Mapping[str, str]
Clause = tuple[str, ...]
"""Label, operator, values."""


class Verdict(NamedTuple):
    """What one configuration of webhooks does with a pod."""

    webhook: str
    revision: str
    injects: bool
    reason: str


class Space(NamedTuple):
    """A line of the listing of namespaces."""

    namespace: str
    revision: str
    pods: str


class Hook(NamedTuple):
    """A line of the listing of hooks."""

    namespace: str
    """Empty for a hook that injects nowhere by itself."""
    name: str
    revision: str


def is_injector(found: WebhookConfiguration) -> bool:
    """Whether the webhooks are those of a sidecar injector."""
    name, value = _INJECTOR_APP
    labels = found.metadata.labels
    return labels.get(name) == value or REVISION in labels


def default_injector(name: str, revision: str = "default") -> WebhookConfiguration:
    """What an injector of that revision registers in an installation with Istio's defaults."""

    def webhook(space: Sequence[Clause], pod: Sequence[Clause]) -> Webhook:
        return Webhook(namespace_selector=_selector(space), object_selector=_selector(pod))

    silent = ((INJECTION, "DoesNotExist"), (REVISION, "DoesNotExist"))
    willing = (INJECT, "NotIn", "false")
    return WebhookConfiguration(
        metadata=ObjectMeta(name=name, labels={REVISION: revision, _INJECTOR_APP[0]: _INJECTOR_APP[1]}),
        webhooks=(
            webhook(((REVISION, "In", revision), (INJECTION, "DoesNotExist")), (willing,)),
            webhook(silent, (willing, (REVISION, "In", revision))),
            webhook(((INJECTION, "In", "enabled"),), (willing,)),
            webhook(silent, ((INJECT, "In", "true"), (REVISION, "DoesNotExist"))),
        ),
    )


def _selector(clauses: Sequence[Clause]) -> LabelSelector:
    return LabelSelector(
        match_expressions=tuple(
            LabelSelectorRequirement(key=key, operator=operator, values=tuple(values))
            for key, operator, *values in clauses
        )
    )


def judge(hooks: Iterable[WebhookConfiguration], pod: Labels, namespace: Labels) -> list[Verdict]:
    """What each configuration does with a pod of these labels, by name."""
    return [
        Verdict(hook.metadata.name, hook.metadata.labels.get(REVISION, ""), *_judge(hook.webhooks, pod, namespace))
        for hook in sorted(hooks, key=lambda hook: hook.metadata.name)
    ]


def _judge(webhooks: Sequence[Webhook], pod: Labels, namespace: Labels) -> tuple[bool, str]:
    if webhooks and all(_is_deactivated(webhook) for webhook in webhooks):
        return False, "The injection webhook is deactivated, and will never match labels."
    refusals: list[str] = []
    for webhook in webhooks:
        by_namespace = selects(webhook.namespace_selector, namespace)
        by_pod = selects(webhook.object_selector, pod)
        if by_namespace and by_pod:
            return True, _describe_match(webhook, pod, namespace)
        if by_namespace:
            refusals += _forbidding(webhook.object_selector, pod, "Pod")
        elif by_pod and namespace.get(INJECTION, "enabled") != "enabled":
            refusals.append(f"Namespace has {INJECTION}={namespace[INJECTION]} label, preventing injection")
    return False, next(iter(refusals), _describe_miss(webhooks))


def _is_deactivated(webhook: Webhook) -> bool:
    return _DEACTIVATED in webhook.namespace_selector.match_labels


def _describe_match(webhook: Webhook, pod: Labels, namespace: Labels) -> str:
    of_namespace = _matching(webhook.namespace_selector, namespace)
    of_pod = _matching(webhook.object_selector, pod)
    if of_namespace and of_pod:
        return f"Namespace label {of_namespace} matches, and pod label {of_pod} matches"
    return f"Namespace label {of_namespace} matches" if of_namespace else f"Pod label {of_pod} matches"


def _matching(selector: LabelSelector, labels: Labels) -> str:
    """The label that the selector asked for by value."""
    asked = [*selector.match_labels, *(each.key for each in selector.match_expressions if each.operator == "In")]
    return next((f"{name}={labels[name]}" for name in asked if name in labels), "")


def _forbidding(selector: LabelSelector, labels: Labels, what: str) -> Iterator[str]:
    for each in selector.match_expressions:
        value = labels.get(each.key)
        forbidden = each.operator == "DoesNotExist" or (each.operator == "NotIn" and value in each.values)
        if value is not None and forbidden:
            yield f"{what} has {each.key}={value} label, preventing injection"


def _describe_miss(webhooks: Iterable[Webhook]) -> str:
    spaces: dict[str, None] = {}
    pods: dict[str, None] = {}
    for webhook in webhooks:
        spaces.update(dict.fromkeys(_wanted(webhook.namespace_selector)))
        pods.update(dict.fromkeys(_wanted(webhook.object_selector)))
    parts = [(name, ", ".join(found)) for name, found in (("namespace", spaces), ("pod", pods)) if found]
    return "No matching " + " or ".join(f"{name} labels ({found})" for name, found in parts)


def _wanted(selector: LabelSelector) -> Iterator[str]:
    yield from (f"{name}={value}" for name, value in selector.match_labels.items())
    for each in selector.match_expressions:
        if each.operator == "In":
            yield from (f"{each.key}={value}" for value in each.values)


def list_spaces(
    namespaces: Iterable[Namespace], pods: Iterable[Pod], hooks: Sequence[WebhookConfiguration]
) -> list[Space]:
    """Namespaces that have pods or will inject some, each with its pods by the revision of their sidecar."""
    by_namespace: dict[str, list[Pod]] = {}
    for pod in pods:
        by_namespace.setdefault(pod.metadata.namespace, []).append(pod)
    lines = []
    for namespace in sorted(namespaces, key=lambda each: each.metadata.name):
        name = namespace.metadata.name
        if name not in _UNLISTED:
            revision = _revision_of(namespace.metadata.labels, hooks)
            lines += [Space(name, revision, text) for text in _describe_pods(by_namespace.get(name, []), revision)]
    return lines


def _revision_of(labels: Labels, hooks: Iterable[WebhookConfiguration]) -> str:
    """The revision that injects new pods; `MISSING/…` where the labels ask for one that is not there."""
    found = next((hook for hook in hooks if _injects(hook, labels)), None)
    if found is not None:
        return found.metadata.labels.get(REVISION, "")
    if labels.get(INJECTION) == "enabled":
        return f"MISSING/{labels[INJECTION]}"
    return f"MISSING/{labels[REVISION]}" if labels.get(REVISION) else ""


def _injects(hook: WebhookConfiguration, namespace: Labels) -> bool:
    """Whether pods of the namespace that say nothing themselves are injected."""
    webhooks = hook.webhooks
    return any(selects(each.namespace_selector, namespace) and selects(each.object_selector, {}) for each in webhooks)


def _describe_pods(pods: Sequence[Pod], revision: str) -> list[str]:
    if not pods:
        return [f"{revision}: <no pods>"] if revision else []
    total: Counter[str] = Counter()
    disabled: Counter[str] = Counter()
    restart: Counter[str] = Counter()
    for pod in pods:
        own = find_revision(pod) or _FOREIGN
        total[own] += 1
        if _refuses(pod):
            disabled[own] += 1
        elif revision and own != revision:
            restart[own] += 1
    return [_describe_count(own, total[own], disabled[own], restart[own]) for own in sorted(total)]


def _describe_count(revision: str, total: int, disabled: int, restart: int) -> str:
    text = f"{revision}: {total}"
    if disabled:
        text += f" (injection disabled: {disabled})"
    return f"{text} NEEDS RESTART: {restart}" if restart else text


def _refuses(pod: Pod) -> bool:
    return pod.metadata.labels.get(INJECT, pod.metadata.annotations.get(INJECT, "")) == "false"


def find_revision(pod: Pod) -> str:
    """The revision of the sidecar that the pod has; empty where it has none."""
    annotations, labels = pod.metadata.annotations, pod.metadata.labels
    if _STATUS not in annotations and REVISION not in annotations:
        return ""
    return annotations.get(REVISION) or labels.get(REVISION) or "default"


def list_hooks(hooks: Iterable[WebhookConfiguration], namespaces: Iterable[Namespace]) -> list[Hook]:
    """Each hook with each namespace that it injects into."""
    lines = []
    ordered = sorted(namespaces, key=lambda each: each.metadata.name)
    for hook in sorted(hooks, key=lambda each: each.metadata.name):
        revision = hook.metadata.labels.get(REVISION, "")
        names = [each.metadata.name for each in ordered if _injects(hook, each.metadata.labels)]
        lines += [Hook(name, hook.metadata.name, revision) for name in names or [""]]
    return lines
