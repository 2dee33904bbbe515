"""Messages print as protobuf JSON, without private keys and always alike."""

import json
import pathlib
from typing import Any

import pytest

from mizzen import protos
from mizzen.diagnose import printing

BASE = pathlib.Path(__file__).parents[2] / "golden" / "corpus" / "base"
KNOWN = "type.googleapis.com/google.protobuf."

any_class = protos.message_class("google.protobuf.Any")
tls = protos.package("envoy.extensions.transport_sockets.tls.v3")
core_v3 = protos.package("envoy.config.core.v3")
known = protos.package("google.protobuf")


@pytest.mark.parametrize("proxy", ["cart", "ingress"])
def test_recorded_resources_print_as_they_were_recorded(proxy: str) -> None:
    """Durations aside (`1s` and `1.000s` are one), parsing and printing changes nothing."""
    recorded = json.loads((BASE / f"{proxy}.json").read_text())
    for resources in recorded.values():
        for resource in resources.values():
            message = protos.from_json(any_class, resource)
            printed = printing.print_any(message)

            assert next(iter(printed)) == "@type"
            assert protos.from_json(any_class, printed) == message
            assert printed.keys() == resource.keys()


def test_map_keys_are_sorted() -> None:
    names = [f"key-{n}" for n in range(50)]
    metadata = core_v3.Metadata(filter_metadata={name: {} for name in reversed(names)})

    assert list(printing.print_message(metadata)["filterMetadata"]) == sorted(names)


@pytest.mark.parametrize(
    ("message", "printed"),
    [
        (known.Duration(seconds=1, nanos=500_000_000), "1.500s"),
        (known.Timestamp(seconds=0), "1970-01-01T00:00:00Z"),
        (known.FieldMask(paths=["a_b", "c"]), "aB,c"),
        (known.UInt64Value(value=2**63), str(2**63)),
        (known.BoolValue(), False),
        (known.BytesValue(value=b"x"), "eA=="),
        (known.DoubleValue(value=1.0), 1),
        (known.DoubleValue(value=0.25), 0.25),
        (known.DoubleValue(value=float("inf")), "Infinity"),
        (known.DoubleValue(value=float("nan")), "NaN"),
        (known.FloatValue(value=0.1), 0.1),
        (known.FloatValue(value=16777217.0), 16777216),
        (known.FloatValue(value=float("-inf")), "-Infinity"),
    ],
)
def test_googles_types_have_forms_of_their_own(message: Any, printed: Any) -> None:
    assert printing.print_message(message) == printed
    assert printing.print_any(protos.pack(message)) == {
        "@type": KNOWN + message.DESCRIPTOR.name,
        "value": printed,
    }


def test_plain_values_print_as_they_are() -> None:
    value = {"text": "a", "number": 1, "list": [True, None, 1.5], "empty": {}}

    assert printing.print_message(protos.struct(value)) == value


def test_an_any_of_an_unknown_type_does_not_hide_its_surroundings() -> None:
    unknown = any_class(type_url="type.googleapis.com/nobody.knows.This", value=b"\x01")
    config = core_v3.TypedExtensionConfig(name="x", typed_config=unknown)

    assert printing.print_any(protos.pack(config)) == {
        "@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
        "name": "x",
        "typedConfig": {"@type": "type.googleapis.com/nobody.knows.This", "value": "AQ=="},
    }


def test_an_empty_any_is_an_empty_object() -> None:
    assert printing.print_any(any_class()) == {}


def test_keys_and_passwords_are_redacted_wherever_they_stand() -> None:
    key = {"inline_bytes": b"PRIVATE"}
    certificate = {"certificate_chain": {"inline_string": "chain"}, "private_key": key, "password": key, "pkcs12": key}
    secrets = (
        tls.Secret(name="a", tls_certificate=certificate),
        tls.Secret(name="b", session_ticket_keys={"keys": [key, key]}),
        tls.Secret(name="c", generic_secret={"secret": key}),
        tls.DownstreamTlsContext(common_tls_context={"tls_certificates": [certificate]}),
    )

    printed = [printing.print_any(protos.pack(secret)) for secret in secrets]

    text = json.dumps(printed)
    assert "UFJJVkFURQ" not in text
    assert text.count(printing.REDACTED) == 8
    assert printed[0]["tlsCertificate"]["certificateChain"] == {"inlineString": "chain"}
    assert printed[1]["sessionTicketKeys"] == {"keys": [{"inlineString": "[redacted]"}]}


def test_logins_of_a_registry_are_redacted_and_other_variables_are_not() -> None:
    machine = protos.message_class("envoy.extensions.wasm.v3.VmConfig")()
    variables = machine.environment_variables.key_values
    variables["ISTIO_META_WASM_IMAGE_PULL_SECRET"] = '{"auths":{}}'
    variables["A"] = "1"
    assert printing.print_message(machine)["environmentVariables"] == {
        "keyValues": {"A": "1", "ISTIO_META_WASM_IMAGE_PULL_SECRET": "[redacted]"}
    }
    variables["ISTIO_META_WASM_IMAGE_PULL_SECRET"] = ""
    shown = printing.print_message(machine)["environmentVariables"]["keyValues"]
    assert shown["ISTIO_META_WASM_IMAGE_PULL_SECRET"] == "", "a secret that is missing is no secret"


def test_every_field_that_is_meant_to_be_private_exists() -> None:
    for name in printing.PRIVATE_FIELDS:
        message, _, field = name.rpartition(".")

        assert field in protos.message_class(message).DESCRIPTOR.fields_by_name
