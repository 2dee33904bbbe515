"""Carries connections between two sides that cannot see each other, byte by byte.

In: a listening socket, wherever it was made (the host's namespace, a Unix path), and a function that opens the other
side of one connection. Out: bytes both ways with flow control and half-closes kept, so that the peers see what they
would see on a straight line. A dial that fails closes the caller's connection; it is the mesh that answers requests,
never this module.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable

Dial = Callable[[asyncio.Protocol], Awaitable[asyncio.Transport]]
"""Opens the far side with this protocol on it; raises OSError when it cannot."""


def reset(transport: asyncio.Transport) -> None:
    """Ends a connection so that its peer learns that it broke, not that it is over."""
    opened = transport.get_extra_info("socket")
    if opened is not None and opened.family != socket.AF_UNIX:
        with contextlib.suppress(OSError):
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class _Half(asyncio.Protocol):
    """One side of a carried connection; what it reads it writes to its `peer`."""

    def __init__(self) -> None:
        self.peer: _Half | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def join(self, peer: "_Half") -> None:
        self.peer, peer.peer = peer, self

    def data_received(self, data: bytes) -> None:
        if self.peer and self.peer.transport:
            self.peer.transport.write(data)

    def eof_received(self) -> bool:
        """Passes the half-close on and keeps this side open for what still comes back."""
        with contextlib.suppress(OSError):
            if self.peer and self.peer.transport and self.peer.transport.can_write_eof():
                self.peer.transport.write_eof()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if self.peer and self.peer.transport:
            if exc is None:
                self.peer.transport.close()
            else:
                reset(self.peer.transport)
            self.peer.peer = None

    def pause_writing(self) -> None:
        if self.peer and self.peer.transport and not self.peer.transport.is_closing():
            self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.peer and self.peer.transport and not self.peer.transport.is_closing():
            self.peer.transport.resume_reading()


class _Near(_Half):
    """The caller's side: keeps what comes before the far side is there, and reads no more than that."""

    def __init__(self, forwarder: "Forwarder") -> None:
        super().__init__()
        self._forwarder = forwarder
        self._early = b""
        self._ended_early = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._forwarder.start(self)

    def data_received(self, data: bytes) -> None:
        if self.peer is None and self.transport:
            self._early += data
            self.transport.pause_reading()
        else:
            super().data_received(data)

    def eof_received(self) -> bool:
        self._ended_early = self.peer is None
        return super().eof_received()

    def join(self, peer: _Half) -> None:
        super().join(peer)
        if self._early:
            super().data_received(self._early)
        if self._ended_early:
            super().eof_received()
        elif self.transport:
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forwarder.end(self)


class Forwarder:
    """One listening socket and the connections made through it."""

    def __init__(self, dial: Dial) -> None:
        self._dial = dial
        self._dialling: dict[_Near, asyncio.Task[None]] = {}
        self._near: set[_Near] = set()
        self._server: asyncio.Server | None = None

    async def listen(self, listener: socket.socket) -> None:
        """Serves `listener`, TCP or Unix, from now on."""
        loop = asyncio.get_running_loop()
        if listener.family == socket.AF_UNIX:
            self._server = await loop.create_unix_server(lambda: _Near(self), sock=listener)
        else:
            self._server = await loop.create_server(lambda: _Near(self), sock=listener)

    def start(self, near: _Near) -> None:
        self._near.add(near)
        self._dialling[near] = asyncio.get_running_loop().create_task(self._connect(near), name="forward-dial")

    def end(self, near: _Near) -> None:
        self._near.discard(near)
        if task := self._dialling.pop(near, None):
            task.cancel()

    async def _connect(self, near: _Near) -> None:
        far = _Half()
        assert near.transport is not None
        try:
            await self._dial(far)
        except OSError:
            reset(near.transport)
            return
        finally:
            self._dialling.pop(near, None)
        if near.transport.is_closing() or far.transport is None:
            if far.transport:
                far.transport.abort()
            return
        near.join(far)

    def close(self) -> None:
        """Stops listening and cuts what is open."""
        if self._server:
            self._server.close()
        for near in tuple(self._near):
            if near.transport:
                near.transport.abort()


def dial_tcp(choose: Callable[[], tuple[str, int] | None], open_socket: Callable[[], socket.socket]) -> Dial:
    """A dial to the address that `choose` names for each connection, on a socket that `open_socket` makes."""

    async def dial(protocol: asyncio.Protocol) -> asyncio.Transport:
        address = choose()
        if address is None:
            raise ConnectionRefusedError("nothing is ready to take the connection")
        loop = asyncio.get_running_loop()
        opened = open_socket()
        try:
            async with asyncio.timeout(10):
                await loop.sock_connect(opened, address)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            transport, _ = await loop.create_connection(lambda: protocol, sock=opened)
        except BaseException:
            opened.close()
            raise
        return transport

    return dial
