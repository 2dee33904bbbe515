"""Merging of messages."""

from envoy_patches import HTTP, TYPE, message

from mizzen import protos
from mizzen.compile.patches import merging


def _merged(kind: str, target: dict, patch: dict, **options: bool) -> dict:
    result = message(kind, **target)
    merging.merge(result, message(kind, **patch), **options)
    return protos.to_json(result)


def test_scalars_that_are_not_zero_replace():
    found = _merged("cluster", {"name": "a", "altStatName": "b", "lbPolicy": "MAGLEV"}, {"altStatName": "c"})
    assert found == {"name": "a", "altStatName": "c", "lbPolicy": "MAGLEV"}


def test_a_scalar_is_not_merged_back_to_zero():
    found = _merged("cluster", {"ignoreHealthOnHostRemoval": True}, {"ignoreHealthOnHostRemoval": False})
    assert found == {"ignoreHealthOnHostRemoval": True}


def test_messages_merge_field_by_field():
    found = _merged(
        "cluster",
        {"commonLbConfig": {"zoneAwareLbConfig": {"minClusterSize": "6"}}},
        {
            "commonLbConfig": {
                "zoneAwareLbConfig": {"failTrafficOnPanic": True},
                "closeConnectionsOnHostSetChange": True,
            }
        },
    )
    assert found == {
        "commonLbConfig": {
            "zoneAwareLbConfig": {"minClusterSize": "6", "failTrafficOnPanic": True},
            "closeConnectionsOnHostSetChange": True,
        }
    }


def test_an_empty_message_of_a_patch_is_set():
    assert _merged("cluster", {}, {"http2ProtocolOptions": {}}) == {"http2ProtocolOptions": {}}


def test_durations_and_wrappers_replace_even_by_zero():
    found = _merged(
        "cluster",
        {"connectTimeout": "1.5s", "perConnectionBufferLimitBytes": 7},
        {"connectTimeout": "2s", "perConnectionBufferLimitBytes": 0},
    )
    assert found == {"connectTimeout": "2s", "perConnectionBufferLimitBytes": 0}


def test_lists_are_appended():
    found = _merged("route", {"internalOnlyHeaders": ["a"]}, {"internalOnlyHeaders": ["b"]})
    assert found == {"internalOnlyHeaders": ["a", "b"]}


def test_lists_of_the_patched_message_are_replaced_where_asked_and_nested_ones_appended():
    target = {"internalOnlyHeaders": ["a"], "vhds": {"configSource": {"authorities": [{"name": "x"}]}}}
    patch = {"internalOnlyHeaders": ["b"], "vhds": {"configSource": {"authorities": [{"name": "y"}]}}}
    assert _merged("route", target, patch, replace_lists=True) == {
        "internalOnlyHeaders": ["b"],
        "vhds": {"configSource": {"authorities": [{"name": "x"}, {"name": "y"}]}},
    }


def test_a_map_of_messages_is_replaced_by_key():
    first = {"@type": HTTP + "fault.v3.HTTPFault", "upstreamCluster": "x"}
    second = {"@type": HTTP + "fault.v3.HTTPFault", "maxActiveFaults": 3}
    found = _merged(
        "envoy.config.route.v3.Route",
        {"typedPerFilterConfig": {"a": first, "b": first}},
        {"typedPerFilterConfig": {"b": second, "c": second}},
    )
    assert found == {"typedPerFilterConfig": {"a": first, "b": second, "c": second}}


def test_a_map_of_scalars_is_merged_by_key():
    kind = "envoy.extensions.wasm.v3.EnvironmentVariables"
    found = _merged(kind, {"keyValues": {"a": "1", "b": "1"}}, {"keyValues": {"b": "2"}})
    assert found == {"keyValues": {"a": "1", "b": "2"}}


def test_the_member_of_a_oneof_displaces_the_others():
    kind = "envoy.config.route.v3.Route"
    assert _merged(kind, {"route": {"cluster": "a"}}, {"redirect": {"stripQuery": True}}) == {
        "redirect": {"stripQuery": True}
    }


def test_an_any_outside_filters_and_sockets_is_replaced():
    kind = "envoy.config.core.v3.TransportSocket"
    tls = {"@type": TYPE + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "sni": "a"}
    raw = {"@type": TYPE + "envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"}
    assert _merged(kind, {"name": "x", "typedConfig": tls}, {"typedConfig": raw}) == {"name": "x", "typedConfig": raw}


def test_an_any_of_the_same_type_that_says_nothing_changes_nothing():
    kind = "envoy.config.core.v3.TransportSocket"
    tls = {"@type": TYPE + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"}
    found = _merged(kind, {"typedConfig": {**tls, "sni": "a"}}, {"name": "x", "typedConfig": tls})
    assert found == {"name": "x", "typedConfig": {**tls, "sni": "a"}}


def _packed(**fields: object) -> object:
    return message("google.protobuf.Any", **fields)


def test_typed_configurations_of_one_type_merge_inside():
    target = _packed(**{"@type": HTTP + "fault.v3.HTTPFault", "upstreamCluster": "x", "downstreamNodes": ["a"]})
    merging.merge_packed(
        target, _packed(**{"@type": HTTP + "fault.v3.HTTPFault", "maxActiveFaults": 3, "downstreamNodes": ["b"]})
    )
    assert protos.to_json(protos.unpack(target)) == {
        "upstreamCluster": "x",
        "maxActiveFaults": 3,
        "downstreamNodes": ["a", "b"],
    }


def test_typed_configurations_of_another_type_replace():
    target = _packed(**{"@type": HTTP + "fault.v3.HTTPFault"})
    merging.merge_packed(target, _packed(**{"@type": HTTP + "buffer.v3.Buffer", "maxRequestBytes": 3}))
    assert target.type_url == HTTP + "buffer.v3.Buffer"


def test_two_empty_configurations_merge_into_one():
    target = _packed()
    merging.merge_packed(target, _packed())
    assert target == _packed()


def test_a_socket_without_configuration_is_not_merged():
    socket = message("envoy.config.core.v3.TransportSocket", name="raw")
    assert not merging.merge_socket(socket, socket)
