"""New streams come in at a rate."""

import asyncio

import pytest
import virtual_loop
from virtual_loop import now

from mizzen.xds.admission import Admission
from mizzen.xds.identity import Refused


def test_those_of_one_second_may_come_at_once_the_rest_wait_their_turn():
    time = [100.0]
    admission = Admission(10, patience=1.0, clock=lambda: time[0])
    assert [admission.reserve() for _ in range(10)] == [0.0] * 10
    waits = [round(admission.reserve(), 6) for _ in range(10)]
    assert waits == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    with pytest.raises(Refused) as refused:
        admission.reserve()
    assert refused.value.code == "RESOURCE_EXHAUSTED"
    assert "more than 10 new streams a second" in str(refused.value)


def test_unused_turns_are_not_saved_up():
    time = [0.0]
    admission = Admission(10, clock=lambda: time[0])
    time[0] = 1000.0
    waits = [admission.reserve() for _ in range(11)]
    assert waits[:10] == pytest.approx([0.0] * 10, abs=1e-6)
    assert waits[10] == pytest.approx(0.1)


def test_a_rate_below_one_a_second_lets_the_first_in_at_once():
    admission = Admission(0.5, clock=lambda: 100.0)
    assert admission.reserve() == 0.0
    assert admission.reserve() == pytest.approx(2.0)


def test_streams_wait_for_their_turn():
    async def crowd():
        admission = Admission(10, clock=now)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(25):
                tasks.create_task(admission.enter())
        assert now() == pytest.approx(1.5)

    virtual_loop.run(crowd())
