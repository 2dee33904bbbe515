"""Chores: each key once and by one worker, as often as it must be, and never a flood."""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import virtual_loop
from virtual_loop import now

from mizzen.control.retries import Budget, Chores
from mizzen.sources.kube.client import Refused, Unreachable


def play(see_to: Callable[[str], Awaitable[None]], scenario: Callable[[Chores[str]], Awaitable[Any]]) -> None:
    async def run() -> None:
        chores = Chores(see_to, "a chore is not done")
        task = asyncio.ensure_future(chores.run())
        await scenario(chores)
        assert not task.done()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    virtual_loop.run(run())


class Seen:
    """Notes who is seen to, and fails as it is told."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.at: list[tuple[str, float]] = []
        self.together = self.most = 0

    async def __call__(self, key: str) -> None:
        self.at.append((key, now()))
        self.together += 1
        self.most = max(self.most, self.together)
        await asyncio.sleep(1)
        self.together -= 1
        if self.failures:
            raise self.failures.pop(0)


def test_what_is_added_often_is_seen_to_once_and_once_more_if_meanwhile():
    seen = Seen()

    async def scenario(chores: Chores[str]) -> None:
        for _ in range(5):
            chores.add("a")
        await asyncio.sleep(0.5)
        for _ in range(5):
            chores.add("a")
        await asyncio.sleep(10)
        assert len(seen.at) == 2
        assert seen.most == 1
        assert not len(chores)

    play(seen, scenario)


def test_few_are_seen_to_at_once():
    seen = Seen()

    async def scenario(chores: Chores[str]) -> None:
        for number in range(40):
            chores.add(str(number))
        await asyncio.sleep(30)
        assert len({key for key, _ in seen.at}) == len(seen.at) == 40
        assert seen.most == 8

    play(seen, scenario)


def test_one_that_waits_is_not_put_off_but_may_be_hurried():
    seen = Seen()

    async def scenario(chores: Chores[str]) -> None:
        chores.add("a", 5)
        chores.add("a", 9)
        chores.add("b", 9)
        chores.add("b")
        await asyncio.sleep(30)
        assert [(key, round(at)) for key, at in seen.at] == [("b", 0), ("a", 5)]

    play(seen, scenario)


@pytest.mark.parametrize(
    ("failure", "gaps"),
    [
        (Refused(409, "modified"), [(1, 1.1), (1.2, 2.1)]),
        (Unreachable("nobody"), [(1.2, 1.6), (1.4, 2.1)]),
        (Refused(429, "slowly", after=7), [(8, 8.1), (8, 8.1)]),
        (Refused(403, "forbidden"), [(61, 92), (61, 92)]),
    ],
)
def test_failures_are_tried_again_by_what_they_mean(failure, gaps):
    seen = Seen(failure, failure)

    async def scenario(chores: Chores[str]) -> None:
        chores.add("a")
        await asyncio.sleep(300)
        times = [at for _, at in seen.at]
        assert len(times) == 3
        for (least, most), (before, after) in zip(gaps, itertools.pairwise(times), strict=True):
            assert least <= after - before <= most

    play(seen, scenario)


@pytest.mark.parametrize("status", [404, 422])
def test_what_makes_no_sense_is_not_tried_again(status):
    seen = Seen(Refused(status, "no"))

    async def scenario(chores: Chores[str]) -> None:
        chores.add("a")
        await asyncio.sleep(300)
        assert len(seen.at) == 1
        chores.add("a")
        await asyncio.sleep(300)
        assert len(seen.at) == 2

    play(seen, scenario)


def test_a_fault_of_ours_is_told_and_stops_nothing(caplog):
    seen = Seen(ValueError("a fault of ours"))

    async def scenario(chores: Chores[str]) -> None:
        chores.add("a")
        chores.add("b", 2)
        await asyncio.sleep(300)
        assert [key for key, _ in seen.at] == ["a", "b"]

    with caplog.at_level(logging.ERROR):
        play(seen, scenario)
    assert "a fault of ours" in caplog.text


def test_an_outage_is_told_once_and_the_next_one_again(caplog):
    away = Unreachable("the API server is away")
    seen = Seen(*[away] * 5)

    async def scenario(chores: Chores[str]) -> None:
        for key in "ab":
            chores.add(key)
        await asyncio.sleep(120)
        assert not len(chores)
        assert [record.message for record in caplog.records] == ["a chore is not done: a: the API server is away"]
        seen.failures = [away]
        chores.add("b")
        await asyncio.sleep(120)
        assert len(caplog.records) == 2

    with caplog.at_level(logging.WARNING):
        play(seen, scenario)


def test_a_budget_allows_a_burst_and_then_a_rate():
    async def run() -> None:
        budget = Budget(rate=10, burst=5)
        await asyncio.sleep(60)
        start = now()
        for _ in range(5):
            await budget.spend()
        assert now() == pytest.approx(start, abs=1e-6)
        for _ in range(20):
            await budget.spend()
        assert now() - start == pytest.approx(2.0, abs=0.01)

    virtual_loop.run(run())
