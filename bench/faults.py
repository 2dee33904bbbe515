"""What goes wrong around a control plane, one fault after another, and what is left of it: nothing lost, nothing stuck.

Each fault has a control plane of its own, a child over a generated mesh folder, with simulated proxies. While the fault
lasts the mesh changes; when it is over another change must reach every proxy, and then each must hold exactly what a
control plane gives that starts anew. The faults are real: mounts that go, a full disk, a stopped process, lost packets.
So all of it runs in a network and a mount namespace of its own, which end with it.
"""

import asyncio
import contextlib
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence

import msgspec

from bench import edits, meshes, serving, sidecars
from bench.clients import Sidecar
from bench.sidecars import Sidecars

_INSIDE = "MIZZEN_BENCH_NAMESPACE"
_PODS, _NAMESPACES = 2, 5
_CHANGE_SECONDS = 60.0


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one fault."""

    fault: str
    lost: int
    """Resources in which proxies differ from those of a fresh control plane, in the end."""
    stuck: int
    """Proxies that a change did not reach, during the fault where it was not about them, or after it."""
    recovered: float
    """Seconds from a change after the fault until the last proxy had it."""
    before_mb: float
    after_mb: float
    """Resident memory of the control plane."""
    seen: str
    wrong: tuple[str, ...] = ()
    """What else was not as it must be."""

    @property
    def is_fine(self) -> bool:
        """Nothing lost, nothing stuck, nothing wrong."""
        return not (self.lost or self.stuck or self.wrong)


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """What came of all of them."""

    proxies: int
    outcomes: tuple[Outcome, ...]

    @property
    def is_fine(self) -> bool:
        """Nothing lost, nothing stuck, nothing wrong."""
        return all(each.is_fine for each in self.outcomes)


class World:
    """A control plane, its folder and its proxies, for the one who does the fault."""

    def __init__(self, folder: pathlib.Path, proxies: int) -> None:
        self.folder = folder
        self.config = folder / "config"
        """The mesh, as the control plane finds it."""
        self.state = folder / "state"
        self.services = max(_NAMESPACES, -(-proxies // _PODS))
        documents = list(meshes.documents(self.services, _PODS, _NAMESPACES))
        self.nodes = list(meshes.nodes(documents))[:proxies]
        self.edits = edits.Edits(self.config, self.services, _PODS, _NAMESPACES, seed=1)
        self.environment: dict[str, str] = {}
        """Of the control plane; to be filled before it starts."""
        self.writes_to = self.config
        """Where changes go: another place than `config` while nothing is there."""
        self.stamp: Callable[[pathlib.Path], None] = lambda _: None
        """Called with each file that was written."""
        self.wrong: list[str] = []
        self.stuck: set[str] = set()
        self.plane: serving.ControlPlane
        self.proxies: Sidecars
        self._markers = (f"marker-{number}" for number in itertools.count())

    def lay(self) -> None:
        """Write the mesh."""
        self.edits.lay()
        for document in sidecars.probe_documents("first"):
            self.write(document)

    def write(self, document: edits.Document) -> None:
        """An object, renamed into place."""
        self.stamp(edits.write(self.writes_to, document))

    def require(self, holds: bool, text: str) -> None:
        """What must be; the text says what is the case if it is not."""
        if not holds:
            self.wrong.append(text)

    async def change(self, waiting: Collection[Sidecar] | None = None) -> float:
        """One change for everybody; the seconds until the last of those who are waited for has it."""
        among = self.proxies.all if waiting is None else waiting
        start = sidecars.probe(self.proxies, next(self._markers), self.write)
        late = await self.proxies.until(lambda each: bool(each.reached_at), _CHANGE_SECONDS, among)
        self.stuck.update(self.proxies.name(each) for each in late)
        return max((each.reached_at - start for each in among if each.reached_at), default=0.0)

    def write_probe(self) -> None:
        """The same change, waited for by nobody."""
        for document in sidecars.probe_documents(next(self._markers)):
            self.write(document)

    def resident_mb(self) -> float:
        """Of the control plane."""
        return self.plane.usage().resident_kb / 1024

    async def answers_within(self) -> float:
        """Seconds that `/ready` takes."""
        start = time.monotonic()
        url = f"http://{self.plane.target(serving.READINESS)}/ready"
        await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=60).read())
        return time.monotonic() - start


Prepare = Callable[[World], contextlib.AbstractContextManager[None]]
"""What must be so before the control plane starts, and until it has ended."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the matrix."""

    name: str
    happen: Callable[[World], Awaitable[str]]
    """Does it and ends it; what was seen."""
    prepare: Prepare = lambda _: contextlib.nullcontext()


def run(faults: Sequence[Fault], proxies: int) -> Matrix:
    """One fault after the other; the progress is told on standard error."""
    outcomes = []
    for fault in faults:
        print(f"{fault.name} …", file=sys.stderr, flush=True)
        outcomes.append(asyncio.run(_run(fault, proxies)))
    return Matrix(proxies=proxies, outcomes=tuple(outcomes))


async def _run(fault: Fault, proxies: int) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="mizzen-faults-") as name:
        world = World(pathlib.Path(name), proxies)
        world.config.mkdir()
        with fault.prepare(world):
            world.lay()
            async with _serving(world):
                before = world.resident_mb()
                seen = await fault.happen(world)
                recovered = await world.change()
                world.edits.repair()
                world.require(await world.proxies.until_quiet(3.0, 120), "proxies do not come to rest")
                async with sidecars.fresh(world.config, world.folder / "fresh", world.nodes) as expected:
                    differences = sidecars.compare(world.proxies, expected)
                return Outcome(
                    fault=fault.name,
                    lost=len(differences),
                    stuck=len(world.stuck),
                    recovered=recovered,
                    before_mb=before,
                    after_mb=world.resident_mb(),
                    seen=seen,
                    wrong=(*world.wrong, *differences[:5]),
                )


@contextlib.asynccontextmanager
async def _serving(world: World) -> AsyncIterator[None]:
    with serving.serve(world.config, world.state, world.environment) as world.plane:
        async with Sidecars(world.plane.target(), world.nodes) as world.proxies:
            if await world.proxies.until_ready(300):
                raise SystemExit("proxies are not served")
            await world.change()
            await world.proxies.until_quiet(1.0, 60)
            yield


def print_table(matrix: Matrix) -> None:
    """For people."""
    print(f"\n{matrix.proxies} proxies")
    print(f"{'fault':<32}{'lost':>5}{'stuck':>6}{'recovered s':>12}{'MB':>12}  what was seen")
    for each in matrix.outcomes:
        memory = f"{each.before_mb:.0f} → {each.after_mb:.0f}"
        print(f"{each.fault:<32}{each.lost:>5}{each.stuck:>6}{each.recovered:>12.2f}{memory:>12}  {each.seen}")
        for text in each.wrong:
            print(f"{'':<32}WRONG {text}")


# -- namespaces -------------------------------------------------------------------------------------------------------


def enter_namespaces(arguments: Sequence[str]) -> None:
    """Go on in a network and a mount namespace that end with this process: it is started again in them."""
    if os.environ.get(_INSIDE) is None:
        rights = [] if os.geteuid() == 0 else ["--map-root-user"]
        command = ["unshare", *rights, "--net", "--mount", sys.executable, "-m", "bench", *arguments]
        os.execvpe(command[0], command, {**os.environ, _INSIDE: "1"})
    call("ip", "link", "set", "lo", "up")


def call(*command: str) -> None:
    """Run a program of the system; it must succeed."""
    subprocess.run(command, check=True, capture_output=True)
