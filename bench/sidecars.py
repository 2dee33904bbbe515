"""Simulated sidecars in this process: how fast a change reaches them, and whether they hold what they should.

In: Nodes, and the address of a control plane. Out: seconds from a change to each sidecar that gets it, and, against a
control plane that starts anew over the same folder, every resource that a sidecar lacks, holds in another version or
should not hold. What is held is compared by versions, which are hashes of the bytes.
"""

import asyncio
import contextlib
import pathlib
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from bench import serving
from bench.clients import FOLLOWING, TYPES, Reader, Sidecar, encode_node
from bench.edits import SEEN_BY_ALL

_LOOK_EVERY = 0.02
_FOLLOWED = {follower: asker for asker, follower in FOLLOWING.items()}
_HOST = "probe"
PORT = 18080
"""Of the service whose routes are the probe; nothing else may have it."""

Held = Mapping[str, Mapping[str, str]]
"""Version by name by type."""


class Sidecars:
    """Sidecars that run until the block ends."""

    def __init__(self, target: str, nodes: Sequence[Mapping[str, Any]]) -> None:
        reader = Reader()
        self.nodes = nodes
        self.all = [Sidecar(target, encode_node(node), reader) for node in nodes]
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Sidecars":
        self._tasks = [asyncio.ensure_future(each.run()) for each in self.all]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def name(self, sidecar: Sidecar) -> str:
        """Pod and namespace."""
        return str(self.nodes[self.all.index(sidecar)]["id"]).split("~")[2]

    async def until(
        self, check: Callable[[Sidecar], bool], seconds: float, among: Collection[Sidecar] | None = None
    ) -> list[Sidecar]:
        """Wait until `check` holds for everybody, or so long; those for whom it does not."""
        end = time.monotonic() + seconds
        while left := [each for each in (self.all if among is None else among) if not check(each)]:
            if time.monotonic() > end:
                return left
            await asyncio.sleep(_LOOK_EVERY)
        return []

    async def until_ready(self, seconds: float) -> list[Sidecar]:
        """Wait until everybody has everything once; those who have not."""
        return await self.until(lambda each: each.ready.is_set(), seconds)

    async def come_back(
        self, some: Collection[Sidecar], seconds: float = 60.0, *, forget: bool = False
    ) -> list[Sidecar]:
        """Let some open their streams anew; those who have not after so long."""
        start = time.monotonic()
        for sidecar in some:
            sidecar.reconnect(forget=forget)
        return await self.until(
            lambda each: each.opened_at > start and (each.ready.is_set() or not forget), seconds, some
        )

    async def until_quiet(self, quiet: float, seconds: float) -> bool:
        """Wait until nobody has been told anything for `quiet` seconds; whether that came."""
        end = time.monotonic() + seconds
        since = time.monotonic()
        while (now := time.monotonic()) < end:
            if now - max(since, max(each.told_at for each in self.all)) > quiet:
                return True
            await asyncio.sleep(_LOOK_EVERY)
        return False

    def held(self) -> list[Held]:
        """What each holds. Resources that came after nobody asked for them any more are passed over, as Envoy does."""
        return [_held(each) for each in self.all]


def _held(sidecar: Sidecar) -> Held:
    found = {}
    for type_url in TYPES:
        versions = sidecar.held[type_url].versions
        asker = _FOLLOWED.get(type_url)
        wanted = sidecar.held[asker].asked if asker is not None else None
        found[type_url] = {name: each for name, each in versions.items() if wanted is None or name in wanted}
    return found


@contextlib.asynccontextmanager
async def fresh(
    folder: pathlib.Path, state: pathlib.Path, nodes: Sequence[Mapping[str, Any]]
) -> AsyncIterator[Sidecars]:
    """The same proxies at a control plane that starts anew; all of them have everything when the block begins."""
    with serving.serve(folder, state) as plane:
        async with Sidecars(plane.target(), nodes) as expected:
            if await expected.until_ready(600):
                raise SystemExit("a fresh control plane does not serve everybody")
            await expected.until_quiet(3.0, 600)
            yield expected


def compare(found: Sidecars, expected: Sidecars) -> list[str]:
    """Where what the the first hold differs from the second, one line a resource."""
    return [
        f"{found.name(sidecar)} {line}"
        for sidecar, held, right in zip(found.all, found.held(), expected.held(), strict=True)
        for line in _differences(held, right)
    ]


def _differences(held: Held, expected: Held) -> Iterator[str]:
    if held == expected:
        return
    for type_url, versions in expected.items():
        short = type_url.rpartition(".")[2]
        for name in sorted(versions.keys() - held[type_url].keys()):
            yield f"{short} {name} is missing"
        for name in sorted(held[type_url].keys() - versions.keys()):
            yield f"{short} {name} should be gone"
        for name in sorted(versions.keys() & held[type_url].keys()):
            if versions[name] != held[type_url][name]:
                yield f"{short} {name} is outdated"


# -- the probe --------------------------------------------------------------------------------------------------------


def probe_documents(marker: str) -> Iterator[dict[str, Any]]:
    """A service that everybody sees, and a route of it that says `marker`."""
    meta = {"name": _HOST, "namespace": SEEN_BY_ALL}
    ports = [{"name": "http", "port": PORT}]
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta,
        "spec": {"clusterIP": "10.255.255.1", "ports": ports},
    }
    match = [{"headers": {"x-probe": {"exact": marker}}}]
    http = [
        {"match": match, "route": [{"destination": {"host": _HOST}}]},
        {"route": [{"destination": {"host": _HOST}}]},
    ]
    spec = {"hosts": [_HOST], "http": http}
    yield {"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": meta, "spec": spec}


def probe(sidecars: Sidecars, marker: str, write: Callable[[dict[str, Any]], None]) -> float:
    """Write the probe with a marker that there was not before; when. Who has got it has `reached_at` from then on."""
    for sidecar in sidecars.all:
        sidecar.watch(marker.encode())
    start = time.monotonic()
    for document in probe_documents(marker):
        write(document)
    return start
