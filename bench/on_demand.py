"""What a sidecar on demand saves in a large mesh: two sidecars that differ in nothing else, in a local mesh.

In: the number of services. Out: for each sidecar the bytes that its Envoy was told, what it holds, its memory, the time
until it was ready, and what first and later requests to hosts take. Needs what `mizzen up` needs.
"""

import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from bench.serving import measure_usage
from mizzen.errors import MizzenError
from mizzen.local import observer, runtime

_MESH = "bench-on-demand"
_CALLED = 20
"""Hosts that are called; the others only exist."""
_READY_SECONDS = 900.0
_QUIET_SECONDS = 10.0
_ON_DEMAND = 'proxyMetadata: {ISTIO_META_MIZZEN_ON_DEMAND: "true"}'
_CALL = """
import http.client, json, sys, time
found = []
for host in sys.argv[1:]:
    started = time.monotonic()
    connection = http.client.HTTPConnection(host, timeout=30)
    connection.request("GET", "/")
    status = connection.getresponse().status
    found.append((status, time.monotonic() - started))
print(json.dumps(found))
"""

Document = dict[str, Any]


class Sidecar(msgspec.Struct, frozen=True, kw_only=True):
    """What one sidecar costs and does."""

    name: str
    ready_seconds: float
    told_bytes: int
    """Received by Envoy until every host was called."""
    clusters: int
    virtual_hosts: int
    allocated_bytes: int
    """What Envoy has allocated, by its own word."""
    resident_kb: int
    first_ms: float
    """Median of the first request to a host."""
    later_ms: float
    failed: int


def run(services: int) -> list[Sidecar]:
    """A sidecar that holds everything, then one on demand."""
    with tempfile.TemporaryDirectory() as folder:
        manifests = pathlib.Path(folder) / "manifests"
        manifests.mkdir()
        text = "\n".join(json.dumps(each) + "\n---" for each in _documents(services))
        (manifests / "mesh.yaml").write_text(text)
        with _running(manifests, pathlib.Path(folder) / "up.log") as layout:
            time.sleep(_QUIET_SECONDS)
            return [_measure(layout, name) for name in ("whole", "on-demand")]


def print_table(found: list[Sidecar], services: int) -> None:
    """The figures side by side."""
    print(f"{services} services of two ports, {_CALLED} of them called")
    rows = [["", *(each.name for each in found)]]
    rows += [[field, *(f"{getattr(each, field):,}" for each in found)] for field in Sidecar.__struct_fields__[1:]]
    for row in rows:
        print("  ".join(cell.rjust(18) for cell in row))


def _documents(services: int) -> Iterator[Document]:
    yield {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "bench", "labels": {"istio-injection": "enabled"}},
    }
    yield _pod("server", "python3 -m http.server 8080", {})
    yield _pod("whole", "sleep 1000000", {})
    yield _pod("on-demand", "sleep 1000000", {"proxy.istio.io/config": _ON_DEMAND})
    for number in range(services):
        yield _service(number)
        if number % 5 == 0:
            yield _object("VirtualService", number, {"hosts": [_host(number)], "http": [_route(number)]})
            pool = {"tcp": {"maxConnections": 100}}
            yield _object("DestinationRule", number, {"host": _host(number), "trafficPolicy": {"connectionPool": pool}})


def _pod(name: str, command: str, annotations: dict[str, str]) -> Document:
    container = {"name": "app", "command": command.split(), "ports": [{"containerPort": 8080}]}
    metadata = {"name": name, "namespace": "bench", "labels": {"app": name}, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def _host(number: int) -> str:
    return f"svc-{number}.ns-{number % 25}.internal"


def _route(number: int) -> Document:
    destination = {"destination": {"host": _host(number)}}
    return {"match": [{"uri": {"prefix": "/"}}], "timeout": "10s", "retries": {"attempts": 3}, "route": [destination]}


def _service(number: int) -> Document:
    ports = [
        {"number": 80, "name": "http", "protocol": "HTTP", "targetPort": 8080},
        {"number": 9000 + number % 40, "name": "grpc", "protocol": "GRPC"},
    ]
    spec: Document = {"hosts": [_host(number)], "location": "MESH_INTERNAL", "resolution": "STATIC", "ports": ports}
    if number < _CALLED:
        spec["workloadSelector"] = {"labels": {"app": "server"}}
    else:
        labels = {"security.istio.io/tlsMode": "istio"}
        addresses = (f"10.{16 + i}.{number // 250}.{1 + number % 250}" for i in range(2))
        spec["endpoints"] = [{"address": address, "labels": labels} for address in addresses]
    return _object("ServiceEntry", number, spec)


def _object(kind: str, number: int, spec: Document) -> Document:
    metadata = {"name": f"svc-{number}", "namespace": "bench"}
    return {"apiVersion": "networking.istio.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


@contextlib.contextmanager
def _running(manifests: pathlib.Path, log: pathlib.Path) -> Iterator[runtime.Layout]:
    layout = runtime.Layout(runtime.find_base(os.getuid(), os.environ) / _MESH)
    command = (sys.executable, "-m", "mizzen", "up", str(manifests), "--name", _MESH)
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        end = time.monotonic() + _READY_SECONDS
        while not _is_ready(layout, process.pid):
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the mesh did not get ready:\n{log.read_text()[-2000:]}")
            time.sleep(0.2)
        yield layout
    finally:
        process.terminate()
        process.wait()


def _is_ready(layout: runtime.Layout, pid: int) -> bool:
    try:
        state = runtime.read_state(layout)
    except MizzenError:
        return False
    return state.ready and state.pid == pid


def _measure(layout: runtime.Layout, name: str) -> Sidecar:
    state = runtime.read_state(layout)
    pod = runtime.find_pod(state, name)
    hosts = [_host(number) for number in range(_CALLED)]
    first, later = (_call(state, pod, hosts) for _ in range(2))
    log = layout.log(pod.namespace, pod.name, "istio-proxy").read_text()
    ready = re.search(r"ready after ([\d.]+) s", log)
    dump = json.loads(observer.ask_envoy(pod, "/config_dump?resource=dynamic_route_configs"))
    routes = [each["route_config"].get("virtual_hosts", ()) for each in dump["configs"]]
    told = observer.counters(pod, r"^cluster\.xds-grpc;?\.upstream_cx_rx_bytes_total$")
    clusters = observer.counters(pod, r"^cluster_manager\.active_clusters$")
    return Sidecar(
        name=name,
        ready_seconds=float(ready[1]) if ready else 0.0,
        told_bytes=sum(told.values()),
        clusters=sum(clusters.values()),
        virtual_hosts=sum(map(len, routes)),
        allocated_bytes=int(json.loads(observer.ask_envoy(pod, "/memory"))["allocated"]),
        resident_kb=_envoy_resident_kb(pod),
        first_ms=round(1000 * statistics.median(seconds for _, seconds in first), 1),
        later_ms=round(1000 * statistics.median(seconds for _, seconds in later), 1),
        failed=sum(status != 200 for status, _ in (*first, *later)),
    )


def _call(state: runtime.State, pod: runtime.Pod, hosts: list[str]) -> list[tuple[int, float]]:
    done = observer.run_in_pod(state, pod, (sys.executable, "-c", _CALL, *hosts), os.environ)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: list[tuple[int, float]] = json.loads(done.stdout)
    return found


def _envoy_resident_kb(pod: runtime.Pod) -> int:
    agent = next(each for each in pod.containers if each.name == "istio-proxy")
    children = pathlib.Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    for child in children:
        if pathlib.Path(f"/proc/{child}/comm").read_text().strip().startswith("envoy"):
            return measure_usage(int(child)).resident_kb
    return 0
