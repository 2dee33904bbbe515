"""Groups find commands by name and alias, load them on demand and turn failures into exit codes."""

import sys

import click
import pytest
from click.testing import CliRunner, Result

from mizzen.cli.groups import AliasGroup, Entry, LazyGroup, Program
from mizzen.errors import DecodeError, MizzenError, UsageError

ENTRIES = {
    "proxy-config": Entry("mizzen.cli.proxy_config:proxy_config", "Look.", ("pc",)),
    "secret-tool": Entry("mizzen.nowhere:tool", "Not for everybody.", hidden=True),
}


@click.group(cls=Program, entries=ENTRIES)
@click.option("-v", "--verbose", is_flag=True)
@click.pass_obj
def program(invocation: object, verbose: bool) -> None:
    invocation.verbose = verbose  # type: ignore[attr-defined]


def failing(error: BaseException) -> click.Command:
    @click.command("fail")
    def fail() -> None:
        raise error

    return fail


def run_failing(error: BaseException, *options: str) -> Result:
    program.add_command(failing(error))
    return CliRunner().invoke(program, [*options, "fail"])


def test_an_alias_finds_its_command() -> None:
    group = AliasGroup("tool")
    group.add(click.Command("cluster", callback=lambda: click.echo("here")), "clusters", "c")

    assert CliRunner().invoke(group, ["c"]).output == "here\n"


def test_help_of_a_lazy_group_shows_the_table_and_imports_nothing() -> None:
    group = LazyGroup("tool", entries={"x": Entry("mizzen.not_there:x", "Does x.", ("ex",)), **ENTRIES})

    text = CliRunner().invoke(group, ["--help"]).output

    assert "x, ex" in text
    assert "Does x." in text
    assert "secret-tool" not in text
    assert "mizzen.not_there" not in sys.modules


def test_completion_of_a_lazy_group_imports_nothing() -> None:
    group = LazyGroup("tool", entries={"x-ray": Entry("mizzen.not_there:x", "Does x.")})
    context = click.Context(group)

    assert [(item.value, item.help) for item in group.shell_complete(context, "x")] == [("x-ray", "Does x.")]


def test_an_unknown_command_names_the_nearest_and_exits_with_64() -> None:
    result = CliRunner().invoke(program, ["proxy-confg"])

    assert result.exit_code == 64
    assert result.stderr.startswith("Error: unknown command 'proxy-confg'")
    assert "did you mean 'proxy-config'?" in result.stderr


def test_an_unknown_flag_exits_with_64() -> None:
    result = CliRunner().invoke(program, ["--nope"])

    assert (result.exit_code, result.stderr.count("\n")) == (64, 1)


def test_an_expected_failure_is_one_line_on_stderr() -> None:
    result = run_failing(DecodeError("expected int", "spec.port"))

    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "Error: spec.port: expected int\n")


def test_a_failure_brings_its_own_exit_code() -> None:
    assert run_failing(UsageError("no")).exit_code == 64


def test_verbose_shows_what_caused_the_failure() -> None:
    error = MizzenError("cannot read")
    error.__cause__ = OSError("disk on fire")

    assert run_failing(error, "-v").stderr == "Error: cannot read\n  caused by OSError: disk on fire\n"
    assert run_failing(error).stderr == "Error: cannot read\n"


def test_a_bug_is_not_hidden() -> None:
    assert isinstance(run_failing(ZeroDivisionError()).exception, ZeroDivisionError)


def test_an_interrupt_exits_with_130() -> None:
    assert run_failing(KeyboardInterrupt()).exit_code == 130


@pytest.mark.parametrize("arguments", [[], ["proxy-config"]])
def test_a_group_alone_prints_its_help(arguments: list[str]) -> None:
    result = CliRunner().invoke(program, arguments)

    assert result.exit_code == 0
    assert "Usage:" in result.stdout
