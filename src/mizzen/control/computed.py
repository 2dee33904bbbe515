"""Values that queries give for each of a set of objects, kept up to date by looking at what has changed.

In: a query for the keys, a query for the value of each. Out: the object and its value by key, and a call for each that
has become another. A look costs a glance at every root; nothing runs while nothing changed.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from mizzen import observe
from mizzen.api.meta import Key, Object
from mizzen.incremental import Engine, Root

_log = observe.scope("kube")

T = TypeVar("T")

_PIECE = 0.01
"""Seconds for which computing may hold the event loop."""


class Computed(Generic[T]):
    """Holds roots until it is released."""

    def __init__(
        self,
        db: Engine,
        keys: Callable[[Engine], tuple[Key, ...]],
        value: Callable[[Engine, Key], T | None],
        changed: Callable[[Key], None],
    ) -> None:
        self._db, self._value, self._changed = db, value, changed
        self._keys: Root[tuple[Key, ...]] = db.root(keys)
        self._roots: dict[Key, Root[T | None]] = {}
        self.values: dict[Key, tuple[Object, T | None]] = {}
        """An object and what was computed for it; None where it raises, which the engine lists."""

    def release(self) -> None:
        """Need nothing any more."""
        self._keys.release()
        for root in self._roots.values():
            root.release()
        self._roots.clear()

    async def look(self) -> None:
        """Compute what may have changed."""
        if self._keys.stale or not self._roots:
            self._follow(dict.fromkeys(self._keys.value()))
        started = time.monotonic()
        for key, root in list(self._roots.items()):
            if key in self.values and not root.stale:
                continue
            found: Object | None = self._db.peek(key)
            if found is None:
                continue  # Gone a moment ago, which the next look will see.
            now = found, self._ask(key, root)
            if self.values.get(key) != now:
                self.values[key] = now
                self._changed(key)
            if time.monotonic() - started > _PIECE:
                await asyncio.sleep(0)
                started = time.monotonic()

    def _follow(self, keys: dict[Key, None]) -> None:
        for key in self._roots.keys() - keys.keys():
            self._roots.pop(key).release()
            if self.values.pop(key, None) is not None:
                self._changed(key)
        for key in keys:
            if key not in self._roots:
                self._roots[key] = self._db.root(self._value, key)

    def _ask(self, key: Key, root: Root[T | None]) -> T | None:
        try:
            return root.value()
        except Exception as error:
            _log.debug("nothing is computed for %s: %s", key, error)
            return None
