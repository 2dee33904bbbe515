"""Filter chains in istioctl's words; what the recorded tables do not show."""

import pytest

from mizzen.diagnose.dump import Dump
from mizzen.diagnose.tables import listeners
from mizzen.diagnose.tables.listeners import ListenerFilter

HTTP = "envoy.filters.network.http_connection_manager"
TEN = {"address_prefix": "10.0.0.0", "prefix_len": 8}
TCP = "envoy.filters.network.tcp_proxy"


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ({}, "ALL"),
        ({"server_names": ["a", "b"]}, "SNI: a,b"),
        ({"destination_port": 80, "prefix_ranges": [TEN]}, "Addr: 10.0.0.0/8:80"),
        ({"prefix_ranges": [{"address_prefix": "0.0.0.0", "prefix_len": 0}]}, "Addr: 0.0.0.0/0"),
        ({"application_protocols": ["http/1.0", "http/1.1", "h2c"]}, "App: HTTP"),
        (
            {"application_protocols": ["istio", "istio-http/1.0", "istio-http/1.1", "istio-h2"]},
            "App: Istio HTTP Plain",
        ),
        ({"transport_protocol": "tls", "application_protocols": ["h2"]}, "Trans: tls; App: h2"),
        ({"source_prefix_ranges": [TEN]}, "ALL"),
    ],
)
def test_a_chain_match_is_told(condition: dict[str, object], text: str) -> None:
    assert listeners.describe_chain_match({"filter_chain_match": condition}) == text


@pytest.mark.parametrize(
    ("filters", "text"),
    [
        ([], "Non-HTTP/Non-TCP"),
        ([{"name": HTTP, "typed_config": {"rds": {"route_config_name": "80"}}}], "Route: 80"),
        ([{"name": HTTP, "typed_config": {"scoped_routes": {}}}], "HTTP"),
        ([{"name": "x"}, {"name": TCP, "typed_config": {"cluster": "a"}}], "Cluster: a"),
        ([{"name": TCP, "typed_config": {"weighted_clusters": {}}}], "Cluster: "),
        ([{"name": TCP, "typed_config": {"cluster": "BlackHoleCluster"}}], "Non-HTTP/Non-TCP"),
    ],
)
def test_a_destination_is_told(filters: list[dict[str, object]], text: str) -> None:
    assert listeners.describe_destination({"filters": filters}) == text


def listener(name: str, **fields: object) -> dict[str, object]:
    return {"name": name, **fields}


def dump_of(*active: dict[str, object]) -> Dump:
    entries = [{"name": item["name"], "active_state": {"listener": item}} for item in active]
    kind = "type.googleapis.com/envoy.admin.v3.ListenersConfigDump"
    return Dump(({"@type": kind, "dynamic_listeners": [*entries, {"error_state": {}}]},))


def address(host: str, port: int) -> dict[str, object]:
    return {"socket_address": {"address": host, "port_value": port}}


def test_further_addresses_are_shown_and_found() -> None:
    dual = listener("dual", address=address("0.0.0.0", 80), additional_addresses=[{"address": address("FD00::1", 80)}])
    source = dump_of(dual, listener("other", address=address("10.0.0.1", 80)))

    found = listeners.select_listeners(source, ListenerFilter(address="fd00::1"))

    assert listeners.build_table(found, verbose=False).rows == (("0.0.0.0,FD00::1", "80", "UNKNOWN"),)


def test_pipes_and_internal_listeners_have_no_port() -> None:
    source = dump_of(
        listener("internal", internal_listener={}), listener("pipe", address={"pipe": {"path": "/a.sock"}})
    )

    found = listeners.select_listeners(source, ListenerFilter())

    assert listeners.build_table(found, verbose=False).rows == (("", "0", "UNKNOWN"), ("/a.sock", "0", "UNKNOWN"))


def test_ports_sort_as_numbers() -> None:
    source = dump_of(*(listener(str(p), address=address("0.0.0.0", p)) for p in (8080, 80, 443)))

    found = listeners.select_listeners(source, ListenerFilter())
    assert [row[1] for row in listeners.build_table(found, verbose=False).rows] == ["80", "443", "8080"]
    assert [item["name"] for item in found] == ["8080", "80", "443"], "as JSON they stand in the dump's order"
