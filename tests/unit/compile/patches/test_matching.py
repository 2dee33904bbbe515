"""What a patch means."""

import pytest
from envoy_patches import MANAGER, message, read_one

from mizzen.compile.patches import matching


def _cluster(name: str, hosts: tuple[str, ...] = (), /, **match: object) -> bool:
    return matching.is_cluster(read_one("CLUSTER", "REMOVE", cluster=match), name, hosts)


def test_no_match_means_everything():
    assert matching.is_cluster(read_one("CLUSTER", "REMOVE"), "x", ())
    assert matching.is_listener(read_one("LISTENER", "REMOVE"), "x", None)
    assert matching.is_chain(read_one("FILTER_CHAIN", "REMOVE"), "x", message("envoy.config.listener.v3.FilterChain"))
    assert matching.is_configuration(read_one("ROUTE_CONFIGURATION", "MERGE", {}), "80", None)
    host = message("envoy.config.route.v3.VirtualHost", name="v")
    route = message("envoy.config.route.v3.Route", name="r")
    assert matching.is_virtual_host(read_one("VIRTUAL_HOST", "REMOVE"), host)
    assert matching.is_route(read_one("HTTP_ROUTE", "REMOVE"), route)


def test_the_name_of_a_cluster_is_all_that_counts_where_it_is_given():
    assert _cluster("outbound|80||a.b", name="outbound|80||a.b", portNumber=9)
    assert not _cluster("outbound|80||a.b", name="a.b", portNumber=80)


@pytest.mark.parametrize(
    ("match", "meant"),
    [
        ({"service": "a.b"}, True),
        ({"service": "a.b", "subset": "v1", "portNumber": 80}, True),
        ({"service": "b"}, False),
        ({"subset": "v2"}, False),
        ({"portNumber": 81}, False),
        ({}, True),
    ],
)
def test_a_cluster_by_the_parts_of_its_name(match: dict, meant: bool):
    assert _cluster("outbound|80|v1|a.b", **match) == meant


def test_a_static_cluster_has_no_parts():
    assert not _cluster("BlackHoleCluster", portNumber=80)
    assert _cluster("BlackHoleCluster")


def test_an_inbound_cluster_is_known_by_the_services_behind_it():
    assert _cluster("inbound|80||", ("a.b", "c.d"), service="c.d")
    assert not _cluster("inbound|80||", ("a.b",), service="c.d")
    assert not _cluster("inbound|80||", (), service="c.d")
    assert not _cluster("outbound|80||a.b", ("c.d",), service="c.d")


def _listener(name: str, port: int | None, apply_to: str = "LISTENER", /, **match: object) -> bool:
    patch = read_one(apply_to, "REMOVE", listener=match)
    return matching.is_listener(patch, name, port)


def test_a_listener_by_name_and_port():
    assert _listener("0.0.0.0_80", 80, name="0.0.0.0_80", portNumber=80)
    assert not _listener("0.0.0.0_80", 80, name="0.0.0.0_81")
    assert not _listener("0.0.0.0_80", 80, portNumber=81)
    assert not _listener("unix", None, portNumber=80)


def test_the_port_of_a_virtual_listener_counts_only_for_the_listener_itself():
    assert not _listener("virtualInbound", 15006, portNumber=80)
    assert _listener("virtualInbound", 15006, "LISTENER_FILTER", portNumber=80)
    assert _listener("virtualOutbound", 15001, "NETWORK_FILTER", portNumber=80)


def _chain(match: dict, listener: str = "x", port_number: int = 0, **fields: object) -> bool:
    patch = read_one("FILTER_CHAIN", "REMOVE", listener={"portNumber": port_number, "filterChain": match})
    return matching.is_chain(patch, listener, message("envoy.config.listener.v3.FilterChain", **fields))


@pytest.mark.parametrize(
    ("match", "meant"),
    [
        ({"name": "c"}, True),
        ({"name": "d"}, False),
        ({"sni": "a.b"}, True),
        ({"sni": "*.b"}, False),
        ({"transportProtocol": "tls"}, True),
        ({"transportProtocol": "raw_buffer"}, False),
        ({"applicationProtocols": "h2,h2c"}, True),
        ({"applicationProtocols": "h2c"}, True),
        ({"applicationProtocols": "h2,h3"}, False),
        ({"destinationPort": 80}, True),
        ({"destinationPort": 81}, False),
    ],
)
def test_a_chain_by_its_criteria(match: dict, meant: bool):
    criteria = {
        "serverNames": ["a.b", "c.d"],
        "transportProtocol": "tls",
        "applicationProtocols": ["h2", "h2c"],
        "destinationPort": 80,
    }
    assert _chain(match, name="c", filterChainMatch=criteria) == meant


@pytest.mark.parametrize(
    "match", [{"sni": "a"}, {"transportProtocol": "tls"}, {"applicationProtocols": "h2"}, {"destinationPort": 1}]
)
def test_a_chain_without_criteria_has_none_of_them(match: dict):
    assert not _chain(match)


def test_a_port_number_picks_chains_of_a_virtual_listener():
    assert _chain({}, "virtualInbound", 80, filterChainMatch={"destinationPort": 80})
    assert not _chain({}, "virtualInbound", 81, filterChainMatch={"destinationPort": 80})
    assert not _chain({}, "virtualInbound", 80)
    assert _chain({}, "0.0.0.0_80", 80)


def test_a_listener_match_without_a_chain_means_all_chains():
    patch = read_one("FILTER_CHAIN", "REMOVE", listener={"name": "x"})
    assert matching.is_chain(patch, "x", message("envoy.config.listener.v3.FilterChain", name="any"))


def test_filters_that_a_patch_looks_for():
    chain = {"filter": {"name": MANAGER, "subFilter": {"name": "router"}}}
    patch = read_one("HTTP_FILTER", "REMOVE", listener={"filterChain": chain})
    assert (matching.network_filter(patch), matching.http_filter(patch)) == (MANAGER, "router")
    patch = read_one("HTTP_FILTER", "REMOVE", listener={"filterChain": {"filter": {"name": MANAGER}}})
    assert (matching.network_filter(patch), matching.http_filter(patch)) == (MANAGER, None)
    patch = read_one("LISTENER_FILTER", "REMOVE", listener={"listenerFilter": "tls"})
    assert (matching.listener_filter(patch), matching.network_filter(patch)) == ("tls", None)
    assert matching.listener_filter(read_one("LISTENER_FILTER", "REMOVE")) is None


def _configuration(name: str, served: dict | None = None, /, **match: object) -> bool:
    return matching.is_configuration(read_one("VIRTUAL_HOST", "REMOVE", routeConfiguration=match), name, served)


@pytest.mark.parametrize(
    ("name", "match", "meant"),
    [
        ("80", {"name": "80"}, True),
        ("80", {"name": "81"}, False),
        ("80", {"portNumber": 80}, True),
        ("80", {"portNumber": 81}, False),
        ("a.b:80", {"portNumber": 80}, False),
        ("9" * 5000, {"portNumber": 80}, False),
        ("inbound|8080||", {"portNumber": 8080}, True),
        ("inbound|8080||", {"portNumber": 80}, False),
        ("inbound of nobody", {"portNumber": 80}, False),
        ("80", {"gateway": "x/y", "portName": "http"}, True),
    ],
)
def test_a_sidecars_configuration_by_name_and_port(name: str, match: dict, meant: bool):
    assert _configuration(name, **match) == meant


@pytest.mark.parametrize(
    ("name", "match", "meant"),
    [
        ("http.8080", {"portNumber": 80}, True),
        ("http.8080", {"portNumber": 8080}, False),
        ("http.9090", {"portNumber": 9090}, True),
        ("https.443.https.edge.web", {"portNumber": 443, "portName": "https", "gateway": "web/edge"}, True),
        ("https.443.https.edge.web", {"portName": "http"}, False),
        ("https.443.https.edge.web", {"gateway": "edge/web"}, False),
        ("http.8080", {"gateway": "web/edge"}, False),
        ("http.8080", {"name": "http.8080"}, True),
        ("other", {"portNumber": 80}, False),
        ("https.443", {"portNumber": 443}, False),
        ("http", {}, True),
    ],
)
def test_a_gateways_configuration_by_the_servers_behind_it(name: str, match: dict, meant: bool):
    assert _configuration(name, {8080: (80,), 443: (443,)}, **match) == meant


def _host(match: dict) -> bool:
    patch = read_one("VIRTUAL_HOST", "REMOVE", routeConfiguration={"vhost": match})
    return matching.is_virtual_host(
        patch, message("envoy.config.route.v3.VirtualHost", name="v", domains=["a.b", "c.d"])
    )


def test_a_virtual_host_by_name_else_by_domain():
    assert _host({"name": "v"})
    assert not _host({"name": "w"})
    assert _host({"domainName": "c.d"})
    assert not _host({"domainName": "d"})
    assert not _host({"name": "w", "domainName": "c.d"})
    assert _host({})


@pytest.mark.parametrize(
    ("match", "fields", "meant"),
    [
        ({"name": "r"}, {}, True),
        ({"name": "s"}, {}, False),
        ({"action": "ROUTE"}, {"route": {"cluster": "x"}}, True),
        ({"action": "REDIRECT"}, {"route": {"cluster": "x"}}, False),
        ({"action": "REDIRECT"}, {"redirect": {}}, True),
        ({"action": "DIRECT_RESPONSE"}, {"directResponse": {"status": 200}}, True),
        ({"action": "ROUTE"}, {"directResponse": {"status": 200}}, False),
        ({"action": "ANY"}, {"redirect": {}}, True),
        ({"action": "ROUTE"}, {"nonForwardingAction": {}}, True),
        ({"name": "r", "action": "ROUTE"}, {"redirect": {}}, False),
    ],
)
def test_a_route_by_name_and_action(match: dict, fields: dict, meant: bool):
    patch = read_one("HTTP_ROUTE", "REMOVE", routeConfiguration={"vhost": {"route": match}})
    assert matching.names_route(patch)
    assert matching.is_route(patch, message("envoy.config.route.v3.Route", name="r", **fields)) == meant


def test_a_match_of_the_host_names_no_route():
    patch = read_one("HTTP_ROUTE", "REMOVE", routeConfiguration={"vhost": {"name": "v"}})
    assert not matching.names_route(patch)
    assert matching.is_route(patch, message("envoy.config.route.v3.Route"))
    assert not matching.names_route(read_one("HTTP_ROUTE", "REMOVE", routeConfiguration={}))
