"""Filters of extensions in finished listeners."""

from typing import Any

import pytest
from envoy_patches import MANAGER, fault, http_names, manager, rbac, resource_of, tcp_proxy

from mizzen.api.meta import Key
from mizzen.compile import resource
from mizzen.compile.patches.extensions import placement
from mizzen.compile.patches.extensions.placement import find_http_places, find_network_places
from mizzen.compile.resource import Resource, ResourceSet
from mizzen.incremental import Engine
from mizzen.model.wasm import Extension, Phase, Traffic

TCP = "envoy.filters.network.tcp_proxy"


def _extension(name: str, phase: Phase = "UNSPECIFIED", **fields: Any) -> Extension:
    return Extension(key=Key("TrafficExtension", "shop", name), phase=phase, **fields)


HTTP = _extension("h")
NETWORK = _extension("n", layer="network")


def _listener(
    name: str, *chains: dict[str, Any], direction: str = "OUTBOUND", port: int = 80, **fields: Any
) -> Resource:
    address = {"socketAddress": {"address": "0.0.0.0", "portValue": port}}
    return resource_of(
        "listener", name=name, address=address, trafficDirection=direction, filterChains=list(chains), **fields
    )


def _extended(pristine: Resource, *extensions: Extension, kind: Any = "sidecar") -> Any:
    (found,) = placement.listeners(Engine(), ResourceSet(resource.LISTENER, [pristine]), extensions, kind)
    return found.message()


def _short(names: list[str]) -> list[str]:
    return [name.rpartition("/shop.")[2] for name in names]


def _network(listener: Any) -> list[list[str]]:
    chains = [*listener.filter_chains]
    if listener.HasField("default_filter_chain"):
        chains.append(listener.default_filter_chain)
    return [_short([each.name for each in chain.filters]) for chain in chains]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ("mx grpc_stats router", "mx AUTHN AUTHZ STATS grpc_stats router"),
        ("mx grpc_web grpc_stats", "mx AUTHN AUTHZ STATS grpc_web grpc_stats"),
        ("mx rbac grpc_stats", "mx AUTHN AUTHZ rbac STATS grpc_stats"),
        ("mx jwt_authn rbac rbac grpc_stats", "mx AUTHN jwt_authn AUTHZ rbac rbac STATS grpc_stats"),
        ("mx jwt_authn grpc_stats", "mx AUTHN jwt_authn AUTHZ STATS grpc_stats"),
        ("mx rbac ext_authz grpc_stats", "mx rbac ext_authz AUTHN AUTHZ STATS grpc_stats"),
        ("mx rbac ext_authz rbac grpc_stats", "mx rbac ext_authz AUTHN AUTHZ rbac STATS grpc_stats"),
        (
            "rbac ext_authz jwt_authn rbac ext_proc grpc_stats",
            "rbac ext_authz AUTHN jwt_authn AUTHZ rbac STATS ext_proc grpc_stats",
        ),
        ("mx router", "mx router AUTHN AUTHZ STATS"),
    ],
)
def test_places_among_http_filters(filters: str, names: str):
    listed = [f"envoy.filters.http.{word}" for word in filters.split()]
    places = find_http_places(listed)
    for index, word in ((places.stats, "STATS"), (places.authz, "AUTHZ"), (places.authn, "AUTHN")):
        listed.insert(index, word)
    assert " ".join(each.removeprefix("envoy.filters.http.") for each in listed) == names


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ("istio.metadata_exchange istio.stats tcp", "istio.metadata_exchange AUTHN AUTHZ STATS istio.stats tcp"),
        (
            "istio.metadata_exchange rbac ext_authz rbac istio.stats tcp",
            "istio.metadata_exchange rbac ext_authz AUTHN AUTHZ rbac STATS istio.stats tcp",
        ),
        ("istio.metadata_exchange rbac tcp", "istio.metadata_exchange AUTHN AUTHZ rbac STATS tcp"),
        ("rbac ext_authz tcp", "rbac ext_authz AUTHN AUTHZ STATS tcp"),
        ("istio.stats tcp", "AUTHN AUTHZ STATS istio.stats tcp"),
    ],
)
def test_places_among_network_filters(filters: str, names: str):
    prefix = "envoy.filters.network."
    listed = [word if word.startswith("istio.") else prefix + word for word in filters.split()]
    places = find_network_places(listed)
    for index, word in ((places.stats, "STATS"), (places.authz, "AUTHZ"), (places.authn, "AUTHN")):
        listed.insert(index, word)
    assert " ".join(each.removeprefix(prefix) for each in listed) == names


def test_filters_of_one_phase_keep_their_order():
    pristine = _listener("a", {"filters": [manager(fault("envoy.filters.http.grpc_stats"))]})
    extensions = [_extension(name, "AUTHN") for name in ("one", "two")] + [_extension("s", "STATS"), _extension("u")]
    found = _extended(pristine, *extensions)
    assert _short(http_names(found.filter_chains[0].filters[0])) == [
        "one",
        "two",
        "s",
        "u",
        "envoy.filters.http.grpc_stats",
        "envoy.filters.http.router",
    ]


def test_a_listener_that_no_extension_is_for_is_the_same_resource():
    pristine = _listener("a", {"filters": [rbac(MANAGER), tcp_proxy()]})
    server = _extension("h", traffic=(Traffic(("inbound",)),))
    other_port = _extension("n", layer="network", traffic=(Traffic((), (81,)),))
    (found,) = placement.listeners(
        Engine(), ResourceSet(resource.LISTENER, [pristine]), (server, other_port, HTTP), "sidecar"
    )
    assert found is pristine


def test_a_listener_that_cannot_be_read_stays_as_it_is():
    broken = Resource("a", b"\xff")
    (found,) = placement.listeners(Engine(), ResourceSet(resource.LISTENER, [broken]), (HTTP,), "sidecar")
    assert found is broken


def test_towards_services_the_first_http_chain_and_all_tcp_chains_take_network_filters():
    found = _extended(
        _listener(
            "a",
            {"filters": [manager()]},
            {"filters": [manager()]},
            {"filters": [tcp_proxy()]},
            defaultFilterChain={"name": "PassthroughFilterChain", "filters": [tcp_proxy()]},
        ),
        NETWORK,
    )
    assert _network(found) == [["n", MANAGER], [MANAGER], ["n", TCP], [TCP]]


def test_a_default_chain_of_a_service_takes_them():
    found = _extended(_listener("a", defaultFilterChain={"filters": [tcp_proxy()]}), NETWORK)
    assert _network(found) == [["n", TCP]]


def test_all_inbound_chains_but_the_black_hole_take_them():
    found = _extended(
        _listener(
            "virtualInbound",
            {
                "name": "virtualInbound-blackhole",
                "filters": [tcp_proxy()],
                "filterChainMatch": {"destinationPort": 15006},
            },
            {"name": "virtualInbound", "filters": [tcp_proxy()]},
            {"filters": [manager()], "filterChainMatch": {"destinationPort": 8080}},
            {"filters": [manager()], "filterChainMatch": {"destinationPort": 8081}},
            direction="INBOUND",
            port=15006,
        ),
        NETWORK,
        _extension("p", layer="network", traffic=(Traffic(("inbound",), (8080,)),)),
    )
    assert _network(found) == [[TCP], ["n", TCP], ["n", "p", MANAGER], ["n", MANAGER]]


def test_chains_of_all_ports_have_none():
    pristine = _listener(
        "virtualInbound",
        {"filters": [manager()]},
        {"filters": [manager()], "filterChainMatch": {"destinationPort": 8080}},
        direction="INBOUND",
        port=15006,
    )
    found = _extended(pristine, _extension("h", traffic=(Traffic((), (8080, 15006)),)))
    assert [len(http_names(chain.filters[0])) for chain in found.filter_chains] == [1, 2]


def test_an_inbound_listener_of_its_own_has_its_port():
    pristine = _listener("10.0.0.1_7778", {"filters": [manager()]}, direction="INBOUND", port=7778)
    found = _extended(pristine, _extension("h", traffic=(Traffic(("inbound",), (7778,)),)))
    assert len(http_names(found.filter_chains[0].filters[0])) == 2


def test_gateways_take_network_filters_in_chains_of_connections():
    found = _extended(
        _listener(
            "a",
            {"filters": [manager()], "filterChainMatch": {"serverNames": ["a.b"]}},
            {"filters": [tcp_proxy()], "filterChainMatch": {"serverNames": ["c.d"]}},
            {"filters": [tcp_proxy()], "filterChainMatch": {"serverNames": ["outbound_.80_._.a.b"]}},
        ),
        NETWORK,
        _extension("h", traffic=(Traffic(("gateway",)),)),
        kind="router",
    )
    assert _network(found) == [[MANAGER], ["n", TCP], [TCP]]
    assert len(http_names(found.filter_chains[0].filters[0])) == 2


def test_virtual_outbound_takes_http_filters_only():
    chains = ({"filters": [manager()]}, {"filters": [tcp_proxy()]})
    found = _extended(_listener("virtualOutbound", *chains), NETWORK, HTTP)
    assert _network(found) == [[MANAGER], [TCP]]
    assert len(http_names(found.filter_chains[0].filters[0])) == 2
