"""Whether an open connection survives a change.

In: the ways that a connection may have taken through the old state (a `Trace` has them, one for all pods that come to
the same), the pods that are alike, and the forecasts of the proxies on the way. Out: a `Fate`. A connection that passes
several proxies is cut by the first that cuts.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from mizzen.diagnose.change.disruption import Forecast
from mizzen.diagnose.change.listeners import chain_title
from mizzen.diagnose.trace.verdict import Passage

Outcome = Literal["stays", "is cut", "may be cut", "none"]


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a connection."""

    outcome: Outcome
    """`may be cut` where it hangs on the endpoint that was chosen; `none` where there was no connection."""
    why: str = ""


def judge(
    ways: Sequence[Sequence[Passage]],
    forecasts: Mapping[str, Forecast],
    gone: Collection[str],
    *,
    delivered: bool,
    twins: Mapping[str, Sequence[str]] = {},
) -> Fate:
    """The fate of a connection by the forecasts of proxies that change, by pod, and the pods that go.

    `twins` are, for each pod, the others that the connection may as well have passed.
    """
    if not delivered or not any(ways):
        return Fate(outcome="none")
    reasons = [_reason(each, forecasts, gone) for way in ways for each in _variants(way, twins)]
    cut = [reason for reason in reasons if reason]
    if not cut:
        return Fate(outcome="stays")
    why = "; ".join(dict.fromkeys(cut))
    return Fate(outcome="is cut" if len(cut) == len(reasons) else "may be cut", why=why)


def _variants(way: Sequence[Passage], twins: Mapping[str, Sequence[str]]) -> Iterator[Sequence[Passage]]:
    """The way, and the same by each twin of a pod on it."""
    yield way
    for side in dict.fromkeys(passage.side for passage in way):
        for twin in twins.get(side, ()):
            yield [msgspec.structs.replace(p, side=twin) if p.side == side else p for p in way]


def _reason(way: Sequence[Passage], forecasts: Mapping[str, Forecast], gone: Collection[str]) -> str:
    for passage in way:
        if passage.side in gone:
            return f"pod {passage.side} goes"
        forecast = forecasts.get(passage.side)
        if forecast is None:
            continue
        if "pod replaced" in forecast.effects:
            return f"pod {passage.side} is replaced"
        update = forecast.updates().get(passage.listener)
        if update is None or passage.chain is None:
            continue
        if update.update in ("removed", "replaced"):
            return f"{passage.side}: {update}"
        if update.cuts_chain(passage.chain):
            return f"{passage.side}: chain {chain_title(passage.chain)} of {update.name} drains"
    return ""
