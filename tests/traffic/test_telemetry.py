"""What receivers of telemetry get from a real mesh: lines, entries, records and spans of known requests.

One small mesh of its own. Each test lays a Telemetry and waits until it is in force; its requests have a path that no
other test uses, so that what came can be told apart and what did not come is missed.
"""

import collections
import json
import os
import pathlib
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import counted_app
import pytest
import telemetry_receivers
from eventually import eventually_blocking
from local_mesh import LocalMesh, running
from prometheus_client.parser import text_string_to_metric_families
from traffic_mesh import TrafficMesh

from mizzen.local import observer

pytestmark = [pytest.mark.local, pytest.mark.envoy, pytest.mark.timeout(300)]

COLLECTOR = "collector.watched.svc.cluster.local"
_TRACERS = {
    "zip": {"zipkin": {"service": COLLECTOR, "port": telemetry_receivers.ZIPKIN, "maxTagLength": 64}},
    "otel": {"opentelemetry": {"service": COLLECTOR, "port": telemetry_receivers.OTLP_GRPC}},
    "otel-http": {
        "opentelemetry": {
            "service": COLLECTOR,
            "port": telemetry_receivers.OTLP_HTTP,
            "http": {"path": "/v1/traces", "headers": [{"name": "x-api-key", "value": "k"}]},
        }
    },
    "dog": {"datadog": {"service": COLLECTOR, "port": telemetry_receivers.DATADOG}},
}
_SERVICE = {"service": COLLECTOR, "port": telemetry_receivers.OTLP_GRPC}
_LOGS = {
    "text": {
        "envoyFileAccessLog": {
            "path": "/dev/stdout",
            "logFormat": {"text": "TEXT %REQ(:PATH)% %RESPONSE_CODE% %REQ(X-TENANT)% %BYTES_SENT%"},
        }
    },
    "json": {
        "envoyFileAccessLog": {
            "path": "/dev/stdout",
            "logFormat": {
                "labels": {"path": "%REQ(:PATH)%", "code": "%RESPONSE_CODE%", "of": {"tenant": "%REQ(X-TENANT)%"}}
            },
        }
    },
    "als": {"envoyHttpAls": {**_SERVICE, "additionalRequestHeadersToLog": ["x-tenant"]}},
    "als-tcp": {"envoyTcpAls": {**_SERVICE, "logName": "connections"}},
    "otel-logs": {
        "envoyOtelAls": {
            **_SERVICE,
            "logFormat": {"text": "%REQ(:PATH)% %RESPONSE_CODE%", "labels": {"tenant": "%REQ(X-TENANT)%"}},
        }
    },
}
MESH = {
    "extensionProviders": [{"name": name, **what} for name, what in (_TRACERS | _LOGS).items()],
    "defaultProviders": {"metrics": ["prometheus"]},
    # As where no mesh config is given: names have addresses, by which changes are waited for.
    "defaultConfig": {"proxyMetadata": {"ISTIO_META_DNS_CAPTURE": "true", "ISTIO_META_DNS_AUTO_ALLOCATE": "true"}},
}
BASE = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: istio, namespace: istio-system}}
data: {{mesh: {json.dumps(json.dumps(MESH))}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: told, labels: {{istio-injection: enabled}}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: watched}}
---
apiVersion: v1
kind: Service
metadata: {{name: server, namespace: told}}
spec:
  selector: {{app: server}}
  ports: [{{name: http, port: 8080}}, {{name: tcp-store, port: 9000}}]
---
apiVersion: v1
kind: Service
metadata: {{name: collector, namespace: watched}}
spec:
  selector: {{app: collector}}
  ports:
    - {{name: http-zipkin, port: {telemetry_receivers.ZIPKIN}}}
    - {{name: grpc, port: {telemetry_receivers.OTLP_GRPC}}}
    - {{name: http-otlp, port: {telemetry_receivers.OTLP_HTTP}}}
    - {{name: http-datadog, port: {telemetry_receivers.DATADOG}}}
"""


def pod(name: str, namespace: str, command: list[str], ready: int) -> dict[str, Any]:
    container = {
        "name": "app",
        "command": command,
        "readinessProbe": {"tcpSocket": {"port": ready}},
        "volumeMounts": [{"name": "kept", "mountPath": "/kept"}],
    }
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": {"app": name, "version": "v1"},
        "annotations": {"proxy.istio.io/config": "drainDuration: 1s"},
    }
    spec = {"serviceAccountName": name, "containers": [container], "volumes": [{"name": "kept", "emptyDir": {}}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


class Told:
    """The mesh: `client` calls `server`, and `collector` writes down what proxies tell of it."""

    def __init__(self, local: LocalMesh) -> None:
        self.local = local
        self._mesh = TrafficMesh(local)
        self._program = str(local.manifests / "counted_app.py")

    def tell(self, **spec: Any) -> None:
        """Makes this the namespace's Telemetry, and waits until nothing goes by an earlier one."""
        telemetry = {"kind": "Telemetry", "metadata": {"name": "told", "namespace": "told"}, "spec": spec}
        self._mesh.apply("telemetry", [json.dumps(telemetry)])
        eventually_blocking(lambda: not any(map(_is_draining, self.local.proxies())))

    def call(self, path: str, count: int, *headers: str) -> None:
        status = path.split("/")[1]
        done = self._run("http", "server:8080", count, path, 0, *headers)
        assert done == f"{status} " * count

    def connect(self, count: int, sent: int, received: int) -> None:
        assert self._run("tcp", "server", 9000, count, sent, received) == f"{received} " * count

    def _run(self, *order: object) -> str:
        done = self.local.in_pod("client", "python3", self._program, *map(str, order))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def lines(self, name: str, start: str) -> list[str]:
        """The lines of a pod's proxy that start like this."""
        found = self.local.pod(name)
        path = self.local.layout.log(found.namespace, found.name, "istio-proxy")
        return [line for line in path.read_text(errors="replace").splitlines() if line.startswith(start)]

    def received(self, *kinds: str) -> list[dict[str, Any]]:
        """What reached the collector, by protocols."""
        path = pathlib.Path(self.local.pod("collector").directory) / "kept" / "received"
        # What follows the last line's end is half written.
        found = [json.loads(line) for line in path.read_text().split("\n")[:-1]]
        return [entry for entry in found if entry["kind"] in kinds]


def _is_draining(pod: Any) -> bool:
    pattern = r"^listener_manager\.total_(listeners|filter_chains)_draining$"
    return any(observer.counters(pod, pattern).values())


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    manifests = tmp_path_factory.mktemp("telemetry") / "manifests"
    manifests.mkdir()
    for program in (counted_app, telemetry_receivers):
        shutil.copy(str(program.__file__), manifests)
    served = ["python3", "counted_app.py", "serve"]
    collector = [sys.executable, "telemetry_receivers.py", "$(MIZZEN_ROOT)/kept/received"]
    pods = [
        pod("client", "told", served, 8080),
        pod("server", "told", served, 8080),
        pod("collector", "watched", collector, telemetry_receivers.OTLP_GRPC),
    ]
    (manifests / "base.yaml").write_text("\n---\n".join([BASE, *map(json.dumps, pods)]))
    with running(LocalMesh(manifests, f"telemetry-{os.getpid()}")) as local:
        yield Told(local)
        assert observer.rejections(local.proxies()) == {}


def exactly(count: int, find: Callable[[], list[Any]]) -> list[Any]:
    """What is found once there is that much; more is a failure."""
    found = eventually_blocking(lambda: found if len(found := find()) >= count else None)
    assert found is not None
    assert len(found) == count, found
    return found


def providers(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


# -- access logs ------------------------------------------------------------------------------------------------------


def entries(told: Told, log: str, kind: str) -> list[tuple[str, dict[str, Any]]]:
    """The pod and the entry, for each that Envoy's own protocol brought under that log's name."""
    found = []
    for message in told.received("als"):
        if message["log"] == log:
            pod = message["node"].split("~")[2].partition(".")[0]
            found += [(pod, entry) for entry in message["body"].get(kind, {}).get("logEntry", ())]
    return found


def records(told: Told) -> list[dict[str, Any]]:
    """OpenTelemetry's log records."""
    return [
        record
        for message in told.received("otlp-logs")
        for resource in message["body"]["resourceLogs"]
        for scope in _scopes(resource, "Logs")
        for record in scope.get("logRecords") or scope["logs"]
    ]


def _scopes(resource: Mapping[str, Any], what: str) -> list[dict[str, Any]]:
    """The field had another name, and the same number, in earlier versions of the protocol."""
    return next(value for name, value in resource.items() if name.endswith(what))


def attributes(item: Mapping[str, Any]) -> dict[str, Any]:
    return {pair["key"]: next(iter(pair["value"].values()), "") for pair in item.get("attributes", ())}


def test_every_sink_gets_each_request_once_from_either_side(told: Told) -> None:
    told.tell(accessLogging=[{"providers": providers("text", "json", "als", "als-tcp", "otel-logs")}])
    told.call("/200/21", 5, "x-tenant=blue")
    told.call("/404/21", 2)
    told.connect(3, 300, 700)
    for side in ("client", "server"):
        check_files(told, side)
        check_envoys_protocol(told, side)
    found = exactly(20, lambda: records(told))
    bodies = collections.Counter((r["body"]["stringValue"], attributes(r)["tenant"]) for r in found)
    assert bodies == {("/200/21 200", "blue"): 10, ("/404/21 404", "-"): 4, ("- 0", "-"): 6}


def check_files(told: Told, side: str) -> None:
    lines = exactly(10, lambda: told.lines(side, "TEXT "))
    want = {"TEXT /200/21 200 blue 21": 5, "TEXT /404/21 404 - 21": 2, "TEXT - 0 - 700": 3}
    assert collections.Counter(lines) == want
    documents = [json.loads(line) for line in exactly(10, lambda: told.lines(side, '{"'))]
    assert sum(item == {"path": "/200/21", "code": 200, "of": {"tenant": "blue"}} for item in documents) == 5
    assert sum(item == {"path": "/404/21", "code": 404, "of": {"tenant": None}} for item in documents) == 2


def check_envoys_protocol(told: Told, side: str) -> None:
    """Each of the two services gets both requests and connections, as every sink does."""
    found = exactly(10, lambda: [e for pod, e in entries(told, "http_envoy_accesslog", "httpLogs") if pod == side])
    requests = [(e["request"], e["response"]["responseCode"]) for e in found if "path" in e.get("request", {})]
    assert collections.Counter((r["path"], code) for r, code in requests) == {("/200/21", 200): 5, ("/404/21", 404): 2}
    assert sum(request.get("requestHeaders") == {"x-tenant": "blue"} for request, _ in requests) == 5
    found = exactly(10, lambda: [e for pod, e in entries(told, "connections", "tcpLogs") if pod == side])
    sizes = collections.Counter(
        (e["connectionProperties"]["receivedBytes"], e["connectionProperties"]["sentBytes"])
        for e in found
        if "outbound|9000" in e["commonProperties"]["upstreamCluster"] or "inbound|9000" in str(e)
    )
    assert sizes == {("300", "700"): 3}


# -- traces -----------------------------------------------------------------------------------------------------------


def spans(told: Told, path: str, *kinds: str) -> list[dict[str, Any]]:
    """The spans of requests for that path, in one form whatever brought them."""
    read = {"zipkin": _zipkin_spans, "otlp-grpc": _otlp_spans, "otlp-http": _otlp_spans, "datadog": _datadog_spans}
    found = [span for kind in kinds or read for m in told.received(kind) for span in read[kind](m["body"])]
    return [span for span in found if span["tags"].get("http.url", "").endswith(path)]


def _zipkin_spans(body: Any) -> Iterator[dict[str, Any]]:
    for span in body:
        yield {
            "trace": span["traceId"],
            "id": span["id"],
            "parent": span.get("parentId", ""),
            "side": span["kind"],
            "service": span["localEndpoint"]["serviceName"],
            "tags": span["tags"],
        }


def _otlp_spans(body: Any) -> Iterator[dict[str, Any]]:
    for resource in body["resourceSpans"]:
        of = attributes(resource["resource"])
        for scope in _scopes(resource, "Spans"):
            for span in scope["spans"]:
                yield {
                    "trace": span["traceId"],
                    "id": span["spanId"],
                    "parent": span.get("parentSpanId", ""),
                    "side": span["kind"].removeprefix("SPAN_KIND_"),
                    "service": of["service.name"],
                    "tags": attributes(span),
                }


def _datadog_spans(body: Any) -> Iterator[dict[str, Any]]:
    for trace in body:
        for span in trace:
            yield {
                "trace": span["trace_id"],
                "id": span["span_id"],
                "parent": span["parent_id"] or "",
                "side": span["meta"].get("span.kind", "").upper(),
                "service": span["service"],
                "tags": span["meta"],
            }


def check_pairs(found: list[dict[str, Any]]) -> None:
    """Each trace has the client's span and below it the server's."""
    client = [span for span in found if span["service"].startswith("client")]
    server = [span for span in found if span["service"].startswith("server")]
    assert len(client) == len(server) == len(found) / 2
    assert {span["side"] for span in client} <= {"CLIENT", ""}  # Datadog's do not say.
    assert {span["side"] for span in server} <= {"SERVER", ""}
    assert {span["trace"] for span in client} == {span["trace"] for span in server}
    assert {span["parent"] for span in server} == {span["id"] for span in client}


TAGS = {
    "literal": {"literal": {"value": "blue"}},
    "header": {"header": {"name": "x-tenant", "defaultValue": "nobody"}},
    "variable": {"environment": {"name": "POD_NAME", "defaultValue": "nowhere"}},
    "unset": {"environment": {"name": "NO_SUCH_VARIABLE", "defaultValue": "nowhere"}},
    "formatted": {"formatter": {"value": "%REQ(:METHOD)%-%RESPONSE_CODE%"}},
}


def test_nothing_is_traced_at_zero_and_all_at_a_hundred_with_custom_tags(told: Told) -> None:
    told.tell(tracing=[{"providers": providers("zip"), "randomSamplingPercentage": 0}])
    told.call("/200/30", 40)
    told.tell(tracing=[{"providers": providers("zip"), "randomSamplingPercentage": 100, "customTags": TAGS}])
    told.call("/200/31", 6, "x-tenant=red")
    told.call("/200/32", 1)
    found = exactly(12, lambda: spans(told, "/200/31", "zipkin"))
    check_pairs(found)
    for span in found:
        pod = span["service"].partition(".")[0]
        own = {"literal": "blue", "header": "red", "variable": pod, "unset": "nowhere", "formatted": "GET-200"}
        assert {name: span["tags"].get(name) for name in own} == own
        istios = {"istio.canonical_service": pod, "istio.namespace": "told", "istio.canonical_revision": "v1"}
        assert {name: span["tags"].get(name) for name in istios} == istios
        assert len(span["trace"]) == 32
    assert {span["tags"]["header"] for span in exactly(2, lambda: spans(told, "/200/32"))} == {"nobody"}
    assert spans(told, "/200/30") == []


def test_spans_go_to_opentelemetry_over_grpc_and_lines_through_filters_by_mode(told: Told) -> None:
    filters = [
        {
            "match": {"mode": "CLIENT"},
            "providers": providers("text"),
            "filter": {"expression": "response.code >= 400"},
        },
        {
            "match": {"mode": "SERVER"},
            "providers": providers("json"),
            "filter": {"expression": "request.headers['x-tenant'] == 'blue'"},
        },
    ]
    told.tell(accessLogging=filters, tracing=[{"providers": providers("otel"), "randomSamplingPercentage": 100}])
    told.call("/200/40", 3, "x-tenant=blue")
    told.call("/500/40", 2, "x-tenant=red")
    told.call("/404/40", 2, "x-tenant=blue")
    found = exactly(14, lambda: [span for path in ("/200/40", "/404/40", "/500/40") for span in spans(told, path)])
    check_pairs(found)
    assert len(told.received("otlp-grpc")) > 0
    text = exactly(4, lambda: [line for line in told.lines("client", "TEXT ") if "/40 " in line])
    assert collections.Counter(line.split()[1] for line in text) == {"/404/40": 2, "/500/40": 2}
    documents = exactly(5, lambda: [line for line in told.lines("server", '{"') if '/40"' in line])
    assert collections.Counter(json.loads(line)["path"] for line in documents) == {"/200/40": 3, "/404/40": 2}
    assert not [line for line in told.lines("client", '{"') if '/40"' in line]
    assert not [line for line in told.lines("server", "TEXT ") if "/40 " in line]


def sampled(told: Told, path: str) -> collections.Counter[str]:
    """How many requests of each id have a span; Envoy writes its decision into one digit further on."""
    return collections.Counter(span["tags"]["guid:x-request-id"][:8] for span in spans(told, path))


def test_a_share_is_sampled_by_request_or_by_the_id_of_requests(told: Told) -> None:
    half = {"providers": providers("otel-http"), "randomSamplingPercentage": 50}
    off = {"match": {"mode": "SERVER"}, "disableSpanReporting": True}
    quiet = [{"providers": providers("text", "json")}, {"match": {"mode": "SERVER"}, "disabled": True}]
    told.tell(tracing=[half, off], accessLogging=quiet)
    told.call("/200/50", 200)
    identifiers = [str(uuid.uuid4()) for _ in range(8)]
    by_id = f"x-request-id={'|'.join(identifiers)}"
    told.call("/200/51", 96, by_id)
    told.tell(tracing=[{**half, "useRequestIdForTraceSampling": False}, off])
    told.call("/200/52", 96, by_id)
    # Envoy leaves the decision to the tracer then, and its tracers take all.
    eventually_blocking(lambda: list(sampled(told, "/200/52").values()) == [12] * 8)
    eventually_blocking(lambda: set(sampled(told, "/200/51").values()) <= {12})
    assert 60 < len(spans(told, "/200/50", "otlp-http")) < 140
    assert {span["side"] for path in ("/200/50", "/200/51", "/200/52") for span in spans(told, path)} == {"CLIENT"}
    assert {message["headers"]["x-api-key"] for message in told.received("otlp-http")} == {"k"}
    exactly(200, lambda: [line for line in told.lines("client", "TEXT ") if "/50 " in line])
    told.tell(accessLogging=[{"providers": providers("text")}])
    told.call("/200/53", 1)
    # What the server's Envoy logged before is written by now.
    exactly(1, lambda: [line for line in told.lines("server", "TEXT ") if "/53 " in line])
    assert not [line for line in told.lines("server", "TEXT ") if "/50 " in line]


def test_spans_go_to_datadog(told: Told) -> None:
    told.tell(tracing=[{"providers": providers("dog"), "randomSamplingPercentage": 100, "customTags": TAGS}])
    told.call("/200/60", 6, "x-tenant=red")
    found = exactly(12, lambda: spans(told, "/200/60", "datadog"))
    check_pairs(found)
    assert {(span["tags"]["literal"], span["tags"]["header"]) for span in found} == {("blue", "red")}


# -- metrics ----------------------------------------------------------------------------------------------------------

SCRAPE = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:15020/stats/prometheus').read().decode())"


def counted(told: Told, name: str, code: str) -> dict[str, list[dict[str, str]]]:
    """The labels of every series of that status in a pod, by metric."""
    found = collections.defaultdict(list)
    for family in text_string_to_metric_families(told.local.in_pod(name, "python3", "-c", SCRAPE).stdout):
        for sample in family.samples:
            if sample.labels.get("response_code") == code and not sample.name.endswith("_bucket"):
                found[sample.name].append(sample.labels)
    return found


def test_metrics_are_changed_on_one_side_by_entries_that_name_no_provider(told: Told) -> None:
    labels = {"request_protocol": {"operation": "REMOVE"}, "asked": {"value": "request.url_path"}}
    counts = {"match": {"metric": "REQUEST_COUNT", "mode": "CLIENT"}, "tagOverrides": labels}
    off = {"match": {"metric": "ALL_METRICS", "mode": "SERVER"}, "disabled": True}
    sizes = {"match": {"metric": "REQUEST_SIZE"}, "disabled": True}
    told.tell(metrics=[{"overrides": [counts, sizes, off], "reportingInterval": "10s"}])
    told.call("/207/70", 4)
    client = eventually_blocking(lambda: counted(told, "client", "207"))
    durations = "istio_request_duration_milliseconds"
    assert client.keys() == {
        "istio_requests_total",
        *(f"{name}_{part}" for name in (durations, "istio_response_bytes") for part in ("count", "sum")),
    }
    (count,) = client["istio_requests_total"]
    assert count["asked"] == "/207/70"
    assert "request_protocol" not in count
    assert [series["request_protocol"] for series in client[f"{durations}_count"]] == ["http"]
    assert counted(told, "server", "207") == {}
