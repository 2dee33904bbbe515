"""Configuration for Envoy: the relay between its ADS stream and the control plane.

In: Envoy's delta ADS stream on a Unix socket. Out: the same bytes on a stream to the control plane, with token and
TLS, and back (`exchange`). What Envoy has acknowledged is kept in the `journal`.

When the control plane ends the stream, Envoy's is ended too: Envoy keeps all it has, opens a stream again at once and
says what it has, so that only differences are sent. The relay holds that stream until the control plane answers.
Requests that nobody has answered are sent again, so an attempt that fails is not seen by Envoy. Only an Envoy that
has just started and has nothing yet is answered from the journal; as soon as the control plane gives an answer its
stream is ended, and it goes on there. Nothing drains in any of this.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import msgspec

from mizzen import observe, protos
from mizzen.agent import control_plane, metrics, sockets
from mizzen.agent.relay.exchange import Call, Exchange, Inbox, Memory, Rewrite, Tap
from mizzen.agent.relay.journal import Journal
from mizzen.agent.relay.saved import CLUSTER, LISTENER, SavedResources
from mizzen.errors import AgentError
from mizzen.transport import Transport

SERVICE = "envoy.service.discovery.v3.AggregatedDiscoveryService"
METHOD = "DeltaAggregatedResources"
HEALTH = protos.TYPE_PREFIX + "istio.v1.HealthInformation"

_INTERNAL = 13
"""The gRPC code that stands for an unhealthy workload."""
_STEADY_SECONDS = 30.0
"""A stream that lasted so long was no failed attempt."""

_discovery = protos.package("envoy.service.discovery.v3")
_log = observe.scope("relay")


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long the relay waits, in seconds."""

    first_delay: float = 0.1
    longest_delay: float = 10.0
    """Between two attempts that reach a control plane, which has refused us or is too busy."""
    unreached_delay: float = 1.0
    """Between two attempts while nobody is there: they cost next to nothing, and end soon after it is back."""
    patience: float = 10.0
    """For the control plane's first answer, before a starting Envoy is answered from the journal."""
    trial: float = 60.0
    """For an answer while Envoy lives on the journal."""


class Relay:
    """The gRPC service that Envoy knows as `xds-grpc`."""

    def __init__(
        self,
        endpoint: control_plane.Endpoint,
        journal: Journal,
        *,
        taps: Sequence[Tap] = (),
        rewrites: Mapping[str, Rewrite] | None = None,
        timing: Timing | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._memory = Memory(journal, taps, rewrites or {})
        self._timing = timing or Timing()

    def say_health(self, why_not: str) -> None:
        """Tell the control plane that the workload is healthy, or why it is not; others are told when they come."""
        request = _discovery.DeltaDiscoveryRequest(type_url=HEALTH)
        if why_not:
            request.error_detail.code = _INTERNAL
            request.error_detail.message = why_not
        self._memory.health.set(protos.encode(request))

    async def run(self, path: Path, *, uid: int | None, ready: asyncio.Event) -> None:
        """Serve on the socket `path`, which only the user `uid` may use, until cancelled."""
        async with sockets.serve_grpc(SERVICE, {METHOD: self._serve}, path, uid):
            ready.set()
            await asyncio.Event().wait()

    async def _serve(self, envoy: Transport) -> None:
        """One stream of Envoy's, from its first request to its end."""
        inbox = Inbox()
        reason = ""
        try:
            async with asyncio.TaskGroup() as tasks:
                reader = tasks.create_task(inbox.fill(envoy))
                carrier = tasks.create_task(self._carry(inbox, envoy))
                await asyncio.wait((reader, carrier), return_when=asyncio.FIRST_COMPLETED)
                reader.cancel()
                carrier.cancel()
            reason = "" if carrier.cancelled() else carrier.result()
        finally:
            if not reason:
                metrics.ENVOY_TERMINATIONS.inc()
        if reason:
            _log.info("Envoy's stream ends: %s", reason)
            await envoy.abort(grpc.StatusCode.UNAVAILABLE, reason)

    async def _carry(self, inbox: Inbox, envoy: Transport) -> str:
        """Serve Envoy from the control plane, or from the journal; says why it has to come again."""
        back_off = self._back_off()
        first = await inbox.take()
        while True:
            began = time.monotonic()
            exchange = Exchange(self._memory, inbox, envoy)
            reason, reached = await self._attempt(exchange)
            if exchange.answered:
                metrics.CONNECTION_TERMINATIONS.labels("stream").inc()
                return f"the control plane ended the stream: {reason}"
            metrics.CONNECTION_FAILURES.inc()
            if self._may_serve_saved():
                _log.warning("no control plane (%s); Envoy starts from its last good configuration", reason)
                await self._serve_saved(inbox, envoy, first)
                return "the control plane is back"
            if time.monotonic() - began > _STEADY_SECONDS:
                back_off.reset()
            delay = back_off.delay(None if reached else self._timing.unreached_delay)
            _log.warning("no control plane at %s (%s); again in %.1f s", self._endpoint.address, reason, delay)
            await asyncio.sleep(delay)

    def _back_off(self) -> control_plane.BackOff:
        return control_plane.BackOff(self._timing.first_delay, self._timing.longest_delay)

    def _may_serve_saved(self) -> bool:
        """Whether Envoy has nothing to live on yet, and the journal has."""
        return not self._memory.settled and all(map(self._memory.journal.holds, (CLUSTER, LISTENER)))

    async def _attempt(self, exchange: Exchange) -> tuple[str, bool]:
        """Why the attempt ended, and whether anybody was there."""
        patience = self._timing.patience if self._may_serve_saved() else None
        try:
            async with open_stream(self._endpoint) as (channel, call):
                reason = await exchange.run(call, patience)
                return reason, channel.get_state() is not grpc.ChannelConnectivity.TRANSIENT_FAILURE
        except AgentError as failure:
            return str(failure), False

    async def _serve_saved(self, inbox: Inbox, envoy: Transport, first: bytes) -> None:
        """Answer from the journal until the control plane answers Envoy's first request."""
        for tap in self._memory.taps.values():
            saved = self._memory.journal.load(tap.type_url).values()
            if saved:
                tap.deliver([_discovery.Resource.FromString(data).resource.value for data in saved])
        async with asyncio.TaskGroup() as tasks:
            answers = tasks.create_task(self._answer_saved(inbox, envoy))
            await self._await_answer(first)
            answers.cancel()

    async def _answer_saved(self, inbox: Inbox, envoy: Transport) -> None:
        saved = SavedResources(self._memory.journal.load)
        inbox.rewind()
        inbox.answer()
        while True:
            request = _discovery.DeltaDiscoveryRequest.FromString(await inbox.take())
            self._memory.note_settled(request)
            response = saved.answer(request)
            if response is not None:
                await envoy.write(response)

    async def _await_answer(self, first: bytes) -> None:
        """Return once the control plane has answered the request on a stream of its own."""
        back_off = self._back_off()
        while True:
            await asyncio.sleep(back_off.delay())
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError, AgentError, TimeoutError):
                async with open_stream(self._endpoint) as (_, call), asyncio.timeout(self._timing.trial):
                    await call.write(first)
                    if isinstance(await call.read(), bytes):
                        return
            metrics.CONNECTION_FAILURES.inc()


@contextlib.asynccontextmanager
async def open_stream(endpoint: control_plane.Endpoint) -> AsyncIterator[tuple[grpc.aio.Channel, Call]]:
    """A delta ADS stream to the control plane, on a channel of its own."""
    async with control_plane.open_channel(endpoint) as channel:
        method: Any = channel.stream_stream(f"/{SERVICE}/{METHOD}")
        call: Call = method(metadata=control_plane.build_call_metadata(endpoint))
        try:
            yield channel, call
        finally:
            call.cancel()
