"""What mesh and proxy settings do to every connection manager of a side."""

import listener_mesh
import pytest

from mizzen.compile.listeners import settings
from mizzen.compile.listeners.profiles import profile


def http(side, *, mesh=None, **metadata):
    db = listener_mesh.mesh_of("", **(mesh or {}))
    proxy = listener_mesh.proxy_at(kind="router" if side == "gateway" else "sidecar", **metadata)
    return settings.http_settings(db, profile(db, proxy), side, "")


def config(**fields):
    return {"PROXY_CONFIG": fields}


@pytest.mark.parametrize(
    ("chosen", "normalize", "merge", "escaped"),
    [
        ("DEFAULT", True, False, "KEEP_UNCHANGED"),
        ("NONE", False, False, "KEEP_UNCHANGED"),
        ("MERGE_SLASHES", True, True, "KEEP_UNCHANGED"),
        ("DECODE_AND_MERGE_SLASHES", True, True, "UNESCAPE_AND_FORWARD"),
    ],
)
def test_paths_are_normalised_as_the_mesh_says(chosen, normalize, merge, escaped):
    found = http("inbound", mesh={"pathNormalization": {"normalization": chosen}})
    assert (found.normalize_path, found.merge_slashes, found.escaped_slashes) == (normalize, merge, escaped)


def test_a_node_without_settings_has_the_meshs_and_any_of_its_own_replace_them_all():
    mesh = {"defaultConfig": {"proxyHeaders": {"server": {"value": "mine"}}}}
    assert http("inbound", mesh=mesh, PROXY_CONFIG=None).server_name == "mine"
    assert http("inbound", mesh=mesh, PROXY_CONFIG={}).server_name == "istio-envoy"


def test_server_names_differ_by_side():
    assert http("inbound").server_name == http("gateway").server_name == "istio-envoy"
    assert http("outbound").server_name == ""
    named = config(proxyHeaders={"server": {"value": "x"}})
    assert http("outbound", **named).server_name == "x"
    off = http("inbound", **config(proxyHeaders={"server": {"disabled": True}}))
    assert (off.server_name, off.pass_server_header) == ("", True)


def test_who_may_write_the_client_certificate_header():
    assert http("outbound").client_certificate is None
    inbound = http("inbound").client_certificate
    assert (inbound.mode, inbound.details) == ("APPEND_FORWARD", ("subject", "dns", "uri"))
    gateway = http("gateway").client_certificate
    assert (gateway.mode, gateway.details) == ("SANITIZE_SET", ("subject", "cert", "dns", "uri"))
    forwarded = http("gateway", **config(gatewayTopology={"forwardClientCertDetails": "FORWARD_ONLY"}))
    assert forwarded.client_certificate.details == ()
    chosen = config(proxyHeaders={"setCurrentClientCertDetails": {"subject": False, "cert": True}})
    assert http("inbound", **chosen).client_certificate.details == ("cert", "dns", "uri")


def test_the_proxys_own_timeout_goes_before_the_nodes():
    assert http("inbound", IDLE_TIMEOUT="5s").connections.idle_timeout.total_seconds == 5
    both = {"IDLE_TIMEOUT": "5s", **config(connectionSettings={"httpIdleTimeout": "9s"})}
    assert http("inbound", **both).connections.idle_timeout.total_seconds == 9
    assert http("inbound", IDLE_TIMEOUT="soon").connections.idle_timeout is None


def test_the_edge_profile_is_only_for_gateways():
    edge = config(connectionSettings={"profile": "EDGE"})
    assert http("gateway", **edge).connections.max_concurrent_streams == 100
    assert http("inbound", **edge).connections.max_concurrent_streams is None


@pytest.mark.parametrize(("sampling", "percent"), [(0, 1.0), (40, 40.0), (140, 1.0)])
def test_sampling_is_a_percentage(sampling, percent):
    assert http("inbound", **config(tracing={"sampling": sampling})).tracing.sampling == percent


def test_tracing_can_be_switched_off():
    assert http("inbound", mesh={"enableTracing": False}).tracing is None


def test_spans_name_the_workload_by_value_or_by_environment():
    labels = {"service.istio.io/canonical-name": "cart"}
    literal = {t.name: (t.kind, t.value) for t in http("inbound", LABELS=labels).tracing.tags}
    assert literal["istio.canonical_service"] == ("literal", "cart")
    assert literal["istio.namespace"] == ("literal", "shop")
    own = {t.name: (t.kind, t.value) for t in http("inbound", MIZZEN_DIALECT="envoy").tracing.tags}
    assert own["istio.canonical_service"] == ("environment", "MZ_CANONICAL_SERVICE")


def test_upstream_sidecars_of_different_workloads_share_their_settings():
    db = listener_mesh.mesh_of("")
    found = {
        profile(db, listener_mesh.proxy_at(f"10.0.0.{i}", namespace=f"ns-{i}", MIZZEN_DIALECT="envoy"))
        for i in range(1, 4)
    }
    assert len(found) == 1


def test_metrics_need_a_provider_that_is_prometheus():
    assert http("inbound").metrics is None
    assert http("inbound", mesh={"defaultProviders": {"metrics": ["prometheus"]}}).metrics is not None
    assert http("inbound", mesh={"defaultProviders": {"metrics": ["no-such"]}}).metrics is None


def test_logs_of_the_mesh():
    assert http("inbound").access_logs == ()
    (text,) = http("inbound", mesh={"accessLogFile": "/dev/stdout", "accessLogFormat": "a"}).access_logs
    assert (text.sink.path, text.sink.text) == ("/dev/stdout", "a\n")
    broken = {"accessLogFile": "/dev/stdout", "accessLogEncoding": "JSON", "accessLogFormat": "not json"}
    (fallen_back,) = http("inbound", mesh=broken).access_logs
    assert '"start_time":"%START_TIME%"' in fallen_back.sink.json
