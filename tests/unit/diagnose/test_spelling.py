"""Dumps are brought to protobuf's JSON names by their descriptors, and nothing else is touched."""

from mizzen.diagnose import spelling

CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"


def test_fields_are_renamed_at_every_depth_and_inside_any() -> None:
    cluster = {
        "@type": CLUSTER,
        "connect_timeout": "1s",
        "transport_socket": {"name": "tls", "typed_config": {"@type": TLS, "common_tls_context": {}}},
        "load_assignment": {"endpoints": [{"lb_endpoints": [{"load_balancing_weight": 1}]}]},
    }

    assert spelling.respell(cluster) == {
        "@type": CLUSTER,
        "connectTimeout": "1s",
        "transportSocket": {"name": "tls", "typedConfig": {"@type": TLS, "commonTlsContext": {}}},
        "loadAssignment": {"endpoints": [{"lbEndpoints": [{"loadBalancingWeight": 1}]}]},
    }


def test_keys_of_maps_and_metadata_stay() -> None:
    cluster = {
        "@type": CLUSTER,
        "metadata": {"filter_metadata": {"envoy.my_key": {"snake_case": {"deep_er": 1}}}},
        "typed_extension_protocol_options": {"a_b": {"@type": "type.googleapis.com/unknown.Type", "c_d": 1}},
    }

    respelled = spelling.respell(cluster)

    assert respelled["metadata"] == {"filterMetadata": {"envoy.my_key": {"snake_case": {"deep_er": 1}}}}
    assert respelled["typedExtensionProtocolOptions"] == {
        "a_b": {"@type": "type.googleapis.com/unknown.Type", "c_d": 1}
    }


def test_unknown_types_and_fields_stay() -> None:
    unknown = {"@type": "type.googleapis.com/nobody.knows.This", "some_field": 1}

    assert spelling.respell(unknown) == unknown
    assert spelling.respell({"@type": CLUSTER, "field_of_tomorrow": 1})["field_of_tomorrow"] == 1


def test_respelling_twice_changes_nothing() -> None:
    once = spelling.respell({"@type": CLUSTER, "connect_timeout": "1s", "name": "a"})

    assert spelling.respell(once) == once


def test_where_the_place_tells_the_type_it_is_left_out() -> None:
    assert spelling.bare({"@type": CLUSTER, "alt_stat_name": "x"}) == {"altStatName": "x"}
    assert spelling.respell_as("envoy.admin.v3.ClusterStatus", {"added_via_api": True}) == {"addedViaApi": True}
