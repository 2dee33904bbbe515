"""What a control plane over a large cluster costs: a real API server full of objects, and `mizzen discovery` over it.

Filling the server is not measured and takes minutes. Then: wall and CPU seconds until proxies are served, memory, and
the CPU seconds of a rolling change of pods and the EndpointSlices that name them, until the process rests again; then
the same with simulated sidecars that have connected, and what they were told. Needs the binaries that
`scripts/test-kube-parts` brings.
"""

import asyncio
import importlib
import os
import pathlib
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator
from typing import Any

import aiohttp
import msgspec

from bench import meshes
from bench.sidecars import Sidecars
from mizzen.api.kinds import kind_of_api

_SUPPORT = pathlib.Path(__file__).parents[1] / "tests" / "support"

_AT_ONCE = 48
_TICK = os.sysconf("SC_CLK_TCK")
_REST_SECONDS = 3.0
_PROXIES = 200
_PATIENCE = 900.0
_ORDER = ("Namespace", "Service", "Pod", "EndpointSlice")


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One measured row."""

    name: str
    wall_seconds: float
    cpu_seconds: float
    resident_mb: int
    told_mb: float = 0.0
    """What all proxies received."""


def run(services: int, pods: int, namespaces: int, changed: int) -> list[Step]:
    """The table's rows."""
    sys.path.insert(0, str(_SUPPORT))
    kube_bed = importlib.import_module("kube_bed")
    kube_mesh_kinds = importlib.import_module("kube_mesh_kinds")
    with tempfile.TemporaryDirectory(prefix="mizzen-bench-") as name, kube_bed.running(pathlib.Path(name)) as bed:
        kube_mesh_kinds.install(bed)
        documents = list(meshes.documents(services, pods, namespaces))
        for kind in (*_ORDER, "VirtualService", "DestinationRule"):
            asyncio.run(_write(bed, (d for d in documents if d["kind"] == kind)))
        return _measure(bed, pathlib.Path(name), documents, changed)


# -- the cluster ------------------------------------------------------------------------------------------------------


async def _write(bed: Any, documents: Iterable[meshes.Document]) -> None:
    """Create objects, their statuses too."""
    async with _session(bed) as session:
        await _together(_create(session, bed.url, document) for document in documents)


def _session(bed: Any) -> aiohttp.ClientSession:
    token = importlib.import_module("kube_bed").ADMIN
    context = ssl.create_default_context(cadata=bed.authority.pem)
    headers = {"Authorization": f"Bearer {token}"}
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, limit=_AT_ONCE), headers=headers)


async def _together(calls: Iterator[Any]) -> None:
    async def work() -> None:
        for call in calls:
            await call

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))


async def _create(session: aiohttp.ClientSession, url: str, document: meshes.Document) -> None:
    collection = f"{url}{_collection(document)}"
    async with session.post(collection, json=_as_deployed(document)) as answer:
        if answer.status >= 400:
            raise SystemExit(f"{collection}: {await answer.text()}")
    if document["kind"] == "Pod":
        await _patch(session, f"{collection}/{document['metadata']['name']}/status", {"status": document["status"]})


async def _patch(session: aiohttp.ClientSession, path: str, body: object) -> None:
    kind = {"Content-Type": "application/merge-patch+json"}
    async with session.patch(path, json=body, headers=kind) as answer:
        if answer.status >= 400:
            raise SystemExit(f"{path}: {await answer.text()}")


def _collection(document: meshes.Document) -> str:
    group, _, version = document["apiVersion"].rpartition("/")
    kind = kind_of_api(group, document["kind"])
    assert kind is not None
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    namespace = document["metadata"].get("namespace", "")
    return f"{root}/namespaces/{namespace}/{kind.plural}" if namespace else f"{root}/{kind.plural}"


def _as_deployed(document: meshes.Document) -> meshes.Document:
    """As a server has it: it gives addresses to Services itself, and pods say 5 KB of what no mesh asks for."""
    spec = dict(document.get("spec", {}))
    if document["kind"] == "Service":
        spec.pop("clusterIP")
    if document["kind"] == "Pod":
        variables = [{"name": f"SETTING_{n}", "value": "https://collector.monitoring:4317"} for n in range(50)]
        spec["containers"] = [{"name": "app", "image": "app", "env": variables}]
    return {**document, **({"spec": spec} if spec else {})}


async def _roll(bed: Any, documents: list[meshes.Document], changed: int, network: str) -> None:
    """Give pods other addresses, and tell them in the slices."""
    found = [d for d in documents if d["kind"] == "Pod"][:changed]
    moved = {d["metadata"]["name"]: f"{network}.{n // 250}.{1 + n % 250}" for n, d in enumerate(found)}
    async with _session(bed) as session:
        await _together(
            _patch(session, f"{bed.url}{_collection(d)}/{name}/status", {"status": {"podIP": moved[name]}})
            for d in found
            for name in (d["metadata"]["name"],)
        )
        slices = (d for d in documents if d["kind"] == "EndpointSlice")
        await _together(
            _patch(session, f"{bed.url}{_collection(d)}/{d['metadata']['name']}", {"endpoints": new})
            for d in slices
            if (new := _moved(d["endpoints"], moved)) != d["endpoints"]
        )


def _moved(endpoints: list[dict[str, Any]], moved: dict[str, str]) -> list[dict[str, Any]]:
    return [{**each, "addresses": [moved.get(each["targetRef"]["name"], each["addresses"][0])]} for each in endpoints]


# -- the process ------------------------------------------------------------------------------------------------------


def _measure(bed: Any, folder: pathlib.Path, documents: list[meshes.Document], changed: int) -> list[Step]:
    own_port, installed = importlib.import_module("claims").own_port, importlib.import_module("kube_accounts").installed
    port, discovery = own_port(), f"127.0.0.1:{own_port()}"
    off = [part for flag in ("secureGRPCAddr", "mutualGRPCAddr") for part in (f"--{flag}", "127.0.0.1:0")]
    off += ["--monitoringAddr", "127.0.0.1:0", "--httpsAddr", "", "--ctrlz_port", "0", "--caDir", str(folder / "ca")]
    command = [sys.executable, "-m", "mizzen", "discovery", "--kubeconfig", str(installed(bed)), *off]
    command += ["--httpAddr", f"127.0.0.1:{port}", "--grpcAddr", discovery]
    with (folder / "log").open("wb") as log:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        while not _is_ready(port):
            if process.poll() is not None:
                raise SystemExit((folder / "log").read_text())
            time.sleep(0.05)
        ready = _step("until it serves", process.pid, start, 0.0)
        asyncio.run(_rest(process.pid))
        settled = _step("at rest after that", process.pid, start, ready.cpu_seconds)
        more = asyncio.run(_serve(bed, process.pid, discovery, documents, changed))
        return [ready, settled, *more]
    finally:
        process.kill()
        process.wait()
        for line in (folder / "log").read_text().splitlines():
            if "the event loop was held" in line:
                print(line, file=sys.stderr)


async def _serve(
    bed: Any, pid: int, discovery: str, documents: list[meshes.Document], changed: int
) -> tuple[Step, Step, Step]:
    """Pods change while nobody is connected; proxies connect; pods change again."""
    before, start = _cpu(pid), time.perf_counter()
    await _roll(bed, documents, changed, "10.240")
    await _rest(pid)
    alone = _step(f"{changed} pods changed", pid, start, before)
    before, start = _cpu(pid), time.perf_counter()
    nodes = list(meshes.nodes(documents))
    async with Sidecars(discovery, nodes[:: len(nodes) // _PROXIES][:_PROXIES]) as sidecars:
        if await sidecars.until_ready(_PATIENCE):
            raise SystemExit(f"not all proxies have their configuration after {_PATIENCE:.0f} s")
        await _rest(pid)
        connected = _step(f"{_PROXIES} proxies connect", pid, start, before, sidecars)
        for sidecar in sidecars.all:
            sidecar.watch()
        before, start = _cpu(pid), time.perf_counter()
        await _roll(bed, documents, changed, "10.241")
        await _rest(pid)
        return alone, connected, _step(f"{changed} pods changed, all told", pid, start, before, sidecars)


def _step(name: str, pid: int, start: float, before: float, sidecars: Sidecars | None = None) -> Step:
    wall = time.perf_counter() - start
    told = sum(each.bytes.total() for each in sidecars.all) / 1e6 if sidecars is not None else 0.0
    return Step(name=name, wall_seconds=wall, cpu_seconds=_cpu(pid) - before, resident_mb=_resident(pid), told_mb=told)


async def _rest(pid: int) -> None:
    """Until the process has been idle for some seconds."""
    while True:
        before = _cpu(pid)
        await asyncio.sleep(_REST_SECONDS)
        if _cpu(pid) - before < 0.1 * _REST_SECONDS:
            return


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _cpu(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _resident(pid: int) -> int:
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS:"))


def print_table(steps: Iterable[Step], title: str) -> None:
    """The rows for people."""
    print(title)
    print(f"{'':<28} {'wall s':>8} {'CPU s':>8} {'MB':>6} {'MB told':>8}")
    for step in steps:
        figures = f"{step.wall_seconds:>8.1f} {step.cpu_seconds:>8.1f} {step.resident_mb:>6} {step.told_mb:>8.1f}"
        print(f"{step.name:<28} {figures}")
    print()
