"""Connection managers: fields by side, and the order of HTTP filters."""

import msgspec
import pytest

from mizzen import protos
from mizzen.api.scalars import Duration
from mizzen.compile.filters.http import (
    ClientCertificate,
    Connections,
    HttpChain,
    HttpPolicies,
    HttpSettings,
    build_connection_manager,
)
from mizzen.compile.filters.metrics import Metrics
from mizzen.compile.filters.network import DnsCache

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")

OUTBOUND = HttpSettings(dialect="istio", side="outbound", metrics=Metrics())


def manager(settings=OUTBOUND, **chain):
    fields = {"stat_prefix": "s;", "route_name": "80", **chain}
    return protos.to_json(build_connection_manager(settings, HttpChain(**fields)))["typedConfig"]


def filter_names(config):
    return [f["name"] for f in config["httpFilters"]]


def encoded(name):
    return protos.encode(_hcm_v3.HttpFilter(name=name))


def test_filters_stand_in_istios_order():
    policies = HttpPolicies(
        custom=(encoded("custom"),),
        jwt=(encoded("jwt"),),
        authorization=(encoded("deny"), encoded("allow")),
    )
    settings = msgspec.structs.replace(OUTBOUND, side="gateway", dynamic_dns=DnsCache(name="c"))
    assert filter_names(manager(settings, grpc_web=True, policies=policies)) == [
        "istio.metadata_exchange",
        "custom",
        "jwt",
        "deny",
        "allow",
        "envoy.filters.http.grpc_web",
        "envoy.filters.http.grpc_stats",
        "istio.alpn",
        "envoy.filters.http.fault",
        "envoy.filters.http.cors",
        "istio.stats",
        "envoy.filters.http.dynamic_forward_proxy",
        "envoy.filters.http.router",
    ]


def test_inbound_writes_no_alpn():
    assert "istio.alpn" not in filter_names(manager(msgspec.structs.replace(OUTBOUND, side="inbound")))


@pytest.mark.parametrize("side", ["inbound", "outbound", "gateway"])
def test_upstream_envoy_gets_no_filter_that_it_lacks(side):
    settings = msgspec.structs.replace(OUTBOUND, side=side, dialect="envoy")
    config = manager(settings, mutual_tls=side == "inbound")
    assert not [n for n in filter_names(config) if n.startswith("istio.")]
    types = [f["typedConfig"]["@type"] for f in (*config["httpFilters"], *config["accessLog"])]
    assert all(t.startswith("type.googleapis.com/envoy.extensions.") for t in types)


def test_the_routers_envoy_headers_can_be_suppressed():
    settings = msgspec.structs.replace(OUTBOUND, suppress_envoy_headers=True)
    assert manager(settings)["httpFilters"][-1]["typedConfig"]["suppressEnvoyHeaders"] is True


def test_routes_come_over_ads_or_inside():
    assert manager()["rds"]["routeConfigName"] == "80"
    routes = protos.package("envoy.config.route.v3").RouteConfiguration(name="inline")
    inside = protos.to_json(build_connection_manager(OUTBOUND, HttpChain(stat_prefix="s"), routes))["typedConfig"]
    assert inside["routeConfig"] == {"name": "inline"}
    assert "rds" not in inside


def test_only_gateways_use_the_remote_address_and_always_have_http1_options():
    assert manager()["useRemoteAddress"] is False
    assert "httpProtocolOptions" not in manager()
    gateway = manager(msgspec.structs.replace(OUTBOUND, side="gateway"))
    assert gateway["useRemoteAddress"] is True
    assert gateway["httpProtocolOptions"] == {}


def test_client_certificate_details_are_named():
    settings = msgspec.structs.replace(
        OUTBOUND, client_certificate=ClientCertificate(mode="APPEND_FORWARD", details=("subject", "dns", "uri"))
    )
    config = manager(settings)
    assert config["forwardClientCertDetails"] == "APPEND_FORWARD"
    assert config["setCurrentClientCertDetails"] == {"subject": True, "dns": True, "uri": True}


def test_limits_stand_where_envoy_wants_them():
    limits = Connections(
        idle_timeout=Duration.of(hours=1),
        request_timeout=Duration.of(minutes=5),
        max_concurrent_streams=100,
        underscores="REJECT_REQUEST",
    )
    config = manager(msgspec.structs.replace(OUTBOUND, connections=limits))
    assert config["commonHttpProtocolOptions"] == {
        "idleTimeout": "3600s",
        "headersWithUnderscoresAction": "REJECT_REQUEST",
    }
    assert config["requestTimeout"] == "300s"
    assert config["http2ProtocolOptions"] == {"maxConcurrentStreams": 100}
    assert config["streamIdleTimeout"] == "0s"


def test_a_port_declared_http2_has_options_without_limits():
    assert "http2ProtocolOptions" not in manager()
    assert manager(http2=True)["http2ProtocolOptions"] == {}


def test_building_one_does_not_change_the_next():
    """The parts that all managers of a side share are kept; a chain must never write into them."""
    before = manager()
    manager(http2=True, grpc_web=True, allow_absolute_url=True, route_name="other")
    assert manager() == before
