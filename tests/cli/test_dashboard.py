"""`mizzen dashboard` leads to the mesh's own pages, and `mizzen help` to every command's."""

import http.client
import os
import pathlib
import signal
import subprocess
import sys

import cli_runs
import pytest
from http_answers import Answers, on_socket


@pytest.fixture
def mesh(tmp_path: pathlib.Path) -> pathlib.Path:
    pods = [cli_runs.pod("cart-0", "shop", tmp_path / "cart.sock")]
    addresses = {"monitoring": "127.0.0.1:15014", "introspection": "127.0.0.1:9876"}
    return cli_runs.write_mesh(tmp_path / "mesh", pods=pods, **addresses)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("controlz", "http://127.0.0.1:9876/scopej/"),
        ("istiod-debug", "http://127.0.0.1:15014/debug"),
        ("ui", "http://127.0.0.1:15014/ui/"),
    ],
)
def test_the_pages_of_the_control_plane(mesh: pathlib.Path, name: str, url: str) -> None:
    result = cli_runs.run("dashboard", name, "--browser=false", "--mesh", mesh)

    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{url}\n", "skipping opening a browser\n")


def test_an_envoy_answers_on_a_port_of_this_machine(mesh: pathlib.Path, tmp_path: pathlib.Path) -> None:
    answers = Answers({"/server_info": b'{"state": "LIVE"}', "/": b"<html>"})
    arguments = ("dash", "envoy", "cart-0.shop", "--browser=false", "--mesh", str(mesh))
    command = (sys.executable, "-m", "mizzen", *arguments)
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with (
        on_socket(tmp_path / "cart.sock", answers),
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ) as process,
    ):
        assert process.stdout is not None
        address = process.stdout.readline().strip().removeprefix("http://")
        for path, body in (("/server_info", b'{"state": "LIVE"}'), ("/", b"<html>")):
            connection = http.client.HTTPConnection(address, timeout=60)
            connection.request("GET", path)
            assert connection.getresponse().read() == body
            connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_a_port_that_is_taken_is_said(mesh: pathlib.Path) -> None:
    import socket

    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
        result = cli_runs.run("d", "proxy", "cart-0.shop", "-p", port, "--mesh", mesh)

    assert (result.exit_code, result.stderr.startswith("Error: failure running port forward process: ")) == (1, True)


def test_help_of_a_command_is_what_the_command_prints() -> None:
    for words in ([], ["pc"], ["proxy-config", "cluster"], ["x", "injector", "list"]):
        assert cli_runs.run("help", *words).stdout == cli_runs.run(*words, "--help").stdout


def test_help_of_what_is_no_command() -> None:
    result = cli_runs.run("help", "pc", "nope")

    assert (result.exit_code, "unknown command 'nope' for 'mizzen pc'" in result.stderr) == (64, True)
