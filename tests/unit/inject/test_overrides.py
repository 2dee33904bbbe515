import pytest
from injected_pods import build_pod, container, environment, inject, names, refuse

from mizzen.inject.overrides import read_overrides
from mizzen.inject.values import InjectionConfig

TRAFFIC = "traffic.sidecar.istio.io/"


def _arguments(**annotations: str) -> list[str]:
    pod = inject(build_pod(annotations={TRAFFIC + name: value for name, value in annotations.items()}))
    return list(container(pod, "istio-init")["args"])


def _flag(arguments: list[str], flag: str) -> str | None:
    return arguments[arguments.index(flag) + 1] if flag in arguments else None


@pytest.mark.parametrize(
    ("name", "value", "flag", "expected"),
    [
        ("includeOutboundIPRanges", "10.0.0.0/8,fd00::/8", "-i", "10.0.0.0/8,fd00::/8"),
        ("includeOutboundIPRanges", "", "-i", ""),
        ("excludeOutboundIPRanges", "10.1.0.0/16", "-x", "10.1.0.0/16"),
        ("includeInboundPorts", "80,81", "-b", "80,81"),
        ("includeInboundPorts", "", "-b", ""),
        ("excludeInboundPorts", "22", "-d", "15090,15021,22,15020"),
        ("excludeInboundPorts", "15020,22", "-d", "15090,15021,15020,22"),
        ("includeOutboundPorts", "443", "-q", "443"),
        ("excludeOutboundPorts", "25", "-o", "25"),
        ("kubevirtInterfaces", "k6t", "-k", "k6t"),
        ("excludeInterfaces", "eth1", "-c", "eth1"),
    ],
)
def test_traffic_annotations_become_flags_of_capture(name: str, value: str, flag: str, expected: str) -> None:
    assert _flag(_arguments(**{name: value}), flag) == expected


def test_optional_flags_are_absent_without_their_annotation() -> None:
    arguments = _arguments()
    assert [_flag(arguments, flag) for flag in ("-q", "-o", "-k", "-c")] == [None] * 4


def test_values_give_defaults_that_annotations_override() -> None:
    config = InjectionConfig(exclude_outbound_ports="25", include_inbound_ports="80", status_port=15555)
    arguments = container(inject(build_pod(), config=config), "istio-init")["args"]
    assert (_flag(arguments, "-o"), _flag(arguments, "-b")) == ("25", "80")
    assert _flag(arguments, "-d") == "15090,15021,15555"
    pod = build_pod(annotations={TRAFFIC + "excludeOutboundPorts": ""})
    assert _flag(container(inject(pod, config=config), "istio-init")["args"], "-o") == ""


def test_interception_mode_none_leaves_capture_out() -> None:
    pod = inject(build_pod(annotations={"sidecar.istio.io/interceptionMode": "NONE"}))
    assert names(pod, "initContainers") == []
    assert environment(pod)["ISTIO_META_INTERCEPTION_MODE"] == "NONE"


def test_status_port_zero_takes_the_probes_away() -> None:
    application = {"name": "app", "livenessProbe": {"httpGet": {"port": 80, "path": "/"}}}
    pod = inject(build_pod(application, annotations={"status.sidecar.istio.io/port": "0"}))
    proxy = container(pod)
    assert "readinessProbe" not in proxy
    assert "startupProbe" not in proxy
    assert container(pod, "app") == application
    assert _flag(container(pod, "istio-init")["args"], "-d") == "15090,15021"


def test_readiness_annotations_reach_the_probe() -> None:
    prefix = "readiness.status.sidecar.istio.io/"
    chosen = {prefix + "initialDelaySeconds": "1", prefix + "periodSeconds": "2", prefix + "failureThreshold": "3"}
    probe = container(inject(build_pod(annotations=chosen)))["readinessProbe"]
    assert [probe[name] for name in ("initialDelaySeconds", "periodSeconds", "failureThreshold")] == [1, 2, 3]


def test_any_resource_annotation_replaces_the_values_as_a_whole() -> None:
    proxy = container(inject(build_pod(annotations={"sidecar.istio.io/proxyMemory": "64Mi"})))
    assert proxy["resources"] == {"requests": {"memory": "64Mi"}}


@pytest.mark.parametrize(
    ("annotation", "value", "image"),
    [
        ("proxyImage", "other", "docker.io/istio/other:1.32.0"),
        ("proxyImage", "registry/x/proxy:7", "registry/x/proxy:7"),
        ("proxyImageType", "debug", "docker.io/istio/proxyv2:1.32.0-debug"),
        ("proxyImageType", "default", "docker.io/istio/proxyv2:1.32.0"),
    ],
)
def test_image_annotations(annotation: str, value: str, image: str) -> None:
    pod = inject(build_pod(annotations={f"sidecar.istio.io/{annotation}": value}))
    assert container(pod)["image"] == image


def test_log_levels_are_arguments_of_the_agent() -> None:
    chosen = {"logLevel": "trace", "componentLogLevel": "http:debug", "agentLogLevel": "ads:debug"}
    pod = inject(build_pod(annotations={f"sidecar.istio.io/{name}": level for name, level in chosen.items()}))
    assert container(pod)["args"][-3:] == [
        "--proxyLogLevel=trace",
        "--proxyComponentLogLevel=http:debug",
        "--log_output_level=ads:debug",
    ]


def test_binding_low_ports_needs_root_and_a_capability() -> None:
    pod = inject(build_pod(annotations={"sidecar.istio.io/capNetBindService": "true"}))
    context = container(pod)["securityContext"]
    assert context["capabilities"] == {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}
    assert (context["runAsUser"], context["runAsGroup"], context["runAsNonRoot"]) == (0, 1337, False)


def test_a_bootstrap_override_is_mounted_and_named() -> None:
    pod = inject(build_pod(annotations={"sidecar.istio.io/bootstrapOverride": "mine"}))
    assert {"name": "custom-bootstrap-volume", "configMap": {"name": "mine"}} in pod["spec"]["volumes"]
    mount = {"name": "custom-bootstrap-volume", "mountPath": "/etc/istio/custom-bootstrap"}
    assert mount in container(pod)["volumeMounts"]
    assert environment(pod)["ISTIO_BOOTSTRAP_OVERRIDE"] == "/etc/istio/custom-bootstrap/custom_bootstrap.json"


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        ("sidecar.istio.io/interceptionMode", "BOTH", "interceptionMode invalid, use REDIRECT,TPROXY,NONE: BOTH"),
        ("status.sidecar.istio.io/port", "70000", "failed parsing port '70000'"),
        ("readiness.status.sidecar.istio.io/periodSeconds", "-1", "no unsigned 32 bit number"),
        (
            TRAFFIC + "includeOutboundIPRanges",
            "10.0.0.0/33",
            "includeIPRanges invalid: failed parsing cidr '10.0.0.0/33'",
        ),
        (TRAFFIC + "excludeOutboundIPRanges", "*", "excludeIPRanges invalid: failed parsing cidr '*'"),
        (TRAFFIC + "includeInboundPorts", "http", "includeInboundPorts invalid: failed parsing port 'http'"),
        (TRAFFIC + "excludeOutboundPorts", "1,99999", "excludeOutboundPorts invalid: failed parsing port '99999'"),
        (TRAFFIC + "excludeInterfaces", "eth0/1", "no name of a network interface"),
        ("prometheus.istio.io/merge-metrics", "perhaps", "neither true nor false"),
        ("sidecar.istio.io/proxyCPU", "much", "no quantity"),
        ("sidecar.istio.io/proxyMemory", "1\n", "value contains control characters"),
        ("sidecar.istio.io/userVolume", "[]", "Expected `object`"),
        ("proxy.istio.io/config", "concurrency: many", "failed to convert to apply proxy config: concurrency"),
        ("proxy.istio.io/config", "]", "failed to convert to apply proxy config"),
        ("proxy.istio.io/config", "just text", "failed to convert to apply proxy config: expected an object"),
        (
            "inject.istio.io/templates",
            "grpc-agent",
            "template 'grpc-agent' is not built in; there are: gateway, sidecar",
        ),
        ("proxy.istio.io/config", "a: &x [1]\nb: *x", "aliases are not allowed here"),
        ("inject.istio.io/templates", "", "no template is named"),
    ],
)
def test_an_annotation_that_does_not_read_refuses_the_pod_by_name(annotation: str, value: str, message: str) -> None:
    (problem,) = refuse(build_pod(annotations={annotation: value}))
    assert problem.startswith(f'metadata.annotations["{annotation}"]: ')
    assert message in problem


def test_all_faulty_annotations_are_reported_at_once() -> None:
    chosen = {"sidecar.istio.io/proxyCPU": "x", "status.sidecar.istio.io/port": "y", "proxy.istio.io/config": "[]"}
    assert len(refuse(build_pod(annotations=chosen))) == 3


@pytest.mark.parametrize("quantity", ["1", "100m", "0.5", ".5", "128Mi", "1e3", "2Gi", "1k", "10Ki", "5E"])
def test_quantities_that_kubernetes_takes(quantity: str) -> None:
    overrides, problems = read_overrides(
        {"sidecar.istio.io/proxyCPULimit": quantity}, InjectionConfig(), status_port=15020
    )
    assert problems == ()
    assert overrides is not None
    assert overrides.resources is not None
    assert overrides.resources.limits == {"cpu": quantity}


def test_proxy_config_chooses_the_mode_unless_the_annotation_does() -> None:
    mesh = {"defaultConfig": {"interceptionMode": "TPROXY"}}
    assert _flag(container(inject(build_pod(), mesh=mesh), "istio-init")["args"], "-m") == "TPROXY"
    pod = build_pod(annotations={"sidecar.istio.io/interceptionMode": "REDIRECT"})
    assert _flag(container(inject(pod, mesh=mesh), "istio-init")["args"], "-m") == "REDIRECT"


def test_a_malformed_mesh_config_does_not_stop_injection() -> None:
    mesh = {"defaultConfig": {"proxyMetadata": 1, "statusPort": "x", "image": []}, "inboundTrafficPolicy": "LOCALHOST"}
    assert names(inject(build_pod(), mesh=mesh)) == ["app", "istio-proxy"]
    assert names(inject(build_pod(), mesh={"defaultConfig": "none"})) == ["app", "istio-proxy"]


@pytest.mark.parametrize("annotation", ["proxy.istio.io/config", "sidecar.istio.io/userVolumeMount"])
def test_text_without_bottom_refuses_the_pod(annotation: str) -> None:
    (problem,) = refuse(build_pod(annotations={annotation: '{"a":' * 50_000}))
    assert f'annotations["{annotation}"]' in problem
    assert len(problem) < 500
