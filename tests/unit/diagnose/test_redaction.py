"""What is secret is cut out, and what a reader needs stays."""

import base64

import pytest

from mizzen.diagnose import redaction

KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAsecret\n-----END RSA PRIVATE KEY-----"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIC/zCCAeegAwIBAgIRAM\n-----END CERTIFICATE-----"
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJtZXNoIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "text",
    [
        f"key: |\n{KEY}\n",
        KEY.replace("\n", "\\n"),
        f"token={TOKEN} and more",
        "authorization: Bearer abc.def-secret",
        '"Authorization": "Basic c2VjcmV0OnNlY3JldA=="',
        "https://user:secret@registry.example.com/image",
        f"tls.key: {base64.b64encode(KEY.encode()).decode()}",
    ],
)
def test_secrets_are_cut_out_of_text(text: str) -> None:
    found = redaction.redact_text(text)

    assert redaction.REDACTED in found
    for secret in (
        "MIIEowIBAA",
        "c2lnbmF0dXJl",
        "abc.def",
        "c2VjcmV0",
        ":secret@",
        base64.b64encode(KEY[:60].encode()),
    ):
        assert str(secret) not in found


@pytest.mark.parametrize(
    "text",
    [
        CERTIFICATE,
        base64.b64encode(CERTIFICATE.encode()).decode(),
        "secretName: shop-tls",
        "https://example.com:8443/path",
        '[2026-11-30T00:00:00.000Z] "GET /cart HTTP/1.1" 200 - via_upstream',
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redaction.redact_text(text) == text


def test_only_the_surroundings_of_a_key_stay() -> None:
    assert redaction.redact_text(f"before {KEY} between {KEY} after") == (
        "before -----BEGIN RSA PRIVATE KEY-----\n[redacted]\n-----END RSA PRIVATE KEY----- between"
        " -----BEGIN RSA PRIVATE KEY-----\n[redacted]\n-----END RSA PRIVATE KEY----- after"
    )


def test_secrets_keep_their_names_and_lose_their_values() -> None:
    secret = {
        "kind": "Secret",
        "metadata": {
            "name": "shop-tls",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{secret}", "owner": "shop"},
        },
        "data": {"tls.key": "c2VjcmV0"},
        "stringData": {"password": "secret"},
    }
    expected = {
        "kind": "Secret",
        "metadata": {"name": "shop-tls", "annotations": {"owner": "shop"}},
        "data": {"tls.key": "[redacted]"},
        "stringData": {"password": "[redacted]"},
    }

    assert redaction.redact_object(secret) == expected
    assert redaction.redact_object({"kind": "List", "items": [secret]}) == {"kind": "List", "items": [expected]}


def test_other_objects_and_broken_secrets_are_no_trouble() -> None:
    config_map = {"kind": "ConfigMap", "data": {"a": "b"}}

    assert redaction.redact_object(config_map) == config_map
    assert redaction.redact_object({"kind": "Secret", "data": None, "metadata": "x"}) == {
        "kind": "Secret",
        "data": None,
        "metadata": "x",
    }
    assert redaction.redact_object(["no", "object"]) == ["no", "object"]
