"""Secrets are cut out of text by patterns, and what a reader needs stays."""

import base64

import pytest
import yaml

from mizzen.diagnose.redacted_text import REDACTED, redact_text

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
    found = redact_text(text)

    assert REDACTED in found
    for secret in (
        "MIIEowIBAA",
        "c2lnbmF0dXJl",
        "abc.def",
        "c2VjcmV0",
        ":secret@",
        base64.b64encode(KEY[:60].encode()).decode(),
    ):
        assert secret not in found


@pytest.mark.parametrize(
    "text",
    [
        CERTIFICATE,
        base64.b64encode(CERTIFICATE.encode()).decode(),
        "secretName: shop-tls",
        "https://example.com:8443/path",
        "run --token-file /var/run/token --secret-name shop-tls",
        "wrote password-policy: 3 rules",
        "authorization: [redacted]",
        '"max_tokens": 100',
        '[2026-11-30T00:00:00.000Z] "GET /cart HTTP/1.1" 200 - via_upstream',
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact_text(text) == text


def test_only_the_surroundings_of_a_key_stay() -> None:
    assert redact_text(f"before {KEY} between {KEY} after") == (
        "before -----BEGIN RSA PRIVATE KEY-----\n[redacted]\n-----END RSA PRIVATE KEY----- between"
        " -----BEGIN RSA PRIVATE KEY-----\n[redacted]\n-----END RSA PRIVATE KEY----- after"
    )


@pytest.mark.parametrize(
    "line",
    [
        "cookie: session=LEAK; theme=LEAK",
        "'cookie', 'session=LEAK; theme=LEAK'",
        "'authorization', 'Basic LEAK'",
        "proxy-authorization: Digest LEAK",
        "authorization: LEAK",
        '{"x-api-key":"LEAK"}',
        "psql --password=LEAK --port=5432",
        "run --token LEAK",
        "PGPASSWORD=LEAK psql",
        "client_secret: LEAK",
        "export DB_TOKEN=LEAK; CART_SECRET='LEAK' run",
        "POST /token?client_secret=LEAK&x=1",
        r"jwks: {\"kty\":\"oct\",\"k\":\"LEAKLEAKLEAKLEAK\"}",
        "redis://:LEAK@cache:6379",
        f"{KEY.splitlines()[0]}\n{'LEAK' * 16}\n",
        f"{KEY.splitlines()[0]}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB\n\n{'LEAK' * 16}\n",
        f"{'LEAK' * 16}\n{KEY.splitlines()[-1]}\nafter",
    ],
)
def test_values_behind_secret_names_are_cut_out_of_logs(line: str) -> None:
    found = redact_text(line)

    assert "LEAK" not in found
    assert REDACTED in found
    assert redact_text(found) == found


def test_a_key_in_a_block_of_yaml_stays_indented() -> None:
    block = "key: |\n" + "".join(f"    {line}\n" for line in KEY.splitlines()) + "after: 1\n"

    begin, end = KEY.splitlines()[0], KEY.splitlines()[-1]
    assert yaml.safe_load(redact_text(block)) == {"key": f"{begin}\n[redacted]\n{end}\n", "after": 1}


@pytest.mark.parametrize(
    "text",
    ["a-" * 100_000, f"{KEY.splitlines()[0]} - " * 10_000, "password" + " " * 200_000, "a.a://" * 50_000],
    ids=["dashes", "beginnings", "spaces", "schemes"],
)
def test_long_text_without_secrets_is_read_once_and_not_over_and_over(text: str) -> None:
    # Patterns that go back at every place take hours for this.
    assert redact_text(text) == text
