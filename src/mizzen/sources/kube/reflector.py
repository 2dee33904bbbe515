"""One resource of an API server, mirrored: listed in pages, then watched; listed again when the past is gone.

In: a Client and a Resource. Out: a call of `changed` for every object that is another than before, and `listed` once
the first list is in. After a list only differences are told, so that neither a restart of the server nor an expired
version costs anybody a push. Trouble is waited out, longer and longer and by chance; nothing is forgotten meanwhile.

    list ─> watch ──end, silence, lost connection──> watch from the last version seen
      ^       └── 410: that version is forgotten ─┐
      └───────────────────────────────────────────┘
"""

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from mizzen import observe
from mizzen.api.meta import Key, Object
from mizzen.api.problems import Problem
from mizzen.errors import SourceError
from mizzen.sources.kube.client import Client, Event, Refused
from mizzen.sources.kube.reading import Reader, Reading
from mizzen.sources.kube.served import Resource

_log = observe.scope("kube")
_RELISTS = observe.Counter("mizzen_kube_lists", "Lists of a kind, the first one included.", ("kind",))
_TROUBLE = observe.Counter(
    "mizzen_kube_errors", "Requests that failed, by kind and HTTP status (0: no answer).", ("kind", "status")
)

_GONE = 410
_YIELD_EVERY = 200
"""Objects decoded at once before others may run."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """In seconds."""

    first_wait: float = 0.5
    """After the first failure; doubled with each, and taken by chance from its upper half."""
    longest_wait: float = 30.0
    watch_for: float = 450.0
    """A watch is ended by the server after this, or up to a third more."""

    def wait_after(self, failures: int) -> float:
        """How long to wait after so many failures in a row."""
        longest = min(self.first_wait * 2 ** min(failures - 1, 16), self.longest_wait)
        return random.uniform(longest / 2, longest)


class Held(NamedTuple):
    """What is known of an object that the server has."""

    resource_version: str
    object: Object | None
    """Absent when nothing of it can be served."""
    problems: tuple[Problem, ...]


class Reflector:
    """Keeps up with one resource; somebody runs it."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        changed: Callable[[Key], None],
        *,
        clock: Callable[[], float],
        timing: Timing | None = None,
        touched: Callable[[Key], None] = lambda _: None,
    ) -> None:
        """`touched` is told of every new version of an object, `changed` of those that matter."""
        self.resource = resource
        self.held: dict[Key, Held] = {}
        """What the server has, as far as is known."""
        self.listed = asyncio.Event()
        """Set once the first list is in."""
        self.heard_at: float | None = None
        """When the server last said something about this resource, by `clock`; None before the first list."""
        self.trouble = ""
        """Why it does not say anything now."""
        self._client, self._changed, self._touched, self._clock = client, changed, touched, clock
        self._timing = timing or Timing()
        self._reader = Reader(resource)
        self._version = ""
        self._failures = 0

    async def run(self) -> None:
        """Ends only when cancelled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except Refused as refusal:
                if refusal.status == _GONE and self._version:
                    self._version = ""
                    continue
                await self._wait(refusal, str(refusal.status), refusal.after)
            except SourceError as error:
                await self._wait(error, "0")

    # -- lists ----------------------------------------------------------------------------------------------------

    async def _list(self) -> None:
        found: dict[Key, Reading] = {}
        version = ""
        _RELISTS.labels(self.resource.kind.name).inc()
        pages = self._client.list_pages(self.resource.path, self.resource.query)
        async with contextlib.aclosing(pages):
            async for page in pages:
                version = page.metadata.resource_version
                for position, raw in enumerate(page.items, 1):
                    self._list_one(raw, found)
                    if position % _YIELD_EVERY == 0:
                        await asyncio.sleep(0)
        for key in [key for key in self.held if key not in found]:
            self._forget(key)
        for reading in found.values():
            self._take(reading)
        self._version = version
        self._heard()
        self.listed.set()

    def _list_one(self, raw: msgspec.Raw, found: dict[Key, Reading]) -> None:
        try:
            key, version = self._reader.name(raw)
            held = self.held.get(key)
            if held is not None and held.resource_version == version:
                found[key] = Reading(key, version, held.object, held.problems)
            else:
                found[key] = self._reader.read(raw)
        except msgspec.DecodeError as error:
            _log.warning("an item of %s is no object: %s", self.resource.path, error)

    # -- watches --------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Until the server ends it."""
        seconds = self._timing.watch_for * random.uniform(1, 4 / 3)
        query = {**self.resource.query, "resourceVersion": self._version, "timeoutSeconds": str(max(1, int(seconds)))}
        async with self._client.watch(self.resource.path, query) as events:
            self._heard()
            async for event in events:
                self._follow(event)

    def _follow(self, event: Event) -> None:
        self._heard()
        try:
            if event.type == "BOOKMARK":
                _, version = self._reader.name(event.object)
            elif event.type == "DELETED":
                key, version = self._reader.name(event.object)
                self._forget(key)
            else:
                reading = self._reader.read(event.object)
                version = reading.resource_version
                self._take(reading)
        except msgspec.DecodeError as error:
            _log.warning("an event of %s holds no object: %s", self.resource.path, error)
            return
        self._version = version or self._version

    # -- what is held ---------------------------------------------------------------------------------------------

    def _take(self, reading: Reading) -> None:
        before = self.held.get(reading.key)
        now = Held(reading.resource_version, reading.object, reading.problems)
        if before is not None and _is_same(before, now):
            self.held[reading.key] = now._replace(object=before.object)
        else:
            self.held[reading.key] = now
            self._changed(reading.key)
        if before is None or before.resource_version != now.resource_version:
            self._touched(reading.key)

    def _forget(self, key: Key) -> None:
        if self.held.pop(key, None) is not None:
            self._changed(key)
            self._touched(key)

    # -- trouble --------------------------------------------------------------------------------------------------

    def _heard(self) -> None:
        self.heard_at = self._clock()
        if self.trouble:
            _log.info("%s: the API server answers again", self.resource.path)
        self.trouble, self._failures = "", 0

    async def _wait(self, error: SourceError, status: str, at_least: float = 0.0) -> None:
        _TROUBLE.labels(self.resource.kind.name, status).inc()
        if not self.trouble:
            _log.warning("%s: %s; what is known stays in force", self.resource.path, error)
        self.trouble = str(error)
        self._failures += 1
        await asyncio.sleep(max(at_least, self._timing.wait_after(self._failures)))


def _is_same(before: Held, now: Held) -> bool:
    return type(before.object) is type(now.object) and before.object == now.object and before.problems == now.problems
