"""Inputs that cannot be read in full: commands whose answer would be about less than was asked give none."""

import pathlib

import cli_runs
import mixed_tree
import pytest

GOOD = """apiVersion: v1
kind: Service
metadata: {name: a, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
"""
BOMB = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\n" + mixed_tree.BOMB
UNREADABLE = {
    "syntax": (b"apiVersion: v1\nkind: Service\nmetadata: {name: b\n", "did not find expected ',' or '}'"),
    "nul": (b'apiVersion: v1\nkind: Service\nmetadata: {name: "b\0"}\n', "character U+0000 is not allowed"),
    "deep": (b"apiVersion: v1\nkind: Service\nspec: " + b"[" * 20_000 + b"]" * 20_000, "nesting"),
    "bomb": (BOMB.encode(), "aliases"),
    "text": (b"apiVersion: v1\nkind: Service\nmetadata: {name: \xff}\n", "is not UTF-8 text"),
}
COMMANDS = {
    "tls-check": ("tls-check", "--all", "-f"),
    "migrate": ("migrate", "ingress", "-f"),
    "manifest": ("manifest", "gateway", "-f"),
    "trace": ("trace", "--from", "outside", "http://a.shop/", "-f"),
}


@pytest.fixture(params=UNREADABLE)
def unreadable(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> tuple[pathlib.Path, str]:
    """A file that cannot be read to its end, and what is wrong with it."""
    content, message = UNREADABLE[request.param]
    path = tmp_path / "manifests" / "bad.yaml"
    path.parent.mkdir()
    path.write_bytes(GOOD.encode() + content)
    return path, message


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("named", ["file", "folder", "dotted"])
def test_no_answer_is_given_about_what_is_left(
    unreadable: tuple[pathlib.Path, str], command: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, message = unreadable
    monkeypatch.chdir(path.parent)
    argument = {"file": path, "folder": path.parent, "dotted": f"./{path.name}"}[named]

    result = cli_runs.run(*COMMANDS[command], argument)

    assert (result.exit_code, result.stdout) == (1, "")
    error = result.stderr.splitlines()[-1]
    assert error.startswith("Error: ")
    assert "bad.yaml" in error
    assert message in error


@pytest.mark.parametrize("side", ["old", "new"])
def test_states_of_which_one_is_unreadable_are_not_compared(
    unreadable: tuple[pathlib.Path, str], tmp_path: pathlib.Path, side: str
) -> None:
    path, message = unreadable
    good = tmp_path / "good.yaml"
    good.write_text(GOOD)

    result = cli_runs.run("diff", *((path, good) if side == "old" else (good, path)))

    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr.splitlines()[-1]


def test_precheck_does_not_call_safe_what_it_could_not_read(unreadable: tuple[pathlib.Path, str]) -> None:
    path, message = unreadable

    result = cli_runs.run("precheck", path)

    assert result.exit_code == 1
    assert message in result.stderr
    assert "No issues found" not in result.stderr
    assert result.stderr.splitlines()[-1].startswith("Error: not everything could be read")


def test_standard_input_that_is_unreadable_is_fatal() -> None:
    result = cli_runs.run("migrate", "ingress", "-f", "-", stdin=GOOD + "kind: [\n")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: -:6: ")


def test_every_part_that_cannot_be_read_is_told(tmp_path: pathlib.Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text("kind: [\n")

    result = cli_runs.run("manifest", "gateway", "-f", tmp_path)

    assert all(f"{tmp_path / name}.yaml:1: " in result.stderr for name in ("a", "b"))
    assert result.exit_code == 1


@pytest.mark.parametrize("command", ["tls-check", "migrate", "manifest", "diff"])
def test_what_lies_among_manifests_and_is_none_fails_nothing(tmp_path: pathlib.Path, command: str) -> None:
    tree = mixed_tree.write(tmp_path)
    arguments = ("diff", tree) if command == "diff" else COMMANDS[command]

    assert cli_runs.run(*arguments, tree).exit_code == 0


def test_a_bad_object_is_no_unreadable_input(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(GOOD + "apiVersion: v1\nkind: Service\nmetadata: {name: b}\nspec: {ports: 3}\n")

    result = cli_runs.run("manifest", "gateway", "-f", path)

    assert result.exit_code == 0
    assert f"error: {path}:" in result.stderr


def test_a_table_of_tests_that_is_no_text_is_named_with_its_line(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "shop.test.yaml"
    path.write_bytes(b"manifests: [.]\ntests:\n- name: x\n  url: \xff\n")

    result = cli_runs.run("test", path)

    assert (result.exit_code, result.stderr) == (1, f"Error: {path}: line 4 is not UTF-8 text\n")
