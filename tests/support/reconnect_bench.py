"""Envoys that were cut off, beside one that has just started, and the control plane that may be another one meanwhile.

In: a proxy's spec. Out: a `Bench`: Envoys of that node which are cut at moments of the test's choice, the states of
`reconnect_mesh`, and comparisons of what they hold and of what requests meet.
"""

import asyncio
import contextlib
import itertools
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import acceptance_control
import golden
import reconnect_envoys
import reconnect_mesh
import whole_files
from ads_server import Serving, serve_generator
from control_planes import HOST
from eventually import eventually
from reconnect_cuts import NEVER, Cut, Target, tls_records
from reconnect_envoys import Envoy, Held, Secure
from reconnect_mesh import BEFORE, State

from mizzen.api.decode import decode_object
from mizzen.api.mesh.merge import merge_mesh_config
from mizzen.ca import tokens
from mizzen.compile import snapshot
from mizzen.control.main import TYPES
from mizzen.incremental import Engine
from mizzen.model.mesh import MESH
from mizzen.model.proxy import parse_node
from mizzen.settings import Xds
from mizzen.xds.generator import EngineGenerator

_SECONDS = 60.0
_LISTENS = re.compile(r"(--\w+) listens on \S*:(\d+)")
_numbers = itertools.count()


async def until(check: Callable[[], Awaitable[str]]) -> None:
    """Wait until the check finds nothing wrong."""
    end = time.monotonic() + _SECONDS
    while wrong := await check():
        assert time.monotonic() < end, wrong
        await asyncio.sleep(0.1)


def engine_of(state: State) -> Engine:
    """An engine that holds the state's objects."""
    db = Engine()
    db.set(MESH, merge_mesh_config({"outboundTrafficPolicy": {"mode": "REGISTRY_ONLY"}})[0])
    for document in state.objects:
        golden.set_object(db, document)
    return db


class Control(Protocol):
    """A control plane, which can be replaced by one that knows nothing of its proxies."""

    state: State

    async def change(self, state: State) -> None:
        """Bring the mesh into another state, all at once."""
        ...

    async def replace(self, state: State) -> None:
        """End it, and have another one take its place in that state of the mesh."""
        ...

    def launch(
        self, folder: Path, spec: Mapping[str, Any], after: int
    ) -> contextlib.AbstractAsyncContextManager[Envoy]:
        """An Envoy of this control plane, cut after so many messages."""
        ...


class Served:
    """The ADS server and the compiler in this process, asked by Envoys themselves."""

    def __init__(self, folder: Path) -> None:
        self.state = BEFORE
        self._sds = folder / "sds"
        self._cuts: list[Cut] = []
        self._running = contextlib.AsyncExitStack()
        self._serving: Serving | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Served"]:
        async with acceptance_control.serving_secrets(self._sds):
            await self.replace(self.state)
            try:
                yield self
            finally:
                await self._running.aclose()

    async def replace(self, state: State) -> None:
        await self._running.aclose()
        self.state = state
        db = engine_of(state)
        self._serving = await self._running.enter_async_context(
            serve_generator(
                db,
                EngineGenerator(db, snapshot.resources, TYPES),
                authenticator=acceptance_control.Believing(),
                xds=Xds(authenticate_plaintext=True, stop_grace=0.1),
            )
        )
        for cut in self._cuts:
            cut.target = self._target

    async def change(self, state: State) -> None:
        assert self._serving is not None
        pusher = self._serving.discovery.pusher
        before, after = _keyed(self.state), _keyed(state)
        for key in before.keys() - after.keys():
            pusher.feed(key, None)
        for key, value in after.items():
            pusher.feed(key, value)
        self.state = state

    @property
    def _target(self) -> Target:
        assert self._serving is not None
        return "127.0.0.1", self._serving.port

    def launch(
        self, folder: Path, spec: Mapping[str, Any], after: int
    ) -> contextlib.AbstractAsyncContextManager[Envoy]:
        cut = Cut(self._target, after)
        self._cuts.append(cut)
        return reconnect_envoys.direct(folder, spec, cut, self._sds)


def _keyed(state: State) -> dict[Any, Any]:
    return {decoded.key: decoded.object for decoded in map(decode_object, state.objects)}


class Process:
    """`mizzen discovery` as a process, asked by `mizzen agent`."""

    def __init__(self, folder: Path) -> None:
        self.state = BEFORE
        self._folder = folder
        self._cuts: list[Cut] = []
        self._target: Target = ("127.0.0.1", 0)
        self._process: asyncio.subprocess.Process | None = None
        key = tokens.generate_key()
        (folder / "token-key.pem").write_bytes(tokens.encode_private_key(key))
        self._issuer = tokens.TokenIssuer(key, time.time)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Process"]:
        await self.replace(self.state)
        try:
            yield self
        finally:
            await self._kill()

    async def replace(self, state: State) -> None:
        await self._kill()
        await self.change(state)
        log = self._folder / f"control-{next(_numbers)}.log"
        command = ["-m", "mizzen", "discovery", "--config", str(self._folder / "config")]
        command += ["--caDir", str(self._folder / "ca"), "--tokenKey", str(self._folder / "token-key.pem")]
        command += ["--secureGRPCAddr", "127.0.0.1:0", "--grpcAddr", "", "--mutualGRPCAddr", "", "--monitoringAddr", ""]
        command += ["--httpAddr", "127.0.0.1:0", "--httpsAddr", "", "--ctrlz_port", "0"]
        with log.open("wb") as stream:
            self._process = await asyncio.create_subprocess_exec(
                *("setpriv", "--pdeathsig", "KILL", sys.executable, *command),
                stdout=stream,
                stderr=stream,
                env={"PATH": os.environ["PATH"], "PILOT_DEBOUNCE_AFTER": "20ms"},
            )
        ports = await eventually(lambda: _ports(log), 60)
        self._target = ("127.0.0.1", int(ports["--secureGRPCAddr"]))
        for cut in self._cuts:
            cut.target = self._target

    async def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            await self._process.wait()

    async def change(self, state: State) -> None:
        (self._folder / "config").mkdir(exist_ok=True)
        whole_files.put(self._folder / "config" / "mesh.yaml", state.manifests)
        self.state = state

    def launch(
        self, folder: Path, spec: Mapping[str, Any], after: int
    ) -> contextlib.AbstractAsyncContextManager[Envoy]:
        cut, authority = Cut(self._target, after, tls_records), Cut(self._target, NEVER, tls_records)
        self._cuts += (cut, authority)
        return reconnect_envoys.behind_agent(folder, spec, cut, authority, Secure(HOST, self._roots, self._token))

    @property
    def _roots(self) -> bytes:
        return (self._folder / "ca" / "root-cert.pem").read_bytes()

    def _token(self, namespace: str, account: str) -> str:
        return self._issuer.issue(tokens.ServiceAccount(namespace=namespace, name=account))


def _ports(log: Path) -> dict[str, str]:
    """The ports, once all are open."""
    found = dict(_LISTENS.findall(log.read_text()))
    return found if found.keys() >= {"--secureGRPCAddr", "--httpAddr"} else {}


class Bench:
    """The Envoys of one test, all of one node."""

    def __init__(
        self, folder: Path, spec: Mapping[str, Any], control: Control, stack: contextlib.AsyncExitStack
    ) -> None:
        self._folder, self._spec, self._stack = folder, spec, stack
        self.control = control

    async def start(self, after: int = NEVER) -> Envoy:
        """An Envoy that is cut after so many messages."""
        folder = self._folder / str(next(_numbers))
        folder.mkdir()
        return await self._stack.enter_async_context(self.control.launch(folder, self._spec, after))

    async def start_cut_everywhere(self, every: int = 1) -> list[Envoy]:
        """One Envoy that has everything, and one for each message, or every so many, at which it could be cut."""
        whole = await self.start()
        held = await self.until_whole(whole)
        envoys = [await self.start(after) for after in range(1, whole.cut.passed, every)]
        await self.until_cut_or_equal(envoys, held)
        return [whole, *envoys]

    async def until_cut_or_equal(self, envoys: Sequence[Envoy], fresh: Held) -> None:
        """Wait until each has met its end; or has come as far as it can, where it was told the same in fewer messages."""

        async def settle(envoy: Envoy) -> None:
            async def wrong() -> str:
                if not envoy.cut.is_cut and self._is_on_demand:
                    await self._traffic_faults(envoy)
                return "" if envoy.cut.is_cut else await _unlike(envoy, fresh)

            await until(wrong)

        await asyncio.gather(*map(settle, envoys))

    async def fresh(self) -> Held:
        """What an Envoy that starts now holds in the end."""
        return await self.until_whole(await self.start())

    async def until_whole(self, envoy: Envoy) -> Held:
        """Wait until it has all that is compiled for it, and requests meet what they should; what it holds."""
        everything = snapshot.everything(engine_of(self.control.state), parse_node(golden.node_of(dict(self._spec))))
        kinds = ("listeners",) if self._is_on_demand else ("clusters", "endpoints", "listeners", "routes")
        wanted = {kind: set(everything[kind].names) for kind in kinds}

        async def wrong() -> str:
            held = await envoy.held()
            missing = {kind: names ^ held.get(kind, {}).keys() for kind, names in wanted.items()}
            missing["endpoints"] = missing.get("endpoints", set()) & wanted.get("endpoints", set())
            return f"{missing} of Envoy {envoy.name}: {envoy.log}" if any(missing.values()) else ""

        await until(wrong)
        await self._until_traffic_is_right(envoy)
        return await envoy.held()

    async def until_equal(self, envoys: Sequence[Envoy], fresh: Held) -> None:
        """Wait until requests through each meet what they should, and it holds the same."""

        async def settle(envoy: Envoy) -> None:
            await self._until_traffic_is_right(envoy)
            await until(lambda: _unlike(envoy, fresh))
            await self._until_traffic_is_right(envoy)

        await asyncio.gather(*map(settle, envoys))

    async def _until_traffic_is_right(self, envoy: Envoy) -> None:
        await until(lambda: self._traffic_faults(envoy))

    async def _traffic_faults(self, envoy: Envoy) -> str:
        return "; ".join([fault async for fault in traffic_faults(envoy, self._spec["kind"], self.control.state)])

    @property
    def _is_on_demand(self) -> bool:
        """Whether an Envoy holds only what requests have asked for."""
        return "MIZZEN_ON_DEMAND" in self._spec["metadata"]


async def _unlike(envoy: Envoy, fresh: Held) -> str:
    found = "\n".join(differences(await envoy.held(), fresh))
    return f"Envoy {envoy.name} after {envoy.cut.passed}:\n{found}{envoy.log}" if found else ""


def differences(held: Held, fresh: Held) -> Iterator[str]:
    """Resources that are not the same."""
    for kind, wanted in fresh.items():
        found = held.get(kind, {})
        for name in sorted(found.keys() | wanted.keys()):
            if found.get(name) != wanted.get(name):
                yield f"{kind} {name}: {found.get(name)} is not {wanted.get(name)}"


async def traffic_faults(envoy: Envoy, kind: str, state: State) -> AsyncIterator[str]:
    """Where requests meet something else than they should in this state."""
    port, address, missing = (reconnect_mesh.HTTP, "127.0.0.1", 404) if kind == "router" else (80, "10.8.0.100", 502)
    for name in ("stable", "cart", "front", "gone", "fresh"):
        answer = await envoy.network.get(port, "/", f"{name}.example", address)
        addresses = state.answers.get(name)
        met = answer.status == 200 and answer.body in addresses if addresses else answer.status == missing
        if not met:
            yield f"Envoy {envoy.name}: {name}.example met {answer}"
    for name in ("kept", "old", "new") if kind == "router" else ():
        number = state.certificates.get(name)
        shown = await envoy.network.certificate(f"{name}.example")
        wanted = reconnect_mesh.certificate(f"{name}.example", number)[0] if number else ""
        if shown.split() != wanted.split():
            yield f"Envoy {envoy.name}: {name}.example is shown {shown or 'nothing'}"


@contextlib.asynccontextmanager
async def bench(folder: Path, spec: Mapping[str, Any], control: Served | Process) -> AsyncIterator[Bench]:
    """Everything for one test."""
    async with control.running() as running, contextlib.AsyncExitStack() as stack:
        yield Bench(folder, spec, running, stack)


@contextlib.asynccontextmanager
async def traffic(envoy: Envoy) -> AsyncIterator[None]:
    """Requests to the stable host one after the other all the while; none may fail."""
    met: list[Any] = []

    async def send() -> None:
        while True:
            met.append(await envoy.network.get(reconnect_mesh.HTTP, "/", reconnect_mesh.STABLE, patience=_SECONDS))
            await asyncio.sleep(0.02)

    sending = asyncio.get_running_loop().create_task(send())
    try:
        yield
        await eventually(lambda: len(met) > 10)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    assert [answer for answer in met if answer.status != 200] == []
