"""Leader election: of all replicas one at a time writes, by a Lease of the API server.

In: the name of a Lease, an identity, timings. Out: whoever is to lead is called when it leads, and cancelled before
anybody else may: a holder that cannot renew gives up `renew_deadline` after it last *asked* for what it holds, while
others wait for the whole duration of the lease after they last *saw* it renewed. Clocks of machines are never compared.
A holder that stops releases, so that its successor need not wait.

A process that was stopped in the middle of a request may still be overtaken by time; writes therefore carry the
resource version that they were decided on, and the server refuses the late ones.
"""

import asyncio
import contextlib
import math
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

from mizzen import observe
from mizzen.control.times import format_micro_time
from mizzen.errors import SourceError
from mizzen.settings import Leadership
from mizzen.sources.kube.client import MERGE_PATCH, Refused, Unreachable

_log = observe.scope("election")
_LEADS = observe.Gauge("mizzen_leader", "Whether this process leads, by the Lease's name.", ("lease",))
_TRIES = observe.Counter(
    "mizzen_leader_lease_writes", "Attempts to take or renew a Lease; failed ones are refused or unanswered.",
    ("lease", "result"),
)  # fmt: skip
_TERMS = observe.Counter("mizzen_leader_terms", "How often this process began to lead.", ("lease",))

_ROOT = "/apis/coordination.k8s.io/v1/namespaces"
_JITTER = 1.2
"""A candidate waits for up to this share of the retry period more, so that replicas do not ask at once."""
_CONFLICT, _ABSENT = 409, 404

Lead = Callable[[], Awaitable[None]]


class Api(Protocol):
    """What an election needs of a `Client`."""

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        """The answer's body; raises SourceError."""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None
    acquire_time: str | None = None
    lease_transitions: int | None = None


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Lease(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()


_lease = msgspec.json.Decoder(_Lease)


def make_identity(name: str) -> str:
    """An identity that no other process has, not even the next one of the same pod."""
    return f"{name}_{uuid.uuid4()}"


def lease_name(election: str, revision: str) -> str:
    """The Lease of an election that each revision holds for itself."""
    return f"{election}-{revision or 'default'}"


class Election:
    """One candidate for one Lease; somebody runs it."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        name: str,
        identity: str,
        *,
        timing: Leadership | None = None,
        clock: Callable[[], float] = time.monotonic,
        calendar: Callable[[], float] = time.time,
    ) -> None:
        self.name, self.identity = name, identity
        self._api, self._timing, self._clock, self._calendar = api, timing or Leadership(), clock, calendar
        self._path = f"{_ROOT}/{namespace}/leases"
        self._known: _Lease | None = None
        """The Lease as the server last had it."""
        self._seen_at = -math.inf
        """When its holder was last seen to have done something."""
        self._held_until = -math.inf
        self._leading = False
        self._trouble = ""
        _LEADS.labels(name).set(0)

    @property
    def leads(self) -> bool:
        """Whether this process may write now; true for no longer than nobody else may."""
        return self._leading and self._clock() < self._held_until

    async def run(self, lead: Lead) -> None:
        """Call `lead` whenever the Lease is held, cancel it when it is lost; ends only when cancelled."""
        while True:
            if await self._attempt(self._timing.renew_deadline):
                try:
                    await self._serve_term(lead)
                finally:
                    await self._release()
            await asyncio.sleep(self._timing.retry * random.uniform(1, 1 + _JITTER))

    # -- a term ---------------------------------------------------------------------------------------------------

    async def _serve_term(self, lead: Lead) -> None:
        """Until the Lease is lost, or whoever leads has ended."""
        _log.info("%s leads %s", self.identity, self.name)
        _TERMS.labels(self.name).inc()
        _LEADS.labels(self.name).set(1)
        self._leading = True
        work = asyncio.ensure_future(lead())
        try:
            while self.leads and not work.done():
                await asyncio.wait({work}, timeout=min(self._timing.retry, max(0.0, self._remaining())))
                if self.leads and not work.done():
                    await self._attempt(self._remaining())
        finally:
            lost = not self.leads
            work.cancel()
            await _end(work, self.name)
            self._leading = False
            _LEADS.labels(self.name).set(0)
            why = f": {self._trouble or 'not renewed in time'}" if lost else ""
            _log.log(observe.LEVELS["warning" if lost else "info"], "no longer leads %s%s", self.name, why)

    def _remaining(self) -> float:
        return self._held_until - self._clock()

    async def _release(self) -> None:
        """Let the next one begin at once, if the Lease is still held."""
        known, seconds = self._known, self._remaining()
        self._held_until = -math.inf
        if known is None or known.spec.holder_identity != self.identity or seconds <= 0:
            return
        now = format_micro_time(self._calendar())
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now}
        with contextlib.suppress(SourceError, TimeoutError):
            async with asyncio.timeout(min(seconds, self._timing.retry)):
                self._observe(await self._patch(known, spec))

    # -- the Lease ------------------------------------------------------------------------------------------------

    async def _attempt(self, seconds: float) -> bool:
        """Take or renew; whether the Lease is held now. One attempt never uses up the time for another."""
        try:
            async with asyncio.timeout(max(0.0, min(seconds, self._timing.renew_deadline / 2))):
                held = await self._take_or_renew()
        except TimeoutError:
            return self._failed(Unreachable("the API server does not answer"))
        except SourceError as error:
            return self._failed(error)
        if held:
            _TRIES.labels(self.name, "success").inc()
        if self._trouble:
            _log.info("%s: the API server answers again", self.name)
        self._trouble = ""
        return held

    def _failed(self, error: SourceError) -> bool:
        _TRIES.labels(self.name, "failure").inc()
        if not self._trouble:
            _log.warning("%s: %s; trying again", self.name, error)
        self._trouble = str(error)
        return False

    async def _take_or_renew(self) -> bool:
        if self._leading and self._known is not None:
            try:
                return await self._write(self._known)
            except Refused as refusal:
                if refusal.status not in (_CONFLICT, _ABSENT):
                    raise
        # Somebody else has written, or nothing is known yet.
        self._observe(await self._read())
        if not self._may_take():
            self._held_until = -math.inf
            return False
        try:
            return await self._write(self._known)
        except Refused as refusal:
            if refusal.status != _CONFLICT:
                raise
            return False  # Another one was quicker.

    def _may_take(self) -> bool:
        if self._known is None:
            return True
        spec = self._known.spec
        if not spec.holder_identity or spec.holder_identity == self.identity:
            return True
        return self._clock() >= self._seen_at + (spec.lease_duration_seconds or self._timing.lease)

    async def _write(self, known: _Lease | None) -> bool:
        asked, now = self._clock(), format_micro_time(self._calendar())
        spec: dict[str, Any] = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._timing.lease),
            "renewTime": now,
        }
        before = known.spec if known is not None else _Spec()
        if before.holder_identity != self.identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = (before.lease_transitions or 0) + 1 if known is not None else 0
        self._observe(await (self._create(spec) if known is None else self._patch(known, spec)))
        self._held_until = asked + self._timing.renew_deadline
        return True

    def _observe(self, lease: _Lease | None) -> None:
        if lease is None or self._known is None or lease.spec != self._known.spec:
            self._seen_at = self._clock()
        self._known = lease

    async def _read(self) -> _Lease | None:
        try:
            return _decode(await self._api.call("GET", f"{self._path}/{self.name}"))
        except Refused as refusal:
            if refusal.status != _ABSENT:
                raise
            return None

    async def _create(self, spec: Mapping[str, Any]) -> _Lease:
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.name},
            "spec": spec,
        }
        return _decode(await self._api.call("POST", self._path, body))

    async def _patch(self, known: _Lease, spec: Mapping[str, Any]) -> _Lease:
        """Change the Lease as it was known, and no other; labels and the like of it stay."""
        body = {"metadata": {"resourceVersion": known.metadata.resource_version}, "spec": spec}
        return _decode(await self._api.call("PATCH", f"{self._path}/{self.name}", body, content_type=MERGE_PATCH))


def _decode(body: bytes) -> _Lease:
    try:
        return _lease.decode(body)
    except msgspec.DecodeError as error:
        raise Unreachable(f"the API server sent something else than a Lease: {error}") from error


async def _end(work: asyncio.Future[None], name: str) -> None:
    """Wait until a cancelled task has ended; what it raised is told, since the process that serves must go on."""
    await asyncio.wait({work})
    if not work.cancelled() and (error := work.exception()) is not None:
        _log.error("whoever leads %s has failed", name, exc_info=error)
