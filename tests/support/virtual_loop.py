"""Virtual time for asynchronous tests: a wait takes no time, and lasts exactly as long as it says."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer whenever nothing else is to be done."""

    def __init__(self) -> None:
        super().__init__(_Jumping(self))
        self._now = 0.0

    def time(self) -> float:
        """Virtual seconds since the loop began."""
        return self._now

    def jump(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds

    def run_in_executor(self, *_: Any) -> Any:
        """Refused: while a thread works, any length of virtual time would pass."""
        raise RuntimeError("a thread has no part in virtual time")


class _Jumping(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everybody waits for ever")
        if not ready and timeout:
            # A little more than asked, so that rounding never leaves the timer a hair away.
            self._loop.jump(timeout + 1e-9)
        return ready


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run to the end in virtual time; a test that would wait for ever fails."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)


def now() -> float:
    """The running loop's time."""
    return asyncio.get_running_loop().time()
