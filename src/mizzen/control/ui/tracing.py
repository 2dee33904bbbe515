"""What a request will meet, worked out over the control plane's own objects.

In: a form, the engine's inputs, the connected proxies. Out: the verdict of `diagnose.trace`. The work is done in one
thread of its own, over a second engine: the first belongs to the event loop. The second shares the objects, follows
them by what differs, and is dropped when nobody has asked for a while. One trace runs at a time and few may wait; more
are turned away. A proxy that is connected is compiled for as it described itself, a pod that is not as its manifest
says.
"""

import asyncio
import contextlib
import datetime
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import msgspec

from mizzen.control.debug.console import PageError
from mizzen.diagnose.trace import request, verdict, walk, world_objects
from mizzen.diagnose.trace.world import Place, Workload, World
from mizzen.errors import MizzenError
from mizzen.incremental import Engine, Key
from mizzen.model import mesh
from mizzen.model.proxy import Proxy
from mizzen.xds import kinds
from mizzen.xds.status import Connections, proxy_id

_WAITING = 4
"""Traces that may wait or run."""
_PATIENCE = 60.0
"""Seconds after which an answer is no longer waited for."""
_KEPT = 120.0
"""Seconds for which the second engine outlives the last trace."""

Text = Annotated[str, msgspec.Meta(max_length=8192)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the page asks; the fields are those of `mizzen trace`."""

    source: Text
    url: Text
    method: Annotated[str, msgspec.Meta(max_length=32)] = "GET"
    headers: Annotated[tuple[Text, ...], msgspec.Meta(max_length=100)] = ()
    principal: Text = ""
    address: Text = ""
    takes: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 0.0
    answers: Annotated[int, msgspec.Meta(ge=100, le=599)] = 200
    at_once: Count = 1
    earlier: Count = 0

    def request(self) -> request.Request:
        """The request; raises MizzenError for a URL or header that is none."""
        scheme, host, port, path = request.parse_target(self.url.strip())
        return request.Request(
            source=self.source.strip(),
            scheme=scheme,
            host=host,
            port=port,
            path=path or "/",
            method=self.method.strip() or "GET",
            headers=request.parse_headers(line for line in self.headers if line.strip()),
            principal=self.principal.strip(),
            address=self.address.strip(),
            takes=self.takes,
            answers=self.answers,
            at_once=self.at_once,
            earlier=self.earlier,
        )


class State(msgspec.Struct, frozen=True):
    """The mesh at one moment, as the event loop sees it; nobody changes what is in it."""

    inputs: Mapping[Key, Any]
    proxies: Mapping[str, Proxy]
    """The connected ones, by `POD.NAMESPACE`."""
    refusals: Mapping[str, str]
    """What connected proxies refuse now, by the same."""
    places: Mapping[Any, Place]


class Mirror:
    """The second engine. It belongs to the tracer's thread."""

    def __init__(self) -> None:
        self._engine = Engine()
        self._held: Mapping[Key, Any] = {}

    def follow(self, inputs: Mapping[Key, Any]) -> Engine:
        """Bring the engine to these inputs; those that are the same objects cost nothing."""
        held, self._held = self._held, inputs
        for key in held.keys() - inputs.keys():
            self._engine.remove(key)
        for key, value in inputs.items():
            if held.get(key) is not value:
                # The engine of the control plane could not take in such an object either, and says so.
                with contextlib.suppress(Exception):
                    self._engine.set(key, value)
        return self._engine


class Tracer:
    """Answers forms."""

    def __init__(
        self,
        engine: Engine,
        connections: Connections,
        places: Callable[[], Mapping[Any, Place]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._connections = connections
        self._places = places
        self._clock = clock
        self._mirror = Mirror()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="trace")
        self._waiting = 0
        self._forgetting: asyncio.TimerHandle | None = None

    async def answer(self, form: Form) -> dict[str, Any]:
        """The verdict as JSON data; raises PageError for a form that makes no sense, and when too many ask."""
        try:
            asked = form.request()
        except MizzenError as bad:
            raise PageError(400, str(bad)) from bad
        if self._waiting >= _WAITING:
            raise PageError(429, "other traces are being worked out; try again in a moment")
        loop = asyncio.get_running_loop()
        self._waiting += 1
        working = loop.run_in_executor(self._thread, self._work, self._read(), asked)
        working.add_done_callback(self._done)
        try:
            async with asyncio.timeout(_PATIENCE):
                # Whoever goes away leaves the thread at work, and its place taken until it is done.
                return await asyncio.shield(working)
        except TimeoutError:
            raise PageError(504, f"no verdict within {_PATIENCE:.0f} s") from None
        except MizzenError as bad:
            raise PageError(422, str(bad)) from bad

    def close(self) -> None:
        """Answer no more."""
        if self._forgetting is not None:
            self._forgetting.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _done(self, working: "asyncio.Future[dict[str, Any]]") -> None:
        self._waiting -= 1
        if not working.cancelled():
            working.exception()
        if self._forgetting is not None:
            self._forgetting.cancel()
        self._forgetting = asyncio.get_running_loop().call_later(_KEPT, self._forget)

    def _forget(self) -> None:
        self._forgetting = None
        if not self._waiting:
            self._mirror = Mirror()

    def _read(self) -> State:
        connected = list(self._connections)
        refusals: dict[str, str] = {}
        for connection in connected:
            for type_url, watch in connection.session.watches.items():
                if watch.rejection is not None:
                    word = kinds.short_name(type_url).upper()
                    refusals.setdefault(proxy_id(connection.proxy), f"{word}: {watch.rejection}")
        return State(
            self._engine.inputs(),
            {proxy_id(connection.proxy): connection.proxy for connection in connected},
            refusals,
            self._places(),
        )

    def _work(self, state: State, asked: request.Request) -> dict[str, Any]:
        now = datetime.datetime.fromtimestamp(self._clock(), datetime.UTC)
        engine = self._mirror.follow(state.inputs)
        found = walk.trace(build_world(engine, state, now), asked)
        engine.collect()
        return describe(found, state.refusals)


def build_world(engine: Engine, state: State, now: datetime.datetime) -> World:
    """The objects' world; connected proxies are compiled for as they are, those of no pod stand beside the pods."""
    planned = world_objects.of_objects(engine, state.places, now=now)
    by_pod = {pod.reference for pod in planned.pods}
    others = [_workload(who) for name, who in sorted(state.proxies.items()) if name not in by_pod]

    def hold(pod: Workload) -> Any:
        who = state.proxies.get(pod.reference)
        return world_objects.compile_holdings(engine, who) if who is not None else planned.holdings(pod)

    return World(
        (*planned.pods, *others),
        hold,
        db=engine,
        places=state.places,
        trust_domain=mesh.trust_domain(engine),
        domain=mesh.domain(engine),
        now=now,
    )


def _workload(who: Proxy) -> Workload:
    name, _, namespace = proxy_id(who).rpartition(".")
    return Workload(
        name=name,
        namespace=namespace,
        addresses=who.ip_addresses,
        labels=dict(who.labels),
        account=who.service_account or "default",
        proxy=who.kind,
        dns_capture=who.dns_capture,
    )


def describe(found: verdict.Trace, refusals: Mapping[str, str]) -> dict[str, Any]:
    """The document of `mizzen trace -o json`, with what the page shows beside it."""
    return {
        **verdict.to_json(found),
        "side": found.side,
        "reason": found.reason,
        "destination": found.destination,
        "warnings": list(_warnings(found, refusals)),
    }


def _warnings(found: verdict.Trace, refusals: Mapping[str, str]) -> Iterator[str]:
    """Where a proxy on the way does not hold what it should: the verdict is of what it should."""
    for side in dict.fromkeys(step.side for step in found.steps):
        if side in refusals:
            yield f"{side} has refused what it was sent, and works by older configuration: {refusals[side]}"
