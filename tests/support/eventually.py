"""Waiting for what happens soon, in tests of real processes."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(check: Callable[[], T | Awaitable[T]], seconds: float = 60.0, every: float = 0.02) -> T:
    """The first true value of `check`, or of what it gives to wait for; fails after that many seconds."""
    end = time.monotonic() + seconds
    while not (value := await _value(check())):
        assert time.monotonic() < end, f"not true within {seconds} s: {check}"
        await asyncio.sleep(every)
    return value


async def _value(found: T | Awaitable[T]) -> T:
    return await found if inspect.isawaitable(found) else found


def eventually_blocking(check: Callable[[], T], seconds: float = 60.0, every: float = 0.05) -> T:
    """The same for a test without a loop."""
    end = time.monotonic() + seconds
    while not (value := check()):
        assert time.monotonic() < end, f"not true within {seconds} s: {check}"
        time.sleep(every)
    return value
