"""What has caused pushes: the latest ones, and what the objects behind them have cost.

In: each push, with what it changed and the proxies that it reached. Out: `History`, bounded however long the control
plane runs. Who is charged how much is `costs`' business.
"""

import itertools
from collections import Counter, deque
from collections.abc import Iterable

import msgspec

from mizzen.incremental import Key
from mizzen.xds.costs import Cause, Costs

_LATEST = 50
_SHOWN = 5


class Pushed(msgspec.Struct, frozen=True, kw_only=True):
    """One push."""

    number: int
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
    cause: Cause
    """Tells when it was, and what it has cost until now."""


class History:
    """The memory of a pusher."""

    def __init__(self) -> None:
        self.latest: deque[Pushed] = deque(maxlen=_LATEST)
        self.costs = Costs()
        self.changes: Counter[str] = Counter()
        """Changes that came in since the start, by reason."""


def shown(objects: Iterable[Key]) -> tuple[Key, ...]:
    """As many objects as a push is remembered with."""
    return tuple(itertools.islice(objects, _SHOWN))
