"""Every table that istioctl printed for a recorded dump is equal byte for byte."""

import pathlib

import cli_runs
import pytest

CORPUS = pathlib.Path(__file__).parents[1] / "golden" / "corpus" / "cli"
TABLES = sorted(CORPUS.glob("*/*.txt"))

_DOTTED = ("fqdn", "address")


def arguments(table: pathlib.Path) -> list[str]:
    """`clusters_port_8080.txt` is `clusters --port 8080`; dots and equal signs of values are dashes in file names."""
    subcommand, _, flag = table.stem.partition("_")
    name, _, value = flag.partition("_")
    if not flag:
        return [subcommand]
    if not value:
        return [subcommand, f"--{flag.replace('-', '=', 1)}"]
    return [subcommand, f"--{name}", value.replace("-", ".") if name in _DOTTED else value]


def test_the_corpus_is_there() -> None:
    assert len(TABLES) >= 91


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.parent.name}/{table.stem}")
def test_table_equals_the_recorded_one(table: pathlib.Path) -> None:
    result = cli_runs.run("proxy-config", *arguments(table), "--file", table.parent / "config_dump.json")

    assert result.exit_code == 0, result.stderr
    assert result.stdout == table.read_text()
