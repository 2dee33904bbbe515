"""Flags in Go's spelling reach click's options."""

import click
import pytest
from click.testing import CliRunner, Result

from mizzen.cli.flags import Command


@click.command(cls=Command)
@click.argument("rest", nargs=-1)
@click.option("-o", "--output", default="short")
@click.option("--verbose/--no-verbose", default=True)
@click.option("--all", "everything", is_flag=True)
def show(rest: tuple[str, ...], output: str, verbose: bool, everything: bool) -> None:
    click.echo(f"{' '.join(rest)}|{output}|{verbose}|{everything}")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(show, list(arguments))


@pytest.mark.parametrize("word", ["false", "F", "0"])
def test_a_boolean_flag_takes_a_value(word: str) -> None:
    assert run(f"--verbose={word}", "pod").output == "pod|short|False|False\n"


def test_a_boolean_flag_never_takes_the_next_argument() -> None:
    assert run("--verbose", "pod").output == "pod|short|True|False\n"


def test_false_for_a_flag_without_a_negative_form_leaves_it_off() -> None:
    assert run("--all=false").output == "|short|True|False\n"


def test_a_value_that_is_no_boolean_is_refused() -> None:
    result = run("--verbose=maybe")

    assert result.exit_code != 0
    assert "'maybe' is not a boolean" in result.output


def test_a_short_flag_takes_an_equal_sign() -> None:
    assert run("-o=json", "pod").output == "pod|json|True|False\n"


def test_after_two_dashes_nothing_is_translated() -> None:
    assert run("--", "--verbose=false", "-o=json").output == "--verbose=false -o=json|short|True|False\n"


@click.command(cls=Command)
@click.argument("name", required=False)
@click.option("-f", "--filename", default="")
def read(name: str | None, filename: str) -> None:
    click.echo(f"{name}|{filename}")


def test_an_argument_too_many_is_told_where_files_belong() -> None:
    result = CliRunner().invoke(read, ["a", "b", "-f", "c"])

    assert result.exit_code != 0
    assert "unexpected argument 'b'; files are named with -f" in result.output


def test_no_flag_for_files_is_invented() -> None:
    @click.command(cls=Command)
    def bare() -> None:
        click.echo("here")

    assert "unexpected argument 'a'\n" in CliRunner().invoke(bare, ["a"]).output
