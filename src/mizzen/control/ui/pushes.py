"""What has caused pushes, and what they cost.

In: the pusher's history, and the counters that `/metrics` exports. Out: the objects whose changes sent most bytes to
proxies, the latest pushes, changes and pushes by reason, responses and their bytes by type. Counters run since the
process began; the history is bounded.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mizzen.control.debug.console import Page, Query, Write
from mizzen.incremental import Key
from mizzen.xds import metrics
from mizzen.xds.costs import Account
from mizzen.xds.history import History, Pushed

_TOP = 25


def page(history: History) -> Page:
    """The page of data."""

    def read(_: Query) -> Write:
        top, latest, changes = history.costs.accounts(_TOP), list(history.latest), dict(history.changes)
        return lambda: build_account(top, latest, changes)

    return Page("What has caused pushes.", read)


def build_account(top: Sequence[Account], latest: Sequence[Pushed], changes: Mapping[str, int]) -> dict[str, Any]:
    """The whole document; it has the same size in every mesh."""
    return {
        "objects": [
            {
                "object": describe_key(each.object),
                "change": each.how,
                "changes": each.changes,
                "pushes": each.cost.pushes,
                "bytes": each.cost.bytes,
                "last": each.last,
            }
            for each in top
        ],
        "latest": [_pushed(push) for push in reversed(latest)],
        "reasons": _reasons(changes),
        "types": _types(),
    }


def describe_key(key: Key) -> str:
    """`Kind NAMESPACE/NAME`; inputs of the control plane's own have no namespace."""
    kind, *names = key
    return f"{kind} {'/'.join(filter(None, names))}"


def _pushed(push: Pushed) -> dict[str, Any]:
    return {
        "number": push.number,
        "at": push.cause.at,
        "reasons": list(push.reasons),
        "objects": [describe_key(key) for key in push.objects],
        "changes": push.changes,
        "reached": push.reached,
        "told": push.told,
        "bytes": push.cause.cost.bytes,
        "seconds": round(push.seconds, 3),
    }


def _reasons(changes: Mapping[str, int]) -> list[dict[str, Any]]:
    """By reason: changes that came in, and pushes to proxies because of them."""
    pushes = _by_label(metrics.TRIGGERS)
    found = [
        {"reason": reason, "changes": changes.get(reason, 0), "pushes": int(pushes.get(reason, 0))}
        for reason in changes.keys() | pushes.keys()
    ]
    return sorted(found, key=lambda each: (-each["pushes"], each["reason"]))


def _types() -> list[dict[str, Any]]:
    """By type: responses sent, their bytes, and how many were refused."""
    sent, refused = _by_label(metrics.PUSHES), _by_label(metrics.REJECTS)
    sizes = {
        sample.labels["type"]: sample.value
        for family in metrics.CONFIG_SIZE.collect()
        for sample in family.samples
        if sample.name.endswith("_sum")
    }
    found = [
        {
            "type": word.upper(),
            "responses": int(count),
            "bytes": int(sizes.get(word, 0)),
            "refused": int(refused.get(word, 0)),
        }
        for word, count in sent.items()
        if not word.endswith("_senderr")
    ]
    return sorted(found, key=lambda each: (-each["bytes"], each["type"]))


def _by_label(counter: Any) -> dict[str, float]:
    return {
        next(iter(sample.labels.values()), ""): sample.value
        for family in counter.collect()
        for sample in family.samples
    }
