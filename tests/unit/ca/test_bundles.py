"""The roots that another trust domain publishes."""

import base64
import json

import pytest
from cryptography.hazmat.primitives import serialization
from plugged_authority import Node, make_node

from mizzen.ca.bundles import decode_bundle
from mizzen.errors import AuthorityError

ONE, TWO = make_node("one", 1_700_000_000.0), make_node("two", 1_700_000_000.0)


def entry(node: Node, use: str = "x509-svid") -> dict[str, object]:
    der = node.certificate.public_bytes(serialization.Encoding.DER)
    return {"kty": "EC", "use": use, "x5c": [base64.b64encode(der).decode()]}


def of_version_8(node: Node) -> dict[str, object]:
    der = node.certificate.public_bytes(serialization.Encoding.DER)
    three, eight = (bytes.fromhex(f"a0030201{number}") for number in ("02", "07"))
    return {"use": "x509-svid", "x5c": [base64.b64encode(der.replace(three, eight, 1)).decode()]}


def test_every_root_for_x509_is_taken_and_keys_for_tokens_are_not() -> None:
    text = json.dumps({"keys": [entry(ONE), {"kty": "EC", "use": "jwt-svid"}, entry(TWO)], "spiffe_sequence": 3})
    assert decode_bundle(text) == (ONE.pem + TWO.pem).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"keys": []}',
        json.dumps({"keys": [entry(ONE, "jwt-svid")]}),
        '{"keys": [{"use": "x509-svid"}]}',
        '{"keys": [{"use": "x509-svid", "x5c": []}]}',
        '{"keys": [{"use": "x509-svid", "x5c": ["!"]}]}',
        '{"keys": [{"use": "x509-svid", "x5c": ["AAAA"]}]}',
        '{"keys": [{"use": "x509-svid", "x5c": 3}]}',
        json.dumps({"keys": [of_version_8(ONE)]}),
        "[" * 100_000,
    ],
    ids=lambda text: text[:40],
)
def test_what_holds_no_root_is_refused(text: str) -> None:
    with pytest.raises(AuthorityError):
        decode_bundle(text)
