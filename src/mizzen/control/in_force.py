"""Which objects are not in force: the one list, kept by looking at what has changed.

In: the engine, the connections. Out: Problems of the compiler and of the proxies, handed to `Inputs`, which holds them
beside those of the sources, tells the log of each when it comes and when it goes, and counts them. A look costs nothing
while no query ran and no proxy answered; examining new objects gives way to the event loop between its pieces.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from mizzen import observe
from mizzen.api.problems import Problem
from mizzen.compile import problems
from mizzen.control.rejections import Rejections
from mizzen.incremental import Engine, Root
from mizzen.xds.status import Connections

_log = observe.scope("config")
_EVERY = 0.1
"""Seconds between two looks."""
_PIECE = 0.01
"""Seconds for which examining may hold the event loop."""


class InForce:
    """Watches for what is not in force."""

    def __init__(
        self,
        db: Engine,
        connections: Connections,
        report: Callable[[tuple[Problem, ...]], None],
        is_ready: Callable[[], bool],
    ) -> None:
        self._db = db
        self._rejections = Rejections(db, connections)
        self._report = report
        self._is_ready = is_ready
        self._parts: Root[tuple[tuple[str, str], ...]] = db.root(problems.parts)
        self._examined: dict[tuple[str, str], Root[None]] = {}
        self._seen: Any = None
        self._failure = ""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(_EVERY)
            if self._is_ready():
                await self._look_safely()

    async def _look_safely(self) -> None:
        """A fault of ours here must not end the process that serves; it is told once."""
        try:
            await self.look()
            self._failure = ""
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
            if failure != self._failure:
                self._failure = failure
                _log.exception("what is not in force cannot be told")

    async def look(self) -> None:
        """Examine what has changed, and report what is not in force if that may be another."""
        await self._examine()
        refused = self._rejections.find_problems()
        seen = (self._db.runs, refused)
        if seen != self._seen:
            self._report((*problems.gather(self._db), *refused))
            self._seen = (self._db.runs, refused)

    async def _examine(self) -> None:
        wanted = dict.fromkeys(self._parts.value())
        for part in self._examined.keys() - wanted.keys():
            self._examined.pop(part).release()
        started = time.monotonic()
        for part in wanted:
            root = self._examined.get(part)
            if root is None:
                root = self._examined[part] = self._db.root(problems.examine, *part)
            elif not root.stale:
                continue
            root.value()
            if time.monotonic() - started > _PIECE:
                await asyncio.sleep(0)
                started = time.monotonic()
