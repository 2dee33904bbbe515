"""Options and checks that several commands share, in istioctl's words.

In: click's parsed values. Out: checked values; what is wrong raises with the text that istioctl prints.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from mizzen.cli.groups import Invocation
from mizzen.errors import MizzenError, UsageError

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_NAMESPACE = "default"


def output_option(*forms: str, default: str) -> Callable[[F], F]:
    """`-o/--output`; another form than these is refused by name."""

    def check(ctx: click.Context, option: click.Parameter, value: str) -> str:
        del ctx, option
        if value not in forms:
            raise MizzenError(f'output format "{value}" not supported')
        return value

    return click.option(
        "-o",
        "--output",
        default=default,
        show_default=True,
        metavar="|".join(forms),
        callback=check,
        help="Output format.",
    )


def inherit_namespace(ctx: click.Context, option: click.Parameter, value: str) -> str:
    """The value of a command's own `-n`, else of the root's."""
    del option
    root = ctx.find_object(Invocation)
    return value or (root.namespace if root else "")


def namespace_option(function: F) -> F:
    """`-n/--namespace` after the command's name, where istioctl's users put it; the root's holds otherwise."""
    return click.option(
        "-n", "--namespace", default="", callback=inherit_namespace, help="Namespace of names that have none."
    )(function)


def manifests_option(
    name: str = "paths", *, required: bool = False, help: str = "File, folder or `-`; repeatable."
) -> Callable[[F], F]:
    """`-f/--filename`: what is read as manifests."""
    return click.option("-f", "--filename", name, multiple=True, required=required, metavar="PATH", help=help)


def dialect_option(function: F) -> F:
    """`--dialect`: for which Envoys a mesh is looked at as if it ran."""
    return click.option(
        "--dialect", type=click.Choice(["istio", "envoy"]), default="envoy", help="Whose Envoys these are."
    )(function)


def world_options(function: F) -> F:
    """`-f`, `--mesh` and `--dialect`: manifests as if they ran, or else a local mesh."""
    mesh = click.option("--mesh", default="", metavar="FILE|NAME", help="With -f the mesh config, else the local mesh.")
    return compose((manifests_option(help="Manifests; repeatable."), mesh, dialect_option))(function)


def mesh_option(function: F) -> F:
    """`--mesh NAME`: which local mesh, where more than one runs."""
    return click.option("--mesh", default="", metavar="NAME", help="The local mesh to ask, if several run.")(function)


def complete_pods(ctx: click.Context, argument: click.Parameter, incomplete: str) -> list[str]:
    """The pods of the local mesh, for shells that complete a command line."""
    from mizzen.cli import targets

    del argument
    try:
        state = targets.read_state(ctx.params.get("mesh") or "")
    except MizzenError:
        return []
    names = (f"{pod.name}.{pod.namespace}" for pod in state.pods)
    return [name for name in names if name.startswith(incomplete)]


def port_option(*names: str, help: str, default: int = 0) -> Callable[[F], F]:
    """A port number; 0 means any."""
    return click.option(*names, type=click.IntRange(0, 65535), default=default, help=help)


def parse_seconds(flag: str, text: str) -> float:
    """The seconds of a duration as Go writes them; what is none is a wrong command line."""
    from mizzen import words

    try:
        return words.parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from error


def compose(decorators: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Decorators applied as if written one below the other."""

    def apply(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply
