"""What a bare gRPC server needs for what a change of endpoints is to a control plane: the floor under its figures.

In: how many streams. Out: for each way to write them, the CPU seconds of the server alone and the seconds until all
have got one message of 700 bytes and answered it with one of 90; and what a stream takes in memory. The server knows
nothing of messages: bytes in, bytes out. The clients are another process.
"""

import asyncio
import contextlib
import itertools
import multiprocessing
import os
import resource
import signal
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from concurrent import futures
from typing import Any

import grpc
import grpc.aio
import msgspec

_SERVICE, _METHOD = "bench.Floor", "Talk"
_TOLD, _ANSWER = 700, b"a" * 90
"""Bytes of a message that tells of an endpoint, and of its acknowledgement."""
_CHANNEL = (("grpc.use_local_subchannel_pool", 1),)
_SERVER = (("grpc.so_reuseport", 0),)
_AT_ONCE = 20
"""Clients that connect together."""
_SETTLED = 1.0


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """One way to write, medians of all rounds."""

    name: str
    streams: int
    cpu_seconds: float
    seconds: float
    stream_kb: float


class _Streams:
    """Those that are served, and what is to be written to each."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.contexts: list[Any] = []
        self.turns: list[asyncio.Event] = []
        self.message = b""
        self.answers = 0
        self.answered = asyncio.Event()

    def hear(self) -> None:
        """Somebody has answered."""
        self.answers += 1
        if self.answers == self.count:
            self.answered.set()

    async def read(self, context: Any) -> None:
        """Until the client ends."""
        while await context.read() is not grpc.aio.EOF:
            self.hear()

    async def round(self) -> tuple[float, float]:
        """Write to all of them; CPU seconds, and seconds until all have answered."""
        self.answers, self.message = 0, os.urandom(_TOLD)
        self.answered.clear()
        spent, start = _cpu_seconds(), time.monotonic()
        for turn in self.turns:
            turn.set()
        if not self.turns:
            for context in self.contexts:
                await context.write(self.message)
        await self.answered.wait()
        seconds = time.monotonic() - start
        await asyncio.sleep(_SETTLED)
        return _cpu_seconds() - spent, seconds


def _tasks(streams: _Streams) -> Callable[..., Any]:
    async def handle(_: object, context: Any) -> None:
        turn = asyncio.Event()
        streams.turns.append(turn)

        async def write() -> None:
            while True:
                await turn.wait()
                turn.clear()
                await context.write(streams.message)

        writing = asyncio.ensure_future(write())
        try:
            await streams.read(context)
        finally:
            writing.cancel()

    return handle


def _generators(streams: _Streams) -> Callable[..., Any]:
    async def handle(_: object, context: Any) -> AsyncIterator[bytes]:
        turn = asyncio.Event()
        streams.turns.append(turn)
        reading = asyncio.ensure_future(streams.read(context))
        reading.add_done_callback(lambda _: turn.set())
        try:
            while True:
                await turn.wait()
                turn.clear()
                if reading.done():
                    return
                yield streams.message
        finally:
            reading.cancel()

    return handle


def _one_task(streams: _Streams) -> Callable[..., Any]:
    async def handle(_: object, context: Any) -> None:
        streams.contexts.append(context)
        await streams.read(context)

    return handle


_WAYS = {"a task for each stream": _tasks, "an async generator": _generators, "one task for all": _one_task}


def run(streams: int, repeat: int) -> list[Floor]:
    """Every way in turn, each in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with futures.ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as processes:
        return list(processes.map(_measure, _WAYS, itertools.repeat(streams), itertools.repeat(repeat)))


def _measure(name: str, streams: int, repeat: int) -> Floor:
    return asyncio.run(_serve(name, streams, repeat))


async def _serve(name: str, count: int, repeat: int) -> Floor:
    streams = _Streams(count)
    server = grpc.aio.server(options=_SERVER)
    method: Any = grpc.stream_stream_rpc_method_handler(_WAYS[name](streams))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: method}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    before = _resident_kb()
    command = (sys.executable, "-m", "bench.floor", f"127.0.0.1:{port}", str(count))
    clients = await asyncio.create_subprocess_exec(*command)
    try:
        await streams.answered.wait()  # Each begins with a message.
        await asyncio.sleep(_SETTLED)
        taken = _resident_kb() - before
        rounds = [await streams.round() for _ in range(repeat)]
    finally:
        clients.terminate()  # It ends its streams: gRPC tells of each that is torn off.
        await clients.wait()
        await server.stop(None)
    cpu, seconds = (statistics.median(each) for each in zip(*rounds, strict=True))
    return Floor(name=name, streams=count, cpu_seconds=cpu, seconds=seconds, stream_kb=taken / count)


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _resident_kb() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1])


def print_table(found: list[Floor]) -> None:
    """One line for each way."""
    print(f"\none message to each of {found[0].streams} streams and its acknowledgement")
    for each in found:
        print(f"{each.name:26} {each.cpu_seconds:7.3f} CPU s {each.seconds:7.3f} s {each.stream_kb:5.0f} KB a stream")


async def _answer(target: str, count: int) -> None:
    """Until SIGTERM, or the server ends."""
    calls: list[Any] = []
    async with asyncio.TaskGroup() as tasks:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: tasks.create_task(_end(calls)))
        for number in range(count):
            tasks.create_task(_answer_one(target, calls))
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0.02)


async def _end(calls: list[Any]) -> None:
    for call in calls:
        await call.done_writing()


async def _answer_one(target: str, calls: list[Any]) -> None:
    with contextlib.suppress(grpc.aio.AioRpcError):
        async with grpc.aio.insecure_channel(target, options=_CHANNEL) as channel:
            call: Any = channel.stream_stream(f"/{_SERVICE}/{_METHOD}")()
            calls.append(call)
            await call.write(_ANSWER)
            while await call.read() is not grpc.aio.EOF:
                await call.write(_ANSWER)


if __name__ == "__main__":
    asyncio.run(_answer(sys.argv[1], int(sys.argv[2])))
