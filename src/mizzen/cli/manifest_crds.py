"""`mizzen manifest crds`: the definitions of the mesh's kinds.

Out: YAML documents or a List in JSON on stdout; with `--dir`, one file a definition in that directory, as the chart has
them, and nothing on stdout. Files of definitions that are no more are left to whoever sees them.
"""

import pathlib

import click

from mizzen.cli import options, render
from mizzen.cli.flags import Command


@click.command("crds", cls=Command)
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=pathlib.Path),
    help="Write a file for each definition here.",
)
@options.output_option("yaml", "json", default="yaml")
def crds(directory: pathlib.Path | None, output: str) -> None:
    """Print the CustomResourceDefinitions of Istio's kinds; those of the Gateway API are its own project's."""
    from mizzen.errors import MizzenError
    from mizzen.install.crds.definitions import mesh_crds

    documents = mesh_crds()
    if directory is None:
        click.echo(render.render_documents(output, documents), nl=False)
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for document in documents:
            name = f"{document['spec']['group']}_{document['spec']['names']['plural']}.{output}"
            (directory / name).write_text(render.render_documents(output, [document]))
    except OSError as error:
        raise MizzenError(f"cannot write definitions to {directory}: {error.strerror}") from error
