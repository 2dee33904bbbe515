"""The webhook configurations of our revision, kept right: whom the API server believes, and whether it fails closed.

    watched configurations ─┐
    roots of the authority ─┼─> what each entry of ours lacks ─> JSON Patch, on the version that was seen
    validation was seen ────┘

In: a Client, the authority's roots. Out: patches, none when nothing is wrong. A configuration of label
`istio.io/rev: REVISION` gets the CA bundle into the entries that inject or validate; those that validate fail closed
from when the API server was seen to reach us. Whoever overwrites it is corrected, more and more slowly if it goes on,
so that two control planes of one revision do not fight at the API server's expense.
"""

import asyncio
import base64
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple

from mizzen import observe
from mizzen.api.meta import Key
from mizzen.control.webhooks import guards
from mizzen.control.webhooks.documents import (
    FAIL,
    INJECTION,
    MUTATING,
    VALIDATING,
    VALIDATION,
    Configuration,
)
from mizzen.control.webhooks.patches import Operation
from mizzen.errors import SourceError
from mizzen.sources.kube.client import Client, Refused
from mizzen.sources.kube.reflector import Reflector, Timing

_log = observe.scope("webhook")
_ATTEMPTS = observe.Counter("webhook_patch_attempts_total", "Injectors that needed the CA bundle.", ("name",))
_RETRIES = observe.Counter("webhook_patch_retries_total", "Patches of injectors that are tried again.", ("name",))
_FAILURES = observe.Counter("webhook_patch_failures_total", "Patches of injectors that failed.", ("name", "reason"))
_UPDATES = observe.Counter("galley_validation_config_updates", "Changes of validating configurations.")
_UPDATE_ERRORS = observe.Counter(
    "galley_validation_config_update_error", "Changes of validating configurations that failed.", ("reason",)
)

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 60.0
_LOOK_AGAIN = 60.0
"""Seconds after which everything is looked at again: what a selector reaches changes with labels of namespaces."""
_PEACE = 30.0
"""Seconds after which a correction counts as settled."""
_SUFFIXES = {MUTATING.kind.name: INJECTION, VALIDATING.kind.name: VALIDATION}
_PATHS = {resource.kind.name: resource.path for resource in (MUTATING, VALIDATING)}
_GONE, _CONFLICT, _UNFIT = 404, 409, 422


class _Pace(NamedTuple):
    """What was written last into a configuration and when, and how long to wait until the next time."""

    operations: Sequence[Operation] = ()
    at: float = float("-inf")
    wait: float = 0.0

    def is_undone(self, operations: Sequence[Operation], now: float) -> bool:
        """Whether somebody has taken back what was written."""
        return now < self.at + max(_PEACE, 2 * self.wait) and any(each in self.operations for each in operations)


class Configurations:
    """Keeps the configurations of one revision; somebody runs it."""

    def __init__(
        self,
        client: Client,
        revision: str,
        bundle: Callable[[], bytes],
        find_trouble: Callable[[], Awaitable[str | None]],
        *,
        warn: Callable[[Configuration], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`bundle` gives the roots now; `find_trouble` tells why validation is not reached, or None."""
        self._client, self._revision, self._bundle, self._find_trouble = client, revision, bundle, find_trouble
        self._warn, self._clock = warn, clock
        self._wake, self._look = asyncio.Event(), asyncio.Event()
        self._paces: dict[Key, _Pace] = {}
        self._told: set[str] = set()
        self._is_reached = False
        timing = Timing(first_wait=_FIRST_WAIT, longest_wait=_LONGEST_WAIT)
        self._mirrors = [
            Reflector(client, resource, self._changed, clock=clock, timing=timing)
            for resource in (MUTATING, VALIDATING)
        ]

    def wake(self) -> None:
        """The roots may be others."""
        self._wake.set()

    async def run(self) -> None:
        """Ends only when cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for mirror in self._mirrors:
                tasks.create_task(mirror.run(), name=f"webhooks/{mirror.resource.kind.plural}")
            tasks.create_task(self._keep(), name="webhooks/configurations")
            tasks.create_task(self._probe(), name="webhooks/probe")

    def _changed(self, _: Key) -> None:
        self._wake.set()
        self._look.set()

    # -- validation that is reached -------------------------------------------------------------------------------

    async def _probe(self) -> None:
        """Try until validation is seen to work; there is nothing to try before an entry of ours exists."""
        wait, told = _FIRST_WAIT, ""
        while not self._is_reached:
            self._look.clear()
            if not any(self._ours(VALIDATING.kind.name)):
                await self._look.wait()
                continue
            trouble = await self._find_trouble()
            self._is_reached = trouble is None
            if trouble is not None:
                if trouble != told:
                    _log.info("validation fails open until it is seen to refuse: %s", trouble)
                told = trouble
                await _wait(self._look, wait)
                wait = min(wait * 2, _LONGEST_WAIT)
        _log.info("validation is reached by the API server")
        self._wake.set()

    # -- corrections ----------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Correct what is wrong whenever something has changed, or may be written again."""
        again = _LOOK_AGAIN
        while True:
            await _wait(self._wake, again)
            self._wake.clear()
            waits = [await self._correct(*each) for kind in _PATHS for each in self._ours(kind)]
            again = min((wait for wait in waits if wait is not None), default=_LOOK_AGAIN)

    def _ours(self, kind: str) -> Iterator[tuple[Key, str, Configuration]]:
        for mirror in self._mirrors:
            for key, held in list(mirror.held.items()):
                found = held.object
                if key.kind == kind and isinstance(found, Configuration) and found.revision == self._revision:
                    yield key, held.resource_version, found

    async def _correct(self, key: Key, version: str, found: Configuration) -> float | None:
        """Write what is wrong. None if all is well now, else in how many seconds to try again."""
        self._warn(found)
        if not found.entries(_SUFFIXES[key.kind]):
            _count_failure(key, "webhook_entry_not_found")
            return None
        operations = list(self._operations(key, found))
        if not operations:
            return None
        pace = self._paces.get(key, _Pace())
        now = self._clock()
        if now < pace.at + pace.wait:
            return pace.at + pace.wait - now
        is_undone = pace.is_undone(operations, now)
        if is_undone:
            _log.warning("somebody overwrites %s; it is corrected again", key.name)
        longer = min(max(pace.wait * 2, _FIRST_WAIT), _LONGEST_WAIT)
        if not await self._patch(key, version, operations):
            self._paces[key] = pace._replace(at=now, wait=longer)
            return longer
        self._paces[key] = _Pace(operations, now, longer if is_undone else _FIRST_WAIT)
        return None

    def _operations(self, key: Key, found: Configuration) -> Iterator[Operation]:
        wanted = base64.b64encode(self._bundle()).decode()
        for at, entry in found.entries(_SUFFIXES[key.kind]):
            place = f"/webhooks/{at}"
            if entry.client_config.ca_bundle != wanted:
                yield {"op": "add", "path": f"{place}/clientConfig/caBundle", "value": wanted}
            if key.kind == VALIDATING.kind.name and self._is_reached and entry.failure_policy != FAIL:
                reason = guards.blocked_by_validation(entry)
                if reason is None:
                    yield {"op": "add", "path": f"{place}/failurePolicy", "value": FAIL}
                elif reason not in self._told:
                    self._told.add(reason)
                    _log.warning("%s: %s", key.name, reason)

    async def _patch(self, key: Key, version: str, operations: Sequence[Operation]) -> bool:
        injects = key.kind == MUTATING.kind.name
        if injects:
            _ATTEMPTS.labels(INJECTION).inc()
        seen: Operation = {"op": "test", "path": "/metadata/resourceVersion", "value": version}
        path = f"{_PATHS[key.kind]}/{key.name}"
        try:
            await self._client.call("PATCH", path, [seen, *operations], content_type="application/json-patch+json")
        except SourceError as error:
            status = error.status if isinstance(error, Refused) else 0
            if status in (_CONFLICT, _UNFIT):
                _log.debug("%s has changed meanwhile: %s", key.name, error)
            else:
                _log.error("%s cannot be written: %s", key.name, error)
            _count_failure(key, "webhook_config_not_found" if status == _GONE else "webhook_update_failure")
            if injects:
                _RETRIES.labels(key.name).inc()
            return False
        if not injects:
            _UPDATES.inc()
        _log.info("%s is corrected: %s", key.name, ", ".join(operation["path"] for operation in operations))
        return True


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Until the event, or so long. (`wait_for` of Python 3.11 loses a cancellation that meets the event.)"""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _count_failure(key: Key, reason: str) -> None:
    if key.kind == MUTATING.kind.name:
        _FAILURES.labels(key.name, reason).inc()
    else:
        _UPDATE_ERRORS.labels(reason).inc()
