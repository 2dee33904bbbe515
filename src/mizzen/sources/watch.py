"""Files as a stream of changes.

In: paths. Out: `Batch`es: the first one is everything, each later one the difference to the one before, as soon as a
moment after a file was written. inotify (by watchfiles) wakes the source; besides, it looks by itself now and then, and
more often where inotify is not to be had. Files are read and parsed in a thread, so that the loop goes on.
A path that is missing at the start raises `SourceError`; later it leaves everything as it was.
"""

import asyncio
import concurrent.futures
import contextlib
import os
import pathlib
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence

import msgspec
from watchfiles._rust_notify import RustNotify

from mizzen import observe
from mizzen.api.meta import Object
from mizzen.sources.batches import Batch, count_events
from mizzen.sources.files import Contents, FileTree, merge

_log = observe.scope("files")

Touched = frozenset[str] | None
"""Paths that changed; None means that any may have."""

# Changes that come together are told together, for a moment.
_GROUP_MS, _STEP_MS = 200, 20


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How the source waits, in seconds."""

    quiet: float = 0.05
    """A file written more recently than this is left alone for a moment."""
    longest_wait: float = 1.0
    """A file that never rests is read after this."""
    look_every: float = 5.0
    """Between two looks when inotify wakes the source."""
    poll_every: float = 1.0
    """Between two looks when it cannot."""


class FileSource:
    """Files and folders, watched."""

    def __init__(
        self, paths: Sequence[str], timing: Timing | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._trees = [FileTree(pathlib.Path(path), clock) for path in paths]
        self._timing = timing or Timing()
        self.contents = Contents()
        """All that the files hold, as of the last batch."""

    @property
    def parsed(self) -> int:
        """Files parsed since the start."""
        return sum(tree.parsed for tree in self._trees)

    async def watch(self) -> AsyncIterator[Batch]:
        """The batches; ends only when cancelled."""
        first = await asyncio.to_thread(self._look, 0.0, None)
        yield first if first is not None else Batch()
        async with contextlib.aclosing(self._moments()) as moments:
            async for touched in moments:
                async for batch in self._look_until_settled(touched):
                    yield batch

    async def _look_until_settled(self, touched: Touched) -> AsyncIterator[Batch]:
        timing, waited = self._timing, 0.0
        while True:
            quiet = timing.quiet if waited < timing.longest_wait else 0.0
            batch = await asyncio.to_thread(self._look, quiet, touched)
            if batch is not None:
                yield batch
            if not any(tree.unsettled for tree in self._trees):
                return
            await asyncio.sleep(timing.quiet)
            waited += timing.quiet

    def _look(self, quiet: float, touched: Touched) -> Batch | None:
        changed = [tree.scan(quiet, touched) for tree in self._trees]
        if not any(changed):
            return None
        before, now = self.contents, merge(self._trees)
        sets = {key: new for key, new in now.objects.items() if not _is_same(new, before.objects.get(key))}
        removes = tuple(key for key in before.objects if key not in now.objects)
        if not sets and not removes and now.findings == before.findings:
            self.contents = now
            return None
        count_events(sets, removes, before.objects)
        self.contents = now
        return Batch(sets=sets, removes=removes, findings=now.findings)

    async def _moments(self) -> AsyncGenerator[Touched, None]:
        """Whenever something may have changed."""
        while True:
            roots = [tree.root for tree in self._trees if tree.root.exists()]
            try:
                async with contextlib.aclosing(self._wake(roots)) as wake:
                    async for touched in wake:
                        yield touched
            except (OSError, RuntimeError) as error:
                _log.warning("files cannot be watched (%s); looking every %g s", error, self._timing.poll_every)
                break
        while True:
            await asyncio.sleep(self._timing.poll_every)
            yield None

    async def _wake(self, roots: Sequence[pathlib.Path]) -> AsyncGenerator[Touched, None]:
        """Wakes by inotify, or by the clock; ends when a root is another than it was."""
        identities = [_identity(tree.root) for tree in self._trees]
        every = self._timing.look_every
        if not roots:
            await asyncio.sleep(every)
            yield None
            return
        with _Notifier(roots) as notifier:
            yield None  # What changed before the watch began.
            while [_identity(tree.root) for tree in self._trees] == identities:
                yield await notifier.wait(every)


class _Notifier:
    """inotify on whole trees, from its construction on."""

    def __init__(self, roots: Sequence[pathlib.Path]) -> None:
        self._notify = RustNotify([str(root) for root in roots], False, False, 0, True, True)
        self._executor = concurrent.futures.ThreadPoolExecutor(1, "inotify")
        self._stop = threading.Event()

    def __enter__(self) -> "_Notifier":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._executor.shutdown()
        self._notify.close()

    async def wait(self, seconds: float) -> Touched:
        """Until something changes, at most so long; the paths that did, or None where that is not known."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._executor, self._notify.watch, _GROUP_MS, _STEP_MS, int(seconds * 1000), self._stop
        )
        return frozenset(path for _, path in found) if isinstance(found, set) else None


def _identity(path: pathlib.Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_same(new: Object, old: Object | None) -> bool:
    return new is old or (type(new) is type(old) and new == old)
