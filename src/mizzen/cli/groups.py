"""Groups of commands: aliases, loading on demand, and errors turned into exit codes.

In: a table of names (`Entry`), or commands added by decorator. Out: click groups. A `LazyGroup` knows the help of its
commands without importing them. `Program` is the root: the one place where an exception becomes a line on stderr and
an exit code. Codes are istioctl's: 1 for an error, 64 for a command line that does not parse.
"""

import difflib
import importlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from mizzen.cli.flags import Command
from mizzen.errors import MizzenError, UsageError

EXIT_PARSE = UsageError.exit_code
EXIT_INTERRUPTED = 130

_PROGRAM = "mizzen"
_PLUGIN = "kubectl-"


class Entry(NamedTuple):
    """One command of a lazy group."""

    target: str
    """`module:attribute`, imported when the command is called."""
    help: str
    aliases: tuple[str, ...] = ()
    hidden: bool = False


class Invocation:
    """What the root options say to all commands; click carries it as `ctx.obj`."""

    def __init__(self) -> None:
        self.verbose = False
        self.namespace = ""


class AliasGroup(click.Group):
    """A group whose commands have further names; help lists them beside the first."""

    command_class = Command

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._aliases: dict[str, str] = {}

    def add(self, command: click.Command, *aliases: str) -> None:
        """Add a command under its name and the aliases."""
        self.add_command(command)
        self._aliases.update(dict.fromkeys(aliases, command.name or ""))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name or alias."""
        return super().get_command(ctx, self._aliases.get(cmd_name, cmd_name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but an unknown name is answered with the nearest known one."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            names = [*self.list_commands(ctx), *self._aliases]
            near = difflib.get_close_matches(args[0], names, n=1)
            hint = f", did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"unknown command {args[0]!r} for {ctx.command_path!r}{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each visible command with its aliases and its first sentence."""
        rows = [(self._label(name), text) for name, text in self._summaries(ctx)]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def _summaries(self, ctx: click.Context) -> Iterator[tuple[str, str]]:
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                yield name, command.get_short_help_str(limit=100)

    def _label(self, name: str) -> str:
        aliases = [alias for alias, target in self._aliases.items() if target == name]
        return ", ".join((name, *aliases))


class LazyGroup(AliasGroup):
    """A group that imports a command's module only when the command is called."""

    def __init__(self, *args: Any, entries: Mapping[str, Entry], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._entries = entries
        for name, entry in entries.items():
            self._aliases.update(dict.fromkeys(entry.aliases, name))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the table."""
        return [*self._entries, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, its module imported now."""
        entry = self._entries.get(self._aliases.get(cmd_name, cmd_name))
        if entry is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = entry.target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Command names and their help, nothing imported."""
        known = [
            CompletionItem(name, help=entry.help)
            for name, entry in self._entries.items()
            if name.startswith(incomplete) and not entry.hidden
        ]
        return [*known, *click.Command.shell_complete(self, ctx, incomplete)]

    def _summaries(self, ctx: click.Context) -> Iterator[tuple[str, str]]:
        del ctx
        return ((name, entry.help) for name, entry in self._entries.items() if not entry.hidden)


class Program(LazyGroup):
    """The root group: runs one command line and ends the process with its exit code."""

    def main(  # type: ignore[override]  # click's signature differs between standalone modes
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> None:
        """Run; every expected failure is one line on stderr."""
        invocation = Invocation()
        prog_name = prog_name or _plugin_name(sys.argv[0])
        if os.environ.get(f"_{_PROGRAM}_COMPLETE".upper(), "").startswith("powershell"):
            importlib.import_module("mizzen.cli.completion")  # It knows the shell that click does not.
        extra["standalone_mode"] = False
        _let_any_text_out()
        code = _run(lambda: super(Program, self).main(args, prog_name, obj=invocation, **extra), invocation)
        sys.exit(code)


def _let_any_text_out() -> None:
    """What the terminal's encoding does not have is escaped, as on stderr; in JSON that says the same."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _plugin_name(started_as: str) -> str | None:
    """`kubectl mizzen` for a program that kubectl starts by its plugin's name; None leaves the name to click."""
    name = os.path.basename(started_as)
    return name.replace("-", " ", 1) if name.startswith(_PLUGIN) else None


def _run(call: Callable[[], Any], invocation: Invocation) -> int:
    """The exit code of the call; `ctx.exit(code)` arrives as its result."""
    try:
        result = call()
    except click.exceptions.Abort:
        _say("")
        return EXIT_INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "mizzen"
        _say(f"Error: {error.format_message().rstrip('.')} (see `{path} --help`)")
        return EXIT_PARSE
    except click.ClickException as error:
        _say(f"Error: {error.format_message()}")
        return error.exit_code
    except MizzenError as error:
        _say(f"Error: {error}")
        if invocation.verbose:
            _say_causes(error)
        return error.exit_code
    return result if isinstance(result, int) else 0


def _say_causes(error: BaseException) -> None:
    cause = error.__cause__
    while cause is not None:
        _say(f"  caused by {type(cause).__name__}: {cause}")
        cause = cause.__cause__


def _say(line: str) -> None:
    click.echo(line, err=True)
