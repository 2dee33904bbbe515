"""`mizzen help`: the help of any command, as istioctl's users ask for it."""

import click

from mizzen.cli.flags import Command


@click.command("help", cls=Command)
@click.argument("words", metavar="[COMMAND...]", nargs=-1)
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Print the help of a command."""
    above = ctx.find_root()
    for word in words:
        group = above.command
        found = group.get_command(above, word) if isinstance(group, click.Group) else None
        if found is None:
            above.fail(f"unknown command {word!r} for {above.command_path!r}")
        above = click.Context(found, parent=above, info_name=word)
    click.echo(above.get_help())
