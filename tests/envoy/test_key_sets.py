"""A real Envoy reads the key sets that are taken for readable, and refuses a listener for the others."""

import json
import pathlib
import subprocess

import pytest
from key_set_cases import SETS

from mizzen.agent.binaries import find_envoy

pytestmark = pytest.mark.envoy

EXTENSIONS = "type.googleapis.com/envoy.extensions.filters"


def is_taken(folder: pathlib.Path, text: str) -> bool:
    tokens = {
        "@type": f"{EXTENSIONS}.http.jwt_authn.v3.JwtAuthentication",
        "providers": {"a": {"issuer": "a", "local_jwks": {"inline_string": text}}},
        "rules": [{"match": {"prefix": "/"}, "requires": {"provider_name": "a"}}],
    }
    manager = {
        "@type": f"{EXTENSIONS}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "x",
        "http_filters": [
            {"name": "tokens", "typed_config": tokens},
            {"name": "router", "typed_config": {"@type": f"{EXTENSIONS}.http.router.v3.Router"}},
        ],
        "route_config": {"virtual_hosts": [{"name": "a", "domains": ["*"]}]},
    }
    listener = {
        "name": "in",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": 1}},
        "filter_chains": [{"filters": [{"name": "hcm", "typed_config": manager}]}],
    }
    config = folder / "envoy.json"
    config.write_text(json.dumps({"static_resources": {"listeners": [listener]}}))
    command = (str(find_envoy("", "")), "--mode", "validate", "-c", str(config), "-l", "off")
    return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0


@pytest.mark.parametrize("name", SETS)
def test_envoy_agrees(tmp_path: pathlib.Path, name: str) -> None:
    text, readable = SETS[name]
    assert is_taken(tmp_path, text) is readable
