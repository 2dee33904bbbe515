"""The program as a whole: its table of commands, its help, and how little it imports for that."""

import importlib
import json
import os
import pathlib
import subprocess
import sys

import cli_runs
import click
import pytest

from mizzen.cli import app

_HEAVY = ("google", "grpc", "cryptography", "aiohttp", "asyncio", "yaml", "msgspec", "mizzen.protos", "mizzen.api")


def test_help_imports_no_command_and_nothing_heavy() -> None:
    script = (
        "import json, sys\n"
        "from mizzen.cli import app\n"
        "try:\n    app.main(['--help'])\n"
        "finally:\n    print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = json.loads(finished.stderr)

    assert "proxy-config, pc" in finished.stdout
    assert [name for name in loaded if name.startswith(_HEAVY)] == []
    assert [name for name in loaded if name.startswith("mizzen.")] == [
        "mizzen.cli",
        "mizzen.cli.app",
        "mizzen.cli.flags",
        "mizzen.cli.groups",
        "mizzen.errors",
    ]
    assert len(loaded) < 350


@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_command_of_the_table_exists_under_its_name(name: str) -> None:
    module, _, attribute = app.COMMANDS[name].target.partition(":")
    command = getattr(importlib.import_module(module), attribute)

    assert isinstance(command, click.Command)
    assert command.name == name


def test_aliases_are_istioctls() -> None:
    assert cli_runs.run("pc", "--help").exit_code == 0
    assert cli_runs.run("ps", "--help").exit_code == 0


def test_hidden_commands_are_not_listed() -> None:
    assert "iptables" not in cli_runs.run("--help").stdout
    assert cli_runs.run("iptables", "--help").exit_code == 0


def test_a_reader_that_goes_away_is_no_failure_worth_words() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        finished = subprocess.run(
            [sys.executable, "-c", "from mizzen.cli import app; app.main(['--help'])"],
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writer)

    assert (finished.returncode, finished.stderr) == (1, b"")


def test_what_a_terminal_cannot_show_is_no_failure(tmp_path: pathlib.Path) -> None:
    route = """
    apiVersion: networking.istio.io/v1
    kind: VirtualService
    metadata: {name: a}
    spec: {hosts: [a], http: [{route: [{destination: {host: b→c}}]}]}
    """
    (tmp_path / "a.yaml").write_text(route, encoding="utf-8")
    command = [sys.executable, "-m", "mizzen", "analyze", str(tmp_path / "a.yaml")]
    environ = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    finished = subprocess.run(command, env=environ, capture_output=True, encoding="latin-1", check=False)

    assert "b\\u2192c" in finished.stdout
    assert "Traceback" not in finished.stderr
