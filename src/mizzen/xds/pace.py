"""Turns on the event loop, so that a crowd of small tasks never holds it for long.

A thousand streams that wake in one iteration of the loop would otherwise all work before a readiness probe is answered.
Whoever is about to work asks for a turn: within a slice of time turns are free, after it they come one an iteration.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

_SLICE = 0.005


class Pace:
    """The turns of one event loop."""

    def __init__(self, slice_seconds: float = _SLICE, clock: Callable[[], float] = time.monotonic) -> None:
        self._slice = slice_seconds
        self._clock = clock
        self._until: float | None = None
        """End of this iteration's slice; None until somebody works in it."""
        self._queue: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
        """Return when it is time to work; what the caller does next counts until somebody else asks."""
        loop = asyncio.get_running_loop()
        if self._until is None:
            self._until = self._clock() + self._slice
            loop.call_soon(self._renew, loop)
        elif self._queue or self._clock() >= self._until:
            turn = loop.create_future()
            self._queue.append(turn)
            await turn

    def _renew(self, loop: asyncio.AbstractEventLoop) -> None:
        """A new iteration: the first who waits has its turn in the next one, before this is called again."""
        self._until = None
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                self._until = self._clock() + self._slice
                loop.call_soon(self._renew, loop)
                return
