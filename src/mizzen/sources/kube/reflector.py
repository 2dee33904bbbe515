"""One resource of an API server, mirrored: listed in pages, then watched; listed again when the past is gone.

In: a Client and a Resource. Out: a call of `changed` for every object that is another than before, and `listed` once
the first list is in. After a list only differences are told, so that neither a restart of the server nor an expired
version costs anybody a push. Trouble is waited out, longer and longer and by chance; nothing is forgotten meanwhile.

    list ─> watch ──end, silence, lost connection──> watch from the last version seen
      ^       └── 410: that version is forgotten ─┐
      └───────────────────────────────────────────┘

What a `Selection` does not take is passed over unread. Where it takes more than before, that part is listed beside the
watch, and what the watch said meanwhile counts more.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from mizzen import observe
from mizzen.api.meta import Key, Object, VersionedMeta
from mizzen.api.problems import Problem
from mizzen.errors import SourceError
from mizzen.sources.kube.client import Client, Event, Refused, Unreachable
from mizzen.sources.kube.reading import Head, Reader, Reading
from mizzen.sources.kube.selection import REVISION, Part, Selection
from mizzen.sources.kube.served import Resource

_log = observe.scope("kube")
_RELISTS = observe.Counter("mizzen_kube_lists", "Lists of a kind, the first one included.", ("kind",))
_TROUBLE = observe.Counter(
    "mizzen_kube_errors", "Requests that failed, by kind and HTTP status (0: no answer).", ("kind", "status")
)

_GONE, _FORBIDDEN = 410, 403
_YIELD_EVERY = 200
"""Objects decoded at once before others may run."""
_BRIEF = 1.0
"""Seconds that a watch must last, or tell of something, to be one: what ends before is tried ever more rarely."""
_MANY = 8
"""Parts that are listed one by one; more of them cost more than everything at once."""


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
    revision: str | None = None
    """The revision that it says it is written for."""


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
        selection: Selection | None = None,
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
        self.is_forbidden = False
        """Whether that is for want of rights."""
        self._client, self._changed, self._touched, self._clock = client, changed, touched, clock
        self._timing = timing or Timing()
        self._reader = Reader(resource)
        self._selection = selection or Selection()
        self._version = ""
        self._failures = 0
        self._is_settled = False
        """Whether the watch has lasted, or told of something."""
        self._listing = asyncio.Lock()
        self._parts: dict[Part, None] = {}
        self._is_wanted = asyncio.Event()
        self._followed: set[Key] | None = None
        """What the watch has told of while a part is being listed."""

    async def run(self) -> None:
        """Ends only when cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_up())
            tasks.create_task(self._list_parts())

    async def _keep_up(self) -> None:
        while True:
            is_listed = False
            try:
                if not self._version:
                    async with self._listing:
                        await self._list()
                    is_listed = True
                await self._watch()
            except Refused as refusal:
                if refusal.status == _GONE and self._version:
                    self._version = ""
                    if not is_listed:
                        continue
                await self._wait(refusal, str(refusal.status), refusal.after)
            except SourceError as error:
                await self._wait(error, "0")

    # -- lists ----------------------------------------------------------------------------------------------------

    async def _list(self) -> None:
        found, version = await self._read_pages(self.resource)
        for key in [key for key in self.held if key not in found]:
            self._forget(key)
        self._take_all(found)
        self._version = version
        self._heard()
        self.listed.set()

    async def _read_pages(self, resource: Resource) -> tuple[dict[Key, Reading], str]:
        """What there is of a resource, and at which version."""
        found: dict[Key, Reading] = {}
        version = ""
        _RELISTS.labels(resource.kind.name).inc()
        pages = self._client.list_pages(resource.path, resource.query)
        async with contextlib.aclosing(pages):
            async for page in pages:
                version = page.metadata.resource_version
                for position, raw in enumerate(page.items, 1):
                    self._list_one(raw, found)
                    if position % _YIELD_EVERY == 0:
                        await asyncio.sleep(0)
        return found, version

    def _list_one(self, raw: msgspec.Raw, found: dict[Key, Reading]) -> None:
        try:
            head = self._reader.head(raw)
            held = self.held.get(head.key)
            if not self._takes(head.key, head.revision):
                return
            if held is not None and held.resource_version == head.resource_version:
                found[head.key] = Reading(head.key, head.resource_version, held.object, held.problems, head.revision)
            else:
                found[head.key] = self._reader.read(raw, head)
        except msgspec.DecodeError as error:
            _log.warning("an item of %s is no object: %s", self.resource.path, error)

    # -- another selection ----------------------------------------------------------------------------------------

    def forget_unselected(self) -> None:
        """The selection may no longer take some of what is held."""
        for key in [key for key, held in self.held.items() if not self._takes(key, held.revision)]:
            self._forget(key)

    def want(self, part: Part) -> None:
        """The selection takes objects of this part now that it did not take before."""
        if not self._version and not self._listing.locked():
            return  # All of it is yet to be listed.
        self._parts[part] = None
        if Part() in self._parts or len(self._parts) > _MANY:
            self._parts = {Part(): None}
        self._is_wanted.set()

    async def _list_parts(self) -> None:
        failures = 0
        while True:
            await self._is_wanted.wait()
            self._is_wanted.clear()
            try:
                while self._parts:
                    async with self._listing:
                        await self._list_part(self._parts.popitem()[0])
                failures = 0
            except SourceError as error:
                failures += 1
                if failures == 1:
                    _log.warning("%s cannot be listed: %s", self.resource.path, error)
                await asyncio.sleep(self._timing.wait_after(failures))
                self._is_wanted.set()

    async def _list_part(self, part: Part) -> None:
        """List it; nothing is forgotten for not being in it, since the watch tells what is removed."""
        selector = f"{REVISION} in ({','.join(part.revisions)})" if part.revisions else ""
        self._followed = set()
        try:
            found, _ = await self._read_pages(self.resource._replace(namespace=part.namespace, selector=selector))
            self._take_all({key: reading for key, reading in found.items() if key not in self._followed})
        except SourceError:
            self._parts[part] = None
            raise
        finally:
            self._followed = None

    def _takes(self, key: Key, revision: str | None) -> bool:
        return self._selection.takes(self.resource.kind, key, revision)

    def _take_all(self, found: dict[Key, Reading]) -> None:
        for reading in found.values():
            if self._takes(reading.key, reading.revision):  # The selection may be another one than when it was read.
                self._take(reading)

    # -- watches --------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Until the server ends it."""
        seconds = self._timing.watch_for * random.uniform(1, 4 / 3)
        query = {**self.resource.query, "resourceVersion": self._version, "timeoutSeconds": str(max(1, int(seconds)))}
        self._is_settled = False
        async with self._client.watch(self.resource.path, query) as events:
            settling = asyncio.get_running_loop().call_later(_BRIEF, self._settle)
            try:
                async for event in events:
                    self._follow(event)
            finally:
                settling.cancel()
        if not self._is_settled:
            raise Unreachable("the watch ended as soon as it had begun")

    def _follow(self, event: Event) -> None:
        self._settle()
        try:
            head = self._reader.head(event.object)
            if event.type != "BOOKMARK":
                self._follow_object(event, head)
        except msgspec.DecodeError as error:
            _log.warning("an event of %s holds no object: %s", self.resource.path, error)
            return
        self._version = head.resource_version or self._version

    def _follow_object(self, event: Event, head: Head) -> None:
        if self._followed is not None:
            self._followed.add(head.key)
        if event.type == "DELETED" or not self._takes(head.key, head.revision):
            self._forget(head.key)
        else:
            self._take(self._reader.read(event.object, head))

    # -- what is held ---------------------------------------------------------------------------------------------

    def _take(self, reading: Reading) -> None:
        before = self.held.get(reading.key)
        now = Held(reading.resource_version, reading.object, reading.problems, reading.revision)
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
        self.trouble, self.is_forbidden = "", False

    def _settle(self) -> None:
        """A watch is one."""
        self._heard()
        self._is_settled, self._failures = True, 0

    async def _wait(self, error: SourceError, status: str, at_least: float = 0.0) -> None:
        _TROUBLE.labels(self.resource.kind.name, status).inc()
        if not self.trouble:
            _log.warning("%s: %s; what is known stays in force", self.resource.path, error)
        self.trouble, self.is_forbidden = str(error), status == str(_FORBIDDEN)
        self._failures += 1
        await asyncio.sleep(max(at_least, self._timing.wait_after(self._failures)))


def _is_same(before: Held, now: Held) -> bool:
    if type(before.object) is not type(now.object) or before.problems != now.problems:
        return False
    return before.object == now.object or before.object == _of_version(now.object, before.object)


def _of_version(found: Object | None, before: Object | None) -> Object | None:
    """The object with the version of an earlier one of the same generation: then no more than a status was written."""
    if found is None or before is None:
        return found
    metadata, known = found.metadata, before.metadata
    if not isinstance(metadata, VersionedMeta) or not isinstance(known, VersionedMeta):
        return found
    if metadata.generation == 0 or metadata.generation != known.generation:
        return found
    return replace(found, metadata=replace(metadata, resource_version=known.resource_version))
