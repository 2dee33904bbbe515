"""Flags as Go programs take them, on top of click.

In: the arguments as typed. Out: arguments that click understands. istioctl's users write `--verbose=false`, `-o=json`
and `-n=shop`; click knows neither values of boolean flags nor `=` after a short flag. `Command` translates both, so
that every command takes them.
"""

from collections.abc import Iterator

import click

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


class Command(click.Command):
    """A click command that takes Go's spelling of flags."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Translate, then parse as click does; an argument too many is told where it belongs."""
        is_strict = not ctx.allow_extra_args
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, list(_translate(self, ctx, args)))
        if is_strict and rest and not ctx.resilient_parsing:
            ctx.fail(f"unexpected argument {rest[0]!r}{_file_hint(self, ctx)}")
        return rest


def _file_hint(command: click.Command, ctx: click.Context) -> str:
    """People name files as they do for `analyze`; where it takes a flag, say so."""
    options = (option for option in command.get_params(ctx) if isinstance(option, click.Option))
    takes_files = any("-f" in option.opts and not option.is_flag for option in options)
    return "; files are named with -f" if takes_files else ""


def _translate(command: click.Command, ctx: click.Context, args: list[str]) -> Iterator[str]:
    switches = {
        name: option
        for option in command.get_params(ctx)
        if isinstance(option, click.Option) and option.is_flag
        for name in option.opts
    }
    rest = iter(args)
    for arg in rest:
        name, equals, value = arg.partition("=")
        if arg == "--":
            yield arg
            yield from rest
        elif equals and name in switches:
            yield from _switch(switches[name], name, value)
        elif equals and len(name) == 2 and name[0] == "-" and name[1].isalpha():
            yield from (name, value)
        else:
            yield arg


def _switch(option: click.Option, name: str, value: str) -> Iterator[str]:
    """A boolean flag with a value, in the form that click has for it."""
    if value in _TRUE:
        yield name
    elif value in _FALSE:
        yield from option.secondary_opts[:1]
    else:
        raise click.BadParameter(f"{value!r} is not a boolean", param_hint=name)
