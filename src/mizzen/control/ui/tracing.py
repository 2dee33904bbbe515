"""What a request will meet, worked out over the control plane's own objects.

In: a form, the engine's inputs, the connected proxies. Out: the verdict of `diagnose.trace`. The work is done by a
process of its own (`trace_worker`), which is started by the first question, told what has changed before each, and
ended when nobody has asked for a while. One trace runs at a time and few may wait; more are turned away, and one that
takes too long is ended with its process. The event loop only copies references and encodes small pieces.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec

from mizzen import observe
from mizzen.control.debug.console import PageError
from mizzen.control.ui import trace_messages
from mizzen.control.ui.trace_messages import LENGTH_SIZE, Question, State
from mizzen.diagnose.trace import request
from mizzen.errors import MizzenError
from mizzen.incremental import Engine
from mizzen.xds import kinds
from mizzen.xds.status import Connections, proxy_id

_log = observe.scope("ui")

WAITING = 4
"""Traces that may wait or run."""
_KEPT = 120.0
"""Seconds for which the worker outlives its last trace."""
WORKER = (sys.executable, "-P", "-m", "mizzen.control.ui.trace_worker")
"""`-P`: what lies in the folder in which the control plane was started is not imported."""

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
        """The request; raises MizzenError for one that nobody could send."""
        scheme, host, port, path = request.parse_target(self.url.strip())
        asked = request.Request(
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
        return request.check(asked)


class Worker:
    """One process, and what it was told so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._told: State = {}

    @classmethod
    async def start(cls, command: tuple[str, ...]) -> "Worker":
        """A new process."""
        pipe = asyncio.subprocess.PIPE
        return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))

    async def ask(self, state: State, question: Question) -> dict[str, Any]:
        """The answer over that state. Raises OSError or IncompleteReadError when the process has ended."""
        sink, source = self._process.stdin, self._process.stdout
        if sink is None or source is None:
            raise BrokenPipeError
        for changes in trace_messages.find_changes(self._told, state):
            sink.write(trace_messages.encode(changes))
            await sink.drain()
            await asyncio.sleep(0)
        self._told = state
        sink.write(trace_messages.encode(question))
        await sink.drain()
        size = trace_messages.length(await source.readexactly(LENGTH_SIZE))
        found: dict[str, Any] = await asyncio.to_thread(msgspec.json.decode, await source.readexactly(size))
        return found

    async def end(self) -> None:
        """Kill it, whatever it does."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.communicate()


class Tracer:
    """Answers forms."""

    def __init__(
        self,
        engine: Engine,
        connections: Connections,
        places: Callable[[], Mapping[Any, Any]],
        *,
        clock: Callable[[], float] = time.time,
        patience: float = 60.0,
        command: tuple[str, ...] = WORKER,
    ) -> None:
        """`patience`: seconds after which a trace is given up."""
        self._engine = engine
        self._connections = connections
        self._places = places
        self._clock = clock
        self._patience = patience
        self._command = command
        self._worker: Worker | None = None
        self._turn = asyncio.Lock()
        self._asked = 0
        self._idle: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()

    async def answer(self, form: Form) -> dict[str, Any]:
        """The verdict as JSON data; raises PageError for a form that makes no sense, and when too many ask."""
        try:
            asked = form.request()
        except MizzenError as bad:
            raise PageError(400, str(bad)) from bad
        if self._asked >= WAITING:
            raise PageError(429, "other traces are being worked out; try again in a moment")
        self._asked += 1
        try:
            async with self._turn:
                found = await self._ask(asked)
        finally:
            self._asked -= 1
        if "refused" in found:
            status, text = found["refused"]
            raise PageError(status, text)
        verdict: dict[str, Any] = found["verdict"]
        return verdict

    async def close(self) -> None:
        """End the worker."""
        if self._idle is not None:
            self._idle.cancel()
        async with self._turn:
            await self._drop()
        await asyncio.gather(*self._ending)

    async def _ask(self, asked: request.Request) -> dict[str, Any]:
        if self._idle is not None:
            self._idle.cancel()
        try:
            async with asyncio.timeout(self._patience):
                if self._worker is None:
                    self._worker = await Worker.start(self._command)
                question = Question(request=asked, now=self._clock(), refusals=self._refusals())
                found = await self._worker.ask(self._state(), question)
        except BaseException as error:
            # Also for an asker who goes away: what the worker says next would be taken for another's answer.
            await self._drop()
            if isinstance(error, TimeoutError):
                raise PageError(504, f"no verdict within {self._patience:.0f} s") from None
            if isinstance(error, OSError | asyncio.IncompleteReadError):
                _log.error("the worker for traces has ended: %s", error)
                raise PageError(500, "the trace ended before there was a verdict") from error
            raise
        self._idle = asyncio.get_running_loop().call_later(_KEPT, self._leave)
        return found

    def _leave(self) -> None:
        """Nobody has asked for a while."""
        if not self._asked:
            task = asyncio.get_running_loop().create_task(self._drop(), name="end of the worker for traces")
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _drop(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.end()

    def _state(self) -> State:
        proxies = {proxy_id(connection.proxy): connection.proxy for connection in self._connections}
        return {"inputs": self._engine.inputs(), "places": self._places(), "proxies": proxies}

    def _refusals(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for connection in self._connections:
            for type_url, watch in connection.session.watches.items():
                if watch.rejection is not None:
                    word = kinds.short_name(type_url).upper()
                    found.setdefault(proxy_id(connection.proxy), f"{word}: {watch.rejection}")
        return found
