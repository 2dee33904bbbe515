"""`mizzen down`: ends a local mesh, or sweeps what a killed one left."""

import os

import click

from mizzen.cli.flags import Command


@click.command(cls=Command)
@click.argument("mesh", required=False)
@click.option("--all", "everything", is_flag=True, help="All meshes of this user.")
def down(mesh: str | None, everything: bool) -> None:
    """Stop a local mesh and remove what it left."""
    from mizzen.local import launcher, runtime

    base = runtime.find_base(os.getuid(), os.environ)
    meshes = runtime.list_meshes(base) if everything else (runtime.select_remains(base, mesh),)
    for layout in meshes:
        launcher.stop(layout)
        click.echo(f"mesh {layout.name} is down")
