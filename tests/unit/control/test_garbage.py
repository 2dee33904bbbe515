"""The cyclic collector: everything is looked through in quiet moments only, and cycles do not stay for ever."""

import asyncio
import gc
import itertools
import weakref

import pytest
from eventually import eventually

from mizzen.control import garbage


class _Node:
    """Something that a cycle can be made of."""

    def __init__(self) -> None:
        self.itself: object = self


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def middle(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often the middle generation was looked at."""
    looks = [0]
    monkeypatch.setattr(garbage, "_looks_at_the_middle", lambda: looks[0])
    return looks


def test_is_due_when_it_is_quiet_the_pause_is_over_and_something_was_allocated(middle: list[int]) -> None:
    clock = _Clock()
    collector = garbage.Collector(clock)
    clock.now = 61.0
    assert not collector.due(quiet=True)
    middle[0] += 1
    assert collector.due(quiet=True)
    assert not collector.due(quiet=False)
    clock.now = 59.0
    assert not collector.due(quiet=True)


def test_is_due_in_the_end_where_it_is_never_quiet(middle: list[int]) -> None:
    clock = _Clock()
    collector = garbage.Collector(clock)
    middle[0] += 1
    clock.now = 599.0
    assert not collector.due(quiet=False)
    clock.now = 600.0
    assert collector.due(quiet=False)


def test_the_pause_grows_with_the_time_that_it_takes(middle: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = _Clock()
    collector = garbage.Collector(clock)

    def take_two_seconds() -> int:
        clock.now += 2.0
        return 0

    monkeypatch.setattr(gc, "collect", take_two_seconds)
    collector.collect()
    middle[0] += 1
    clock.now += 199.0
    assert not collector.due(quiet=True)
    clock.now += 1.0
    assert collector.due(quiet=True)


async def test_old_cycles_are_found_by_the_turn_alone(monkeypatch: pytest.MonkeyPatch, middle: list[int]) -> None:
    monkeypatch.setattr(garbage, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(garbage, "_SHORTEST_PAUSE", 0.0)
    before = gc.get_threshold()
    running = asyncio.ensure_future(garbage.collect_in_quiet(lambda: 0))
    await eventually(lambda: gc.get_threshold()[2] > 10**6)
    node = _Node()
    gone = asyncio.Event()
    known = weakref.ref(node, lambda _: gone.set())
    gc.collect(1)
    del node
    assert known() is not None
    middle[0] += 1
    async with asyncio.timeout(30):
        await gone.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert gc.get_threshold() == before


async def test_a_moment_is_quiet_once_nothing_was_done_for_some_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    class Asked(garbage.Collector):
        def due(self, *, quiet: bool) -> bool:
            asked.append(quiet)
            return False

    monkeypatch.setattr(garbage, "Collector", Asked)
    monkeypatch.setattr(garbage, "_LOOK_EVERY", 0.0)
    busy = 30
    progress = itertools.chain(range(busy), itertools.repeat(busy))
    running = asyncio.ensure_future(garbage.collect_in_quiet(progress.__next__))
    await eventually(lambda: True in asked)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert asked.index(True) == busy + garbage._QUIET_LOOKS - 1
