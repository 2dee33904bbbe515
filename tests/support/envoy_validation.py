"""Asks a real Envoy whether it takes a configuration, without running it."""

import json
import pathlib
import subprocess
from typing import Any

from expression_cases import LARGEST

from mizzen.agent.binaries import find_envoy

EXTENSIONS = "type.googleapis.com/envoy.extensions"
_ROUTER = {"name": "router", "typed_config": {"@type": f"{EXTENSIONS}.filters.http.router.v3.Router"}}


def takes_connection_manager(
    folder: pathlib.Path,
    *,
    filters: tuple[dict[str, Any], ...] = (),
    routes: tuple[dict[str, Any], ...] = (),
    **more: Any,
) -> bool:
    """Whether Envoy takes an HTTP connection manager with these HTTP filters, routes and other fields."""
    manager = {
        "@type": f"{EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "x",
        "http_filters": [*filters, _ROUTER],
        "route_config": {"virtual_hosts": [{"name": "a", "domains": ["*"], "routes": list(routes)}]},
        **more,
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
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
