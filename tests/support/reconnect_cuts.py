"""A connection that is cut after so many messages of the server, for tests of what is said after a reconnect.

Bytes are passed on as they are, from a Unix socket to a server that may be exchanged. In the server's direction they are
read along, in whole frames: gRPC messages where HTTP/2 is in the clear, else records of TLS. Right after the last one
that may pass, the connection ends. Who comes again is held until `let` says that it may go on.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

Target = tuple[str, int]
Frames = Callable[[bytearray], Iterator[tuple[bytes, int]]]
"""Takes whole frames from the front of what has come: each with the messages that end in it."""

_DATA, _PADDED = 0, 8
_APPLICATION = 23
_SMALL = 96
"""Bytes of a record that holds no more than HTTP/2's own frames."""
NEVER = 1 << 30


def grpc_messages() -> Frames:
    """For HTTP/2 in the clear, of one stream of gRPC messages."""
    body = bytearray()

    def take(came: bytearray) -> Iterator[tuple[bytes, int]]:
        while len(came) >= 9 and len(came) >= (size := 9 + int.from_bytes(came[:3])):
            frame = bytes(came[:size])
            del came[:size]
            ended = 0
            if frame[3] == _DATA:
                assert not frame[4] & _PADDED
                body.extend(frame[9:])
            while len(body) >= 5 and len(body) >= (whole := 5 + int.from_bytes(body[1:5])):
                del body[:whole]
                ended += 1
            yield frame, ended

    return take


def tls_records() -> Frames:
    """For TLS: all but the smallest records stand for messages, of which they are a part or a few."""

    def take(came: bytearray) -> Iterator[tuple[bytes, int]]:
        while len(came) >= 5 and len(came) >= (size := 5 + int.from_bytes(came[3:5])):
            record = bytes(came[:size])
            del came[:size]
            yield record, record[0] == _APPLICATION and size > _SMALL

    return take


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Handlers:
    """Serves connections, each closed when it is served, so that all have ended when the server has."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._tasks: set[asyncio.Task[Any]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        finally:
            await close(writer)
            self._tasks.discard(task)

    async def end(self) -> None:
        await asyncio.gather(*self._tasks)


async def close(writer: asyncio.StreamWriter) -> None:
    """Close a connection, whoever has ended it."""
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


class Cut:
    """One client's way to the server."""

    def __init__(self, target: Target, after: int = NEVER, frames: Callable[[], Frames] = grpc_messages) -> None:
        self.target = target
        self.passed = 0
        """Messages of the server on the latest connection."""
        self.is_cut = False
        """Whether the client has no connection and is held when it comes again."""
        self._after = after
        self._frames = frames
        self._open = asyncio.Event()
        self._open.set()
        self._connection: asyncio.Task[None] | None = None

    def cut(self) -> None:
        """End the connection now, and hold the next one."""
        self.is_cut = True
        self._open.clear()
        self.passed = 0
        if self._connection is not None:
            self._connection.cancel()

    def cut_in(self, messages: int) -> None:
        """End the connection after so many more messages."""
        self._after = self.passed + messages

    def let(self, after: int = NEVER) -> None:
        """Let the next connection pass, and cut it again after so many messages."""
        self._after = after
        self.is_cut = False
        self._open.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connection = asyncio.ensure_future(self._carry(reader, writer))
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await self._connection

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        far_reader, far_writer = await asyncio.open_connection(*self.target)
        up = asyncio.ensure_future(_copy(reader, far_writer))
        down = asyncio.ensure_future(self._read_along(far_reader, writer))
        try:
            await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
        finally:
            far_writer.transport.abort()
            for direction in (up, down):
                direction.cancel()
            await asyncio.gather(up, down, return_exceptions=True)

    async def _read_along(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        take, came = self._frames(), bytearray()
        self.passed = 0
        while data := await reader.read(65536):
            came += data
            for frame, ended in take(came):
                writer.write(frame)
                self.passed += ended
                if self.passed >= self._after:
                    await writer.drain()
                    self.is_cut = True
                    self._open.clear()
                    return
            await writer.drain()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


@contextlib.asynccontextmanager
async def listening(path: Path, cut: Cut) -> AsyncIterator[None]:
    """Listen until the block ends."""
    handlers = Handlers(cut._serve)
    server = await asyncio.start_unix_server(handlers.serve, path)
    try:
        yield
    finally:
        server.close()
        cut.cut()
        await handlers.end()
