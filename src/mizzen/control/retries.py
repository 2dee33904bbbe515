"""Keys to be seen to: each by one worker at a time, so many requests a second, and again after a failure.

In: keys, as often as somebody thinks that something about them may have changed. Out: calls of `see_to`, which decides
by what is true when it is called; a key that is added while it is seen to is seen to once more. What the server's
refusal means for the key is decided here: a conflict is tried again at once, an answer that nobody gave later and
later, a lack of permission rarely and told once, an object that is gone or does not fit its schema not at all.
"""

import asyncio
import heapq
import itertools
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from mizzen import observe
from mizzen.errors import SourceError
from mizzen.sources.kube.client import Refused
from mizzen.sources.kube.reflector import Timing

_log = observe.scope("kube")

K = TypeVar("K", bound=Hashable)

_WORKERS = 8
_RATE, _BURST = 40.0, 80
"""Requests a second, and at once after a rest."""
_TIMING = Timing()
_FORBIDDEN_WAIT = 60.0
_GONE, _CONFLICT = (404, 410), 409
_FORBIDDEN = (401, 403, 405)
_SENSELESS = (400, 413, 415, 422)
_MOST_TOLD = 1000


class Budget:
    """So many requests a second."""

    def __init__(self, rate: float = _RATE, burst: int = _BURST) -> None:
        self._every, self._rest = 1 / rate, (burst - 1) / rate
        self._next = 0.0

    async def spend(self) -> None:
        """Return when there may be one more request."""
        now = asyncio.get_running_loop().time()
        self._next = max(self._next, now - self._rest) + self._every
        wait = self._next - self._every - now
        if wait > 0:
            await asyncio.sleep(wait)


class Chores(Generic[K]):
    """Keys that wait to be seen to; somebody runs it."""

    def __init__(self, see_to: Callable[[K], Awaitable[None]], what: str) -> None:
        """`what` says in the log what is not done."""
        self._see_to, self._what = see_to, what
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._busy: set[K] = set()
        self._failures: dict[K, int] = {}
        self._numbers = itertools.count()
        self._wake = asyncio.Event()
        self._told: dict[object, None] = {}
        self._outage: set[object] = set()
        """What was told of failures that pass, until all of them have passed."""

    def add(self, key: K, wait: float = 0.0) -> None:
        """See to a key, after a while; one that waits already is not put off."""
        due = asyncio.get_running_loop().time() + wait
        if key in self._due and self._due[key] <= due:
            return
        self._due[key] = due
        if key not in self._busy:
            self._push(key)

    def __len__(self) -> int:
        return len(self._due) + len(self._busy)

    async def run(self) -> None:
        """Ends only when cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_WORKERS):
                tasks.create_task(self._work())

    def _push(self, key: K) -> None:
        heapq.heappush(self._heap, (self._due[key], next(self._numbers), key))
        self._wake.set()

    async def _work(self) -> None:
        while True:
            key = await self._take()
            try:
                await self._see_to(key)
                self._passed(key)
            except SourceError as error:
                self._failed(key, error)
            except Exception as error:
                # A fault of ours in one object must not keep the others from being seen to.
                if self._tell_once((key, type(error))):
                    _log.exception("%s: %s", self._what, key)
            finally:
                self._busy.discard(key)
                if key in self._due:
                    self._push(key)

    async def _take(self) -> K:
        while True:
            now = asyncio.get_running_loop().time()
            while self._heap and self._heap[0][0] <= now:
                due, _, key = heapq.heappop(self._heap)
                if self._due.get(key) == due and key not in self._busy:
                    del self._due[key]
                    self._busy.add(key)
                    return key
            self._wake.clear()
            wait = self._heap[0][0] - now if self._heap else None
            try:
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            except TimeoutError:
                continue

    # -- failures -------------------------------------------------------------------------------------------------

    def _passed(self, key: K) -> None:
        """It does not fail any more in a way that passes."""
        if self._failures.pop(key, None) is not None and not self._failures:
            self._outage.clear()

    def _failed(self, key: K, error: SourceError) -> None:
        status = error.status if isinstance(error, Refused) else 0
        if status in _GONE:
            self._passed(key)
            return
        if status in _FORBIDDEN:
            self._passed(key)
            self._warn((status, str(error).partition('"')[0]), key, error)
            self.add(key, _FORBIDDEN_WAIT * random.uniform(1, 1.5))
            return
        if status in _SENSELESS:
            self._passed(key)
            self._warn((key, str(error)), key, error)
            return
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        if status == _CONFLICT and failures == 1:
            self.add(key)
            return
        if status != _CONFLICT:
            about = status, type(error)
            if about not in self._outage:
                self._outage.add(about)
                _log.warning("%s: %s: %s", self._what, key, error)
        after = error.after if isinstance(error, Refused) else 0.0
        self.add(key, max(after, _TIMING.wait_after(failures)))

    def _warn(self, about: object, key: K, error: SourceError) -> None:
        if self._tell_once(about):
            _log.warning("%s: %s: %s", self._what, key, error)

    def _tell_once(self, about: object) -> bool:
        if about in self._told or len(self._told) >= _MOST_TOLD:
            return False
        self._told[about] = None
        return True
