"""Many simulated sidecars in a process of their own, so that their CPU is not the control plane's nor the benchmark's.

In: commands of `CrowdProcess`, as lines of JSON on standard input. Out: an answer to each on standard output: who was
told what, when and in how many bytes. Both ends are here. Times are those of `time.monotonic()`, which all processes
share.
"""

import asyncio
import contextlib
import pathlib
import resource as limits
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bench import clients, serving
from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE

_SHORT = {CLUSTER: "clusters", ENDPOINT: "endpoints", LISTENER: "listeners", ROUTE: "routes"}
_LOOK = 0.02


class Told(msgspec.Struct, kw_only=True):
    """What the sidecars were told since a moment."""

    seconds: list[float]
    """Until each that was told had it: the response with the marker where there is one, else the last, sorted."""
    receivers: int
    """Sidecars that got any bytes."""
    bytes: dict[str, int]
    """By type."""
    opened_seconds: float = 0.0
    """Until the last stream had told what it asks for."""
    failures: int = 0
    """Streams that ended otherwise than by the sidecar itself, since the start."""


class Connect(msgspec.Struct, tag=True, kw_only=True):
    """Let these proxies connect, so many of them waiting for their configuration at once, and wait for all."""

    target: str
    nodes: list[dict[str, Any]]
    at_once: int
    authority: str = ""
    """Folder of the authority that signs the sidecars' certificates; without, they speak plain text."""
    timeout: float


class Watch(msgspec.Struct, tag=True, kw_only=True):
    """Count anew, and look for the marker."""

    marker: str = ""


class Settle(msgspec.Struct, tag=True, kw_only=True):
    """Wait until so many sidecars were told, and then until nothing has come for a while."""

    since: float
    expected: int
    quiet: float
    timeout: float


class Reconnect(msgspec.Struct, tag=True, kw_only=True):
    """Let all streams go and open them again, with the versions that are held."""

    timeout: float


Command = Connect | Watch | Settle | Reconnect


class CrowdProcess:
    """The process with the sidecars, as the benchmark sees it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def ask(self, command: Command) -> Told:
        """Have it done and hear what came of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(command) + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("the process of the simulated sidecars has ended")
        return msgspec.json.decode(answer, type=Told)

    def cpu_seconds(self) -> float:
        """What the sidecars themselves have used."""
        return serving.measure_usage(self._process.pid).cpu_seconds


@contextlib.contextmanager
def gather() -> Iterator[CrowdProcess]:
    """A process without sidecars yet; it ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.crowd_process"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        yield CrowdProcess(process)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


# -- within the process -----------------------------------------------------------------------------------------------


class _Sidecars:
    """All of them."""

    def __init__(self) -> None:
        self._reader = clients.Reader()
        self._all: list[clients.Sidecar] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def do(self, command: Command) -> Told:
        if isinstance(command, Connect):
            return await self._connect(command)
        if isinstance(command, Settle):
            return await self._settle(command)
        if isinstance(command, Reconnect):
            return await self._reconnect(command)
        for sidecar in self._all:
            sidecar.watch(command.marker.encode())
        return self._told(time.monotonic())

    async def _connect(self, command: Connect) -> Told:
        new = list(self._make(command))
        self._all += new
        start = time.monotonic()
        places = asyncio.Semaphore(command.at_once)

        async def connect(sidecar: clients.Sidecar) -> None:
            async with places:
                self._tasks.add(asyncio.create_task(sidecar.run()))
                await sidecar.ready.wait()

        async with asyncio.timeout(command.timeout), asyncio.TaskGroup() as group:
            for sidecar in new:
                group.create_task(connect(sidecar))
        return self._told(start)

    def _make(self, command: Connect) -> Iterator[clients.Sidecar]:
        authority = serving.Authority(pathlib.Path(command.authority)) if command.authority else None
        for node in command.nodes:
            meta: Mapping[str, Any] = node["metadata"]
            credentials = authority.credentials(meta["NAMESPACE"], meta["SERVICE_ACCOUNT"]) if authority else None
            yield clients.Sidecar(command.target, clients.encode_node(node), self._reader, credentials)

    async def _settle(self, command: Settle) -> Told:
        end = time.monotonic() + command.timeout
        await _until(lambda: len(self._seconds(command.since)) >= command.expected, end)
        await self._quiet(command.since, command.quiet, end)
        return self._told(command.since)

    async def _quiet(self, since: float, seconds: float, end: float) -> None:
        """Wait until nobody was told anything for that long."""
        await _until(lambda: max([since, *(each.told_at for each in self._all)]) + seconds < time.monotonic(), end)

    async def _reconnect(self, command: Reconnect) -> Told:
        start = time.monotonic()
        for sidecar in self._all:
            sidecar.watch()
            sidecar.reconnect()
        await _until(lambda: all(each.opened_at >= start for each in self._all), start + command.timeout)
        return self._told(start)

    def _seconds(self, since: float) -> list[float]:
        moments = (each.reached_at if each.marker else each.told_at for each in self._all)
        return sorted(moment - since for moment in moments if moment >= since)

    def _told(self, since: float) -> Told:
        total: Counter[str] = Counter()
        for sidecar in self._all:
            total.update(sidecar.bytes)
        return Told(
            seconds=self._seconds(since),
            receivers=sum(1 for each in self._all if each.bytes),
            bytes={_SHORT.get(type_url, type_url): size for type_url, size in total.items()},
            opened_seconds=max((each.opened_at - since for each in self._all), default=0.0),
            failures=sum(each.failures for each in self._all),
        )


async def _until(holds: Callable[[], bool], end: float) -> None:
    """Wait until that holds, but not past the end."""
    while True:
        if holds() or time.monotonic() >= end:
            return
        await asyncio.sleep(_LOOK)


async def _serve() -> None:
    """Do what is told until standard input ends."""
    sidecars = _Sidecars()
    lines = asyncio.StreamReader(limit=1 << 30)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        told = await sidecars.do(msgspec.json.decode(line, type=Command))
        sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
        sys.stdout.buffer.flush()


def _raise_limit() -> None:
    """As many connections as the system lets this process have."""
    _, hard = limits.getrlimit(limits.RLIMIT_NOFILE)
    limits.setrlimit(limits.RLIMIT_NOFILE, (hard, hard))


def main(arguments: Sequence[str] = ()) -> None:
    """Run as `python -m bench.crowd_process`."""
    del arguments
    _raise_limit()
    asyncio.run(_serve())


if __name__ == "__main__":
    main()
