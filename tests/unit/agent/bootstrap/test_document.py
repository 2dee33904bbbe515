"""Envoy's bootstrap, as recorded beside this file; UPDATE_GOLDEN=1 records it anew."""

import base64
import json
import os
from pathlib import Path

import pytest

from mizzen import protos
from mizzen.agent.bootstrap import document, node
from mizzen.agent.bootstrap.proxy_config import parse_proxy_config

HERE = Path(__file__).parent


def build(kind: str = "sidecar", config: str = "", addresses=("10.1.1.10",), environ=(), **facts):
    pod = node.Pod(
        kind=kind,
        name="front-0",
        namespace="web",
        domain="web.svc.cluster.local",
        service_account="front",
        addresses=addresses,
        labels={"app": "front"},
    )
    parsed = parse_proxy_config(config)
    metadata = node.build_metadata(pod, parsed, dict(environ), {"MIZZEN_DIALECT": "envoy"})
    given = document.Facts(xds_socket="etc/istio/proxy/XDS", ipv6=pod.ipv6_only, **facts)
    return document.build_bootstrap(node.build_node(pod, metadata, parsed), parsed, given)


CASES = {
    "sidecar": build(environ={"ISTIO_META_CLUSTER_ID": "Kubernetes", "ISTIO_META_WORKLOAD_NAME": "front"}),
    "router": build(
        "router",
        "runtimeValues: {envoy.reloadable_features.x: 'false'}\nproxyStatsMatcher: {inclusionPrefixes: [http]}",
        addresses=("fd00::10",),
        outlier_log="/dev/stdout",
        log_as_json=True,
        count_connections=True,
        socket_mark=1337,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bootstrap_is_as_recorded(case: str) -> None:
    path = HERE / f"{case}.json"
    text = json.dumps(CASES[case], indent=1) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("case", CASES)
def test_bootstrap_is_the_message_that_envoy_reads(case: str) -> None:
    message = protos.from_json(protos.message_class("envoy.config.bootstrap.v3.Bootstrap"), CASES[case])
    assert message.node.id.startswith(f"{case}~")
    assert len(message.static_resources.clusters) == 3


def test_metrics_are_served_by_way_of_the_agent() -> None:
    listener = build()["staticResources"]["listeners"][0]
    (route,) = listener["filterChains"][0]["filters"][0]["typedConfig"]["routeConfig"]["virtualHosts"][0]["routes"]
    assert route["match"] == {"prefix": "/stats/prometheus"}
    assert route["route"] == {"cluster": "agent", "prefixRewrite": node.ENVOY_METRICS}


def test_module_of_the_stat_namespace_is_webassembly() -> None:
    module = base64.b64decode(document.STAT_NAMESPACE_MODULE)
    assert module[:8] == b"\0asm\1\0\0\0"
    assert len(module) == 201


def test_pods_that_share_a_namespace_have_one_address_each() -> None:
    text = json.dumps(build(bind_address="127.1.0.7"))
    assert "127.0.0.1" not in text
    assert "0.0.0.0" not in text
    assert text.count('"address": "127.1.0.7"') == 4


def test_admin_and_status_ports_are_the_proxy_configs() -> None:
    built = build(config="proxyAdminPort: 15999\nstatusPort: 15998")
    assert built["admin"]["address"]["socketAddress"]["portValue"] == 15999
    clusters = {cluster["name"]: json.dumps(cluster) for cluster in built["staticResources"]["clusters"]}
    assert "15998" in clusters["agent"]
