"""Providers of the mesh config as what filters are built from: sinks of logs, tracers, changed metrics."""

import json

import listener_mesh
import msgspec
import pytest

from mizzen import protos
from mizzen.compile.filters import access_logs, tracing
from mizzen.compile.listeners import telemetry
from mizzen.compile.listeners.profiles import profile

COLLECTOR = """
apiVersion: v1
kind: Service
metadata: {name: c, namespace: obs}
spec: {clusterIP: 10.0.9.9, ports: [{name: grpc, port: 4317}]}
"""
HOST = "c.obs.svc.cluster.local"
SERVICE = {"service": HOST, "port": 4317}


def signals(side, providers, spec, *, kind="sidecar", mesh=None, node_cluster="", objects="", **metadata):
    db = listener_mesh.mesh_of(
        "---".join(filter(None, (COLLECTOR, objects))), extensionProviders=providers, **(mesh or {})
    )
    raw = {"apiVersion": "telemetry.istio.io/v1", "kind": "Telemetry"}
    listener_mesh.add(db, {**raw, "metadata": {"name": "m", "namespace": "istio-system"}, "spec": spec})
    proxy = listener_mesh.proxy_at(kind=kind, **metadata)
    proxy = msgspec.structs.replace(proxy, service_cluster=node_cluster)
    return telemetry.signals(db, profile(db, proxy), side)


def logged(provider, **more):
    spec = {"accessLogging": [{"providers": [{"name": provider["name"]}], **more}]}
    return signals("outbound", [provider], spec).access_logs


def traced(provider, side="outbound", **more):
    """The tracing block with a provider, as JSON; None where there is none."""
    options = {key: more.pop(key) for key in ("kind", "mesh", "node_cluster", "objects") if key in more}
    metadata = {key: more.pop(key) for key in list(more) if key.isupper()}
    spec = {"tracing": [{"providers": [{"name": "T"}], **more}]}
    found = signals(side, [{"name": "t", **provider}], spec, **options, **metadata).tracing
    return None if found is None else protos.to_json(tracing.build_tracing(found))


def tracer(provider, **more):
    return traced(provider, **more)["provider"]["typedConfig"]


@pytest.mark.parametrize("kind", ["envoyHttpAls", "envoyTcpAls", "envoyOtelAls"])
def test_a_log_service_that_is_no_mesh_service_yields_nothing(kind):
    assert logged({"name": "x", kind: {"service": "nowhere.example", "port": 1}}) == ()
    (found,) = logged({"name": "x", kind: SERVICE})
    assert (found.sink.cluster, found.sink.authority) == (f"outbound|4317||{HOST}", HOST)


def test_only_the_provider_that_every_mesh_has_writes_in_the_meshs_format():
    mesh = {"accessLogFormat": "mine", "accessLogFile": ""}
    spec = {"accessLogging": [{"providers": [{"name": "envoy"}, {"name": "other"}]}]}
    other = {"name": "other", "envoyFileAccessLog": {"path": "/dev/stdout"}}
    envoys, others = signals("outbound", [other], spec, mesh=mesh).access_logs
    assert envoys.sink.text == "mine\n"
    assert others.sink.text == access_logs.DEFAULT_TEXT


def test_labels_make_a_json_log_and_none_the_default_fields():
    def format_of(labels):
        provider = {"name": "x", "envoyFileAccessLog": {"path": "/l", "logFormat": {"labels": labels}}}
        return json.loads(logged(provider)[0].sink.json)

    assert format_of({"a": "%PROTOCOL%", "n": {"m": 1}}) == {"a": "%PROTOCOL%", "n": {"m": 1}}
    assert format_of({}) == access_logs.DEFAULT_JSON


def test_metrics_go_by_their_series():
    spec = {"metrics": [{"overrides": [{"match": {"metric": "REQUEST_SIZE"}, "disabled": True}]}]}
    mesh = {"defaultProviders": {"metrics": ["PROMETHEUS"]}}
    (override,) = signals("outbound", [], spec, mesh=mesh).metrics.overrides
    assert (override.name, override.drop) == ("request_bytes", True)


def test_zipkin_is_told_as_a_call_or_to_older_proxies_by_fields():
    provider = {"zipkin": {**SERVICE, "headers": [{"name": "x-a", "value": "1"}, {"name": "x-b", "envName": "B"}]}}
    new = tracer(provider)
    assert new["collectorService"]["httpUri"] == {
        "uri": f"http://{HOST}/api/v2/spans",
        "cluster": f"outbound|4317||{HOST}",
        "timeout": "5s",
    }
    assert [h["header"]["key"] for h in new["collectorService"]["requestHeadersToAdd"]] == ["x-a"]
    old = tracer(provider, ISTIO_VERSION="1.28.3")
    assert "collectorService" not in old
    assert (old["collectorEndpoint"], old["collectorHostname"]) == ("/api/v2/spans", HOST)


def test_opentelemetry_speaks_grpc_unless_told_http():
    grpc = tracer(
        {"opentelemetry": {**SERVICE, "grpc": {"timeout": "2s", "initialMetadata": [{"name": "k", "value": "v"}]}}}
    )
    assert grpc["grpcService"]["timeout"] == "2s"
    assert grpc["grpcService"]["initialMetadata"] == [{"key": "k", "value": "v"}]
    http = tracer({"opentelemetry": {**SERVICE, "http": {"path": "/v1/traces"}}})
    assert http["httpService"]["httpUri"]["uri"] == f"{HOST}/v1/traces"


def test_the_service_of_spans_is_the_nodes_or_one_by_convention():
    by_convention = {**SERVICE, "serviceAttributeEnrichment": "OTEL_SEMANTIC_CONVENTIONS"}
    assert tracer({"opentelemetry": by_convention}, WORKLOAD_NAME="cart-v1")["serviceName"] == "cart-v1"
    annotated = {"resource.opentelemetry.io/service.name": "Cart"}
    found = tracer({"opentelemetry": by_convention}, WORKLOAD_NAME="cart-v1", ANNOTATIONS=annotated)
    assert found["serviceName"] == "Cart"
    assert [d["name"].rpartition(".")[2] for d in found["resourceDetectors"]] == ["environment"]
    labelled = tracer({"opentelemetry": by_convention}, LABELS={"app.kubernetes.io/name": "shop"})
    assert labelled["serviceName"] == "shop"
    assert tracer({"opentelemetry": SERVICE}, node_cluster="cart.shop")["serviceName"] == "cart.shop"


def test_dynatraces_sampler_decides_alone():
    sampler = {"tenant": "t", "clusterId": 7, "httpService": {**SERVICE, "http": {"timeout": "1s"}}}
    found = traced({"opentelemetry": {**SERVICE, "dynatraceSampler": sampler}}, randomSamplingPercentage=3)
    assert found["randomSampling"] == {"value": 100.0}
    config = found["provider"]["typedConfig"]["sampler"]["typedConfig"]
    assert config["httpService"]["httpUri"]["uri"] == f"{HOST}/api/v2/samplingConfiguration"
    assert (config["tenant"], config["clusterId"]) == ("t", 7)


def test_gateways_and_skywalking_ask_for_spans_of_the_upstream():
    assert "spawnUpstreamSpan" not in traced({"zipkin": SERVICE})
    assert traced({"zipkin": SERVICE}, side="gateway", kind="router")["spawnUpstreamSpan"] is True
    assert traced({"skywalking": SERVICE})["spawnUpstreamSpan"] is True


@pytest.mark.parametrize(
    "provider", [{"lightstep": SERVICE}, {"prometheus": {}}, {"zipkin": {"service": "x", "port": 1}}]
)
def test_what_cannot_trace_leaves_no_tracing(provider):
    assert traced(provider) is None


SCOPED = """
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: shop}
spec: {egress: [{hosts: [./*]}]}
"""


@pytest.mark.parametrize("kind", ["zipkin", "datadog"])
def test_a_tracer_whose_cluster_the_proxy_does_not_get_is_left_out(kind):
    # Envoy would refuse every listener that names it.
    assert traced({kind: SERVICE}) is not None
    assert traced({kind: {**SERVICE, "port": 1}}) is None
    assert traced({kind: SERVICE}, objects=SCOPED) is None
    assert traced({kind: SERVICE}, objects=SCOPED, side="gateway", kind="router") is not None


def test_sampling_goes_from_telemetry_to_the_proxy_to_the_mesh():
    settings = {"tracing": {"sampling": 40}}
    assert traced({"zipkin": SERVICE}, randomSamplingPercentage=0)["randomSampling"] == {}
    assert traced({"zipkin": SERVICE}, PROXY_CONFIG=settings)["randomSampling"] == {"value": 40.0}
    assert traced({"zipkin": SERVICE})["randomSampling"] == {"value": 1.0}
    assert traced({"zipkin": SERVICE}, randomSamplingPercentage=200)["randomSampling"] == {"value": 1.0}


def test_tags_that_envoy_would_refuse_are_left_out():
    tags = {
        "good": {"literal": {"value": "x"}},
        "empty": {"literal": {"value": ""}},
        "nameless": {"header": {"name": ""}},
        "spaced": {"header": {"name": "x y"}},
        "nothing": {},
        "formatted": {"formatter": {"value": "%PROTOCOL%"}},
    }
    names = {tag["tag"] for tag in traced({"zipkin": SERVICE}, enableIstioTags=False, customTags=tags)["customTags"]}
    assert names == {"good", "formatted"}
    old = traced({"zipkin": SERVICE}, enableIstioTags=False, customTags=tags, ISTIO_VERSION="1.28.0")
    assert {tag["tag"] for tag in old["customTags"]} == {"good"}


def test_propagation_can_be_switched_off_for_proxies_that_know_it():
    assert traced({"zipkin": SERVICE}, disableContextPropagation=True)["noContextPropagation"] is True
    assert "noContextPropagation" not in traced(
        {"zipkin": SERVICE}, disableContextPropagation=True, ISTIO_VERSION="1.29.9"
    )


def test_workloads_share_their_listeners_unless_a_tracer_is_told_their_name():
    db = listener_mesh.mesh_of(
        COLLECTOR,
        extensionProviders=[{"name": "z", "zipkin": SERVICE}, {"name": "d", "datadog": SERVICE}],
        defaultProviders={"tracing": ["z"]},
    )

    def profiles():
        return {
            profile(
                db, listener_mesh.proxy_at(f"10.0.0.{i}", name=f"w{i}-0", WORKLOAD_NAME=f"w{i}", MIZZEN_DIALECT="envoy")
            )
            for i in (1, 2)
        }

    assert len(profiles()) == 1
    telemetry_of_mesh = {
        "apiVersion": "telemetry.istio.io/v1",
        "kind": "Telemetry",
        "metadata": {"name": "m", "namespace": "istio-system"},
        "spec": {"tracing": [{"providers": [{"name": "d"}]}]},
    }
    listener_mesh.add(db, telemetry_of_mesh)
    assert len(profiles()) == 2
