"""When the cyclic collector looks through the whole heap: while nothing else is to be done.

A mesh is a million objects that stay. By its own rules CPython looks at all of them again and again while they are
being made, and then in the middle of a push. Almost nothing that is garbage here is a cycle, and most cycles die young:
the two young generations go on by themselves, in larger steps, and the old one waits for a quiet moment, for at most
ten times the pause between two of its turns. That pause grows with the heap, so that the looks stay a small part of the
time.
"""

import asyncio
import gc
import time
from collections.abc import Callable

_YOUNG, _MIDDLE, _NEVER = 50_000, 2, 1 << 30
"""Net new containers for a look at the young, such looks for one at the middle generation, and such for one at all."""
_SHORTEST_PAUSE = 60.0
_PART_OF_TIME = 100
_PATIENCE = 10
_LOOK_EVERY, _QUIET_LOOKS = 1.0, 10
"""Seconds, and how many of them without work make a moment a quiet one: changes that people make come in rows."""


class Collector:
    """The policy: `due` says whether a look through everything should be now."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()
        self._pause = _SHORTEST_PAUSE
        self._seen = _looks_at_the_middle()

    def due(self, *, quiet: bool) -> bool:
        """`quiet`: whether nobody would notice."""
        waited = self._clock() - self._last
        if waited < self._pause or _looks_at_the_middle() == self._seen:
            return False
        return quiet or waited >= self._pause * _PATIENCE

    def collect(self) -> None:
        """Look through everything."""
        start = self._clock()
        gc.collect()
        self._last = self._clock()
        self._pause = max(_SHORTEST_PAUSE, (self._last - start) * _PART_OF_TIME)
        self._seen = _looks_at_the_middle()


async def collect_in_quiet(progress: Callable[[], object]) -> None:
    """Keep to the policy until cancelled; then the interpreter's own applies again.

    `progress` is another value whenever work was done: the moment is quiet if it has stayed the same for a while.
    """
    before = gc.get_threshold()
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
    try:
        collector, seen, looks = Collector(), progress(), 0
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            now = progress()
            looks = looks + 1 if now == seen else 0
            seen = now
            if collector.due(quiet=looks >= _QUIET_LOOKS):
                collector.collect()
    finally:
        gc.set_threshold(*before)


def _looks_at_the_middle() -> int:
    """How often the middle generation was looked at: rises with what is allocated and stays."""
    return int(gc.get_stats()[1]["collections"])
