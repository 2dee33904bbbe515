"""A real Envoy takes the expressions that are taken for such, and refuses a route for the others."""

import json
import pathlib
import subprocess

import pytest
from expression_cases import EXPRESSIONS, LARGEST

from mizzen.agent.binaries import find_envoy

pytestmark = pytest.mark.envoy

EXTENSIONS = "type.googleapis.com/envoy.extensions.filters"


def is_taken(folder: pathlib.Path, expression: str) -> bool:
    route = {"match": {"safe_regex": {"regex": expression}}, "direct_response": {"status": 200}}
    manager = {
        "@type": f"{EXTENSIONS}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "x",
        "http_filters": [{"name": "r", "typed_config": {"@type": f"{EXTENSIONS}.http.router.v3.Router"}}],
        "route_config": {"virtual_hosts": [{"name": "a", "domains": ["*"], "routes": [route]}]},
    }
    listener = {
        "name": "in",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": 1}},
        "filter_chains": [{"filters": [{"name": "hcm", "typed_config": manager}]}],
    }
    bounds = {"name": "bounds", "static_layer": {"re2.max_program_size.error_level": str(LARGEST)}}
    config = folder / "envoy.json"
    config.write_text(
        json.dumps({"layered_runtime": {"layers": [bounds]}, "static_resources": {"listeners": [listener]}})
    )
    command = (str(find_envoy("", "")), "--mode", "validate", "-c", str(config), "-l", "off")
    return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_envoy_agrees(tmp_path: pathlib.Path, name: str) -> None:
    text, taken = EXPRESSIONS[name]
    assert is_taken(tmp_path, text) is taken
