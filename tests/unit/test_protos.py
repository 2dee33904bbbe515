"""The door to protobuf: classes, deterministic bytes, JSON both ways."""

import subprocess
import sys

import pytest

from mizzen import protos
from mizzen.errors import DecodeError

cluster_v3 = protos.package("envoy.config.cluster.v3")
core_v3 = protos.package("envoy.config.core.v3")
known = protos.package("google.protobuf")

WITH_MAPS = {
    "name": "a",
    "typedExtensionProtocolOptions": {
        "k": {
            "@type": "type.googleapis.com/envoy.config.core.v3.Metadata",
            "filterMetadata": {f"key-{n}": {"x": n} for n in range(20)},
        }
    },
}


def test_constructors_take_nested_dicts_wrappers_and_names_of_enums() -> None:
    cluster = cluster_v3.Cluster(name="a", type="EDS", connect_timeout={"seconds": 1}, common_lb_config={})
    assert protos.to_json(cluster) == {"name": "a", "type": "EDS", "connectTimeout": "1s", "commonLbConfig": {}}


def test_fields_that_the_installed_descriptors_lack_are_there() -> None:
    budget = cluster_v3.CircuitBreakers.Thresholds.RetryBudget(budget_interval={"seconds": 2})
    assert protos.to_json(budget) == {"budgetInterval": "2s"}
    stats = protos.package("stats").PluginConfig(metrics=[{"name": "m", "dimensions": {"a": "b"}}])
    assert protos.to_json(stats) == {"metrics": [{"name": "m", "dimensions": {"a": "b"}}]}


def test_equal_messages_pack_equally_whatever_the_order_of_their_maps() -> None:
    forward = core_v3.Metadata(filter_metadata={f"k{n}": {} for n in range(20)})
    backward = core_v3.Metadata(filter_metadata={f"k{n}": {} for n in reversed(range(20))})
    assert protos.pack(forward) == protos.pack(backward)


def test_what_json_puts_into_an_any_is_encoded_the_same_in_every_process() -> None:
    program = (
        "import json, sys; from mizzen import protos;"
        "message = protos.from_json(protos.message_class('envoy.config.cluster.v3.Cluster'), json.loads(sys.argv[1]));"
        "print(protos.encode(message).hex())"
    )
    import json

    printed = {
        subprocess.run(
            [sys.executable, "-c", program, json.dumps(WITH_MAPS)], check=True, capture_output=True, text=True
        ).stdout
        for _ in range(4)
    }
    assert len(printed) == 1


def test_an_any_inside_an_any_is_settled_too() -> None:
    inner = {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", **WITH_MAPS}
    outer = {"name": "x", "typedConfig": inner}
    message = protos.from_json(core_v3.TypedExtensionConfig, outer)
    unpacked = protos.unpack(message.typed_config)
    assert protos.encode(unpacked) == message.typed_config.value


def test_an_any_of_an_unknown_type_prints_as_its_bytes() -> None:
    packed = known.Any(type_url="type.googleapis.com/nobody.Knows", value=b"\x08\x01")
    assert protos.any_to_json(packed) == {"@type": packed.type_url, "value": "CAE="}


@pytest.mark.parametrize("value", [{"nothing": 1}, {"name": 1}, {"connectTimeout": "soon"}, {"type": "WRONG"}])
def test_faulty_json_is_refused_with_a_reason(value: dict[str, object]) -> None:
    with pytest.raises(DecodeError):
        protos.from_json(cluster_v3.Cluster, value)


def test_an_unknown_message_is_a_clear_error() -> None:
    with pytest.raises(DecodeError, match=r"nobody\.Knows"):
        protos.message_class("nobody.Knows")


def test_encoded_fields_concatenate() -> None:
    whole = protos.encode(cluster_v3.Cluster(name="a", alt_stat_name="b"))
    parts = protos.length_delimited(1, b"a") + protos.length_delimited(28, b"b")
    assert cluster_v3.Cluster.FromString(parts) == cluster_v3.Cluster.FromString(whole)


def test_no_generated_module_is_imported() -> None:
    program = (
        "import sys; from mizzen import protos;"
        "protos.message_class('envoy.config.listener.v3.Listener');"
        "print([m for m in sys.modules if m.startswith('envoy') and m.endswith('_pb2')])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
