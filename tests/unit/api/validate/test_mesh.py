"""The rules of the mesh's settings: each with a setting that breaks it and one close by that does not."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mizzen.api.mesh.config import MeshConfig
from mizzen.api.mesh.merge import (
    decode_mesh_networks,
    default_mesh_config,
    default_proxy_config,
    merge_mesh_config,
    merge_proxy_config,
)
from mizzen.api.validate.mesh.settings import (
    validate_mesh_config,
    validate_mesh_networks,
    validate_proxy_settings,
)

CORPUS = Path(__file__).parents[3] / "golden" / "corpus"
PROVIDER = "found invalid extension provider (can be ignored if the given extension provider is not used): "
EVERY_ADDRESS = "a.b:80"

MESH: list[tuple[str, str, Any, Any]] = [
    (
        "proxyListenPort",
        "invalid proxy listen port: port number 0 must be in the range 1..65535",
        {"proxyListenPort": 0},
        {"proxyListenPort": 1},
    ),
    (
        "proxyInboundListenPort",
        "invalid proxy inbound listen port: port number 65536 must be in the range 1..65535",
        {"proxyInboundListenPort": 65536},
        {"proxyInboundListenPort": 65535},
    ),
    (
        "proxyHttpPort",
        "invalid proxy HTTP port: port number 65536 must be in the range 1..65535",
        {"proxyHttpPort": 65536},
        {"proxyHttpPort": 0},
    ),
    (
        "connectTimeout",
        "invalid connect timeout: time 1h0m0.001s must be >1ms and <1h0m0s",
        {"connectTimeout": "3600.001s"},
        {"connectTimeout": "3600s"},
    ),
    (
        "connectTimeout",
        "invalid connect timeout: duration must be greater than 1ms",
        {"connectTimeout": "0s"},
        {"connectTimeout": "1ms"},
    ),
    (
        "protocolDetectionTimeout",
        "invalid protocol detection timeout: only durations to ms precision are supported",
        {"protocolDetectionTimeout": "0.0015s"},
        {"protocolDetectionTimeout": "0s"},
    ),
    ("trustDomain", "trustDomain: empty domain name not allowed", {"trustDomain": ""}, {"trustDomain": "a"}),
    ("trustDomain", 'trustDomain: trust domain name "a_b" invalid', {"trustDomain": "a_b"}, {"trustDomain": "a.b."}),
    (
        "trustDomainAliases[1]",
        'trustDomainAliases[1], domain `b..c` : trust domain name "b..c" invalid',
        {"trustDomainAliases": ["a", "b..c"]},
        {"trustDomainAliases": ["a", "b.c"]},
    ),
    (
        "meshMTLS.ecdhCurves",
        "mesh TLS does not support ECDH curves configuration",
        {"meshMTLS": {"ecdhCurves": ["P-256"]}},
        {"meshMTLS": {"minProtocolVersion": "TLSV1_3"}},
    ),
    (
        "tlsDefaults.ecdhCurves",
        "detected unrecognized ECDH curves: [A B]",
        {"tlsDefaults": {"ecdhCurves": ["B", "P-256", "A", "B"]}},
        {"tlsDefaults": {"ecdhCurves": ["P-256", "X25519MLKEM768"]}},
    ),
    (
        "tlsDefaults.ecdhCurves",
        "detected duplicate ECDH curves: [P-256]",
        {"tlsDefaults": {"ecdhCurves": ["P-256", "P-256"]}},
        {"tlsDefaults": {"ecdhCurves": ["P-256", "P-384"]}},
    ),
    (
        "localityLbSetting",
        "can not simultaneously specify 'distribute' and 'failover'",
        {
            "localityLbSetting": {
                "distribute": [{"from": "a", "to": {"b": 100}}],
                "failover": [{"from": "a", "to": "b"}],
            }
        },
        {"localityLbSetting": {"failover": [{"from": "a", "to": "b"}]}},
    ),
    (
        "zoneAwareLbSetting.failover[0]",
        "zone aware lb failover settings must specify different regions",
        {"zoneAwareLbSetting": {"failover": [{"from": "a", "to": "a"}]}},
        {"zoneAwareLbSetting": {"failover": [{"from": "a", "to": "b"}]}},
    ),
    (
        "defaultTrafficPolicy.connectionPool",
        "connection pool must have at least one field",
        {"defaultTrafficPolicy": {"connectionPool": {}}},
        {"defaultTrafficPolicy": {"connectionPool": {"tcp": {}}}},
    ),
    (
        "defaultTrafficPolicy.outlierDetection.maxEjectionPercent",
        "percentage 101 is not in range 0..100",
        {"defaultTrafficPolicy": {"outlierDetection": {"maxEjectionPercent": 101}}},
        {"defaultTrafficPolicy": {"outlierDetection": {"maxEjectionPercent": 100}}},
    ),
    (
        "extensionProviders[0].name",
        f"{PROVIDER}empty extension provider name",
        {"extensionProviders": [{"prometheus": {}}]},
        {"extensionProviders": [{"name": "a", "prometheus": {}}]},
    ),
    (
        "extensionProviders[1].name",
        f"{PROVIDER}duplicate extension provider name a",
        {"extensionProviders": [{"name": "a", "prometheus": {}}, {"name": "a", "stackdriver": {}}]},
        {"extensionProviders": [{"name": "a", "prometheus": {}}, {"name": "b", "stackdriver": {}}]},
    ),
    (
        "extensionProviders[0]",
        f"{PROVIDER}unset provider a",
        {"extensionProviders": [{"name": "a"}]},
        {"extensionProviders": [{"name": "a", "envoyFileAccessLog": {}}]},
    ),
    (
        "extensionProviders[0].zipkin.port",
        f"{PROVIDER}port number 0 must be in the range 1..65535",
        {"extensionProviders": [{"name": "a", "zipkin": {"service": "a.b"}}]},
        {"extensionProviders": [{"name": "a", "zipkin": {"service": "a.b", "port": 80}}]},
    ),
    (
        "extensionProviders[0].opentelemetry.service",
        f"{PROVIDER}empty domain name not allowed",
        {"extensionProviders": [{"name": "a", "opentelemetry": {"port": 80}}]},
        {"extensionProviders": [{"name": "a", "opentelemetry": {"service": "ns/a.b", "port": 80}}]},
    ),
    (
        "extensionProviders[0].envoyOtelAls.service",
        f"{PROVIDER}invalid namespace 'n_s' in service n_s/a.b",
        {"extensionProviders": [{"name": "a", "envoyOtelAls": {"service": "n_s/a.b", "port": 80}}]},
        {"extensionProviders": [{"name": "a", "envoyOtelAls": {"service": "n-s/a.b", "port": 80}}]},
    ),
    (
        "extensionProviders[0].envoyExtAuthzHttp.pathPrefix",
        f"{PROVIDER}pathPrefix should begin with `/`",
        {"extensionProviders": [{"name": "a", "envoyExtAuthzHttp": {"service": "a", "port": 80, "pathPrefix": "a"}}]},
        {"extensionProviders": [{"name": "a", "envoyExtAuthzHttp": {"service": "a", "port": 80, "pathPrefix": "/"}}]},
    ),
    (
        "extensionProviders[0].envoyExtAuthzHttp.statusOnError",
        f"{PROVIDER}invalid statusOnError value 99",
        {
            "extensionProviders": [
                {"name": "a", "envoyExtAuthzHttp": {"service": "a", "port": 80, "statusOnError": "99"}}
            ]
        },
        {
            "extensionProviders": [
                {"name": "a", "envoyExtAuthzHttp": {"service": "a", "port": 80, "statusOnError": "100"}}
            ]
        },
    ),
    (
        "defaultConfig.discoveryAddress",
        "invalid discovery address: port number 0 must be in the range 1..65535",
        {"defaultConfig": {"discoveryAddress": "istiod:0"}},
        {"defaultConfig": {"discoveryAddress": "istiod:1"}},
    ),
]

PROXY: list[tuple[str, str, Any, Any]] = [
    ("configPath", "config path must be set", {"configPath": ""}, {"configPath": "/etc"}),
    ("binaryPath", "binary path must be set", {"binaryPath": ""}, {"binaryPath": "/bin/envoy"}),
    (
        "serviceCluster",
        "oneof service cluster or tracing service name must be specified",
        {"serviceCluster": ""},
        {"tracingServiceName": "CANONICAL_NAME_ONLY"},
    ),
    (
        "drainDuration",
        "invalid drain duration: only durations to seconds precision are supported",
        {"drainDuration": "1.5s"},
        {"drainDuration": "1s"},
    ),
    (
        "terminationDrainDuration",
        "invalid termination drain duration: duration must be greater than 1ms",
        {"terminationDrainDuration": "0s"},
        {"terminationDrainDuration": "5s"},
    ),
    (
        "discoveryAddress",
        "discovery address must be set to the proxy discovery service",
        {"discoveryAddress": ""},
        {"discoveryAddress": "[::1]:15012"},
    ),
    (
        "discoveryAddress",
        'invalid discovery address: unable to split "istiod": missing port in address',
        {"discoveryAddress": "istiod"},
        {"discoveryAddress": "istiod:15012"},
    ),
    (
        "discoveryAddress",
        "invalid discovery address: port (http) is not a number",
        {"discoveryAddress": "istiod:http"},
        {"discoveryAddress": "1.2.3.4:15012"},
    ),
    (
        "discoveryAddress",
        'invalid discovery address: domain name "a_b" invalid (label "a_b" invalid)',
        {"discoveryAddress": "a_b:15012"},
        {"discoveryAddress": "a-b:15012"},
    ),
    (
        "proxyAdminPort",
        "invalid proxy admin port: port number -1 must be in the range 1..65535",
        {"proxyAdminPort": -1},
        {"proxyAdminPort": 1},
    ),
    (
        "statusPort",
        "invalid status port: port number 0 must be in the range 1..65535",
        {"statusPort": 0},
        {"statusPort": 15020},
    ),
    (
        "statsdUdpAddress",
        'invalid statsd udp address "a:b": port (b) is not a number',
        {"statsdUdpAddress": "a:b"},
        {"statsdUdpAddress": EVERY_ADDRESS},
    ),
    (
        "zipkinAddress",
        'invalid zipkin address "a:b": port (b) is not a number',
        {"zipkinAddress": "a:b"},
        {"zipkinAddress": EVERY_ADDRESS},
    ),
    (
        "envoyMetricsService.address",
        'invalid envoy metrics service address "a:b": port (b) is not a number',
        {"envoyMetricsService": {"address": "a:b"}},
        {"envoyMetricsService": {"address": EVERY_ADDRESS}},
    ),
    (
        "envoyAccessLogService.address",
        'invalid envoy access log service address "a:b": port (b) is not a number',
        {"envoyAccessLogService": {"address": "a:b"}},
        {"envoyAccessLogService": {"address": ""}},
    ),
    (
        "tracing.zipkin.address",
        'invalid zipkin address: unable to split "": missing port in address',
        {"tracing": {"zipkin": {}}},
        {"tracing": {"zipkin": {"address": EVERY_ADDRESS}}},
    ),
    (
        "tracing.lightstep.address",
        'invalid lightstep address: unable to split "a": missing port in address',
        {"tracing": {"lightstep": {"address": "a", "accessToken": "t"}}},
        {"tracing": {"lightstep": {"address": EVERY_ADDRESS, "accessToken": "t"}}},
    ),
    (
        "tracing.lightstep.accessToken",
        "access token is required",
        {"tracing": {"lightstep": {"address": EVERY_ADDRESS}}},
        {"tracing": {"lightstep": {"address": EVERY_ADDRESS, "accessToken": "t"}}},
    ),
    (
        "tracing.datadog.address",
        'invalid datadog address: unable to split "a": missing port in address',
        {"tracing": {"datadog": {"address": "a"}}},
        {"tracing": {"datadog": {"address": "$(HOST_IP):8126"}}},
    ),
    (
        "tracing.sampling",
        "sampling must be in range [0.0, 100.0]",
        {"tracing": {"sampling": 100.1}},
        {"tracing": {"sampling": 100}},
    ),
    (
        "readinessProbe.tcpSocket.port",
        "port number 0 must be in the range 1..65535",
        {"readinessProbe": {"tcpSocket": {}}},
        {"readinessProbe": {"tcpSocket": {"port": 80}}},
    ),
]

NETWORKS: list[tuple[str, str, Any, Any]] = [
    (
        "networks[n].endpoints[0]",
        "invalid network n: 1.2.3.4/33 is not a valid CIDR block",
        {"endpoints": [{"fromCidr": "1.2.3.4/33"}]},
        {"endpoints": [{"fromCidr": "1.2.3.0/24"}]},
    ),
    (
        "networks[n].endpoints[0]",
        "invalid network n: invalid registry name: a.b",
        {"endpoints": [{"fromRegistry": "a.b"}]},
        {"endpoints": [{"fromRegistry": "Kubernetes"}]},
    ),
    (
        "networks[n].gateways[0].address",
        'invalid network n: domain name "a_b" invalid (label "a_b" invalid)',
        {"gateways": [{"address": "a_b", "port": 443}]},
        {"gateways": [{"address": "1.2.3.4", "port": 443}, {"address": "a.b", "port": 443}]},
    ),
    (
        "networks[n].gateways[0].registryServiceName",
        'invalid network n: domain name "a_b" invalid (label "a_b" invalid)',
        {"gateways": [{"registryServiceName": "a_b", "port": 443}]},
        {"gateways": [{"registryServiceName": "a.b.svc.cluster.local", "port": 443}]},
    ),
    (
        "networks[n].gateways[0].port",
        "invalid network n: port number 0 must be in the range 1..65535",
        {"gateways": [{"address": "1.2.3.4"}]},
        {"gateways": [{"address": "1.2.3.4", "port": 1}]},
    ),
]


def test_the_defaults_are_without_fault() -> None:
    assert validate_mesh_config(default_mesh_config()) == ()
    assert validate_proxy_settings(default_proxy_config()) == ()


def test_settings_of_proxies_have_to_be_there() -> None:
    messages = [problem.message for problem in validate_mesh_config(MeshConfig())]

    assert "missing default config" in messages


@pytest.mark.parametrize(("path", "message", "broken", "fine"), MESH)
def test_rules_of_the_mesh_config(path: str, message: str, broken: Any, fine: Any) -> None:
    def said(written: Any) -> list[tuple[str, str]]:
        config, problems = merge_mesh_config(written)
        assert problems == ()
        return [(problem.path, problem.message) for problem in validate_mesh_config(config)]

    assert (path, message) in said(broken)
    assert said(fine) == []


@pytest.mark.parametrize(("path", "message", "broken", "fine"), PROXY)
def test_rules_of_the_settings_of_a_proxy(path: str, message: str, broken: Any, fine: Any) -> None:
    def said(written: Any) -> list[tuple[str, str]]:
        settings, problems = merge_proxy_config(written)
        assert problems == ()
        return [(problem.path, problem.message) for problem in validate_proxy_settings(settings)]

    assert (path, message) in said(broken)
    assert said(fine) == []


@pytest.mark.parametrize(("path", "message", "broken", "fine"), NETWORKS)
def test_rules_of_networks(path: str, message: str, broken: Any, fine: Any) -> None:
    def said(network: Any) -> list[tuple[str, str]]:
        networks, problems = decode_mesh_networks({"networks": {"n": network}})
        assert problems == ()
        return [(problem.path, problem.message) for problem in validate_mesh_networks(networks)]

    assert (path, message) in said(broken)
    assert said(fine) == []


def test_faults_of_providers_are_only_warned_of() -> None:
    config, _ = merge_mesh_config({"extensionProviders": [{"name": "a"}], "proxyListenPort": 0})

    assert [(p.level, p.path) for p in validate_mesh_config(config)] == [
        ("error", "proxyListenPort"),
        ("warning", "extensionProviders[0]"),
    ]


def test_every_mesh_config_of_the_corpus_is_without_fault() -> None:
    base = yaml.safe_load((CORPUS / "mesh.yaml").read_text())
    for path in sorted(CORPUS.glob("*/*.yaml")):
        head = next(yaml.load_all(path.read_text(), yaml.CSafeLoader))
        config, _ = merge_mesh_config({**base, **(head.get("mesh") or {})})
        assert validate_mesh_config(config) == (), path
