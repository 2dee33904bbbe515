"""Filters of extensions."""

from typing import Any

from mizzen import protos
from mizzen.api.meta import Key
from mizzen.compile.filters import wasm
from mizzen.model.wasm import Extension, Phase, Traffic

HTTP = "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter"
NETWORK = "envoy.config.listener.v3.Filter"
PREFIX = "extensions.istio.io/trafficextension/shop."


def _extension(name: str, phase: Phase = "UNSPECIFIED", **fields: Any) -> Extension:
    return Extension(key=Key("TrafficExtension", "shop", name), phase=phase, **fields)


def _printed(kind: str, data: bytes) -> dict[str, Any]:
    return protos.to_json(protos.message_class(kind).FromString(data))


def _names(filters: tuple[bytes, ...], kind: str = HTTP) -> list[str]:
    return [_printed(kind, data)["name"].removeprefix(PREFIX) for data in filters]


def test_a_filter_fetches_its_configuration():
    (found,) = wasm.http_filters([_extension("a")], "inbound", 80).stats
    assert _printed(HTTP, found) == {
        "name": PREFIX + "a",
        "configDiscovery": {
            "configSource": {"ads": {}, "initialFetchTimeout": "0s", "resourceApiVersion": "V3"},
            "typeUrls": [
                "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
                "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC",
            ],
        },
    }


def test_a_network_filter_is_of_its_own_types():
    (found,) = wasm.network_filters([_extension("a", layer="network")], "inbound", 80).stats
    assert _printed(NETWORK, found)["configDiscovery"]["typeUrls"] == [
        "type.googleapis.com/envoy.extensions.filters.network.wasm.v3.Wasm",
        "type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC",
    ]


def test_lua_stands_in_the_filter():
    (found,) = wasm.http_filters([_extension("l", inline_code="x = 1")], "gateway", 80).stats
    assert _printed(HTTP, found) == {
        "name": PREFIX + "l",
        "typedConfig": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
            "defaultSourceCode": {"inlineString": "x = 1"},
        },
    }


def test_filters_stand_by_phase_and_in_the_order_given():
    found = wasm.http_filters(
        [
            _extension("a", "AUTHN"),
            _extension("b", "AUTHN"),
            _extension("c", "AUTHZ"),
            _extension("d", "STATS"),
            _extension("e"),
            _extension("n", "AUTHN", layer="network"),
        ],
        "outbound",
        80,
    )
    assert (_names(found.authn), _names(found.authz), _names(found.stats)) == (["a", "b"], ["c"], ["d", "e"])


def test_only_what_applies_to_the_chain_is_there():
    extensions = [
        _extension("in", traffic=(Traffic(("inbound",), (80,)),)),
        _extension("out", traffic=(Traffic(("outbound", "gateway")),)),
    ]
    assert _names(wasm.http_filters(extensions, "inbound", 80).stats) == ["in"]
    assert _names(wasm.http_filters(extensions, "outbound", 80).stats) == ["out"]
    assert wasm.http_filters(extensions, "inbound", 0) == wasm.PhasedFilters()
