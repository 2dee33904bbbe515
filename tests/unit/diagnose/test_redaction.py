"""Documents lose what is secret in them, and keep what a reader needs."""

import base64
import json
import re
from typing import Any

import pytest
import yaml

from mizzen.diagnose import redaction

TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3"
KEY = "-----BEGIN PRIVATE KEY-----\nLEAK\n-----END PRIVATE KEY-----\n"
JWKS = {
    "keys": [
        {"kty": "oct", "kid": "one", "k": "LEAK"},
        {"kty": "RSA", "n": "public", "e": "AQAB", **dict.fromkeys(("d", "p", "q", "dp", "dq", "qi"), "LEAK")},
        {"kty": "EC", "crv": "P-256", "x": "public", "y": "public", "d": "LEAK"},
    ]
}


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "document",
    [
        {"private_key": {"inline_string": "LEAK"}},
        {"privateKey": {"inlineBytes": "LEAK"}},
        {"privateKey": "/LEAK+base64="},
        {"tls_certificates": [{"password": {"inline_string": "LEAK"}, "pkcs12": {"inline_bytes": "LEAK"}}]},
        {"session_ticket_keys": {"keys": [{"inline_string": "LEAK"}]}},
        {"@type": f"{TLS}.TlsSessionTicketKeys", "keys": [{"inline_string": "LEAK"}]},
        {"generic_secret": {"secret": {"inline_string": "LEAK"}, "secrets": {"a": {"inline_string": "LEAK"}}}},
        {"jwks": json.dumps(JWKS)},
        {"jwks": "{not json: LEAK"},
        {"local_jwks": {"inline_string": json.dumps(JWKS)}},
        {"localJwks": {"inlineString": "LEAK"}},
        {"localJwks": {"inlineBytes": encode(json.dumps(JWKS))}},
        JWKS,
        {"set": {"authorization": "Basic LEAK", "Cookie": "LEAK", "x-api-key": "LEAK", "proxy-authorization": "LEAK"}},
        {"add": {"x-auth-token": "LEAK", "set-cookie": "LEAK"}},
        {"header": {"key": "Authorization", "value": "Bearer LEAK"}},
        {"header": {"key": "x-api-key", "rawValue": "LEAK"}},
        {"set": [{"name": "Cookie", "value": "LEAK"}]},
        {"match": [{"headers": {"authorization": {"exact": "LEAK"}, "cookie": {"regex": "LEAK"}}}]},
        {"headers": [{"name": "x-api-key", "stringMatch": {"safeRegex": {"regex": "LEAK"}}}]},
        {"when": [{"key": "request.headers[authorization]", "values": ["Basic LEAK"], "notValues": ["LEAK"]}]},
        {"pluginConfig": {"oauth": {"client_secret": "LEAK", "clientSecret": "LEAK"}}},
        {"configuration": {"@type": "StringValue", "value": '{"client_secret": "LEAK"}'}},
        {"env": [{"name": "DB_PASSWORD", "value": "LEAK"}, {"name": "TOKEN_OF_SHOP", "value": "LEAK"}]},
        {"env": {"SECRET_ONE": "LEAK"}},
        {"vmConfig": {"environmentVariables": {"keyValues": {"API_KEY": "LEAK"}}}},
        {"args": ["--password=LEAK", "--token", "LEAK", "-api-key=LEAK", "API_KEY=LEAK"]},
        {"command": ["sh", "-c", "exec serve --password=LEAK --token LEAK"]},
        {"credentials": [{"key": "LEAK", "client": "shop"}], "users": {"inlineString": "shop:LEAK"}},
        {"modules": {"https://user:LEAK@registry.example/module": 1}},
        {"kind": "Secret", "data": {"a": "LEAK"}},
        {"args": ["--config-yaml", "tls: {private_key: {inline_string: LEAK}}"]},
        {"auths": {"registry.example": {"auth": "LEAK", "password": "LEAK"}}},
        {"data": {"key.pem": KEY, "password": 31337}, "token": "LEAK"},
        {"metadata": {"annotations": {"last": json.dumps({"private_key": {"inline_string": "LEAK"}})}}},
        {"items": [{"kind": "Secret", "metadata": {"name": "a"}, "stringdata": "LEAK", "stringData": ["LEAK"]}]},
    ],
)
def test_secret_values_are_cut(document: dict[str, Any]) -> None:
    found = redaction.redact_object(document)

    told = json.dumps(found)
    assert "LEAK" not in told
    assert "31337" not in told
    assert all("LEAK" not in base64.b64decode(text).decode() for text in re.findall(r'"inlineBytes": "([^"]+)"', told))
    assert redaction.redact_object(found) == found
    assert json.loads(redaction.redact_file(json.dumps(document))) == found


@pytest.mark.parametrize(
    "document",
    [
        {"private_key": {"filename": "/etc/key.pem"}, "password": {"environment_variable": "NAME"}},
        {"tls": {"credentialName": "shop-tls", "mode": "SIMPLE"}, "imagePullSecret": "logins"},
        {"volumes": [{"name": "token", "secret": {"secretName": "shop", "items": [{"key": "a", "path": "b"}]}}]},
        {"env": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "shop", "key": "password"}}}]},
        {"env": [{"name": "PASSWORD_FILE", "value": "/etc/password"}, {"name": "MODE", "value": "fast"}]},
        {"jwtRules": [{"fromHeaders": [{"name": "Authorization", "prefix": "Bearer "}], "forwardOriginalToken": True}]},
        {"jwks": '{"keys": [{"kty": "RSA", "n": "public", "e": "AQAB"}]}'},
        {"hashPolicy": [{"cookie": {"name": "a", "ttl": "10s", "attributes": [{"name": "SameSite", "value": "Lax"}]}}]},
        {"tls": {"mode": "SIMPLE", "privateKey": "/etc/certs/key.pem", "serverCertificate": "/etc/certs/cert.pem"}},
        {"DestinationRule/shop/mutual-credential": "2026-11-29T20:11:11Z"},
        {"header": {"key": "authorization", "value": "%REQ(x-token)%"}},
        {"tokenBucket": {"maxTokens": 100, "tokensPerFill": 10}},
        {"token_endpoint": {"uri": "https://issuer.example/token"}, "token_secret": {"name": "a", "sds_config": {}}},
        {"args": ["--token-file=/var/run/token", "--secret-name", "shop", "--port=80", "{not json}"]},
        {"service": {"ports": [{"name": "token", "port": 80, "targetPort": "http"}]}},
        {"backendRefs": [{"kind": "Secret", "name": "shop"}], "users": ["alice"], "plain": [1, None, 1.5, True]},
    ],
)
def test_what_a_reader_needs_stays(document: dict[str, Any]) -> None:
    assert redaction.redact_object(document) == document
    text = json.dumps(document, indent=3)
    assert redaction.redact_file(text) == text


def test_the_public_parts_of_keys_and_the_scheme_of_a_login_stay() -> None:
    assert redaction.redact_object(JWKS["keys"][2]) == {**JWKS["keys"][2], "d": "[redacted]"}
    assert redaction.redact_object({"authorization": "Basic bG9n"}) == {"authorization": "Basic [redacted]"}


def test_lines_stay_lines_and_what_is_no_json_is_text() -> None:
    assert redaction.redact_file('{"password":\n"é"}\n') == '{\n "password": "[redacted]"\n}\n'
    assert redaction.redact_file("[warning] password=é\n") == "[warning] password=[redacted]\n"
    deep = "[" * 100_000
    assert redaction.redact_file(deep) == deep


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


def test_files_within_config_maps_are_walked_and_parse_again() -> None:
    bootstrap = f"""# LEAK: password=LEAK
static:
- private_key: {{inline_string: LEAK}}
- key: x-api-key
  value: LEAK
- text: |
    {KEY.replace(chr(10), chr(10) + "    ").rstrip()}
  domains: ["*"]
"""
    found = redaction.redact_object({"kind": "ConfigMap", "data": {"envoy.yaml": bootstrap}})["data"]["envoy.yaml"]

    assert "LEAK" not in found
    assert yaml.safe_load(found) == {
        "static": [
            {"private_key": {"inline_string": "[redacted]"}},
            {"key": "x-api-key", "value": "[redacted]"},
            {"text": KEY.replace("LEAK", "[redacted]"), "domains": ["*"]},
        ]
    }


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/sh\necho a: b && exit\n",
        "a: &shared {b: 1}\nc: *shared\n",
        "note: [unfinished\n{{ template }}: x\n",
        "# a comment\nmode:   fast\n",
        "when: 0000-99-99\nthen: 1\n",
    ],
)
def test_other_files_within_config_maps_stay_as_they_are(text: str) -> None:
    assert redaction.redact_object({"data": {"file": text}}) == {"data": {"file": text}}


def test_a_file_that_refers_to_its_own_parts_is_cut_by_patterns() -> None:
    found = redaction.redact_object({"file": "a: &a {password: LEAK}\nb: *a\n"})
    assert found == {"file": "a: &a {password: [redacted]}\nb: *a\n"}


def test_lines_of_a_log_that_are_json_are_walked() -> None:
    lines = ["[info] x", '{"private_key": {"inline_string": "LEAK"}}', '{"no json', '{"path": "/cart"}', ""]

    assert redaction.redact_file("\n".join(lines)).split("\n") == [
        lines[0],
        '{"private_key": {"inline_string": "[redacted]"}}',
        *lines[2:],
    ]
    assert "LEAK" not in redaction.redact_file("\n".join(lines[1:]))
