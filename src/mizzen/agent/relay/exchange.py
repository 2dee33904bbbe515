"""One attempt to serve Envoy from the control plane: requests up, responses down, read along on the way.

In: Envoy's requests (`Inbox`) and one stream to the control plane. Out: the responses, on Envoy's stream; what Envoy
acknowledged, in the journal; what the agent subscribed to itself, at its taps. Types that have a rewriter are passed on
as it makes them, in their order and beside all others, as that may take a while. Types that Envoy does not know are
never passed on. Which attempt follows when this one ends is decided by `server`.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import grpc.aio
import msgspec
from google.protobuf.message import DecodeError as WireError

from mizzen import observe, protos
from mizzen.agent import metrics
from mizzen.agent.relay.journal import Journal
from mizzen.agent.relay.saved import LISTENER
from mizzen.errors import DecodeError
from mizzen.transport import Transport

Call = grpc.aio.StreamStreamCall[bytes, bytes]

_ENVOY_TYPES = protos.TYPE_PREFIX + "envoy."
_WAITING_REQUESTS = 64
_INTERNAL = 13
"""The gRPC code that Envoy too refuses responses with."""

_ENDED = (grpc.aio.AioRpcError, asyncio.InvalidStateError)
"""What a call says to whoever writes on it when it has ended. Why it has, whoever reads it says."""

_discovery = protos.package("envoy.service.discovery.v3")
_log = observe.scope("relay")


class Tap(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription of the agent's own on Envoy's stream."""

    type_url: str
    deliver: Callable[[Sequence[bytes]], None]
    """Takes the values of the resources of each response; raises DecodeError to refuse it."""


Rewrite = Callable[[bytes], Awaitable[bytes]]
"""Turns an encoded response into the one that Envoy gets."""


class Inbox:
    """Envoy's requests in order. Those without an answer yet can be taken again, by the next attempt."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue(_WAITING_REQUESTS)
        self._again: deque[bytes] = deque()
        self._unanswered: list[bytes] = []
        self._answered = False

    async def fill(self, envoy: Transport) -> None:
        """Take over requests until Envoy ends its stream."""
        while (data := await envoy.read()) is not None:
            await self._waiting.put(data)

    async def take(self) -> bytes:
        """The next request."""
        data = self._again.popleft() if self._again else await self._waiting.get()
        if not self._answered:
            self._unanswered.append(data)
        return data

    def rewind(self) -> None:
        """Begin again with the first request that has no answer."""
        self._again.extendleft(reversed(self._unanswered))
        self._unanswered.clear()

    def answer(self) -> None:
        """There is an answer: from now on nothing is kept to be taken again."""
        self._answered = True
        self._unanswered.clear()


class Latest:
    """A request of the agent's own of which only the last counts."""

    def __init__(self) -> None:
        self._value = b""
        self._changed = asyncio.Event()

    def set(self, value: bytes) -> None:
        """Say this from now on, to every control plane that is reached."""
        self._value = value
        self._changed.set()
        self._changed = asyncio.Event()

    async def other_than(self, said: bytes) -> bytes:
        """Wait until there is another one to say."""
        while self._value == said:
            await self._changed.wait()
        return self._value


class Memory:
    """What outlives an attempt: the journal, the versions of tapped resources, whether Envoy is configured."""

    def __init__(self, journal: Journal, taps: Sequence[Tap], rewrites: Mapping[str, Rewrite]) -> None:
        self.journal = journal
        self.rewrites = rewrites
        self.taps: Mapping[str, Tap] = {tap.type_url: tap for tap in taps}
        self.versions: dict[str, dict[str, str]] = {tap.type_url: {} for tap in taps}
        self.health = Latest()
        """What the control plane is to know of the workload's health."""
        self.settled = False
        """Whether this Envoy has accepted listeners, that is, has a configuration to live on."""

    def note_settled(self, request: Any) -> None:
        """Learn from a request of Envoy's whether it has accepted listeners."""
        if request.type_url == LISTENER and request.response_nonce and not request.HasField("error_detail"):
            self.settled = True


class Exchange:
    """The attempt. `answered` says whether the control plane has ever answered."""

    def __init__(self, memory: Memory, inbox: Inbox, envoy: Transport) -> None:
        self.answered = False
        self._memory = memory
        self._inbox = inbox
        self._envoy = envoy
        self._pending: dict[tuple[str, str], bytes] = {}
        self._types: set[str] = set()
        self._introduced = asyncio.Event()
        """Set once Envoy has asked for listeners: whoever it is, it is known by then."""
        self._writing = asyncio.Lock()
        self._rewriting: asyncio.Queue[tuple[Rewrite, bytes]] = asyncio.Queue()

    async def run(self, call: Call, patience: float | None) -> str:
        """Pass on until the call ends, or has no answer after `patience` seconds; the result says why."""
        self._inbox.rewind()
        async with asyncio.TaskGroup() as tasks:
            parts = self._send(call), self._say_health(call), self._rewrite_all()
            helpers = [tasks.create_task(part) for part in parts]
            reason = await self._receive(call, patience)
            for helper in helpers:
                helper.cancel()
        return reason

    async def _send(self, call: Call) -> None:
        try:
            while True:
                data = await self._inbox.take()
                own = self._note_request(data)
                metrics.XDS_REQUESTS.inc()
                await self._write(call, data)
                for request in own:
                    await self._write(call, request)
                if LISTENER in self._types:
                    self._introduced.set()
        except _ENDED:
            return

    async def _say_health(self, call: Call) -> None:
        await self._introduced.wait()
        said = b""
        try:
            while True:
                said = await self._memory.health.other_than(said)
                await self._write(call, said)
        except _ENDED:
            return

    async def _write(self, call: Call, data: bytes) -> None:
        async with self._writing:
            await call.write(data)

    async def _receive(self, call: Call, patience: float | None) -> str:
        try:
            while True:
                async with asyncio.timeout(None if self.answered else patience):
                    data = await call.read()
                if not isinstance(data, bytes):
                    return f"{(await call.code()).name}: {await call.details()}"
                if not self.answered:
                    self.answered = True
                    self._inbox.answer()
                    _log.info("connected to the control plane")
                metrics.XDS_RESPONSES.inc()
                await self._pass_on(call, data)
        except WireError as broken:
            return f"an unreadable response: {broken}"
        except TimeoutError:
            return f"no answer within {patience:.0f} s"
        except grpc.aio.AioRpcError as ended:
            return f"{ended.code().name}: {ended.details()}"

    async def _pass_on(self, call: Call, data: bytes) -> None:
        response = _discovery.DeltaDiscoveryResponse.FromString(data)
        tap = self._memory.taps.get(response.type_url)
        if tap is not None:
            with contextlib.suppress(*_ENDED):
                await self._write(call, self._take_tapped(tap, response, data))
        elif (rewrite := self._memory.rewrites.get(response.type_url)) is not None:
            self._rewriting.put_nowait((rewrite, data))
        elif response.type_url.startswith(_ENVOY_TYPES):
            await self._give(response, data)
        else:
            _log.warning("the control plane sent %s, which Envoy does not know", response.type_url)

    async def _rewrite_all(self) -> None:
        while True:
            rewrite, data = await self._rewriting.get()
            try:
                data = await rewrite(data)
            except (WireError, DecodeError) as unreadable:
                _log.warning("passed on as it came: %s", unreadable)  # Envoy refuses it, and says why.
            await self._give(_discovery.DeltaDiscoveryResponse.FromString(data), data)

    async def _give(self, response: Any, data: bytes) -> None:
        self._pending[response.type_url, response.nonce] = data
        await self._envoy.write(data)

    def _note_request(self, data: bytes) -> list[bytes]:
        """Learn from a request of Envoy's; the result are the agent's own requests that follow it."""
        request = _discovery.DeltaDiscoveryRequest.FromString(data)
        journal, type_url = self._memory.journal, request.type_url
        first = type_url not in self._types
        self._types.add(type_url)
        self._memory.note_settled(request)
        if request.response_nonce:
            response = self._pending.pop((type_url, request.response_nonce), None)
            if request.HasField("error_detail"):
                _log.warning("Envoy refused %s: %s", _short(type_url), request.error_detail.message)
            elif response is not None:
                journal.accept(type_url, response)
        elif first and not request.initial_resource_versions:
            journal.replace_at_next(type_url)
        if request.resource_names_unsubscribe:
            journal.forget(type_url, request.resource_names_unsubscribe)
        return self._subscribe_taps() if first and type_url == LISTENER else []

    def _subscribe_taps(self) -> list[bytes]:
        """The agent's own subscriptions follow Envoy's for listeners, as Istio's do."""
        requests = []
        for type_url, versions in self._memory.versions.items():
            if not versions:
                self._memory.journal.replace_at_next(type_url)
            request = _discovery.DeltaDiscoveryRequest(type_url=type_url, initial_resource_versions=versions)
            requests.append(protos.encode(request))
        return requests

    def _take_tapped(self, tap: Tap, response: Any, data: bytes) -> bytes:
        """Deliver a response at its tap; the result is its acknowledgement."""
        reply = _discovery.DeltaDiscoveryRequest(type_url=tap.type_url, response_nonce=response.nonce)
        try:
            tap.deliver([resource.resource.value for resource in response.resources])
        except DecodeError as bad:
            _log.warning("the agent refused %s: %s", _short(tap.type_url), bad)
            reply.error_detail.code = _INTERNAL
            reply.error_detail.message = str(bad)
            return protos.encode(reply)
        versions = self._memory.versions[tap.type_url]
        versions.update({resource.name: resource.version for resource in response.resources})
        for name in response.removed_resources:
            versions.pop(name, None)
        self._memory.journal.accept(tap.type_url, data)
        return protos.encode(reply)


def _short(type_url: str) -> str:
    return type_url.rpartition(".")[2]
