"""Patches of filter chains."""

from typing import Any

from envoy_patches import TYPE, message, rbac, read, tcp_proxy, write_patch

from mizzen import protos
from mizzen.compile.patches import chains

TLS = TYPE + "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"


def _listener(*filter_chains: dict[str, Any], **fields: Any) -> Any:
    return message("listener", name="x", filterChains=list(filter_chains), **fields)


def _socket(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "typedConfig": {"@type": TLS, **fields}}


def _chain(operation: str, value: dict | None, **match: Any) -> dict:
    return write_patch("FILTER_CHAIN", operation, value, listener={"filterChain": match})


def test_chains_are_merged_removed_and_added():
    listener = _listener(
        {"name": "a", "filters": [tcp_proxy()]},
        {"name": "b", "filters": [tcp_proxy()]},
        {"name": "c", "filters": [tcp_proxy()]},
    )
    assert chains.patch_chains(
        listener,
        read(
            _chain("REMOVE", None, name="b"),
            _chain("MERGE", {"transportSocketConnectTimeout": "3s"}, name="c"),
            _chain("ADD", {"name": "d", "filters": [tcp_proxy()]}, name="not looked at"),
        ),
    )
    assert [c.name for c in listener.filter_chains] == ["a", "c", "d"]
    assert [c.transport_socket_connect_timeout.seconds for c in listener.filter_chains] == [0, 3, 0]


def test_a_renamed_chain_is_known_by_its_new_name():
    listener = _listener({"name": "a", "filters": [tcp_proxy()]})
    patches = read(
        _chain("MERGE", {"name": "b"}, name="a"),
        write_patch("NETWORK_FILTER", "INSERT_FIRST", rbac("r"), listener={"filterChain": {"name": "b"}}),
    )
    assert chains.patch_chains(listener, patches)
    assert [f.name for f in listener.filter_chains[0].filters] == ["r", "envoy.filters.network.tcp_proxy"]


def test_the_default_chain_is_patched_like_the_others():
    listener = _listener(defaultFilterChain={"name": "d", "filters": [tcp_proxy()]})
    assert chains.patch_chains(listener, read(_chain("MERGE", {"name": "e"}, name="d")))
    assert listener.default_filter_chain.name == "e"
    assert chains.patch_chains(listener, read(_chain("REMOVE", None, name="e")))
    assert not listener.HasField("default_filter_chain")


def test_a_chain_without_filters_is_not_patched():
    listener = _listener({"name": "a"}, defaultFilterChain={"name": "a"})
    assert not chains.patch_chains(listener, read(_chain("REMOVE", None, name="a")))


def test_patches_of_no_chain_that_is_there_change_nothing():
    listener = _listener({"name": "a", "filters": [tcp_proxy()]})
    assert not chains.patch_chains(listener, read(_chain("REMOVE", None, name="z"), _chain("REPLACE", {}, name="a")))


def test_a_socket_of_the_same_name_merges_alone():
    listener = _listener({"filters": [tcp_proxy()], "transportSocket": _socket("tls", requireClientCertificate=True)})
    value = {"name": "not taken", "transportSocket": _socket("tls", requireSni=True)}
    assert chains.patch_chains(listener, read(_chain("MERGE", value)))
    chain = listener.filter_chains[0]
    assert chain.name == ""
    assert protos.to_json(protos.unpack(chain.transport_socket.typed_config)) == {
        "requireClientCertificate": True,
        "requireSni": True,
    }


def test_a_socket_of_another_name_takes_its_place():
    listener = _listener({"filters": [tcp_proxy()], "transportSocket": _socket("tls", requireClientCertificate=True)})
    assert chains.patch_chains(listener, read(_chain("MERGE", {"name": "n", "transportSocket": _socket("other")})))
    chain = listener.filter_chains[0]
    assert (chain.name, chain.transport_socket.name) == ("n", "other")
    assert protos.to_json(protos.unpack(chain.transport_socket.typed_config)) == {}


def test_a_socket_where_there_was_none_is_set():
    listener = _listener({"filters": [tcp_proxy()]})
    assert chains.patch_chains(listener, read(_chain("MERGE", {"transportSocket": _socket("tls")})))
    assert listener.filter_chains[0].transport_socket.name == "tls"


def test_a_socket_without_configuration_is_merged_as_a_field():
    listener = _listener({"filters": [tcp_proxy()], "transportSocket": {"name": "tls"}})
    assert chains.patch_chains(listener, read(_chain("MERGE", {"transportSocket": _socket("tls", requireSni=True)})))
    assert protos.unpack(listener.filter_chains[0].transport_socket.typed_config).require_sni.value
