"""What has caused pushes: the latest ones, and an account of the objects behind them.

In: each push, with the objects that changed and the proxies that it reached. Out: `History`, bounded however long the
control plane runs: the latest pushes, and for each of the objects that changed last how many pushes it took part in and
how many proxies those told something. Objects that changed together share what followed. A batch of many objects (a
resynchronisation, a release) is remembered as a push and charged to none of them.
"""

import itertools
from collections import deque
from collections.abc import Collection, Iterable

import msgspec

from mizzen.incremental import Key

_LATEST = 50
_ACCOUNTS = 1000
_BATCH = 50
"""Objects of one push that are charged with it, at most."""
_SHOWN = 5


class Pushed(msgspec.Struct, frozen=True, kw_only=True):
    """One push."""

    number: int
    at: float
    """Clock time (seconds since 1970)."""
    reasons: tuple[str, ...]
    objects: tuple[Key, ...]
    """The first of those that changed."""
    changes: int
    reached: int
    """Proxies that the change might have reached."""
    told: int
    """Proxies to whom it made a difference."""
    seconds: float
    """From the first change to the last proxy woken."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What one object has caused."""

    object: Key
    pushes: int = 0
    told: int = 0
    """Proxies told, over all its pushes."""
    last: float = 0.0
    """Clock time of its last push."""


class History:
    """The memory of a pusher."""

    def __init__(self, accounts: int = _ACCOUNTS) -> None:
        self._most = accounts
        self._accounts: dict[Key, Account] = {}
        """The longest unchanged first."""
        self.latest: deque[Pushed] = deque(maxlen=_LATEST)

    def record(self, push: Pushed, objects: Collection[Key]) -> None:
        """One push ended. `objects` are all that changed."""
        self.latest.append(push)
        if len(objects) > _BATCH:
            return
        for key in objects:
            before = self._accounts.pop(key, None) or Account(object=key)
            self._accounts[key] = Account(
                object=key, pushes=before.pushes + 1, told=before.told + push.told, last=push.at
            )
        while len(self._accounts) > self._most:
            del self._accounts[next(iter(self._accounts))]

    def top(self, count: int) -> list[Account]:
        """The objects whose pushes told most proxies something, then those of most pushes."""
        told = (account for account in self._accounts.values() if account.told)
        return sorted(told, key=lambda a: (-a.told, -a.pushes, a.object))[:count]


def shown(objects: Iterable[Key]) -> tuple[Key, ...]:
    """As many objects as a push is remembered with."""
    return tuple(itertools.islice(objects, _SHOWN))
