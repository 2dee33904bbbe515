"""A real discovery server on loopback over a mesh of plain resources, for tests on the wire."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

import grpc
import mesh_of_resources

from mizzen.incremental import Engine
from mizzen.model.proxy import parse_node
from mizzen.model.spiffe import Identity
from mizzen.settings import Push, Settings, Xds
from mizzen.xds.discovery import Discovery
from mizzen.xds.generator import EngineGenerator
from mizzen.xds.identity import Authenticator, Credentials
from mizzen.xds.server import Server
from mizzen.xds.status import Connection

QUIET = 0.03
"""Seconds of debounce."""


class Nobody:
    """Believes nobody; the plain port does not ask it."""

    async def authenticate(self, credentials: Credentials) -> Sequence[Identity]:
        """Never called."""
        raise AssertionError(f"nobody should be authenticated here: {credentials.address}")


@dataclass
class Serving:
    """A server at work."""

    engine: Engine
    discovery: Discovery
    server: Server
    port: int

    @property
    def target(self) -> str:
        """Address of the first port."""
        return f"127.0.0.1:{self.port}"

    def sent(self, type_url: str) -> list[Connection]:
        """The connections that have been sent something of the type, whether or not they read it."""
        return [one for one in self.discovery.connections if one.sent(type_url)]

    def set(self, type_url: str, name: str, content: str = "") -> None:
        """Feed a resource as a source would."""
        value = mesh_of_resources.build(type_url, name, content) if content != "broken" else b"broken"
        self.discovery.pusher.feed(mesh_of_resources.key(type_url, name), value)

    def remove(self, type_url: str, name: str) -> None:
        """Feed a removal."""
        self.discovery.pusher.feed(mesh_of_resources.key(type_url, name), None)


@contextlib.asynccontextmanager
async def serve(
    inputs: Iterable[tuple[str, str, str]] = (),
    *,
    authenticator: Authenticator | None = None,
    credentials: grpc.ServerCredentials | None = None,
    push: Push | None = None,
    xds: Xds | None = None,
    opened: bool = True,
    port: int = 0,
) -> AsyncIterator[Serving]:
    """Serve until the block ends; `inputs` are (type URL, name, content)."""
    engine = Engine()
    generator = mesh_of_resources.generator(engine, inputs)
    async with serve_generator(
        engine,
        generator,
        authenticator=authenticator,
        credentials=credentials,
        push=push,
        xds=xds,
        opened=opened,
        port=port,
    ) as serving:
        yield serving


@contextlib.asynccontextmanager
async def serve_generator(
    engine: Engine,
    generator: EngineGenerator,
    *,
    authenticator: Authenticator | None = None,
    credentials: grpc.ServerCredentials | None = None,
    push: Push | None = None,
    xds: Xds | None = None,
    opened: bool = True,
    port: int = 0,
) -> AsyncIterator[Serving]:
    """Serve whatever a generator over the engine gives, until the block ends."""
    discovery = Discovery(
        generator=generator,
        parse_node=parse_node,
        authenticator=authenticator or Nobody(),
        settings=Settings(push=push or Push(debounce_after=QUIET), xds=xds or Xds(stop_grace=0.1)),
    )
    server = Server([discovery.handler()], xds or Xds(stop_grace=0.1))
    port = server.listen(f"127.0.0.1:{port}", credentials)
    if opened:
        discovery.pusher.open()
    pushing = asyncio.get_running_loop().create_task(discovery.pusher.run())
    await server.start()
    try:
        yield Serving(engine, discovery, server, port)
    finally:
        await server.stop(discovery.connections)
        pushing.cancel()
        await asyncio.gather(pushing, return_exceptions=True)
