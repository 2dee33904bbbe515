"""Patches of listeners."""

from typing import Any

from envoy_patches import (
    MANAGER,
    NETWORK,
    add_filter,
    ask,
    fault,
    http_names,
    ids,
    manager,
    rbac,
    resource_of,
    tcp_proxy,
    write_patch,
)

from mizzen import protos
from mizzen.api.problems import Problem
from mizzen.compile import resource
from mizzen.compile.patches import listeners
from mizzen.compile.patches.listeners import Client
from mizzen.compile.resource import Resource, ResourceSet
from mizzen.incremental import Engine

SIDECAR = Client(kind="sidecar", dialect="istio")
UPSTREAM = Client(kind="sidecar", dialect="envoy")
ROUTES = {
    "name": "inbound|8080||",
    "validateClusters": False,
    "virtualHosts": [
        {
            "name": "inbound|http|80",
            "domains": ["*"],
            "routes": [{"name": "default", "match": {"prefix": "/"}, "route": {"cluster": "c"}}],
        }
    ],
}


def _address(port: int) -> dict[str, Any]:
    return {"socketAddress": {"address": "0.0.0.0", "portValue": port}}


def _listener(name: str, port: int, *filters: dict[str, Any], inbound: bool = False, **fields: Any) -> Resource:
    return resource_of(
        "listener",
        name=name,
        address=_address(port),
        trafficDirection="INBOUND" if inbound else "OUTBOUND",
        filterChains=[{"filters": list(filters or (tcp_proxy(),))}],
        **fields,
    )


def _apply(
    pristine: list[Resource], *written: dict, routes: tuple[dict, ...] = (), client: Client = SIDECAR
) -> tuple[ResourceSet, list[Problem], dict[str, Any]]:
    db = Engine()
    add_filter(db, *written)
    add_filter(db, *routes, name="r")
    told = ResourceSet(resource.LISTENER, pristine)
    found, problems = ask(db, listeners.listeners, told, ids(len(written)), ids(len(routes), "r"), client)
    return found, problems, {r.name: r.message() for r in found}


def test_listeners_are_merged_and_removed():
    _, problems, by_name = _apply(
        [_listener("a", 80), _listener("b", 81), _listener("c", 82)],
        write_patch("LISTENER", "MERGE", {"statPrefix": "x"}, listener={"portNumber": 80}),
        write_patch("LISTENER", "REMOVE", listener={"name": "b"}),
    )
    assert {name: message.stat_prefix for name, message in by_name.items()} == {"a": "x", "c": ""}
    assert not problems


def test_a_listener_that_no_patch_means_is_the_same_resource():
    pristine = _listener("a", 80)
    found, _, _ = _apply(
        [pristine],
        write_patch("LISTENER", "REMOVE", listener={"portNumber": 81}),
        write_patch("LISTENER", "REPLACE", {"name": "x"}),
        write_patch("HTTP_FILTER", "INSERT_FIRST", fault()),
        write_patch("LISTENER", "REMOVE", context="GATEWAY"),
    )
    assert found.get("a") is pristine


def test_each_side_has_its_listeners():
    _, _, by_name = _apply(
        [_listener("in", 80, inbound=True), _listener("out", 81)],
        write_patch("LISTENER", "MERGE", {"statPrefix": "i"}, context="SIDECAR_INBOUND"),
        write_patch("LISTENER", "MERGE", {"statPrefix": "o"}, context="SIDECAR_OUTBOUND"),
    )
    assert {name: message.stat_prefix for name, message in by_name.items()} == {"in": "i", "out": "o"}


def test_gateways_have_one_side():
    _, _, by_name = _apply(
        [_listener("a", 80)],
        write_patch("LISTENER", "MERGE", {"statPrefix": "g"}, context="GATEWAY"),
        client=Client(kind="router", dialect="istio"),
    )
    assert by_name["a"].stat_prefix == "g"


def test_a_listener_without_a_port_is_meant_by_name():
    unix = resource_of("listener", name="u", address={"pipe": {"path": "/x"}}, filterChains=[{"filters": [rbac()]}])
    _, _, by_name = _apply(
        [unix],
        write_patch("LISTENER", "REMOVE", listener={"portNumber": 80}),
        write_patch("LISTENER", "MERGE", {"statPrefix": "x"}, listener={"name": "u"}),
    )
    assert by_name["u"].stat_prefix == "x"


def test_added_listeners_are_kept_as_they_are():
    value = {"name": "new", "address": _address(99), "filterChains": [{"filters": [tcp_proxy()]}]}
    _, _, by_name = _apply(
        [], write_patch("LISTENER", "ADD", value), write_patch("LISTENER", "MERGE", {"statPrefix": "x"})
    )
    assert by_name["new"].stat_prefix == ""


def test_only_listeners_are_added_as_listeners():
    _, _, by_name = _apply(
        [], write_patch("FILTER_CHAIN", "ADD", {"name": "c"}), write_patch("HTTP_FILTER", "ADD", fault("f"))
    )
    assert by_name == {}


def test_a_listener_of_a_name_that_is_taken_is_a_problem():
    _, problems, by_name = _apply(
        [_listener("a", 80)], write_patch("LISTENER", "ADD", {"name": "a", "statPrefix": "x"})
    )
    assert by_name["a"].stat_prefix == ""
    assert [p.message for p in problems] == ["there is a listener a already"]


def test_parts_of_a_listener_are_patched_in_order():
    _, _, by_name = _apply(
        [_listener("a", 80, manager(), listenerFilters=[{"name": "one"}])],
        write_patch("HTTP_FILTER", "INSERT_FIRST", fault("f")),
        write_patch("NETWORK_FILTER", "INSERT_FIRST", rbac("n")),
        write_patch("LISTENER_FILTER", "ADD", {"name": "two"}),
    )
    message = by_name["a"]
    assert [f.name for f in message.listener_filters] == ["one", "two"]
    assert [f.name for f in message.filter_chains[0].filters] == ["n", MANAGER]
    assert http_names(message.filter_chains[0].filters[1]) == ["f", "envoy.filters.http.router"]


def _inline(message: Any) -> Any:
    found: Any = protos.unpack(message.filter_chains[0].filters[0].typed_config)
    return found.route_config


def test_routes_inside_an_inbound_listener_are_patched():
    patches = (
        write_patch(
            "VIRTUAL_HOST",
            "MERGE",
            {"responseHeadersToRemove": ["x"]},
            context="SIDECAR_INBOUND",
            routeConfiguration={"portNumber": 8080, "vhost": {"name": "inbound|http|80"}},
        ),
        write_patch("VIRTUAL_HOST", "REMOVE", routeConfiguration={"portNumber": 81}),
    )
    _, _, by_name = _apply(
        [_listener("virtualInbound", 15006, manager(routeConfig=ROUTES), inbound=True)], routes=patches
    )
    assert _inline(by_name["virtualInbound"]).virtual_hosts[0].response_headers_to_remove == ["x"]


def test_routes_inside_an_outbound_listener_are_not():
    patch = write_patch("VIRTUAL_HOST", "REMOVE")
    pristine = _listener("virtualOutbound", 15001, manager(routeConfig=ROUTES))
    found, _, _ = _apply([pristine], routes=(patch,))
    assert found.get("virtualOutbound") is pristine


def test_routes_are_patched_before_the_listener():
    patch = write_patch("ROUTE_CONFIGURATION", "MERGE", {"internalOnlyHeaders": ["a"]})
    value = {
        "typedConfig": {
            "@type": NETWORK + "http_connection_manager.v3.HttpConnectionManager",
            "routeConfig": {"internalOnlyHeaders": ["b"]},
        }
    }
    _, _, by_name = _apply(
        [_listener("a", 80, manager(routeConfig=ROUTES), inbound=True)],
        write_patch("NETWORK_FILTER", "MERGE", value, listener={"filterChain": {"filter": {"name": MANAGER}}}),
        routes=(patch,),
    )
    assert _inline(by_name["a"]).internal_only_headers == ["a", "b"]


def test_connect_originate_takes_no_patches():
    pristine = _listener("connect_originate", 15008)
    found, _, _ = _apply([pristine], write_patch("LISTENER", "REMOVE"))
    assert found.get("connect_originate") is pristine


def test_upstream_envoy_is_spared_filters_behind_the_last():
    written = (
        write_patch("NETWORK_FILTER", "ADD", rbac("late")),
        write_patch("NETWORK_FILTER", "INSERT_FIRST", rbac("early")),
        write_patch("LISTENER", "ADD", {"name": "n", "address": _address(80), "filterChains": [{}]}),
        write_patch("LISTENER", "ADD", {"name": "o", "address": _address(81)}),
        write_patch("LISTENER", "ADD", {"name": "p", "address": _address(82), "filterChains": [{}]}),
    )
    _, problems, by_name = _apply([_listener("a", 80)], *written, client=UPSTREAM)
    assert [f.name for f in by_name["a"].filter_chains[0].filters] == ["early", "envoy.filters.network.tcp_proxy"]
    assert sorted(by_name) == ["a", "p"]
    assert [p.message.rpartition(": ")[2] for p in problems] == [
        "envoy.filters.network.tcp_proxy must be the last filter of its chain",
        "another listener has its address",
        "a listener needs a filter chain",
    ]
    _, problems, by_name = _apply([_listener("a", 80)], *written)
    assert [f.name for f in by_name["a"].filter_chains[0].filters][-1] == "late"
    assert not problems
