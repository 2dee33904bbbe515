"""AuthorizationPolicies decided twice: by a real Envoy with what is compiled from them, and by who explains them.

The two share no code that matches anything. Besides the answers, Envoy's reasons are compared. Every field in every form
of value, positive and negative, is shown to have decided a call under ALLOW and under DENY.
"""

import asyncio
import functools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
import truth_calls
import truth_cards
import truth_coverage
import truth_envoy
import truth_policies
import truth_requests
import truth_verdicts
from truth_policies import PolicySet
from truth_verdicts import Verdict
from truth_worlds import WORLDS

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(1200)]

SEED = 20260630
PER_RULE, PER_COMPOSITION, COMPOSITIONS = 4, 15, 30
LONG_SEEDS = range(7)
AT_ONCE = 120
"""Workloads that one Envoy stands for."""

_NOTHING = dict.fromkeys(("status", "details", "termination", "flags", "http", "network", "common"))


async def verdicts(sets: Sequence[PolicySet], seed: int, folder: Path) -> list[Verdict]:
    """Every call to these sets, made and judged."""
    pairs = truth_coverage.complete(seed, truth_requests.pairs(seed, sets, PER_RULE, PER_COMPOSITION))
    async with truth_envoy.running(sets, folder) as table:
        answers = await truth_calls.Callers(folder).all([pair.call for pair in pairs])
        entries = {}
        for _ in range(600):
            entries = {(entry["remote"], entry["local"]): entry for entry in table.entries()}
            if len(entries) >= len(pairs):
                break
            await asyncio.sleep(0.1)
    return [
        truth_verdicts.judge(pair, answer, entries.get((answer.remote, answer.local), _NOTHING))
        for pair, answer in zip(pairs, answers, strict=True)
    ]


def disagreements(found: Sequence[Verdict]) -> str:
    """Whatever differs, in full."""
    return "\n".join(str(verdict) for verdict in found if verdict.faults)


@functools.cache
def table(folder: Path) -> list[Verdict]:
    """The table of this run."""
    sets = truth_policies.corpus(SEED, COMPOSITIONS, WORLDS)
    return asyncio.run(verdicts(sets, SEED, folder))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Verdict]:
    return table(tmp_path_factory.mktemp("truth"))


def test_envoy_and_the_evaluator_agree(found: list[Verdict]) -> None:
    assert len(found) >= 2000
    assert not disagreements(found)


def test_both_outcomes_and_every_kind_of_call_are_well_represented(found: list[Verdict]) -> None:
    passed = sum(verdict.status == 200 for verdict in found)
    assert 0.35 < passed / len(found) < 0.65
    calls = [verdict.pair.call for verdict in found]
    protocols, securities = Counter(call.protocol for call in calls), Counter(call.security for call in calls)
    assert min(protocols[one] for one in ("http1", "http2", "tcp")) >= 100
    assert min(securities[one] for one in ("none", "mutual")) >= 100
    assert securities["through"] >= 10
    assert Counter(verdict.pair.policies.world.name for verdict in found).keys() == {w.name for w in WORLDS}


def test_every_reason_occurs(found: list[Verdict]) -> None:
    reasons = Counter(verdict.decision.reason for verdict in found)
    for reason in ("allow-rule", "deny-rule", "no-allow-rule", "no-allow-policy"):
        assert reasons[reason] >= 100, reasons
    for reason in ("custom-rule", "custom-unusable", "custom-dry-run", "bad-path"):
        assert reasons[reason] >= 3, reasons
    decisions = [verdict.decision for verdict in found]
    assert sum(bool(decision.audited) for decision in decisions) >= 3
    assert {dry_run.action for decision in decisions for dry_run in decision.dry_runs} >= {"ALLOW", "DENY"}


@pytest.mark.parametrize("action", ["ALLOW", "DENY"])
def test_every_field_in_every_form_decides(found: list[Verdict], action: str) -> None:
    decided = {one for verdict in found for one in truth_coverage.deciding(verdict.pair) if one.action == action}
    cards = truth_cards.deck()
    assert {one.card for one in decided} == set(cards)
    both = {one.card for one in decided if one.matched} & {one.card for one in decided if not one.matched}
    assert len(both) > 0.5 * len(cards)


@pytest.mark.slow
@pytest.mark.parametrize("seed", LONG_SEEDS)
async def test_they_agree_on_many_more(seed: int, tmp_path: Path) -> None:
    sets = truth_policies.corpus(seed, AT_ONCE - 78, WORLDS)
    assert len(sets) <= AT_ONCE
    found = await verdicts(sets, seed, tmp_path)
    assert len(found) >= 3000
    assert not disagreements(found)
