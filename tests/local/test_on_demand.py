"""A sidecar on demand while its control plane is away, comes back, and where only known hosts may be called."""

import contextlib
import os
import pathlib
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import traffic_mesh
from eventually import eventually_blocking
from local_mesh import LocalMesh, running
from traffic_certificates import ROOT
from traffic_manifests import complete, fill, render, service
from traffic_mesh import TrafficMesh
from traffic_programs import statuses

from mizzen.local import observer

pytestmark = [pytest.mark.local, pytest.mark.envoy, pytest.mark.timeout(300)]

SETTINGS = """
kind: Namespace
metadata: {name: traffic, labels: {istio-injection: enabled}}
---
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data:
  mesh: |
    accessLogFile: /dev/stdout
    outboundTrafficPolicy: {mode: REGISTRY_ONLY}
    defaultConfig:
      concurrency: 1
      proxyMetadata: {ISTIO_META_DNS_CAPTURE: "true", ISTIO_META_MIZZEN_ON_DEMAND: "true"}
"""
SERVICES = "".join(map(service, ("held", "missed", "after", "restarted", "beyond")))


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrafficMesh]:
    manifests = tmp_path_factory.mktemp("on-demand") / "manifests"
    manifests.mkdir()
    traffic_mesh.lay_programs(manifests)
    pods = [
        traffic_mesh.build_pod("asker", "", labels={"app": "asker"}),
        traffic_mesh.build_pod("echo", "", labels={"app": "echo"}),
    ]
    for pod in pods:
        del pod["spec"]["nodeSelector"]
    certificate, key = ROOT.issue("echo")
    content = {"tls.crt": certificate, "tls.key": key, "ca.crt": ROOT.pem}
    secret = {"kind": "Secret", "metadata": {"name": "programs-tls"}, "stringData": content}
    documents = [*complete(SETTINGS), *complete(SERVICES), fill(secret), *map(fill, pods)]
    (manifests / "mesh.yaml").write_text(render(documents))
    with running(LocalMesh(manifests, f"on-demand-{os.getpid()}")) as local:
        mesh = TrafficMesh(local, on_demand=True)
        eventually_blocking(lambda: mesh["asker"].get("http://held/").status == 200)
        yield mesh


@contextlib.contextmanager
def away(mesh: TrafficMesh) -> Iterator[None]:
    """The control plane answers nothing until the block ends."""
    pid = mesh.local.state.control_plane.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def clusters(mesh: TrafficMesh) -> set[str]:
    lines = observer.ask_envoy(mesh.pod("asker"), "/clusters").splitlines()
    return {name for name in (line.partition("::")[0] for line in lines) if name.startswith("outbound|")}


def count_removed(mesh: TrafficMesh) -> int:
    (count,) = observer.counters(mesh.pod("asker"), r"^cluster_manager\.cluster_removed$").values() or (0,)
    return count


def test_an_unknown_host_is_refused_where_only_known_ones_may_be_called(mesh):
    address = mesh["asker"].resolve("held")[0]
    assert mesh["asker"].get("http://nobody.example.com/", address=f"{address}:80").status == 502
    assert mesh["asker"].get("http://held/").status == 200


def test_a_first_request_waits_for_a_control_plane_that_is_away(mesh):
    asker = mesh["asker"]
    assert asker.get("http://held/").status == 200
    with ThreadPoolExecutor(1) as threads:
        with away(mesh):
            first = threads.submit(asker.get, "http://missed/", timeout=60)
            assert statuses(asker.send("http://held/", count=20)) == {200: 20}
            assert not first.done()
        assert first.result().status == 200


def test_a_control_plane_that_is_restarted_takes_nothing_away(mesh):
    asker = mesh["asker"]
    assert asker.get("http://held/").status == 200
    before, removed = clusters(mesh), count_removed(mesh)
    restarts = mesh.local.state.control_plane.restarts
    with asker.sending("http://held/", workers=2) as answers:
        os.kill(mesh.local.state.control_plane.pid, signal.SIGKILL)
        assert asker.get("http://after/", timeout=60).status == 200
        eventually_blocking(lambda: mesh.local.state.control_plane.restarts > restarts, 60)
    assert set(statuses(answers)) == {200}
    assert clusters(mesh) == before | {"outbound|80||after.traffic.svc.cluster.local"}
    assert count_removed(mesh) == removed


def envoy_of(mesh: TrafficMesh) -> int:
    agent = next(each for each in mesh.pod("asker").containers if each.name == "istio-proxy")
    children = pathlib.Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    (found,) = (pid for pid in children if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("envoy"))
    return int(found)


def test_an_envoy_that_starts_without_a_control_plane_knows_the_hosts_that_were_called(mesh):
    asker = mesh["asker"]
    assert asker.get("http://held/").status == 200
    with away(mesh):
        os.kill(envoy_of(mesh), signal.SIGKILL)
        eventually_blocking(lambda: asker.get("http://held/", timeout=5).status == 200, 120)
    eventually_blocking(lambda: asker.get("http://restarted/", timeout=30).status == 200, 60)
    end = time.monotonic() + 3
    while time.monotonic() < end:
        assert asker.get("http://held/").status == 200


def test_who_calls_very_many_hosts_knows_them_all_in_the_end(mesh):
    asker = mesh["asker"]
    address = asker.resolve("held")[0]
    with ThreadPoolExecutor(8) as threads:
        urls = [f"http://host-{number}.example.com/" for number in range(510)]
        assert set(statuses(threads.map(lambda url: asker.get(url, address=f"{address}:80"), urls))) == {502}
    dump = "/config_dump?resource=dynamic_route_configs&name_regex=^80$"
    other = "80/OTHER beyond.traffic.svc.cluster.local:80"
    eventually_blocking(lambda: other in observer.ask_envoy(mesh.pod("asker"), dump))
    assert asker.get("http://beyond/").status == asker.get("http://held/").status == 200
    assert asker.get("http://one-more.example.com/", address=f"{address}:80").status == 502
