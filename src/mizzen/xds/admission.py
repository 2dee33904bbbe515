"""How fast new streams are let in, so that a crowd that comes back at once does not starve those who are served.

In: streams that want to begin. Out: a short wait, or a refusal that tells the client to come back later.
"""

import asyncio
import os
import time
from collections.abc import Callable

from mizzen.xds.identity import Refused

_PER_CPU = 125.0
"""Streams a second and CPU where no rate is set. The reference lets in 5 (and 15 more); a comeback costs less here."""
_PATIENCE = 5.0
"""Seconds that a stream may wait for its turn."""


class Admission:
    """A rate of new streams, of which those of one second may come at once."""

    def __init__(
        self, per_second: float, patience: float = _PATIENCE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`per_second` 0 chooses by the number of CPUs."""
        self._rate = per_second or _PER_CPU * (os.cpu_count() or 1)
        self._patience = patience
        self._clock = clock
        self._next = clock() - 1.0
        """When the next stream's turn is; up to a second back while turns were left unused."""

    async def enter(self) -> None:
        """Wait for a turn; raises Refused when that would take too long."""
        delay = self.reserve()
        if delay > 0:
            await asyncio.sleep(delay)

    def reserve(self) -> float:
        """Take a turn; the seconds until it comes."""
        now = self._clock()
        turn = max(self._next, now - max(0.0, 1.0 - 1.0 / self._rate))
        delay = turn - now
        if delay > self._patience:
            text = f"request rate limit exceeded: more than {self._rate:g} new streams a second"
            raise Refused("RESOURCE_EXHAUSTED", text)
        self._next = turn + 1.0 / self._rate
        return max(0.0, delay)
