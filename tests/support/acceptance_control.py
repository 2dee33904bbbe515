"""The control plane of the acceptance tests: the real ADS server over one case, on a Unix socket.

What it serves is what the compiler makes of the case, and beside it what the surroundings would bring: credentials that
the case leaves out, Wasm modules that the agent would have fetched. `spoiling` puts a resource of the test's own among
the others.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import acceptance_material

from mizzen.agent import sockets
from mizzen.agent.identity import sds
from mizzen.compile import resource, snapshot
from mizzen.compile.resource import Resource, ResourceSet
from mizzen.control.main import TYPES
from mizzen.incremental import Engine, Key, query
from mizzen.model.proxy import Proxy, parse_node
from mizzen.model.spiffe import Identity
from mizzen.settings import Push, Settings, Xds
from mizzen.transport import Transport
from mizzen.xds import kinds
from mizzen.xds.discovery import Discovery
from mizzen.xds.generator import EngineGenerator
from mizzen.xds.identity import Credentials
from mizzen.xds.server import Server
from mizzen.xds.watch import State

_SPOILED = "AcceptanceSpoiled"


class _Anything(str):
    """A name that equals every other one."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str)

    def __hash__(self) -> int:
        return 0


class Believing:
    """Takes every caller for whom its node says it is."""

    async def authenticate(self, credentials: Credentials) -> Sequence[Identity]:
        """An identity that fits every claim."""
        del credentials
        return (Identity("cluster.local", _Anything(), _Anything()),)


@query
def _served(db: Engine, proxy: Proxy, type_url: str, names: frozenset[str] | None) -> ResourceSet:
    found = {r.name: r for r in snapshot.resources(db, proxy, type_url, names)}
    if type_url == resource.SECRET:
        missing = (names or frozenset()) - found.keys()
        found |= {n: resource.encode_resource(n, acceptance_material.build_secret(n)) for n in missing}
    if type_url == resource.EXTENSION:
        found = {n: _with_local_module(r) for n, r in found.items()}
    for spoiled in db.input((_SPOILED, type_url)) or ():
        if names is None or spoiled.name in names:
            found[spoiled.name] = spoiled
    return ResourceSet(type_url, found.values())


def _with_local_module(extension: Resource) -> Resource:
    return resource.encode_resource(extension.name, acceptance_material.with_local_module(extension.message()))


def spoiling(type_url: str, *spoiled: Resource) -> dict[Key, Any]:
    """The change that serves these resources of a type beside the case's, or in place of those of their names."""
    return {(_SPOILED, type_url): spoiled}


class Control:
    """The server, and what it knows of the one Envoy that is connected."""

    def __init__(self, db: Engine) -> None:
        self.discovery = Discovery(
            generator=EngineGenerator(db, _served, TYPES),
            parse_node=parse_node,
            authenticator=Believing(),
            settings=Settings(
                xds=Xds(authenticate_plaintext=True, stop_grace=0.1),
                push=Push(debounce_after=0.01),
            ),
        )

    def _types(self):
        return [status for connection in self.discovery.connections for status in connection.types()]

    async def change(self, changes: Mapping[Key, Any]) -> None:
        """Set or remove (None) inputs, as a source does; returns when they are committed."""
        pusher = self.discovery.pusher
        count = pusher.count
        for key, value in changes.items():
            pusher.feed(key, value)
        while changes and pusher.count == count:  # noqa: ASYNC110 (it has no event for that, and needs none)
            await asyncio.sleep(0.005)

    def is_settled(self) -> bool:
        """Whether Envoy was told everything, and has answered all that it was told."""
        answered = all(status.state in (State.SYNCED, State.ERROR) for status in self._types())
        return answered and not any(connection.session.due for connection in self.discovery.connections)

    def sent(self) -> Mapping[str, tuple[str, ...]]:
        """The names of all that was sent, by the short name of the type."""
        connections = list(self.discovery.connections)
        found: dict[str, tuple[str, ...]] = {}
        for status in self._types():
            for connection in connections:
                told = connection.sent(status.type_url)
                found[kinds.short_name(status.type_url)] = told.names if told is not None else ()
        return found

    def rejections(self) -> list[str]:
        """What Envoy refused, in its own words."""
        return [f"{kinds.short_name(s.type_url).upper()} rejected: {s.error}" for s in self._types() if s.error]

    def unanswered(self) -> list[str]:
        """Names that Envoy asked for and did not get."""
        return [
            f"{kinds.short_name(status.type_url).upper()} not sent: {name}"
            for status in self._types()
            for name in sorted(set(status.names) - set(self.sent()[kinds.short_name(status.type_url)]))
        ]


@contextlib.asynccontextmanager
async def serve(db: Engine, xds_socket: Path, sds_socket: Path) -> AsyncIterator[Control]:
    """Serve the case's resources at one socket and the agent's secrets at the other."""
    control = Control(db)
    server = Server([control.discovery.handler()], Xds(stop_grace=0.1))
    server.listen(f"unix:{xds_socket}")
    control.discovery.pusher.open()
    async with serving_secrets(sds_socket), asyncio.TaskGroup() as tasks:
        pushing = tasks.create_task(control.discovery.pusher.run())
        await server.start()
        try:
            yield control
        finally:
            await server.stop(control.discovery.connections)
            pushing.cancel()


@contextlib.asynccontextmanager
async def serving_secrets(path: Path) -> AsyncIterator[None]:
    """Serve the agent's secrets at a socket."""
    async with sockets.serve_grpc(sds.SERVICE, {"StreamSecrets": _serve_secrets}, path, None):
        yield


async def _serve_secrets(envoy: Transport) -> None:
    """The agent's streams of secrets; nothing ever changes, so each request has its answer at once."""
    stream = sds.Stream(acceptance_material.EverySecret(), delta=False)
    while (data := await envoy.read()) is not None:
        stream.receive(data)
        response = stream.next_response()
        if response is not None:
            await envoy.write(response)
