"""A crowd shares the loop."""

import asyncio

import pytest
import virtual_loop

from mizzen.xds.pace import Pace


class Day:
    """A clock that only work moves."""

    def __init__(self) -> None:
        self.now = 0.0


def held_longest(workers: int, seconds_each: float, slice_seconds: float = 0.01) -> tuple[float, list[int]]:
    """The most work that the loop did in one iteration, and the order in which the workers had their turn."""
    day, order, gaps = Day(), [], []

    async def work(pace: Pace, number: int) -> None:
        await pace.turn()
        day.now += seconds_each
        order.append(number)

    async def probe(done: asyncio.Event) -> None:
        while not done.is_set():
            before = day.now
            await asyncio.sleep(0)
            gaps.append(day.now - before)

    async def crowd() -> None:
        pace, done = Pace(slice_seconds, lambda: day.now), asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(probe(done))
            workers_done = [tasks.create_task(work(pace, number)) for number in range(workers)]
            await asyncio.wait(workers_done)
            done.set()

    virtual_loop.run(crowd())
    return max(gaps), order


def test_work_within_a_slice_is_not_held_up():
    longest, order = held_longest(10, 0.0009)
    assert longest == pytest.approx(0.009)
    assert order == list(range(10))


def test_a_crowd_never_holds_the_loop_for_much_more_than_a_slice():
    longest, order = held_longest(1000, 0.003)
    assert longest < 0.013 + 1e-9
    assert order == list(range(1000))


def test_who_gave_up_waiting_costs_nobody_a_turn():
    day = Day()

    async def crowd() -> int:
        pace, worked = Pace(0.01, lambda: day.now), 0

        async def work() -> None:
            nonlocal worked
            await pace.turn()
            day.now += 1
            worked += 1

        tasks = [asyncio.ensure_future(work()) for _ in range(5)]
        await asyncio.sleep(0)
        tasks[2].cancel()
        await asyncio.wait(tasks)
        return worked

    assert virtual_loop.run(crowd()) == 4
