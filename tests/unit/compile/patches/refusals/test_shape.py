"""Refusals of well-formed messages. Each of these was seen with a real Envoy."""

from typing import Any

import pytest
from envoy_patches import HTTP, NETWORK, TYPE, fault, manager, message, rbac, tcp_proxy

from mizzen.compile.patches.refusals import shape

ADDRESS = {"socketAddress": {"address": "0.0.0.0", "portValue": 80}}
ENDPOINT = {"endpoint": {"address": ADDRESS}}
TCP = "envoy.filters.network.tcp_proxy"


def _listener(*chains: dict[str, Any], **fields: Any) -> str | None:
    return shape.fault(message("listener", **{"address": ADDRESS, "filterChains": list(chains), **fields}))


def _filters(*filters: dict[str, Any]) -> str | None:
    return _listener({"filters": list(filters)})


def _http(*filters: dict[str, Any], **fields: Any) -> str | None:
    return _filters(manager(*filters, **fields))


def _match(**match: Any) -> dict[str, Any]:
    return {"filters": [tcp_proxy()], "filterChainMatch": match}


def _other(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "typedConfig": {"@type": kind}}


def test_usual_listeners_have_no_fault():
    assert _filters(rbac(), tcp_proxy()) is None
    assert _filters(rbac(), manager(fault())) is None
    assert _listener({}) is None
    assert _listener(_match(destinationPort=80), _match(destinationPort=81), _match()) is None
    assert _listener(address={"pipe": {"path": "/x"}}, defaultFilterChain={"filters": [tcp_proxy()]}) is None
    assert _listener(udpListenerConfig={}) is None


def test_a_message_of_another_kind_is_not_judged():
    assert shape.fault(message("envoy.config.route.v3.Route")) is None


def test_a_listener_needs_an_address_and_chains():
    assert shape.fault(message("listener", filterChains=[{}])) == "a listener needs an address"
    assert _listener() == "a listener needs a filter chain"


def test_a_listener_listens_on_an_address_not_a_name():
    address = {"socketAddress": {"address": "a.b", "portValue": 80}}
    assert _listener({}, address=address) == "'a.b' is no IP address"


def test_what_ends_a_chain_stands_last_and_only_that():
    assert _filters(tcp_proxy(), rbac()) == f"{TCP} must be the last filter of its chain"
    assert _filters(rbac("r")) == "r must not be the last filter of its chain"
    assert _filters(_other("r", NETWORK + "direct_response.v3.Config")) is None


def test_the_default_chain_is_judged_too():
    assert _listener(defaultFilterChain={"filters": [rbac("r")]}) == "r must not be the last filter of its chain"


def test_the_router_stands_last():
    router = _other("late", HTTP + "router.v3.Router")
    assert _http(router) == "late must be the last filter of its chain"
    manager_without = manager()
    manager_without["typedConfig"]["httpFilters"] = [fault("f")]
    assert _filters(manager_without) == "f must not be the last filter of its chain"


def test_a_filter_that_is_fetched_may_be_either():
    discovery = {"name": "d", "configDiscovery": {"configSource": {"ads": {}}, "typeUrls": [HTTP + "buffer.v3.Buffer"]}}
    without = manager()
    without["typedConfig"]["httpFilters"] = [discovery]
    assert _filters(without) is None


def test_a_filter_needs_a_configuration():
    reason = "n has neither a typed configuration nor a source of one"
    assert _filters({"name": "n"}, tcp_proxy()) == reason
    assert _http({"name": "n"}) == reason
    assert _http({"name": "n", "isOptional": True}) is None
    assert _listener({}, listenerFilters=[{"name": "n"}]) == reason


def test_a_filter_is_of_its_layer():
    lua = HTTP + "lua.v3.Lua"
    assert (
        _filters(_other("l", lua), tcp_proxy()) == "l is no network filter (envoy.extensions.filters.http.lua.v3.Lua)"
    )
    echo = _other("e", NETWORK + "echo.v3.Echo")
    assert _http(echo) == "e is no http filter (envoy.extensions.filters.network.echo.v3.Echo)"
    assert _listener({}, listenerFilters=[echo]) == (
        "e is no listener filter (envoy.extensions.filters.network.echo.v3.Echo)"
    )


def _struct(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "typedConfig": {"@type": TYPE + "udpa.type.v1.TypedStruct", "typeUrl": TYPE + kind}}


def test_filters_of_istio_and_of_contrib_are_lacking():
    reason = "is of a type that upstream Envoy lacks"
    assert _filters(_struct("s", "stats.PluginConfig"), tcp_proxy()) == f"s {reason} (stats.PluginConfig)"
    mysql = "envoy.extensions.filters.network.mysql_proxy.v3.MySQLProxy"
    assert _filters(_struct("m", mysql), tcp_proxy()) == f"m {reason} ({mysql})"


def test_a_typed_struct_of_nobody_knows_what_is_left_to_envoy():
    assert _filters(_struct("x", "my.own.Filter"), tcp_proxy()) is None
    assert _filters(rbac(), _struct("x", "my.own.Filter")) is None


def test_a_manager_in_a_typed_struct_is_not_looked_into():
    kind = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
    assert _filters(_struct("m", kind)) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {}),
        ({"destinationPort": 80}, {"destinationPort": 80}),
        ({"applicationProtocols": ["h2", "h2c"]}, {"applicationProtocols": ["h2c", "h3"]}),
        ({"serverNames": ["a", "b"]}, {"serverNames": ["b"]}),
        ({"prefixRanges": [{"addressPrefix": "10.0.0.0", "prefixLen": 8}]},) * 2,
    ],
)
def test_two_chains_for_one_connection_are_refused(first: dict, second: dict):
    assert (
        _listener(_match(**first), {**_match(**second), "name": "c"})
        == "two filter chains match the same connections (c)"
    )


def test_a_partial_wildcard_is_no_server_name():
    assert _listener(_match(serverNames=["*.a.b"])) is None
    reason = "a server name may be a wildcard only as a whole label at its beginning"
    assert _listener(_match(serverNames=["a*.b"])) == reason


def test_faults_of_a_connection_manager():
    twice = [{"upgradeType": "websocket"}, {"upgradeType": "WebSocket"}]
    assert _http(upgradeConfigs=twice) == "an upgrade type is configured twice"
    assert _http(codecType="HTTP3") == "HTTP/3 needs a QUIC listener"
    hosts = [{"name": "v", "domains": ["a.b"]}, {"name": "w", "domains": ["A.B"]}]
    assert _http(routeConfig={"virtualHosts": hosts}) == "the domain A.B is in v and in w"


def _cluster(**fields: Any) -> str | None:
    return shape.fault(message("cluster", name="x", **fields))


def _endpoints(*addresses: str) -> dict[str, Any]:
    sockets = [{"socketAddress": {"address": a, "portValue": 1}} for a in addresses]
    return {"clusterName": "x", "endpoints": [{"lbEndpoints": [{"endpoint": {"address": a}} for a in sockets]}]}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"type": "EDS"}, "an EDS cluster needs eds_cluster_config"),
        ({"type": "STATIC", "edsClusterConfig": {}}, "eds_cluster_config is for EDS clusters"),
        ({"type": "ORIGINAL_DST"}, "an ORIGINAL_DST cluster needs lb_policy CLUSTER_PROVIDED"),
        ({"type": "STATIC", "lbPolicy": "CLUSTER_PROVIDED"}, "a STATIC cluster cannot have lb_policy CLUSTER_PROVIDED"),
        ({"type": "LOGICAL_DNS"}, "a LOGICAL_DNS cluster needs exactly one endpoint"),
        ({"type": "STATIC", "loadAssignment": _endpoints("10.0.0.1", "a.b")}, "'a.b' is no IP address"),
        ({"type": "STRICT_DNS", "loadAssignment": _endpoints("a.b")}, None),
        ({"type": "LOGICAL_DNS", "loadAssignment": _endpoints("a.b")}, None),
        ({"type": "ORIGINAL_DST", "lbPolicy": "CLUSTER_PROVIDED"}, None),
        ({"type": "ORIGINAL_DST", "loadBalancingPolicy": {}}, None),
        ({"clusterType": {"name": "dfp"}, "lbPolicy": "CLUSTER_PROVIDED"}, None),
        ({"type": "EDS", "edsClusterConfig": {}}, None),
    ],
)
def test_a_cluster_needs_what_its_discovery_needs(fields: dict[str, Any], reason: str | None):
    assert _cluster(**fields) == reason


def test_network_filters_of_a_cluster_are_judged():
    assert _cluster(type="STATIC", filters=[_struct("s", "stats.PluginConfig")]) is not None
    assert _cluster(type="STATIC", filters=[rbac()]) is None


def test_a_domain_stands_in_one_virtual_host():
    hosts = [{"name": "v", "domains": ["a", "*"]}, {"name": "w", "domains": ["b", "*"]}]
    assert shape.fault(message("route", virtualHosts=hosts)) == "the domain * is in v and in w"
    assert shape.fault(message("route", virtualHosts=hosts[:1])) is None
