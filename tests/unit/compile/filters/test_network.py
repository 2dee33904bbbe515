"""TCP chains: filters in order, and the TCP proxy's fields."""

import msgspec

from mizzen import protos
from mizzen.api.scalars import Duration
from mizzen.compile.filters.access_logs import AccessLog, FileLog
from mizzen.compile.filters.metrics import Metrics
from mizzen.compile.filters.network import (
    DnsCache,
    TcpRoute,
    TcpSettings,
    Tunnel,
    Weighted,
    build_tcp_filters,
    to_cluster,
)

_listener_v3 = protos.package("envoy.config.listener.v3")
LOG = AccessLog(sink=FileLog(path="/dev/stdout"))
INBOUND = TcpSettings(
    dialect="istio", side="inbound", access_logs=(LOG,), metrics=Metrics(), idle_timeout=Duration.of(seconds=30)
)


def built(settings=INBOUND, route=None, **how):
    return [protos.to_json(f) for f in build_tcp_filters(settings, route or to_cluster("c"), **how)]


def test_policies_stand_between_the_exchange_and_metrics():
    policies = (_listener_v3.Filter(name="rbac"),)
    route = TcpRoute(stat_prefix="c", cluster="c", mongo=True, sni_forward=DnsCache(name="d", port=443))
    assert [f["name"] for f in built(route=route, policies=policies, exchange=True)] == [
        "istio.metadata_exchange",
        "rbac",
        "istio.stats",
        "envoy.extensions.filters.network.sni_dynamic_forward_proxy",
        "envoy.filters.network.mongo_proxy",
        "envoy.filters.network.tcp_proxy",
    ]


def test_a_black_hole_neither_logs_nor_times_out():
    (tcp,) = (f["typedConfig"] for f in built(black_hole=True) if f["name"].endswith("tcp_proxy"))
    assert "accessLog" not in tcp
    assert "idleTimeout" not in tcp


def test_the_rules_timeout_goes_before_the_proxys():
    own = built()[-1]["typedConfig"]
    ruled = built(route=TcpRoute(stat_prefix="c", cluster="c", idle_timeout=Duration.of(seconds=7)))[-1]["typedConfig"]
    assert (own["idleTimeout"], ruled["idleTimeout"]) == ("30s", "7s")


def test_shares_hashes_and_tunnels():
    route = TcpRoute(
        stat_prefix="vs.ns",
        weighted=(Weighted(cluster="a", weight=80), Weighted(cluster="b", weight=20)),
        hash_source_ip=True,
        max_connection_duration=Duration.of(hours=1),
        tunnel=Tunnel(target="h:443", use_post=True),
    )
    tcp = built(route=route)[-1]["typedConfig"]
    assert tcp["weightedClusters"]["clusters"] == [{"name": "a", "weight": 80}, {"name": "b", "weight": 20}]
    assert tcp["hashPolicy"] == [{"sourceIp": {}}]
    assert tcp["maxDownstreamConnectionDuration"] == "3600s"
    assert tcp["tunnelingConfig"] == {"hostname": "h:443", "usePost": True}


def test_upstream_envoy_lets_nobody_in_before_the_handshake():
    settings = msgspec.structs.replace(INBOUND, dialect="envoy")
    (terminating,) = built(settings, mutual_tls=True, exchange=True)
    assert terminating["typedConfig"]["upstreamConnectMode"] == "ON_DOWNSTREAM_TLS_HANDSHAKE"
    assert terminating["typedConfig"]["maxEarlyDataBytes"] == 0
    (plain,) = built(settings)
    assert "upstreamConnectMode" not in plain["typedConfig"]


def test_upstream_envoy_counts_connections_when_they_begin():
    (tcp,) = built(msgspec.structs.replace(INBOUND, dialect="envoy"))
    assert tcp["typedConfig"]["accessLogOptions"] == {"flushAccessLogOnConnected": True}
    assert len(tcp["typedConfig"]["accessLog"]) == 3


def test_upstream_envoy_logs_a_connection_once_though_its_beginning_is_counted():
    envoy = msgspec.structs.replace(INBOUND, dialect="envoy")
    with_metrics, without = (
        built(settings)[-1]["typedConfig"]["accessLog"][0]
        for settings in (envoy, msgspec.structs.replace(envoy, metrics=None))
    )
    assert with_metrics["filter"] == {"logTypeFilter": {"types": ["TcpConnectionEnd"]}}
    assert "filter" not in without
    chosen = msgspec.structs.replace(envoy, access_logs=(msgspec.structs.replace(LOG, expression="connection.mtls"),))
    (both,) = (log["filter"]["andFilter"]["filters"] for log in built(chosen)[-1]["typedConfig"]["accessLog"][:1])
    assert [next(iter(part)) for part in both] == ["logTypeFilter", "extensionFilter"]
