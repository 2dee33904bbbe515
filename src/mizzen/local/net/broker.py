"""Sockets of the host for a process that has left the host's network.

A listening socket belongs to the namespace in which it was made, whoever accepts on it later. So the process that the
user started stays where it is and makes sockets on demand (`Broker`), and the mesh's process, in its own namespace,
asks for them over a socket pair (`Client`). The pair is also the leash: when one side goes, the other sees it.
"""

import asyncio
import contextlib
import errno
import os
import socket

import msgspec

from mizzen.errors import LocalError

_MESSAGE_BYTES = 4096


class Request(msgspec.Struct, frozen=True):
    """A wish for a listening socket; the first of `ports` that is free, 0 standing for any."""

    host: str
    ports: tuple[int, ...]


class Reply(msgspec.Struct, frozen=True):
    """The port of the socket that comes along, or why there is none."""

    port: int = 0
    error: str = ""


def open_listener(host: str, ports: tuple[int, ...]) -> socket.socket:
    """Listens on the first port that can be had; fails with the last reason if none can."""
    failure = "no port was asked for"
    for port in ports:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(1024)
        except OSError as error:
            listener.close()
            failure = _explain(host, port, error)
            continue
        listener.setblocking(False)
        return listener
    raise LocalError(failure)


def _explain(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use by another program: choose another with --port"
    if error.errno == errno.EACCES:
        return f"port {port} of {host} needs root: choose one from 1024 on with --port"
    return f"cannot listen on {host}:{port}: {error.strerror}"


def serve(pair: socket.socket) -> None:
    """Answers requests until the other side is gone; blocks, so it runs in a thread of its own."""
    while True:
        try:
            data = pair.recv(_MESSAGE_BYTES)
        except OSError:
            return
        if not data:
            return
        request = msgspec.json.decode(data, type=Request)
        try:
            listener = open_listener(request.host, request.ports)
        except LocalError as error:
            _send(pair, Reply(error=str(error)), ())
            continue
        with listener:
            _send(pair, Reply(port=listener.getsockname()[1]), (listener.fileno(),))


def _send(pair: socket.socket, reply: Reply, descriptors: tuple[int, ...]) -> None:
    with contextlib.suppress(OSError):
        socket.send_fds(pair, [msgspec.json.encode(reply)], descriptors)


class Client:
    """The side that lives in the mesh's namespace."""

    def __init__(self, pair: socket.socket) -> None:
        self._pair = pair
        self._pair.setblocking(False)
        self._turn = asyncio.Lock()
        self._replies: asyncio.Queue[tuple[Reply, list[int]]] = asyncio.Queue(maxsize=1)
        self.gone = asyncio.Event()
        """Set when the process that the user started has ended or wants the mesh to end."""
        asyncio.get_running_loop().add_reader(self._pair, self._receive)

    def _receive(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._pair, _MESSAGE_BYTES, 1)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        if data:
            self._replies.put_nowait((msgspec.json.decode(data, type=Reply), descriptors))
            return
        asyncio.get_running_loop().remove_reader(self._pair)
        self.gone.set()
        if self._replies.empty():
            self._replies.put_nowait((Reply(error="the mesh is ending"), []))

    async def listen(self, host: str, ports: tuple[int, ...]) -> socket.socket:
        """A listening socket of the host on the first of these ports that is free."""
        async with self._turn:
            if self.gone.is_set():
                raise LocalError("the mesh is ending")
            self._pair.send(msgspec.json.encode(Request(host, ports)))
            reply, descriptors = await self._replies.get()
        if reply.error or not descriptors:
            raise LocalError(reply.error or "the host sent no socket")
        listener = socket.socket(fileno=descriptors[0])
        listener.setblocking(False)
        return listener


def make_pair() -> tuple[socket.socket, socket.socket]:
    """The two ends: for the process that stays, and, inheritable, for the one that leaves."""
    outer, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    os.set_inheritable(inner.fileno(), True)
    return outer, inner
