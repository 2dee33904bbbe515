"""Tells a person what a starting mesh is doing.

In: events, and how many sidecars are ready of how many. Out: one line an event with the seconds since the start; on a
terminal besides a last line that counts and is overwritten. Anything else that reads the output, a log or a test, gets
plain lines only.
"""

from collections.abc import Callable
from typing import Protocol


class Writer(Protocol):
    """What is needed of a stream."""

    def write(self, text: str, /) -> object:
        """Takes the text."""

    def flush(self) -> object:
        """Passes on what was taken."""


class Timeline:
    """The story so far."""

    def __init__(self, stream: Writer, clock: Callable[[], float], *, start: float, terminal: bool) -> None:
        self._stream: Writer = stream
        self._clock = clock
        self._start = start
        self._terminal = terminal
        self._status = ""

    def say(self, text: str) -> None:
        """An event; it happened now."""
        self._write(f"{self._erase()}{self._clock() - self._start:6.1f}s  {text}\n{self._status}")

    def line(self, text: str) -> None:
        """A line that is no event."""
        self._write(f"{self._erase()}{text}\n{self._status}")

    def progress(self, text: str) -> None:
        """What is going on, on a terminal; an empty text ends it."""
        if self._terminal and text != self._status:
            erase = self._erase()
            self._status = text
            self._write(erase + text)

    def _erase(self) -> str:
        return "\r\x1b[K" if self._status else ""

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # Whoever listened has gone; the mesh goes on.
            self._stream = _Silent()


class _Silent:
    def write(self, text: str, /) -> int:
        return len(text)

    def flush(self) -> None:
        """Nothing is kept."""
