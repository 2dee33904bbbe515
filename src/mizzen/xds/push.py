"""From a change to the streams that it reaches: collect, wait for quiet, commit, wake.

In: inputs from the sources, by `Pusher.feed`. They are merged by key and kept out of the engine until the mesh has been
quiet for a moment (or a change has waited long enough); then all of them are committed in one step, so that no proxy is
ever told half of a change. Out: a `Push` for every stream that has something to say because of it. Nothing waits for
the streams: each sends when `Throttle` lets it, and what comes meanwhile merges into the one push that it has pending.
"""

import asyncio
import contextlib
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from mizzen import observe
from mizzen import settings as settings_module
from mizzen.incremental import Key
from mizzen.xds import metrics
from mizzen.xds.generator import Change, Generator
from mizzen.xds.history import History, Pushed, shown
from mizzen.xds.pace import Pace
from mizzen.xds.roots import Push, Roots

_log = observe.scope("ads")

_COLLECT_EVERY = 30.0
"""Seconds without a change after which memory that departed proxies needed is freed."""
_PATIENCE = 0.5
"""Seconds that a push may hold one of the throttle's places; a slower client goes on without."""

ENDPOINT_REASON = "endpoint"


class Debounce:
    """When collected changes are due: after `quiet` seconds without another, at most `longest` after the first."""

    __slots__ = ("_first", "_last", "longest", "quiet")

    def __init__(self, quiet: float, longest: float) -> None:
        self.quiet = quiet
        self.longest = longest
        self._first: float | None = None
        self._last = 0.0

    @property
    def first(self) -> float | None:
        """Time of the first change that waits."""
        return self._first

    def add(self, now: float) -> None:
        """A change came."""
        if self._first is None:
            self._first = now
        self._last = now

    def wait(self, now: float) -> float:
        """Seconds until the changes are due; 0 when they are."""
        if self._first is None:
            return 0.0
        return max(0.0, min(self._last + self.quiet, self._first + self.longest) - now)

    def reset(self) -> None:
        """The changes are on their way."""
        self._first = None


class Throttle:
    """So many streams are pushed to at once; a place is given back when its push ends or takes too long.

    It bounds the responses in memory. A client that does not read keeps its own response and nobody else's place.
    """

    def __init__(self, places: int, patience: float = _PATIENCE) -> None:
        """`places` 0 chooses by the number of CPUs, as in the reference."""
        self._free = places or min(15 + 5 * (os.cpu_count() or 1), 100)
        self._patience = patience
        self._taken: dict[Place, float] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def place(self) -> "Place":
        """To be entered with `async with`: waits for a place and holds it, but not for ever."""
        return Place(self)

    async def _enter(self, place: "Place") -> None:
        loop = asyncio.get_running_loop()
        if self._free <= 0 or self._waiting:
            turn = loop.create_future()
            self._waiting.append(turn)
            self._watch(loop)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._give_back()
                raise
        else:
            self._free -= 1
        self._taken[place] = loop.time()
        if self._waiting:
            self._watch(loop)

    def _leave(self, place: "Place") -> None:
        if self._taken.pop(place, None) is not None:
            self._give_back()

    def _give_back(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """While somebody waits, take places from those that hold them too long."""
        if self._timer is None and self._taken:
            oldest = next(iter(self._taken.values()))
            self._timer = loop.call_at(oldest + self._patience, self._take_back, loop)

    def _take_back(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        late = [place for place, since in self._taken.items() if since + self._patience <= loop.time()]
        for place in late:
            self._leave(place)
        if self._waiting:
            self._watch(loop)


class Place:
    """One place of a throttle."""

    __slots__ = ("_throttle",)

    def __init__(self, throttle: Throttle) -> None:
        self._throttle = throttle

    async def __aenter__(self) -> None:
        await self._throttle._enter(self)

    async def __aexit__(self, *_: object) -> None:
        self._throttle._leave(self)


class Pusher:
    """The one place where the engine changes."""

    def __init__(
        self,
        generator: Generator,
        roots: Roots,
        settings: settings_module.Push,
        pace: Pace,
        clock: Callable[[], float] = time.monotonic,
        calendar: Callable[[], float] = time.time,
    ) -> None:
        self._generator = generator
        self._roots = roots
        self._settings = settings
        self._pace = pace
        self._clock = clock
        self._calendar = calendar
        self._debounce = Debounce(settings.debounce_after, settings.debounce_max)
        self._changes: dict[Key, Any] = {}
        self._reasons: Counter[str] = Counter()
        self._woken = asyncio.Event()
        self.ready = False
        """Whether the first state of the mesh is complete; nothing is served before."""
        self.count = 0
        """Pushes since the start."""
        self.history = History()

    def feed(self, key: Key, value: Any, reason: str = "config") -> None:
        """A source saw that input `key` is now `value` (None: gone). `reason` is a label of pilot_push_triggers."""
        self._changes[key] = value
        self._reasons[reason] += 1
        self.history.changes[reason] += 1
        metrics.count_update(reason, is_removal=value is None)
        self._debounce.add(self._clock())
        self._woken.set()

    def open(self) -> None:
        """Every source has delivered its first list: commit it at once and let proxies in."""
        self._commit()
        self.ready = True

    async def run(self) -> None:
        """Push until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_COLLECT_EVERY):
                    await self._woken.wait()
            if self._woken.is_set():
                await self._settle()
                await self._push()
            self._generator.collect()

    async def _settle(self) -> None:
        """Wait until the changes have settled."""
        while (delay := self._wait()) > 0:
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    # Only changes that need no debouncing end the wait early.
                    await self._woken.wait()

    def _wait(self) -> float:
        if not self._settings.debounce_endpoints and self._reasons.keys() <= {ENDPOINT_REASON}:
            return 0.0
        return self._debounce.wait(self._clock())

    def _commit(self) -> tuple[Push, Sequence[Change]] | None:
        """Bring all changes into the engine in one step; what is to be pushed, and what was changed."""
        self._woken.clear()
        first = self._debounce.first
        if first is None:
            return None
        changes, self._changes = self._changes, {}
        reasons, self._reasons = self._reasons, Counter()
        self._debounce.reset()
        made = self._generator.apply(changes)
        self.count += 1
        metrics.DEBOUNCE_TIME.observe(self._clock() - first)
        shown = ", ".join("/".join(key) for key in list(changes)[:3]) + (", …" if len(changes) > 3 else "")
        _log.info("Push %d: %d changes (%s): %s", self.count, reasons.total(), ", ".join(sorted(reasons)), shown)
        causes = (self.history.costs.open(made, self._calendar()),) if made else ()
        return Push(since=first, reasons=frozenset(reasons), causes=causes), made

    async def _push(self) -> None:
        """Commit, then bring up to date what proxies need: root by root, so that the loop goes on in between."""
        await self._pace.turn()
        committed = self._commit()
        if committed is None:
            return
        push, made = committed
        reached = self._roots.take_reached()
        woken = 0
        for stream in reached:
            await self._pace.turn()
            for followed in stream.stale():
                followed.fetch()
                await self._pace.turn()
            if stream.is_due:
                stream.push(push)
                woken += 1
        if reached:
            _log.info("Push %d: %d proxies may be reached, %d are", self.count, len(reached), woken)
        if made:
            self._remember(push, made, len(reached), woken)

    def _remember(self, push: Push, made: Sequence[Change], reached: int, told: int) -> None:
        pushed = Pushed(
            number=self.count,
            reasons=tuple(sorted(push.reasons)),
            objects=shown(change.object for change in made),
            changes=len(made),
            reached=reached,
            told=told,
            seconds=self._clock() - push.since,
            cause=push.causes[0],
        )
        self.history.latest.append(pushed)
