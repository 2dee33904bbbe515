"""The page about commands says what is so: its example is what is printed, and its commands exist."""

import pathlib
import re

import cli_runs
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")


def test_the_example_is_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r"```console\n# mizzen (.*?)\n(.*?)```", PAGE, re.DOTALL)
    command, printed = example

    result = cli_runs.run(*command.split())

    assert (result.exit_code, result.stdout) == (0, printed)


def commands() -> list[list[str]]:
    """The words that lead to each command of the table, one list a command."""
    found = []
    for row in re.findall(r"^\| `([a-z].*?)` \|", PAGE, re.MULTILINE):
        for part in row.replace("\\|", "|").split("`, `"):
            words = [word for word in part.split() if re.fullmatch(r"[a-z|-]+", word) and not word.startswith("-")]
            found += [[*words[:-1], last] for last in words[-1].split("|")]
    return found


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_of_the_table_exists(words: list[str]) -> None:
    result = cli_runs.run(*words, "--help")

    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: mizzen {words[0]} ")


def test_the_table_is_read() -> None:
    assert ["proxy-config", "ecds"] in commands()
    assert ["x", "injector", "list"] in commands()
    assert len(commands()) > 25
