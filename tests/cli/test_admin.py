"""`mizzen admin log`: the levels of a control plane, read and changed."""

import json
import pathlib
from collections.abc import Iterator

import cli_runs
import pytest
import yaml
from http_answers import Answers, on_port

SCOPES = [
    {"name": name, "description": text, "output_level": level, "stack_trace_level": "none", "log_callers": False}
    for name, text, level in (("default", "The rest", "info"), ("ads", "Streams", "debug"))
]
TABLE = (
    "ACTIVE SCOPE   DESCRIPTION   LOG LEVEL   STACK TRACE LEVEL\n"
    "ads            Streams       debug       none\n"
    "default        The rest      info        none\n"
)


@pytest.fixture
def answers() -> Answers:
    return Answers({"/scopej/": json.dumps(SCOPES).encode(), "/scopej/ads": b"", "/scopej/default": b""})


@pytest.fixture
def mesh(tmp_path: pathlib.Path, answers: Answers) -> Iterator[pathlib.Path]:
    with on_port(answers) as address:
        yield cli_runs.write_mesh(tmp_path / "shop", introspection=address)


def log(*arguments: object) -> str:
    result = cli_runs.run("admin", "log", *arguments)
    assert result.exit_code == 0, result.stderr
    return str(result.stdout)


def test_scopes_by_name_with_their_levels(mesh: pathlib.Path) -> None:
    assert log("--mesh", mesh) == TABLE
    assert cli_runs.run("istiod", "l", "mizzen-shop", "--mesh", mesh).stdout == TABLE


def test_json_and_yaml_are_the_scopes_as_they_are(mesh: pathlib.Path) -> None:
    in_order = sorted(SCOPES, key=lambda scope: str(scope["name"]))

    assert json.loads(log("-o", "json", "--mesh", mesh)) == in_order
    assert yaml.safe_load(log("-o", "yaml", "--mesh", mesh)) == in_order


def test_a_control_plane_elsewhere_is_asked_at_its_address(answers: Answers) -> None:
    with on_port(answers) as address:
        assert log("--controlz", address) == TABLE


def test_levels_are_changed_scope_by_scope(mesh: pathlib.Path, answers: Answers) -> None:
    arguments = ("--level", "ads:warn,default:error", "--stack-trace-level", "ads:debug", "--mesh", mesh)

    assert log(*arguments) == ""
    assert answers.requests == ["GET /scopej/", "PUT /scopej/ads", "PUT /scopej/default"]
    ads, default = map(json.loads, answers.bodies)
    assert (ads["output_level"], ads["stack_trace_level"], ads["name"]) == ("warn", "debug", "ads")
    assert (default["output_level"], default["stack_trace_level"]) == ("error", "none")


def test_reset_sets_every_scope_back(mesh: pathlib.Path, answers: Answers) -> None:
    log("--reset", "--mesh", mesh)

    assert [json.loads(body)["output_level"] for body in answers.bodies] == ["info", "info"]


def test_nothing_is_changed_if_one_scope_is_unknown(mesh: pathlib.Path, answers: Answers) -> None:
    result = cli_runs.run("admin", "log", "--level", "ads:warn,nope:info", "--mesh", mesh)

    assert (result.exit_code, result.stderr) == (1, "Error: unknown scope nope; known are ads, default\n")
    assert answers.requests == ["GET /scopej/"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--level", "ads:loud"), "pattern ads:loud did not match"),
        (("--level", "ads"), "pattern ads did not match"),
        (("--level", "ads:info", "--reset"), "--level cannot be combined with --reset, --log-reset"),
        (("-o", "wide"), 'output format "wide" not supported'),
        (("other",), "no pods found: the control plane of mesh shop is mizzen-shop, not other"),
    ],
)
def test_what_cannot_be_done_is_refused(mesh: pathlib.Path, arguments: tuple[str, ...], message: str) -> None:
    result = cli_runs.run("admin", "log", *arguments, "--mesh", mesh)

    assert (result.exit_code, result.stderr) == (1, f"Error: {message}\n")
