"""Patches of listener, network and HTTP filters."""

from typing import Any

from envoy_patches import (
    HTTP,
    MANAGER,
    NETWORK,
    TYPE,
    fault,
    http_names,
    manager,
    message,
    rbac,
    read,
    tcp_proxy,
    write_patch,
)

from mizzen import protos
from mizzen.compile.patches import filters


def _chain(*network: dict[str, Any]) -> Any:
    return message("envoy.config.listener.v3.FilterChain", filters=list(network))


def _network(operation: str, value: dict | None, name: str | None = None) -> dict:
    listener = {"filterChain": {"filter": {"name": name}}} if name is not None else {}
    return write_patch("NETWORK_FILTER", operation, value, listener=listener)


def _http(operation: str, value: dict | None, sought: str | None = None, manager_name: str = MANAGER) -> dict:
    match: dict[str, Any] = {"name": manager_name}
    if sought is not None:
        match["subFilter"] = {"name": sought}
    return write_patch("HTTP_FILTER", operation, value, listener={"filterChain": {"filter": match}})


def _patched(chain: Any, *written: dict) -> bool:
    patches = read(*written)
    network = [p for p in patches if p.apply_to == "NETWORK_FILTER"]
    return filters.patch_network_filters(chain, network, [p for p in patches if p.apply_to == "HTTP_FILTER"])


def test_network_filters_are_added_beside_what_is_looked_for():
    chain = _chain(rbac("a"), tcp_proxy())
    assert _patched(
        chain,
        _network("INSERT_BEFORE", rbac("b"), "envoy.filters.network.tcp_proxy"),
        _network("INSERT_FIRST", rbac("c")),
        _network("REMOVE", None, "a"),
    )
    assert [f.name for f in chain.filters] == ["c", "b", "envoy.filters.network.tcp_proxy"]


def test_patches_of_what_is_not_there_change_nothing():
    chain = _chain(tcp_proxy())
    assert not _patched(chain, _network("REMOVE", None, "a"), _network("MERGE", rbac(), "a"))
    assert not _patched(chain, _http("ADD", fault()))


def test_a_merge_goes_into_the_typed_configuration():
    chain = _chain(tcp_proxy())
    value = {"typedConfig": {"@type": NETWORK + "tcp_proxy.v3.TcpProxy", "maxConnectAttempts": 3}}
    assert _patched(chain, _network("MERGE", value, "envoy.filters.network.tcp_proxy"))
    config: Any = protos.unpack(chain.filters[0].typed_config)
    assert (config.stat_prefix, config.max_connect_attempts.value) == ("x", 3)


def test_a_merge_without_a_filter_to_look_for_goes_into_all():
    chain = _chain(rbac("a"), rbac("b"))
    value = {"typedConfig": {"@type": NETWORK + "rbac.v3.RBAC", "delayDeny": "1s"}}
    assert _patched(chain, _network("MERGE", value))
    assert [protos.unpack(f.typed_config).delay_deny.seconds for f in chain.filters] == [1, 1]


def test_a_merge_renames_and_may_hold_nothing_else():
    chain = _chain(rbac("a"))
    assert _patched(chain, _network("MERGE", {"name": "b"}, "a"))
    assert (chain.filters[0].name, chain.filters[0].typed_config.type_url) == ("b", NETWORK + "rbac.v3.RBAC")


def test_a_filter_that_is_fetched_is_not_merged():
    chain = _chain({"name": "a", "configDiscovery": {"typeUrls": [NETWORK + "rbac.v3.RBAC"]}})
    assert not _patched(chain, _network("MERGE", rbac("b"), "a"))
    assert chain.filters[0].name == "a"


def test_http_filters_are_added_around_the_router():
    chain = _chain(manager(fault("a"), fault("b")))
    assert _patched(
        chain,
        _http("INSERT_BEFORE", fault("before router"), "envoy.filters.http.router"),
        _http("INSERT_AFTER", fault("after a"), "a"),
        _http("INSERT_FIRST", fault("first")),
        _http("ADD", fault("last")),
        _http("REPLACE", fault("for b"), "b"),
    )
    assert http_names(chain.filters[0]) == [
        "first",
        "a",
        "after a",
        "for b",
        "before router",
        "envoy.filters.http.router",
        "last",
    ]


def test_an_http_filter_is_merged():
    chain = _chain(manager(fault("a", upstreamCluster="x")))
    assert _patched(chain, _http("MERGE", fault("b", maxActiveFaults=2), "a"))
    found: Any = protos.unpack(chain.filters[0].typed_config)
    assert found.http_filters[0].name == "b"
    assert protos.to_json(protos.unpack(found.http_filters[0].typed_config)) == {
        "upstreamCluster": "x",
        "maxActiveFaults": 2,
    }


def test_http_patches_without_a_network_filter_mean_every_manager():
    chain = _chain(manager())
    assert _patched(chain, write_patch("HTTP_FILTER", "INSERT_FIRST", fault("a")))
    assert http_names(chain.filters[0]) == ["a", "envoy.filters.http.router"]


def test_http_patches_of_another_network_filter_do_nothing():
    chain = _chain(manager())
    assert not _patched(chain, _http("INSERT_FIRST", fault("a"), manager_name="other"))


def test_a_manager_by_name_only_is_none():
    chain = _chain(rbac(MANAGER))
    assert not _patched(chain, _http("INSERT_FIRST", fault("a")))


def test_lists_of_a_manager_are_appended_or_replaced():
    value = {
        "typedConfig": {
            "@type": NETWORK + "http_connection_manager.v3.HttpConnectionManager",
            "upgradeConfigs": [{"upgradeType": "CONNECT"}],
        }
    }
    chain = _chain(manager(upgradeConfigs=[{"upgradeType": "websocket"}]))
    assert _patched(chain, _network("MERGE", value, MANAGER))
    found: Any = protos.unpack(chain.filters[0].typed_config)
    assert [u.upgrade_type for u in found.upgrade_configs] == ["websocket", "CONNECT"]
    assert _patched(chain, _network("MERGE_AND_REPLACE_LIST", value, MANAGER))
    found = protos.unpack(chain.filters[0].typed_config)
    assert [u.upgrade_type for u in found.upgrade_configs] == ["CONNECT"]
    assert len(found.http_filters) == 1


def _listener_filter(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "typedConfig": {"@type": TYPE + "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector", **fields},
    }


def test_listener_filters_are_placed_and_merged():
    listener = message("listener", listenerFilters=[_listener_filter("a"), _listener_filter("b")])
    patches = read(
        write_patch("LISTENER_FILTER", "INSERT_AFTER", _listener_filter("c"), listener={"listenerFilter": "a"}),
        write_patch("LISTENER_FILTER", "REMOVE", listener={"listenerFilter": "b"}),
        write_patch(
            "LISTENER_FILTER",
            "MERGE",
            {**_listener_filter("", initialReadBufferSize=512), "filterDisabled": {"anyMatch": True}},
            listener={"listenerFilter": "a"},
        ),
    )
    assert filters.patch_listener_filters(listener, patches)
    assert [f.name for f in listener.listener_filters] == ["a", "c"]
    first = listener.listener_filters[0]
    assert first.filter_disabled.any_match
    assert protos.unpack(first.typed_config).initial_read_buffer_size.value == 512


def test_a_filter_added_and_merged_leaves_the_patch_as_it_is():
    patches = read(_http("INSERT_FIRST", fault("a")), _http("MERGE", fault("", upstreamCluster="x"), "a"))
    chain = _chain(manager())
    assert filters.patch_network_filters(chain, [], patches)
    found: Any = protos.unpack(chain.filters[0].typed_config)
    assert protos.unpack(found.http_filters[0].typed_config).upstream_cluster == "x"
    assert patches[0].value.typed_config.type_url == HTTP + "fault.v3.HTTPFault"
    assert patches[0].value.typed_config.value == b""
