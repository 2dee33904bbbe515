"""A real Envoy reads the key sets that are taken for readable, and refuses a listener for the others."""

import pathlib

import pytest
from envoy_validation import EXTENSIONS, takes_connection_manager
from key_set_cases import SETS

pytestmark = pytest.mark.envoy


@pytest.mark.parametrize("name", SETS)
def test_envoy_agrees(tmp_path: pathlib.Path, name: str) -> None:
    text, readable = SETS[name]
    tokens = {
        "@type": f"{EXTENSIONS}.filters.http.jwt_authn.v3.JwtAuthentication",
        "providers": {"a": {"issuer": "a", "local_jwks": {"inline_string": text}}},
        "rules": [{"match": {"prefix": "/"}, "requires": {"provider_name": "a"}}],
    }
    assert takes_connection_manager(tmp_path, filters=({"name": "tokens", "typed_config": tokens},)) is readable
