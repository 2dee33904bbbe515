"""Istio's standard metrics of a real mesh: exact counts per label set for known traffic, as Prometheus reads them."""

import collections
import os
import pathlib
import shutil
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import counted_app
import dashboards
import pytest
from eventually import eventually_blocking
from local_mesh import LocalMesh, running
from prometheus_client.parser import text_string_to_metric_families

from mizzen.local import observer

pytestmark = [pytest.mark.local, pytest.mark.envoy]

DEPLOYMENT = """
apiVersion: v1
kind: ServiceAccount
metadata: {{name: {app}, namespace: {namespace}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {app}-{version}, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: {app}}}}}
  template:
    metadata:
      labels: {{app: {app}, version: {version}}}
      annotations: {{proxy.istio.io/config: "drainDuration: 1s"}}
    spec:
      serviceAccountName: {app}
      containers:
        - name: app
          command: [python3, {program}, serve]
          readinessProbe: {{tcpSocket: {{port: 8080}}}}
"""
MESH = """
kind: Namespace
apiVersion: v1
metadata: {name: counted, labels: {istio-injection: enabled}}
---
kind: Namespace
apiVersion: v1
metadata: {name: outside}
---
kind: Service
apiVersion: v1
metadata: {name: server, namespace: counted}
spec:
  selector: {app: server}
  ports: [{name: http, port: 8080}, {name: tcp-store, port: 9000}]
---
kind: Service
apiVersion: v1
metadata: {name: nobody, namespace: counted}
spec:
  selector: {app: nobody}
  ports: [{name: http, port: 80}]
"""
CHANGED = """
apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: {name: labels, namespace: counted}
spec:
  metrics:
    - providers: [{name: prometheus}]
      overrides:
        - match: {metric: REQUEST_COUNT}
          tagOverrides:
            destination_version: {operation: REMOVE}
            source_version: {operation: REMOVE}
            method: {value: request.method}
            bank: {value: "'b'"}
        - match: {metric: RESPONSE_SIZE}
          disabled: true
        - match: {metric: TCP_OPENED_CONNECTIONS}
          tagOverrides:
            source_version: {operation: REMOVE}
            source_app: {value: "'mine'"}
"""

STANDARD = ("istio_request", "istio_response", "istio_tcp")
"""How the names of Istio's standard metrics begin."""

Labels = frozenset[tuple[str, str]]
Series = dict[Labels, float]


class Counted(LocalMesh):
    """The mesh of these tests: `client` and `server` with sidecars, `plain` outside."""

    @property
    def program(self) -> str:
        return str(self.manifests / "counted_app.py")

    def call(self, pod: str, *order: object) -> str:
        done = self.in_pod(pod, "python3", self.program, *map(str, order))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def scrape(self, pod: str) -> dict[str, Series]:
        """The pod's merged metrics by sample name; a duplicate would be an error to Prometheus."""
        script = (
            "import urllib.request as u; print(u.urlopen('http://127.0.0.1:15020/stats/prometheus').read().decode())"
        )
        return read(self.in_pod(pod, "python3", "-c", script).stdout)

    def own_metrics(self) -> dict[str, Series]:
        """The control plane's."""
        with urllib.request.urlopen(f"http://{self.state.control_plane.monitoring}/metrics", timeout=60) as answer:
            return read(answer.read().decode())

    def settled(self, pod: str, requests: float, connections: float = 0) -> dict[str, Series]:
        """The metrics once so many are in all of them: Envoy flushes histograms every five seconds."""

        def check() -> dict[str, Series] | None:
            found = self.scrape(pod)
            totals = [found["istio_requests_total"], found["istio_request_duration_milliseconds_count"]]
            done = all(sum(series.values()) >= requests for series in totals)
            closed = sum(found["istio_tcp_connections_closed_total"].values())
            return found if done and closed >= connections else None

        eventually_blocking(check)
        # What was counted together with the last connection may have been read before it was.
        return self.scrape(pod)


def read(text: str) -> dict[str, Series]:
    """Series by the name that Prometheus knows them under; a duplicate would be an error to it."""
    names = {line.partition("{")[0].partition(" ")[0] for line in text.splitlines()}
    found: dict[str, Series] = collections.defaultdict(dict)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            # The parser, not Prometheus, lets every counter's name end like this.
            name = sample.name if sample.name in names else sample.name.removesuffix("_total")
            labels = frozenset(sample.labels.items())
            assert labels not in found[name], sample
            found[name][labels] = sample.value
    return found


def deployment(app: str, version: str, namespace: str, program: pathlib.Path) -> str:
    return DEPLOYMENT.format(app=app, version=version, namespace=namespace, program=program)


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    manifests = tmp_path_factory.mktemp("metrics") / "manifests"
    manifests.mkdir()
    program = pathlib.Path(shutil.copy(counted_app.__file__, manifests / "counted_app.py"))
    pods = (("client", "v1", "counted"), ("server", "v2", "counted"), ("plain", "v1", "outside"))
    (manifests / "mesh.yaml").write_text(MESH)
    for app, version, namespace in pods:
        (manifests / f"{app}.yaml").write_text(deployment(app, version, namespace, program))
    with running(Counted(manifests, f"metrics-{os.getpid()}")) as local:
        # Without a request, as each is counted.
        servers = {f"{local.pod('server').address}:{port}::health_flags::healthy" for port in (8080, 9000)}
        eventually_blocking(
            lambda: all(each in observer.ask_envoy(local.pod("client"), "/clusters") for each in servers)
        )
        yield local
        assert observer.rejections(local.proxies()) == {}


def workload(role: str, app: str, version: str) -> dict[str, str]:
    return {
        f"{role}_workload": f"{app}-{version}",
        f"{role}_workload_namespace": "counted",
        f"{role}_canonical_service": app,
        f"{role}_canonical_revision": version,
        f"{role}_app": app,
        f"{role}_version": version,
        f"{role}_cluster": "Kubernetes",
        f"{role}_principal": f"spiffe://cluster.local/ns/counted/sa/{app}",
    }


def stranger(role: str) -> dict[str, str]:
    """A workload that is not known."""
    return dict.fromkeys(workload(role, "", ""), "unknown") | {f"{role}_canonical_revision": "latest"}


SERVICE = {
    "destination_service": "server.counted.svc.cluster.local",
    "destination_service_name": "server",
    "destination_service_namespace": "counted",
}
CLIENT, SERVER = workload("source", "client", "v1"), workload("destination", "server", "v2")
SENDS = {"reporter": "source", "connection_security_policy": "unknown", **CLIENT}
TAKES = {"reporter": "destination", "connection_security_policy": "mutual_tls", **SERVER}


def http(code: int, protocol: str = "http", grpc: str = "", flags: str = "-") -> dict[str, str]:
    return {
        "request_protocol": protocol,
        "response_code": str(code),
        "grpc_response_status": grpc,
        "response_flags": flags,
    }


TCP = {"request_protocol": "tcp", "response_flags": "-"}


def labels(*parts: Mapping[str, str]) -> Labels:
    """The labels of a series; what a later part says goes before."""
    return frozenset({key: value for part in parts for key, value in part.items()}.items())


def test_every_request_and_connection_is_counted_under_istios_labels(mesh: Counted) -> None:
    assert mesh.call("client", "http", "server:8080", 7, "/200/10") == "200 " * 7
    assert mesh.call("client", "http", "server:8080", 3, "/404/10") == "404 " * 3
    assert mesh.call("client", "http", "server:8080", 4, "/grpc/5", 20) == "200 " * 4
    assert mesh.call("client", "http", "nobody", 2, "/200/10") == "503 " * 2
    assert mesh.call("client", "tcp", "server", 9000, 5, 300, 700) == "700 " * 5
    outside = mesh.pod("plain").address
    assert mesh.call("client", "http", f"{outside}:8080", 6, "/200/10") == "200 " * 6
    inside = mesh.pod("server").address
    assert mesh.call("plain", "http", f"{inside}:8080", 8, "/200/10") == "200 " * 8
    assert mesh.call("plain", "tcp", inside, 9000, 2, 100, 50) == "50 " * 2
    check_client(mesh.settled("client", 22, 5), outside)
    check_server(mesh.settled("server", 22, 7))


@pytest.mark.parametrize(("pod", "requests", "connections"), [("client", 5, 1), ("server", 4, 2)])
def test_there_are_no_more_series_than_istio_makes(
    mesh: Counted, pod: str, requests: int, connections: int, record_property: Any
) -> None:
    """By Istio's rule one for each set of labels: of the traffic above, so many of requests and of connections."""
    bounds = 19  # of Istio's histograms, and beside them infinity, sum and count
    expected = requests * (1 + 3 * (bounds + 3)) + connections * 4
    found = sum(len(series) for name, series in mesh.scrape(pod).items() if name.startswith(STANDARD))
    kept = read(observer.ask_envoy(mesh.pod(pod), "/stats/prometheus"))
    in_memory = sum(len(series) for name, series in kept.items() if name.startswith(STANDARD))
    record_property("series", f"{pod}: Istio {expected}, told {found}, in Envoy's memory {in_memory}")
    print(f"series of {pod}: {expected} by Istio's rule, {found} told, {in_memory} in Envoy's memory")
    assert 0 < found <= 2 * expected
    assert 0 < in_memory <= 2 * expected


def check_client(found: dict[str, Series], outside: str) -> None:
    unreached = {
        "destination_service": "nobody.counted.svc.cluster.local",
        "destination_service_name": "nobody",
        "destination_service_namespace": "counted",
    }
    passed = {
        "destination_service": f"{outside}:8080",
        "destination_service_name": "PassthroughCluster",
        "destination_service_namespace": "unknown",
    }
    unsure = {"source_principal": "unknown"}
    requests = {
        labels(SENDS, SERVER, SERVICE, http(200)): 7,
        labels(SENDS, SERVER, SERVICE, http(404)): 3,
        labels(SENDS, SERVER, SERVICE, http(200, "grpc", "5")): 4,
        labels(SENDS, unsure, stranger("destination"), unreached, http(503, flags="UH")): 2,
        labels(SENDS, unsure, stranger("destination"), passed, http(200)): 6,
    }
    check_requests(found, requests)
    check_connections(found, {labels(SENDS, SERVER, SERVICE, TCP): (5, 300, 700)})


def check_server(found: dict[str, Series]) -> None:
    plain = {**TAKES, "connection_security_policy": "none", "destination_principal": "unknown"}
    requests = {
        labels(TAKES, CLIENT, SERVICE, http(200)): 7,
        labels(TAKES, CLIENT, SERVICE, http(404)): 3,
        labels(TAKES, CLIENT, SERVICE, http(200, "grpc", "5")): 4,
        labels(plain, stranger("source"), SERVICE, http(200)): 8,
    }
    check_requests(found, requests)
    connections = {
        labels(TAKES, CLIENT, SERVICE, TCP): (5, 300, 700),
        labels(plain, stranger("source"), SERVICE, TCP): (2, 100, 50),
    }
    check_connections(found, connections)


def check_requests(found: dict[str, Series], wanted: Mapping[Labels, float]) -> None:
    assert found["istio_requests_total"] == wanted
    for name in ("request_duration_milliseconds", "request_bytes", "response_bytes"):
        assert found[f"istio_{name}_count"] == wanted, name
        infinite = {labels(dict(series), {"le": "+Inf"}): count for series, count in wanted.items()}
        assert {k: v for k, v in found[f"istio_{name}_bucket"].items() if ("le", "+Inf") in k} == infinite, name


def check_connections(found: dict[str, Series], wanted: Mapping[Labels, tuple[int, int, int]]) -> None:
    """By series: connections, and the bytes that each of them received and sent."""
    assert found["istio_tcp_connections_opened_total"] == {k: n for k, (n, _, _) in wanted.items()}
    assert found["istio_tcp_connections_closed_total"] == {k: n for k, (n, _, _) in wanted.items()}
    assert found["istio_tcp_received_bytes_total"] == {k: n * received for k, (n, received, _) in wanted.items()}
    assert found["istio_tcp_sent_bytes_total"] == {k: n * sent for k, (n, _, sent) in wanted.items()}


def test_sizes_are_those_of_the_messages(mesh: Counted) -> None:
    before = mesh.scrape("client")
    assert mesh.call("client", "http", "server:8080", 4, "/201/60000", 20000) == "201 " * 4
    found = mesh.settled("client", sum(before["istio_requests_total"].values()) + 4)
    series = labels(SENDS, SERVER, SERVICE, http(201))
    # Envoy keeps sums of histograms by buckets, of a tenth around each value.
    assert found["istio_request_bytes_sum"][series] / 4 == pytest.approx(20000, rel=0.1)
    assert found["istio_response_bytes_sum"][series] / 4 == pytest.approx(60000, rel=0.1)


@pytest.mark.parametrize("tool", ["GRAFANA", "KIALI", "PROXY_ITSELF"])
def test_dashboards_find_what_they_ask_of_proxies(mesh: Counted, tool: str) -> None:
    for pod in ("client", "server"):
        found = mesh.scrape(pod)
        missing = {name for name in getattr(dashboards, tool) if not found.get(name)}
        assert missing == set(), pod
        for name, asked in getattr(dashboards, tool).items():
            for series in found[name]:
                assert set(asked) <= {label for label, _ in series}, (pod, name)
        assert not found.keys() & set(dashboards.UNREACHABLE)


def test_dashboards_find_what_they_ask_of_the_control_plane(mesh: Counted) -> None:
    found = mesh.own_metrics()
    assert {name for name in dashboards.CONTROL_PLANE if not found.get(name)} == set()
    for name, asked in dashboards.CONTROL_PLANE.items():
        for series in found[name]:
            assert {label for label, _ in series} == set(asked), name


def listener_updates(mesh: Counted, pod: str) -> int:
    pattern = r"^listener_manager\.lds\.update_success$"
    return sum(observer.counters(mesh.pod(pod), pattern).values())


def is_draining(mesh: Counted, pod: str) -> bool:
    pattern = r"^listener_manager\.total_(listeners|filter_chains)_draining$"
    return any(observer.counters(mesh.pod(pod), pattern).values())


def test_series_go_on_when_their_listeners_are_replaced(mesh: Counted) -> None:
    series = labels(TAKES, CLIENT, SERVICE, http(202))
    assert mesh.call("client", "http", "server:8080", 5, "/202/10") == "202 " * 5
    eventually_blocking(lambda: mesh.scrape("server")["istio_requests_total"].get(series) == 5)
    updates = listener_updates(mesh, "server"), listener_updates(mesh, "client")
    (mesh.manifests / "logs.yaml").write_text(
        "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\nmetadata: {name: logs, namespace: counted}\n"
        "spec: {accessLogging: [{disabled: true, providers: [{name: envoy}]}]}\n"
    )
    eventually_blocking(
        lambda: listener_updates(mesh, "server") > updates[0] and listener_updates(mesh, "client") > updates[1]
    )
    eventually_blocking(lambda: not is_draining(mesh, "server"))
    assert mesh.scrape("server")["istio_requests_total"][series] == 5
    assert mesh.call("client", "http", "server:8080", 6, "/202/10") == "202 " * 6
    eventually_blocking(lambda: mesh.scrape("server")["istio_requests_total"][series] == 11)


def test_telemetry_changes_labels_and_metrics_and_nothing_else(mesh: Counted) -> None:
    (mesh.manifests / "labels.yaml").write_text(CHANGED)
    more = {"method": "GET", "bank": "b"}

    def changed(*parts: Mapping[str, Any]) -> Labels:
        merged = {key: value for part in parts for key, value in part.items()} | more
        return frozenset((k, v) for k, v in merged.items() if k not in ("source_version", "destination_version"))

    sent, taken = changed(SENDS, SERVER, SERVICE, http(203)), changed(TAKES, CLIENT, SERVICE, http(203))

    def both_have_it() -> bool:
        mesh.call("client", "http", "server:8080", 1, "/203/10")
        return all(
            wanted in mesh.scrape(pod)["istio_requests_total"] for pod, wanted in (("client", sent), ("server", taken))
        )

    eventually_blocking(both_have_it)
    for pod, wanted in (("client", sent), ("server", taken)):
        before = mesh.settled(pod, sum(mesh.scrape(pod)["istio_requests_total"].values()))
        mesh.call("client", "http", "server:8080", 9, "/203/10")
        found = mesh.settled(pod, sum(before["istio_requests_total"].values()) + 9)
        new = {k: v - before["istio_requests_total"].get(k, 0) for k, v in found["istio_requests_total"].items()}
        assert {k: v for k, v in new.items() if v} == {wanted: 9}
        assert found["istio_response_bytes_count"] == before["istio_response_bytes_count"]
        unchanged = {**http(203), **(SENDS if pod == "client" else TAKES)}
        whole = labels(SERVER, CLIENT, SERVICE, unchanged)
        assert found["istio_request_bytes_count"][whole] - before["istio_request_bytes_count"].get(whole, 0) == 9
    assert mesh.call("client", "tcp", "server", 9000, 3, 300, 700) == "700 " * 3
    check_changed_source(mesh.settled("server", 0, 10))


def check_changed_source(found: dict[str, Series]) -> None:
    """Of TCP's source one label is gone and one another, in the one metric that says so."""
    opened = {**TAKES, **CLIENT, **SERVICE, **TCP, "source_app": "mine"}
    del opened["source_version"]
    assert found["istio_tcp_connections_opened_total"][labels(opened)] == 3
    assert found["istio_tcp_connections_closed_total"][labels(TAKES, CLIENT, SERVICE, TCP)] == 8


def test_series_name_whom_they_count_when_the_peer_has_gone_and_another_came(mesh: Counted) -> None:
    closed = "istio_tcp_connections_closed_total"
    before = mesh.scrape("server")[closed]
    assert before[labels(TAKES, CLIENT, SERVICE, TCP)] == 8
    (mesh.manifests / "client.yaml").unlink()
    eventually_blocking(lambda: not mesh.pods("client"))
    heir = deployment("heir", "v3", "counted", pathlib.Path(mesh.program))
    (mesh.manifests / "heir.yaml").write_text(heir)
    eventually_blocking(lambda: mesh.pods("heir") and mesh.pod("heir").ready, 90)
    assert mesh.call("heir", "tcp", "server", 9000, 2, 300, 700) == "700 " * 2
    found = mesh.settled("server", 0, sum(before.values()) + 2)[closed]
    assert found == before | {labels(TAKES, workload("source", "heir", "v3"), SERVICE, TCP): 2}
