"""The faults of the matrix, each done for real and undone again; see `faults` for what is looked at afterwards."""

import asyncio
import contextlib
import io
import mmap
import os
import pathlib
import signal
import struct
import textwrap
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

import grpc

from bench import serving
from bench.clients import Reader, Sidecar, encode_node
from bench.edits import Document
from bench.faults import Fault, World, call
from mizzen import protos
from mizzen.ca import certificates
from mizzen.compile.resource import SECRET

_DAY = 86_400.0
_PROBE_SECONDS = 5.0
"""How long an installation's probe waits for `/ready`."""
_discovery_v3 = protos.package("envoy.service.discovery.v3")
_METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"


# -- the source -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _volume(world: World) -> Iterator[None]:
    """The mesh is on a volume that is mounted where the control plane looks."""
    volume = world.folder / "volume"
    volume.mkdir()
    call("mount", "--bind", str(volume), str(world.config))
    try:
        yield
    finally:
        call("umount", "--lazy", str(world.config))


async def _unmount(world: World) -> str:
    volume = world.folder / "volume"
    call("umount", "--lazy", str(world.config))
    return await _without_source(world, volume, lambda: call("mount", "--bind", str(volume), str(world.config)))


async def _rename(world: World) -> str:
    away = world.folder / "away"
    world.config.rename(away)
    return await _without_source(world, away, lambda: _move(away, world.config))


def _move(source: pathlib.Path, target: pathlib.Path) -> None:
    source.rename(target)


async def _without_source(world: World, elsewhere: pathlib.Path, come_back: Callable[[], None]) -> str:
    for sidecar in world.proxies.all:
        sidecar.watch()
    world.writes_to = elsewhere
    began = time.monotonic()
    for _ in range(20):
        world.write_probe()
        await asyncio.sleep(0.6)
    told = sum(each.bytes.total() for each in world.proxies.all)
    world.require(told == 0, f"proxies were told {told} bytes while nothing was there")
    late = await world.proxies.come_back(world.proxies.all[:1], forget=True)
    world.require(not late, "a proxy that starts is not served meanwhile")
    come_back()
    world.writes_to = world.config
    return (
        f"away for {time.monotonic() - began:.0f} s under 20 changes: nobody is told of removals, who starts is served"
    )


# -- the clock --------------------------------------------------------------------------------------------------------

_SHIFT = """
import mmap, struct, time
_file = open({path!r}, "r+b")
_shift, _time = mmap.mmap(_file.fileno(), 8), time.time
time.time = lambda: _time() + struct.unpack_from("d", _shift)[0]
"""


@contextlib.contextmanager
def _clock(world: World) -> Iterator[None]:
    """The control plane's time of day is this machine's, and what stands in a file."""
    folder = world.folder / "clock"
    folder.mkdir()
    (folder / "shift").write_bytes(struct.pack("d", 0.0))
    (folder / "sitecustomize.py").write_text(textwrap.dedent(_SHIFT.format(path=str(folder / "shift"))))
    world.environment["PYTHONPATH"] = str(folder)
    yield


async def _jump(world: World) -> str:
    took = []
    for days in (30.0, -30.0, 0.0):
        _set_clock(world, days * _DAY)
        took.append(await world.change())
    # The certificate of the servers is looked after every 30 s; at the far end of the jump another was made.
    _set_clock(world, 30 * _DAY)
    await asyncio.sleep(40)
    _set_clock(world, 0.0)
    await asyncio.sleep(40)
    served = await _connect_with_certificate(world)
    world.require(served, "after a jump and back nobody gets in by certificate")
    times = ", ".join(f"{each:.2f}" for each in took)
    return f"30 days on, 60 back, 30 on: a change takes {times} s; certificates are good afterwards"


def _set_clock(world: World, seconds: float) -> None:
    path = world.folder / "clock" / "shift"
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 8) as shift:
        struct.pack_into("d", shift, 0, seconds)
    world.stamp = lambda written: os.utime(written, (time.time() + seconds,) * 2)


async def _connect_with_certificate(world: World) -> bool:
    node = world.nodes[0]
    meta = node["metadata"]
    credentials = serving.Authority(world.state).credentials(meta["NAMESPACE"], meta["SERVICE_ACCOUNT"])
    sidecar = Sidecar(world.plane.target(serving.MUTUAL), encode_node(node), Reader(), credentials)
    running = asyncio.ensure_future(sidecar.run())
    try:
        async with asyncio.timeout(30):
            await sidecar.ready.wait()
    except TimeoutError:
        return False
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    return True


# -- the disk ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _small_disk(world: World) -> Iterator[None]:
    """The mesh, the authority's state and the log are on one small disk."""
    world.state.mkdir()
    call("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(world.config))
    (world.config / ".state").mkdir()
    call("mount", "--bind", str(world.config / ".state"), str(world.state))
    try:
        yield
    finally:
        call("umount", "--lazy", str(world.state))
        call("umount", "--lazy", str(world.config))


async def _fill_disk(world: World) -> str:
    files = sorted(world.config.glob("ns-*/*.yaml"))
    contents = {path: path.read_bytes() for path in files[:40]}
    for sidecar in world.proxies.all:
        sidecar.watch()
    failed = 0
    with (world.config / ".filler").open("wb", buffering=0) as filler:
        _fill(filler)
        for path, content in contents.items():
            with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
                # What the file had is free now, and gone before it can be written to.
                _fill(filler)
                failed += 1
                file.write(content)
                failed -= 1
    world.require(failed == len(contents), f"only {failed} of {len(contents)} writes failed")
    await asyncio.sleep(5)
    told = sum(each.bytes.total() for each in world.proxies.all)
    world.require(told == 0, f"proxies were told {told} bytes because the disk was full")
    (world.config / ".filler").unlink()
    for path, content in contents.items():
        path.write_bytes(content)
    return (
        f"{failed} files are left without a byte, the log is cut: nobody is told anything; goes on when there is room"
    )


def _fill(filler: io.FileIO) -> None:
    with contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))


# -- the process and its connections ----------------------------------------------------------------------------------


async def _stop(world: World) -> str:
    streams = sum(each.streams for each in world.proxies.all)
    os.kill(world.plane.pid, signal.SIGSTOP)
    for _ in range(20):
        world.write_probe()
        world.edits.step()
        await asyncio.sleep(3)
    os.kill(world.plane.pid, signal.SIGCONT)
    took = await world.change()
    again = sum(each.streams for each in world.proxies.all) - streams
    return f"SIGSTOP for 60 s under 40 changes: {took:.2f} s after SIGCONT all have the last one; {again} streams anew"


@contextlib.contextmanager
def _quick_pings(world: World) -> Iterator[None]:
    """Silent peers are found out soon."""
    world.environment["GRPC_KEEPALIVE_INTERVAL"] = "2s"
    yield


async def _half_open(world: World) -> str:
    known = _ports_to(world)
    victims = world.proxies.all[::3]
    await world.proxies.come_back(victims)
    ports = sorted(_ports_to(world) - known)
    world.require(len(ports) == len(victims), f"{len(ports)} connections are found, not {len(victims)}")
    for port in ports:
        call("iptables", "-A", "INPUT", "-p", "tcp", "--sport", str(port), "-j", "DROP")
        call("iptables", "-A", "INPUT", "-p", "tcp", "--dport", str(port), "-j", "DROP")
    began = time.monotonic()
    others = [each for each in world.proxies.all if each not in victims]
    slowest = 0.0
    while world.plane.metric("pilot_xds") > len(others) and time.monotonic() < began + 60:
        slowest = max(slowest, await world.change(others))
    gone = time.monotonic() - began
    left = int(world.plane.metric("pilot_xds")) - len(others)
    world.require(left == 0, f"{left} dead streams are kept for {gone:.0f} s")
    call("iptables", "-F", "INPUT")
    late = await world.proxies.come_back(victims)
    world.require(not late, "they cannot come back")
    return (
        f"{len(victims)} peers silent: streams ended after {gone:.0f} s (pings every 2 s); others wait {slowest:.2f} s"
    )


def _ports_to(world: World) -> set[int]:
    """The ports from which connections to the plain port come."""
    port = world.plane.ports[serving.PLAIN]
    tables = (pathlib.Path(f"/proc/net/{name}").read_text() for name in ("tcp", "tcp6"))
    rows = (line.split() for table in tables for line in table.splitlines()[1:])
    return {int(row[1].split(":")[1], 16) for row in rows if int(row[2].split(":")[1], 16) == port and row[3] == "01"}


async def _storm(world: World) -> str:
    calm, _ = await _edit(world, 100, 1)
    pushes = world.plane.metric("pilot_xds_pushes")
    stormy, lag = await _edit(world, 1000, 10)
    took = await world.change()
    pushes = world.plane.metric("pilot_xds_pushes") - pushes
    world.require(lag < _PROBE_SECONDS, f"/ready took {lag:.1f} s")
    each = pushes / len(world.proxies.all)
    return (
        f"100 edits in {calm:.0f} s, then 1000 in {stormy:.0f} s: {each:.0f} responses a proxy; {took:.2f} s after the "
        f"end all have the last change; /ready within {lag:.2f} s"
    )


async def _edit(world: World, count: int, at_once: int) -> tuple[float, float]:
    """Edit at random, ten times a second; the seconds that it took, and the slowest answer of `/ready` meanwhile."""
    slowest, start, next_look = 0.0, time.monotonic(), 0.0
    for _ in range(count // at_once):
        for _ in range(at_once):
            world.edits.step()
        if (now := time.monotonic()) > next_look:
            next_look = now + 0.5
            slowest = max(slowest, await world.answers_within())
        await asyncio.sleep(0.1)
    return time.monotonic() - start, slowest


# -- proxies that misbehave -------------------------------------------------------------------------------------------


async def _reject_all(world: World) -> str:
    bad, *others = world.proxies.all
    bad.rejects.update(bad.held)
    rejected = world.plane.metric("pilot_total_xds_rejects")
    received, usual, slowest = 0, 0, 0.0
    for _ in range(30):
        world.edits.step()
        slowest = max(slowest, await world.change(others))
        await asyncio.sleep(0.3)
        received += bad.bytes.total()
        usual += max(each.bytes.total() for each in others)
    rejected = world.plane.metric("pilot_total_xds_rejects") - rejected
    world.require(rejected > 0, "nothing was rejected")
    quiet = await world.proxies.until_quiet(2.0, 30)
    world.require(quiet, "what is rejected is sent again and again")
    bad.rejects.clear()
    # A change of each type brings what is owed of it.
    world.write(_EVERY_TYPE)
    return (
        f"{rejected:.0f} rejections under 30 changes: it is sent {received / 1e3:.0f} kB, others {usual / 1e3:.0f} kB; "
        f"those wait {slowest:.2f} s"
    )


_EVERY_TYPE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "of-every-type", "namespace": "probe"},
    "spec": {
        "clusterIP": "10.255.255.3",
        "ports": [{"name": "http", "port": 18081}, {"name": "tcp", "port": 18082}],
    },
}
"""Brings everybody a cluster, endpoints, a listener and a route."""


async def _read_nothing(world: World) -> str:
    silent = world.proxies.all[::4]
    others = [each for each in world.proxies.all if each not in silent]
    before = world.resident_mb()
    for sidecar in silent:
        sidecar.reading.clear()
    slowest, changes, most, end = 0.0, 0, 0.0, time.monotonic() + 60
    while time.monotonic() < end:
        for _ in range(3):
            world.edits.step()
        slowest = max(slowest, await world.change(others))
        changes += 4
        most = max(most, world.resident_mb())
    for sidecar in world.proxies.all:
        sidecar.watch()
        sidecar.reading.set()
    took = await world.change()
    merged = max(each.bytes.total() for each in silent)
    return (
        f"{len(silent)} read nothing for 60 s under {changes} changes: {before:.0f} MB become {most:.0f}; others wait "
        f"{slowest:.2f} s; then {merged / 1e3:.0f} kB at most and {took:.2f} s bring all"
    )


# -- proxies that lie -------------------------------------------------------------------------------------------------

_META = {"name": "gateway", "namespace": "ns-0"}
_CREDENTIAL = "kubernetes://gateway"


def _gateway() -> Iterator[Document]:
    """A gateway of namespace ns-0 and its private key."""
    signer = certificates.build_root("example.com", _DAY, 2048, time.time())
    pem = {
        "tls.crt": certificates.encode(signer.certificate).decode(),
        "tls.key": certificates.encode_key(signer.key).decode(),
    }
    port = {"number": 443, "name": "https", "protocol": "HTTPS"}
    server = {"port": port, "hosts": ["*"], "tls": {"mode": "SIMPLE", "credentialName": "gateway"}}
    spec = {"selector": {"app": "gateway"}, "servers": [server]}
    yield {"apiVersion": "networking.istio.io/v1", "kind": "Gateway", "metadata": _META, "spec": spec}
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": _META, "stringData": pem}
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**_META, "labels": {"app": "gateway"}},
        "spec": {"serviceAccountName": "gateway", "containers": []},
        "status": {"podIP": "10.254.0.1", "phase": "Running"},
    }


async def _lie(world: World) -> str:
    for document in _gateway():
        world.write(document)
    await world.change()
    honest = await _ask_for_key(world, serving.MUTUAL, proves=("ns-0", "gateway"), patience=60.0)
    world.require(honest == 1, f"the gateway itself gets {honest} keys")
    lies = {
        "another namespace's certificate": await _ask_for_key(world, serving.MUTUAL, proves=("ns-1", "gateway")),
        "another account's certificate": await _ask_for_key(world, serving.MUTUAL, proves=("ns-0", "svc-0")),
        "no certificate, plain port": await _ask_for_key(world, serving.PLAIN),
        "true certificate of ns-1, key of ns-0": await _ask_for_key(
            world, serving.MUTUAL, proves=("ns-1", "gateway"), claims="ns-1"
        ),
    }
    for how, keys in lies.items():
        world.require(keys <= 0, f"{how}: {keys} keys")
    refused = sum(1 for keys in lies.values() if keys < 0)
    return f"{len(lies)} ways to ask for another's key: {refused} refused, the others get none; its owner gets it"


async def _ask_for_key(
    world: World, port: str, proves: tuple[str, str] | None = None, claims: str = "ns-0", patience: float = 5.0
) -> int:
    """The private keys that a gateway gets which says to be of namespace `claims`; -1 where it is refused."""
    metadata = {"NAMESPACE": claims, "LABELS": {"app": "gateway"}, "SERVICE_ACCOUNT": "gateway", "NAME": "gateway"}
    node = {"id": f"router~10.254.0.1~gateway.{claims}~{claims}.svc.cluster.local", "metadata": metadata}
    # Its own certificate names the control plane by its service.
    options = (("grpc.ssl_target_name_override", "istiod.istio-system.svc"),)
    target = world.plane.target(port)
    if proves is None:
        channel = grpc.aio.insecure_channel(target)
    else:
        channel = grpc.aio.secure_channel(target, serving.Authority(world.state).credentials(*proves), options)
    request = _discovery_v3.DeltaDiscoveryRequest(type_url=SECRET, resource_names_subscribe=[_CREDENTIAL])
    first = protos.length_delimited(1, encode_node(node)) + request.SerializeToString()
    async with channel:
        call: Any = channel.stream_stream(_METHOD)()
        await call.write(first)
        try:
            async with asyncio.timeout(patience):
                data = await call.read()
        except TimeoutError:
            return 0
        except grpc.aio.AioRpcError as ended:
            world.require(ended.code() == grpc.StatusCode.PERMISSION_DENIED, f"refused with {ended.code()}")
            return -1
        finally:
            call.cancel()
    return len(_discovery_v3.DeltaDiscoveryResponse.FromString(data).resources)


MATRIX: tuple[Fault, ...] = (
    Fault(name="source unmounted", happen=_unmount, prepare=_volume),
    Fault(name="source renamed away", happen=_rename),
    Fault(name="clock jumps", happen=_jump, prepare=_clock),
    Fault(name="disk full", happen=_fill_disk, prepare=_small_disk),
    Fault(name="SIGSTOP", happen=_stop),
    Fault(name="half-open connections", happen=_half_open, prepare=_quick_pings),
    Fault(name="10x push storm", happen=_storm),
    Fault(name="a proxy rejects everything", happen=_reject_all),
    Fault(name="proxies stop reading", happen=_read_nothing),
    Fault(name="proxies lie about who they are", happen=_lie),
)


def find(names: Collection[str]) -> list[Fault]:
    """The faults of these names; all for none."""
    known = [fault.name for fault in MATRIX]
    if unknown := set(names).difference(known):
        raise SystemExit(f"no such fault: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return [fault for fault in MATRIX if not names or fault.name in names]
