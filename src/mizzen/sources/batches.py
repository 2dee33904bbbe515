"""What a source tells: the first batch is everything, each later one the difference to the one before."""

from collections.abc import Container, Mapping, Sequence

import msgspec

from mizzen import observe
from mizzen.api.meta import Key, Object
from mizzen.sources.origins import Finding

_CONFIG_EVENTS = observe.Counter("pilot_k8s_cfg_events", "Changes of objects, by kind.", ("type", "event"))
_REGISTRY_EVENTS = observe.Counter(
    "pilot_k8s_reg_events", "Changes of the objects that services and endpoints are made of.", ("type", "event")
)
_REGISTRY_TYPES = {
    "Service": "Services",
    "EndpointSlice": "EndpointSlice",
    "Endpoints": "Endpoints",
    "Pod": "Pods",
    "Node": "Nodes",
    "Namespace": "Namespaces",
}
"""Kinds of the registry, by the words of Istio."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What has changed since the batch before."""

    sets: Mapping[Key, Object] = {}
    removes: tuple[Key, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Everything that is wrong now, not only what is new."""


def count_events(sets: Mapping[Key, Object], removes: Sequence[Key], before: Container[Key]) -> None:
    """Count a batch under Istio's metrics; `before` has the objects known before it."""
    for key in sets:
        _count(key.kind, "update" if key in before else "add")
    for key in removes:
        _count(key.kind, "delete")


def _count(kind: str, event: str) -> None:
    word = _REGISTRY_TYPES.get(kind)
    if word is not None:
        _REGISTRY_EVENTS.labels(word, event).inc()
    else:
        _CONFIG_EVENTS.labels(kind, event).inc()
