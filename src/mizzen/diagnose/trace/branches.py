"""Several ways on, of which one is taken: weights, endpoints, shares of requests.

In: ways with their weights, each walked into a journal of its own. Out: the answer of the likeliest. Where all come to
the same the verdict stays certain; else it hangs on the choice, and the other outcomes are named.
"""

from collections.abc import Sequence

import msgspec

from mizzen.diagnose.trace.journal import Journal
from mizzen.diagnose.trace.verdict import Answer

_SHOWN = 4


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One way that was walked."""

    label: str
    weight: float
    answer: Answer
    journal: Journal


def settle(journal: Journal, what: str, ways: Sequence[Way]) -> Answer:
    """The answer of the likeliest outcome, its notes taken over."""
    groups: dict[object, list[Way]] = {}
    for way in ways:
        groups.setdefault(way.answer.key, []).append(way)
    ranked = sorted(groups.values(), key=lambda group: -sum(way.weight for way in group))
    chosen = max(ranked[0], key=lambda way: way.weight)
    passed = list(journal.passages)
    journal.adopt(chosen.journal)
    journal.passages = passed
    journal.fork(way.journal for way in ways)
    if len(ranked) > 1:
        total = sum(way.weight for way in ways) or 1.0
        shown = "; ".join(_describe(group, total) for group in ranked[:_SHOWN])
        journal.hang_on(f"{what}: {shown}")
        journal.divides = True
    return chosen.answer


def _describe(group: list[Way], total: float) -> str:
    share = 100 * sum(way.weight for way in group) / total
    answer = group[0].answer
    flag = f" {answer.flag}" if answer.flag != "-" else ""
    labels = ", ".join(way.label for way in group[:_SHOWN])
    more = f" and {len(group) - _SHOWN} more" if len(group) > _SHOWN else ""
    return f"{labels}{more} ({share:.3g} %) → {answer.outcome} {answer.status}{flag}"
