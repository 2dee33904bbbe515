"""What a source tells: the first batch is everything, each later one the difference to the one before."""

from collections.abc import Container, Mapping, Sequence

import msgspec

from mizzen import observe
from mizzen.api.meta import Key, Object
from mizzen.sources.origins import Finding

_EVENTS = observe.Counter("pilot_k8s_cfg_events", "Changes of objects, by kind.", ("type", "event"))


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What has changed since the batch before."""

    sets: Mapping[Key, Object] = {}
    removes: tuple[Key, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Everything that is wrong now, not only what is new."""


def count_events(sets: Mapping[Key, Object], removes: Sequence[Key], before: Container[Key]) -> None:
    """Count a batch under Istio's metric; `before` has the objects known before it."""
    for key in sets:
        _EVENTS.labels(key.kind, "update" if key in before else "add").inc()
    for key in removes:
        _EVENTS.labels(key.kind, "delete").inc()
