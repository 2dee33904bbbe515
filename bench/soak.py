"""Endurance: random changes, reconnects, rejections and slow readers at a control plane, for as long as one likes.

A child control plane serves a generated mesh folder to simulated proxies. Meanwhile objects of all kinds are created,
changed, broken and deleted, proxies reconnect (with what they hold or without), reject, and stop reading. A probe tells
now and then how long a change takes to every proxy that listens. In the end everything is left to settle, and what each
proxy has built from all that it was told is compared with what a control plane gives that starts anew.
"""

import asyncio
import pathlib
import random
import statistics
import tempfile
import time
from collections import Counter
from typing import Any

import msgspec

from bench import edits, meshes, serving, sidecars
from bench.clients import TYPES, Sidecar
from bench.sidecars import Sidecars

_CHANGE_EVERY = 0.5
_DISTURB_EVERY = 1.0
_SAMPLE_EVERY = 10.0
_PROBE_SECONDS = 60.0
"""A proxy that a change has not reached after this is stuck."""
_LONGEST_SULK = 45.0
"""Seconds for which a proxy rejects or does not read."""
_CROWD = 25
"""Proxies that come back together, now and then."""
_WARM_UP = 0.25
"""Share of the time that passes before memory is compared."""

_MOST_GROWTH = 1.15
"""Memory of the last quarter against that of the second."""
_MOST_SLOWING = 3.0
"""p99 of convergence in the last third against the first; the machine's other work is in it, too."""


_SAMPLE_LINE = (
    "{each.at:6.0f} s {each.resident_mb:6.0f} MB {each.cpu_seconds:8.1f} CPU s {each.streams:5} streams"
    "  p50 {each.p50:.2f} s  p99 {each.p99:.2f} s"
)


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The state of things at one moment."""

    at: float
    """Seconds since the start."""
    resident_mb: float
    cpu_seconds: float
    streams: int
    seconds: list[float]
    """From the probe's change until each of the proxies that listened had it, sorted."""
    stuck: tuple[str, ...]
    """Proxies that listened and were not told."""

    @property
    def p50(self) -> float:
        """The median."""
        return self.seconds[len(self.seconds) // 2] if self.seconds else 0.0

    @property
    def p99(self) -> float:
        """All but a hundredth."""
        return self.seconds[len(self.seconds) * 99 // 100] if self.seconds else 0.0


class Summary(msgspec.Struct, kw_only=True):
    """What came of it."""

    minutes: float
    proxies: int
    events: dict[str, int]
    samples: list[Sample]
    pushes: int
    internal_errors: int
    megabytes: float
    """Received by all proxies together."""
    unwanted_ends: int
    """Streams that ended without the proxy's doing."""
    settled: bool = False
    differences: list[str] = []
    late: list[str] = []
    """Proxies that did not come to rest in the end."""

    def memory(self) -> tuple[float, float]:
        """Megabytes after warm-up and at the end: medians of a quarter of the time each."""
        found = [each.resident_mb for each in self.samples]
        quarter = max(1, len(found) // 4)
        return statistics.median(found[quarter : 2 * quarter] or found), statistics.median(found[-quarter:])

    def slope(self) -> float:
        """Megabytes an hour, fitted over what comes after warm-up."""
        warm = self.samples[int(len(self.samples) * _WARM_UP) :]
        if len(warm) < 2:
            return 0.0
        times, sizes = [each.at / 3600 for each in warm], [each.resident_mb for each in warm]
        return statistics.linear_regression(times, sizes).slope

    def convergence(self) -> tuple[float, float]:
        """p99 of the first and of the last third: medians over probes."""
        third = max(1, len(self.samples) // 3)
        p99 = [each.p99 for each in self.samples]
        return statistics.median(p99[:third]), statistics.median(p99[-third:])

    @property
    def is_fine(self) -> bool:
        """Nothing is as it must not be."""
        return not self.faults()

    def faults(self) -> list[str]:
        """What must not be."""
        before, after = self.memory()
        first, last = self.convergence()
        stuck = sorted({name for each in self.samples for name in each.stuck})
        checks = {
            f"{len(self.differences)} resources differ from those of a fresh control plane": self.differences,
            f"not told of a change for {_PROBE_SECONDS:g} s: {', '.join(stuck[:5])}": stuck,
            f"did not come to rest: {', '.join(self.late[:5])}": self.late,
            "the control plane does not come to rest": not self.settled,
            f"memory grows from {before:.0f} to {after:.0f} MB": after > before * _MOST_GROWTH,
            f"p99 of convergence grows from {first:.2f} to {last:.2f} s": last > max(1.0, first * _MOST_SLOWING),
            f"{self.internal_errors} internal errors": self.internal_errors,
        }
        return [text for text, fault in checks.items() if fault]


class Soak:
    """One run."""

    def __init__(self, folder: pathlib.Path, proxies: int, seed: int) -> None:
        self._random = random.Random(seed)
        self._folder = folder
        self._config = folder / "config"
        pods, namespaces = 2, 25
        services = max(namespaces, -(-proxies // pods))
        self._edits = edits.Edits(self._config, services, pods, namespaces, seed)
        self._edits.lay()
        self._nodes = list(meshes.nodes(list(meshes.documents(services, pods, namespaces))))[:proxies]
        self._events: Counter[str] = Counter()
        self._sulking: set[Sidecar] = set()
        """Those that reject or do not read."""
        self._sulked: set[Sidecar] = set()
        """Those that did so since the last probe began."""
        self._samples: list[Sample] = []
        self._bytes = 0
        for document in sidecars.probe_documents("first"):
            self._write(document)

    def _write(self, document: edits.Document) -> None:
        edits.write(self._config, document)

    async def run(self, minutes: float) -> Summary:
        """Everything."""
        with serving.serve(self._config, self._folder / "state") as plane:
            async with Sidecars(plane.target(), self._nodes) as proxies:
                if late := await proxies.until_ready(600):
                    raise SystemExit(f"{len(late)} proxies are not served")
                await self._disturb_for(minutes * 60, proxies, plane)
                late = await self._settle(proxies)
                summary = self._summarise(minutes, proxies, plane)
                summary.late = [proxies.name(each) for each in late]
                summary.settled = await proxies.until_quiet(3.0, 120)
                async with sidecars.fresh(self._config, self._folder / "fresh", self._nodes) as expected:
                    summary.differences = sidecars.compare(proxies, expected)
                return summary

    async def _disturb_for(self, seconds: float, proxies: Sidecars, plane: serving.ControlPlane) -> None:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._change()), tasks.create_task(self._disturb(proxies))]
            await self._watch(proxies, plane, seconds)
            for task in running:
                task.cancel()

    async def _settle(self, proxies: Sidecars) -> list[Sidecar]:
        """Nobody disturbs any more; a last change of each type brings what was rejected. Those that are late."""
        self._edits.repair()
        for sidecar in proxies.all:
            sidecar.rejects.clear()
            sidecar.reading.set()
        self._write(_LAST)
        sidecars.probe(proxies, "last", self._write)
        return await proxies.until(lambda each: bool(each.reached_at), 120)

    # -- disturbances ---------------------------------------------------------------------------------------------

    async def _change(self) -> None:
        while True:
            await asyncio.sleep(self._random.expovariate(1 / _CHANGE_EVERY))
            self._events[self._edits.step().partition(":")[0]] += 1

    async def _disturb(self, proxies: Sidecars) -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                await asyncio.sleep(self._random.expovariate(1 / _DISTURB_EVERY))
                way = self._random.choices(
                    ("reconnect", "restart", "reject", "do not read", "crowd"), (4, 2, 2, 2, 0.3)
                )[0]
                calm = [each for each in proxies.all if each not in self._sulking]
                chosen = self._random.sample(calm, min(len(calm), _CROWD if way == "crowd" else 1))
                self._events[way] += len(chosen)
                for sidecar in chosen:
                    if way in ("reject", "do not read"):
                        self._sulking.add(sidecar)
                        self._sulked.add(sidecar)
                        tasks.create_task(self._sulk(sidecar, way))
                    else:
                        sidecar.reconnect(forget=way == "restart")

    async def _sulk(self, sidecar: Sidecar, way: str) -> None:
        if way == "reject":
            sidecar.rejects.update(self._random.sample(TYPES, self._random.randrange(1, len(TYPES) + 1)))
        else:
            sidecar.reading.clear()
        await asyncio.sleep(self._random.uniform(1, _LONGEST_SULK))
        sidecar.rejects.clear()
        sidecar.reading.set()
        if way == "reject" and self._random.random() < 0.5:
            # What it has rejected comes to another stream, or with another change.
            sidecar.reconnect()
        self._sulking.discard(sidecar)

    # -- looking on -----------------------------------------------------------------------------------------------

    async def _watch(self, proxies: Sidecars, plane: serving.ControlPlane, seconds: float) -> None:
        """For so long; a probe that has begun is followed to its end."""
        start = time.monotonic()
        for number in range(int(seconds // _SAMPLE_EVERY)):
            await asyncio.sleep(max(0.0, start + (number + 1) * _SAMPLE_EVERY - time.monotonic()))
            if time.monotonic() > start + seconds:
                break
            self._count_bytes(proxies)
            self._sulked = set(self._sulking)
            listening = [each for each in proxies.all if each not in self._sulking]
            written = sidecars.probe(proxies, f"probe-{number}", self._write)
            await proxies.until(lambda each: bool(each.reached_at) or each in self._sulked, _PROBE_SECONDS, listening)
            heard = [each for each in listening if each not in self._sulked]
            sample = Sample(
                at=time.monotonic() - start,
                seconds=sorted(each.reached_at - written for each in heard if each.reached_at),
                stuck=tuple(proxies.name(each) for each in heard if not each.reached_at),
                **await asyncio.to_thread(_measure, plane),
            )
            self._samples.append(sample)
            print(_SAMPLE_LINE.format(each=sample), *sample.stuck[:3], flush=True)
        await asyncio.sleep(max(0.0, start + seconds - time.monotonic()))

    def _count_bytes(self, proxies: Sidecars) -> None:
        self._bytes += sum(each.bytes.total() for each in proxies.all)

    def _summarise(self, minutes: float, proxies: Sidecars, plane: serving.ControlPlane) -> Summary:
        self._count_bytes(proxies)
        return Summary(
            minutes=minutes,
            proxies=len(self._nodes),
            events=dict(sorted(self._events.items())),
            samples=self._samples,
            pushes=int(plane.metric("pilot_xds_pushes")),
            internal_errors=int(plane.metric("pilot_total_xds_internal_errors")),
            megabytes=self._bytes / 1e6,
            unwanted_ends=sum(each.failures for each in proxies.all),
        )


def _measure(plane: serving.ControlPlane) -> dict[str, Any]:
    usage = plane.usage()
    streams = int(plane.metric("pilot_xds"))
    return {"resident_mb": usage.resident_kb / 1024, "cpu_seconds": usage.cpu_seconds, "streams": streams}


_META = {"name": "last", "namespace": edits.SEEN_BY_ALL}
_PORTS = [{"name": "http", "port": sidecars.PORT + 1}, {"name": "tcp", "port": sidecars.PORT + 2}]
_LAST: edits.Document = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": _META,
    "spec": {"clusterIP": "10.255.255.2", "ports": _PORTS},
}
"""A cluster, endpoints, a listener and a route that everybody is told of."""


def run(minutes: float, proxies: int, seed: int) -> Summary:
    """Run in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="mizzen-soak-") as name:
        return asyncio.run(Soak(pathlib.Path(name), proxies, seed).run(minutes))


def print_summary(summary: Summary) -> None:
    """For people."""
    before, after = summary.memory()
    first, last = summary.convergence()
    rows = {
        "time": f"{summary.minutes:g} minutes, {summary.proxies} proxies",
        "events": ", ".join(f"{count} {name}" for name, count in summary.events.items()),
        "responses": f"{summary.pushes:,}, {summary.megabytes:,.0f} MB",
        "streams ended unasked": str(summary.unwanted_ends),
        "memory": f"{before:.0f} MB after warm-up, {after:.0f} MB at the end, {summary.slope():+.1f} MB an hour",
        "CPU": f"{summary.samples[-1].cpu_seconds:.0f} s" if summary.samples else "",
        "convergence p99": f"{first:.2f} s in the first third, {last:.2f} s in the last",
        "internal errors": str(summary.internal_errors),
        "differences": str(len(summary.differences)),
    }
    print()
    for name, text in rows.items():
        print(f"{name:<24}{text}")
    for line in summary.differences[:20]:
        print(f"  {line}")
    for fault in summary.faults():
        print(f"FAULT {fault}")
