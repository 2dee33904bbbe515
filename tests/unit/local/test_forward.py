"""Connections carried from one side to the other."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from mizzen.local.net import forward
from mizzen.local.net.forward import Dial, Forwarder, dial_tcp

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.write(b"<end>")
    writer.close()


@contextlib.asynccontextmanager
async def forwarded(dial: Dial) -> AsyncIterator[tuple[str, int]]:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    forwarder = Forwarder(dial)
    await forwarder.listen(listener)
    try:
        yield listener.getsockname()
    finally:
        forwarder.close()
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def connected(address: tuple[str, int]) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(*address)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def open_socket() -> socket.socket:
    opened = socket.socket()
    opened.setblocking(False)
    return opened


@contextlib.asynccontextmanager
async def chain(serve: Serve) -> AsyncIterator[tuple[str, int]]:
    """A forwarder in front of a server."""
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        target = server.sockets[0].getsockname()
        async with forwarded(dial_tcp(lambda: target, open_socket)) as address:
            yield address


async def test_bytes_go_both_ways_and_a_half_close_is_passed_on():
    async with chain(echo) as address, connected(address) as (reader, writer):
        writer.write(b"hello")
        writer.write_eof()
        assert await reader.read() == b"hello<end>"


async def test_what_comes_before_the_far_side_is_there_is_kept():
    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        target = server.sockets[0].getsockname()
        near = dial_tcp(lambda: target, open_socket)

        async def dial(protocol: asyncio.Protocol) -> asyncio.Transport:
            await asyncio.sleep(0.1)
            return await near(protocol)

        async with forwarded(dial) as address, connected(address) as (reader, writer):
            writer.write(b"early")
            await asyncio.sleep(0.05)
            writer.write(b" and late")
            writer.write_eof()
            assert await reader.read() == b"early and late<end>"


async def test_a_slow_reader_slows_the_writer_and_loses_nothing():
    async def pour(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in range(200):
            writer.write(bytes([number % 256]) * 65536)
            await writer.drain()
        writer.close()

    async with chain(pour) as address, connected(address) as (reader, _):
        await asyncio.sleep(0.2)
        received = await reader.read()
        assert len(received) == 200 * 65536
        assert [received[n * 65536] for n in range(200)] == [n % 256 for n in range(200)]


async def test_a_reset_on_the_far_side_reaches_the_caller():
    async def reset(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        forward.reset(writer.transport)

    async with chain(reset) as address, connected(address) as (reader, _):
        with pytest.raises(ConnectionResetError):
            await reader.read()


@pytest.mark.parametrize("target", [None, ("127.0.0.1", 1)])
async def test_a_dial_that_fails_closes_the_callers_connection(target):
    async with forwarded(dial_tcp(lambda: target, open_socket)) as address, connected(address) as (reader, _):
        with pytest.raises(ConnectionResetError):
            await reader.read()


async def test_targets_are_chosen_for_each_connection():
    async def name(label: bytes) -> tuple[asyncio.Server, tuple[str, int]]:
        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(label)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        return server, server.sockets[0].getsockname()

    (first, one), (second, two) = await name(b"1"), await name(b"2")
    turns = iter([one, two, one])
    async with first, second, forwarded(dial_tcp(lambda: next(turns), open_socket)) as address:
        answers = []
        for _ in range(3):
            async with connected(address) as (reader, _):
                answers.append(await reader.read())
    assert answers == [b"1", b"2", b"1"]


async def test_unix_sockets_are_carried_too(short_path):
    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        target = server.sockets[0].getsockname()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(short_path / "s"))
        listener.listen()
        listener.setblocking(False)
        forwarder = Forwarder(dial_tcp(lambda: target, open_socket))
        await forwarder.listen(listener)
        reader, writer = await asyncio.open_unix_connection(str(short_path / "s"))
        writer.write(b"x")
        writer.write_eof()
        assert await reader.read() == b"x<end>"
        writer.close()
        await writer.wait_closed()
        forwarder.close()
        await asyncio.sleep(0.01)
