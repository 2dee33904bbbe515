"""Statuses of objects, written back to the API server by the leader.

In: what is to be kept in the statuses of which kinds (`Keeping`), followed in the engine; the source, which says what
the server has. Out: a merge patch of `status` for each object whose status differs, decided on one resource version
and refused by the server if that has passed. At the beginning of a term all objects are listed once, so that a new
leader writes nothing that is there already; afterwards one request reads an object and one writes it, and none is made
while nothing changes. A status is computed for one generation of an object, and waits until the server and the engine
agree on it.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from mizzen import observe
from mizzen.api.gateway_api.statuses import Status
from mizzen.api.meta import Key, Object
from mizzen.control.computed import Computed
from mizzen.control.leader_requests import LeaderRequests
from mizzen.control.retries import Chores
from mizzen.control.revisions import Revisions
from mizzen.control.status_merging import merge_status
from mizzen.control.times import format_time
from mizzen.errors import SourceError
from mizzen.incremental import Engine
from mizzen.model.convert.status.objects import STATUSES, own_status, status_keys
from mizzen.sources.kube.source import KubeSource

_log = observe.scope("status")
_WRITES = observe.Counter("mizzen_status_writes", "Statuses written to the API server.", ("kind",))
_REFUSED = observe.Counter("mizzen_status_write_failures", "Statuses that could not be written.", ("kind",))
_WAITING = observe.Gauge("mizzen_status_waiting", "Objects whose statuses are to be compared or written.")

MANAGER = "istio.io/gateway-controller"
"""Who writes statuses of the Gateway API."""

_PATIENCE = 0.3
"""Seconds for which the engine may be behind the source."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""


class _Document(msgspec.Struct, frozen=True):
    """An object as the server has it, but for what it asks for."""

    metadata: _Metadata = _Metadata()
    status: Any = None


_document = msgspec.json.Decoder(_Document)

T = TypeVar("T")
Told = TypeVar("Told", covariant=True)
Taken = TypeVar("Taken", contravariant=True)


class Followed(Protocol[Told]):
    """What statuses are to say, kept up to date by looking."""

    @property
    def values(self) -> Mapping[Key, tuple[Object, Told | None]]:
        """An object and what its status is to say; None where that is not ours to say."""

    async def look(self) -> None:
        """Compute what may have changed."""

    def release(self) -> None:
        """Need nothing any more."""


class Merge(Protocol[Taken]):
    """Lays what a status is to say over what it says."""

    def __call__(self, wanted: Taken, current: Mapping[str, Any], *, generation: int, now: str) -> dict[str, Any]:
        """The fields of the status that are to be another; None among them removes a field."""


class Keeping(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """Which statuses are kept, and how."""

    kinds: Collection[str]
    follow: Callable[[Callable[[Key], None]], Followed[T]]
    """Begins to follow what they are to say; the argument is called for each object for which that has changed."""
    merge: Merge[T]
    manager: str
    """Who has written, as the server notes it beside every field."""
    tell_waiting: Callable[[float], None]
    """Takes how many objects are to be compared or written."""
    every: float = 0.1
    """Seconds between two looks."""


def keep_gateway_statuses(db: Engine) -> Keeping[Status]:
    """Those of the Gateway API's objects."""
    return Keeping(
        kinds=STATUSES,
        follow=lambda changed: Computed(db, status_keys, own_status, changed),
        merge=merge_status,
        manager=MANAGER,
        tell_waiting=_WAITING.set,
    )


class StatusWriter(Generic[T]):
    """Writes statuses during one term; somebody runs it."""

    def __init__(
        self,
        keeping: Keeping[T],
        source: KubeSource,
        requests: LeaderRequests,
        revisions: Revisions,
        calendar: Callable[[], float] = time.time,
    ) -> None:
        self._keeping = keeping
        self._source, self._requests, self._revisions, self._calendar = source, requests, revisions, calendar
        self._chores: Chores[Key] = Chores(self._see_to, "a status cannot be written")
        self._followed = keeping.follow(self._recomputed)
        self._wanted = self._followed.values
        self._settled: dict[Key, tuple[str, Object, T | None]] = {}
        """For which version of an object nothing is to be written."""
        self._read: dict[Key, _Document] = {}
        """What the list said of objects that are to be written."""

    async def run(self) -> None:
        """Ends only when cancelled."""
        try:
            await self._look()
            with self._source.listening(self._touched), self._revisions.listening(self._add_all):
                for kind in self._keeping.kinds:
                    await self._compare_all(kind)
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._chores.run())
                    tasks.create_task(self._keep_looking())
        finally:
            self._followed.release()
            self._keeping.tell_waiting(0)

    # -- what is wanted -------------------------------------------------------------------------------------------

    async def _keep_looking(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(self._keeping.every)

    async def _look(self) -> None:
        await self._followed.look()
        self._keeping.tell_waiting(len(self._chores))

    def _recomputed(self, key: Key) -> None:
        if key in self._wanted:
            self._chores.add(key)
        else:
            self._settled.pop(key, None)
            self._read.pop(key, None)

    def _touched(self, key: Key) -> None:
        if key.kind == "Namespace":
            for each in self._wanted:
                if each.namespace == key.name:
                    self._chores.add(each)
        elif key in self._wanted:
            self._chores.add(key, _PATIENCE)

    def _add_all(self) -> None:
        for key in self._wanted:
            self._chores.add(key)

    # -- what there is --------------------------------------------------------------------------------------------

    async def _compare_all(self, kind: str) -> None:
        """Find among all objects of a kind those whose statuses are to be written."""
        resource = self._source.resource(kind)
        if resource is None:
            return
        try:
            async with contextlib.aclosing(self._requests.list_pages(resource.path, resource.query)) as pages:
                async for page in pages:
                    for raw in page.items:
                        read = _document.decode(raw)
                        key = Key(kind, read.metadata.namespace, read.metadata.name)
                        wanted = self._wanted.get(key)
                        if wanted is not None and self._changes(key, read, wanted):
                            self._read[key] = read
                    await asyncio.sleep(0)
        except (SourceError, msgspec.DecodeError) as error:
            # Each object is read by itself then.
            _log.warning("statuses of %s cannot be listed: %s", resource.path, error)

    async def _see_to(self, key: Key) -> None:
        wanted, resource = self._wanted.get(key), self._source.resource(key.kind)
        if wanted is None or wanted[1] is None or resource is None or not self._revisions.is_ours(wanted[0]):
            return
        version = self._source.resource_version(key)
        if self._settled.get(key) == (version, *wanted):
            return
        path = resource.path_to(key.namespace, key.name)
        read = self._read.pop(key, None)
        if read is None or read.metadata.resource_version != version:
            read = _document.decode(await self._requests.get(path))
        changes = self._changes(key, read, wanted)
        if changes:
            written = await self._write(key, f"{path}/status", read.metadata.resource_version, changes)
            self._settled[key] = (written, *wanted)

    def _changes(self, key: Key, read: _Document, wanted: tuple[Object, T | None]) -> dict[str, Any]:
        """What is to be written to an object."""
        found, status = wanted
        own, metadata = found.metadata, read.metadata
        if status is None or not self._revisions.is_ours(found):
            return {}
        if (metadata.uid, metadata.generation) != (own.uid, own.generation):
            return {}  # Another one than the status was computed for; the source will tell of it, if it has not.
        current = read.status if isinstance(read.status, dict) else {}
        changes = self._keeping.merge(
            status, current, generation=metadata.generation, now=format_time(self._calendar())
        )
        if not changes:
            self._settled[key] = (metadata.resource_version, found, status)
        return changes

    async def _write(self, key: Key, path: str, version: str, changes: dict[str, Any]) -> str:
        """Write if nobody has written since; the version that came of it."""
        body = {"metadata": {"resourceVersion": version}, "status": changes}
        try:
            answer = await self._requests.write("PATCH", path, body, manager=self._keeping.manager)
        except SourceError:
            _REFUSED.labels(key.kind).inc()
            raise
        if answer is None:
            return ""
        _WRITES.labels(key.kind).inc()
        return _document.decode(answer).metadata.resource_version
