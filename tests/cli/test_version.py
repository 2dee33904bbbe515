"""`mizzen version` with and without a control plane."""

import importlib.metadata
import json
import os
from collections.abc import Iterator
from pathlib import Path

import cli_runs
import pytest
import yaml
from http_answers import Answers, on_port

from mizzen.local import runtime

OWN = importlib.metadata.version("mizzen")


@pytest.fixture
def plane() -> Iterator[str]:
    syncz = [
        {"proxy": "cart-0.shop", "istio_version": "1.32.0"},
        {"proxy": "old-0.shop", "istio_version": "1.31.1"},
        {"proxy": "api-0.web", "istio_version": "1.32.0"},
    ]
    answers = Answers({"/version": b"0.1.0-rc1-abcdef-Clean", "/debug/syncz": json.dumps(syncz).encode()})
    with on_port(answers) as address:
        yield address


def test_without_remote_only_the_client_is_asked() -> None:
    result = cli_runs.run("version", "--remote=false")

    assert (result.stdout, result.stderr) == (f"client version: {OWN}\n", "")


def test_control_plane_and_proxies_are_counted(plane: str) -> None:
    assert cli_runs.run("version", "--monitoring", plane).stdout == (
        f"client version: {OWN}\n"
        "control plane version: 0.1.0-rc1\n"
        "data plane version: 1.31.1 (1 proxies), 1.32.0 (2 proxies)\n"
    )


def test_control_planes_that_differ_are_named(plane: str) -> None:
    with on_port(Answers({"/version": b"0.2.0", "/debug/syncz": b"[]"})) as newer:
        lines = cli_runs.run("version", "--monitoring", plane, "--monitoring", newer).stdout.splitlines()

    assert lines[1:3] == [f"{plane} version: 0.1.0-rc1", f"{newer} version: 0.2.0"]


def test_no_proxies_say_none() -> None:
    with on_port(Answers({"/version": b"0.2.0", "/debug/syncz": b"[]"})) as plane:
        assert cli_runs.run("version", "--monitoring", plane).stdout.endswith("data plane version: none\n")


def test_long_form_shows_the_build(plane: str) -> None:
    line = cli_runs.run("version", "-s=false", "--monitoring", plane).stdout.splitlines()[1]

    build = json.loads(line.removeprefix("control plane version: "))
    assert build == {"version": "0.1.0-rc1", "revision": "abcdef", "status": "Clean"}


def test_json_and_yaml_have_istioctls_keys(plane: str) -> None:
    in_json = json.loads(cli_runs.run("version", "-o", "json", "--monitoring", plane).stdout)

    assert in_json["clientVersion"]["version"] == OWN
    assert in_json["meshVersion"][0]["Info"]["revision"] == "abcdef"
    assert in_json["dataPlaneVersion"][0] == {"ID": "api-0.web", "IstioVersion": "1.32.0"}
    assert yaml.safe_load(cli_runs.run("version", "-o", "yaml", "--monitoring", plane).stdout) == in_json


def test_an_absent_control_plane_is_said_and_is_no_failure() -> None:
    with on_port(Answers({})) as gone:
        pass

    result = cli_runs.run("version", "--monitoring", gone)

    assert result.exit_code == 0
    assert result.stdout == f"client version: {OWN}\n"
    assert result.stderr.startswith("Mizzen is not running here: cannot reach the control plane")


def test_several_meshes_are_not_called_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = [runtime.lock(runtime.Layout(tmp_path / name)) for name in ("one", "two")]
    monkeypatch.setattr(runtime, "find_base", lambda *_: tmp_path)

    result = cli_runs.run("version")

    assert (result.exit_code, result.stdout) == (0, f"client version: {OWN}\n")
    several = "several meshes are running (one, two): choose one with --mesh"
    assert result.stderr == f"The control plane is not asked: {several}\n"
    down = cli_runs.run("down")
    assert (down.exit_code, "choose one by `mizzen down MESH`" in down.stderr) == (64, True)
    for descriptor in held:
        os.close(descriptor)


def test_another_format_is_refused() -> None:
    result = cli_runs.run("version", "-o", "short")

    assert (result.exit_code, result.stderr) == (1, "Error: --output must be 'yaml' or 'json'\n")
