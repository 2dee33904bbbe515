import pytest

from mizzen.api.mesh.merge import (
    decode_mesh_networks,
    default_mesh_config,
    default_proxy_config,
    merge_mesh_config,
    merge_proxy_config,
)
from mizzen.api.mesh.networks import IstioNetworkGateway, NetworkEndpoints
from mizzen.api.mesh.proxy import ProxyHeaders, RequestId, ServerHeader, Tracing
from mizzen.api.scalars import Duration


def test_nothing_written_is_the_defaults() -> None:
    assert merge_mesh_config(None) == (default_mesh_config(), ())
    assert merge_mesh_config({}) == (default_mesh_config(), ())
    assert merge_mesh_config({"accessLogFile": None}) == (default_mesh_config(), ())


def test_the_defaults_are_those_of_the_reference() -> None:
    mesh = default_mesh_config()
    assert (mesh.proxy_listen_port, mesh.proxy_inbound_listen_port, mesh.proxy_http_port) == (15001, 15006, 0)
    assert (str(mesh.connect_timeout), str(mesh.dns_refresh_rate)) == ("10s", "60s")
    assert (mesh.trust_domain, mesh.root_namespace) == ("cluster.local", "istio-system")
    assert mesh.outbound_traffic_policy is not None
    assert mesh.outbound_traffic_policy.mode == "ALLOW_ANY"
    assert mesh.enable_auto_mtls is True
    assert [provider.name for provider in mesh.extension_providers] == ["prometheus", "stackdriver", "envoy"]
    assert mesh.default_config is default_proxy_config()
    assert default_proxy_config().discovery_address == "istiod.istio-system.svc:15012"


def test_written_fields_replace_the_defaults_even_by_zero() -> None:
    mesh, problems = merge_mesh_config({"enableAutoMtls": False, "enableTracing": False, "connectTimeout": "1s"})
    assert problems == ()
    assert mesh.enable_auto_mtls is False
    assert mesh.enable_tracing is False
    assert mesh.connect_timeout == Duration.of(seconds=1)
    assert mesh.trust_domain == "cluster.local"


def test_messages_are_replaced_whole() -> None:
    mesh, _ = merge_mesh_config({"outboundTrafficPolicy": {}, "localityLbSetting": {"failoverPriority": ["a"]}})
    assert mesh.outbound_traffic_policy is not None
    assert mesh.outbound_traffic_policy.mode == "REGISTRY_ONLY"
    assert mesh.locality_lb_setting is not None
    assert mesh.locality_lb_setting.enabled is None


def test_extension_providers_merge_by_name() -> None:
    mesh, _ = merge_mesh_config(
        {"extensionProviders": [{"name": "envoy", "envoyFileAccessLog": {"path": "/a"}}, {"name": "zip", "zipkin": {}}]}
    )
    assert [provider.name for provider in mesh.extension_providers] == ["envoy", "zip", "prometheus", "stackdriver"]
    log = mesh.extension_providers[0].envoy_file_access_log
    assert log is not None
    assert log.path == "/a"


def test_trust_domain_aliases_add_up() -> None:
    first, _ = merge_mesh_config({"trustDomainAliases": ["b"]})
    second, _ = merge_mesh_config({"trustDomainAliases": ["c", "a", "b"]}, first)
    assert second.trust_domain_aliases == ("a", "b", "c")


def test_the_default_config_is_merged_field_by_field() -> None:
    first, problems = merge_mesh_config(
        {"default_config": {"concurrency": 4, "proxyMetadata": {"A": "1", "B": "1"}, "tracing": {"sampling": 5}}}
    )
    assert problems == ()
    second, _ = merge_mesh_config({"defaultConfig": {"proxyMetadata": {"B": "2"}, "tracing": {"zipkin": {}}}}, first)
    proxy = second.default_config
    assert proxy is not None
    assert (proxy.status_port, proxy.concurrency) == (15020, 4)
    assert proxy.proxy_metadata == {"A": "1", "B": "2"}
    assert proxy.tracing is not None
    assert proxy.tracing.sampling == Tracing().sampling


def test_proxy_headers_are_merged_header_by_header() -> None:
    first, _ = merge_proxy_config({"proxyHeaders": {"server": {"disabled": True}, "requestId": {"disabled": True}}})
    second, _ = merge_proxy_config({"proxyHeaders": {"server": {"value": "me"}}}, first)
    assert second.proxy_headers == ProxyHeaders(server=ServerHeader(value="me"), request_id=RequestId(disabled=True))


def test_the_two_ways_to_name_a_cluster_exclude_each_other() -> None:
    by_rule, _ = merge_proxy_config({"tracingServiceName": "CANONICAL_NAME_ONLY"})
    assert (by_rule.service_cluster, by_rule.tracing_service_name) == (None, "CANONICAL_NAME_ONLY")
    by_name, _ = merge_proxy_config({"serviceCluster": "cart"}, by_rule)
    assert (by_name.service_cluster, by_name.tracing_service_name) == ("cart", None)


def test_a_field_at_fault_keeps_what_is_below_it() -> None:
    mesh, problems = merge_mesh_config(
        {"trustDomain": 7, "rootNamespace": "mesh", "defaultConfig": {"statusPort": "x"}}
    )
    assert (mesh.trust_domain, mesh.root_namespace) == ("cluster.local", "mesh")
    assert mesh.default_config is not None
    assert mesh.default_config.status_port == 15020
    assert [(problem.path, problem.level) for problem in problems] == [
        ("trustDomain", "error"),
        ("defaultConfig.statusPort", "error"),
    ]


@pytest.mark.parametrize("raw", [[], "text", 7])
def test_what_is_no_map_is_a_problem(raw: object) -> None:
    mesh, problems = merge_mesh_config(raw)
    assert mesh == default_mesh_config()
    assert [problem.level for problem in problems] == ["error"]


def test_networks_are_read() -> None:
    networks, problems = decode_mesh_networks(
        {
            "networks": {
                "n1": {"endpoints": [{"fromRegistry": "c1"}], "gateways": [{"address": "1.1.1.1", "port": 15443}]}
            }
        }
    )
    assert problems == ()
    assert networks.networks["n1"].endpoints == (NetworkEndpoints(from_registry="c1"),)
    assert networks.networks["n1"].gateways == (IstioNetworkGateway(address="1.1.1.1", port=15443),)
