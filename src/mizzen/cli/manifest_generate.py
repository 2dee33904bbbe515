"""`mizzen manifest generate`: what an installation puts into a cluster.

In: values. Out: YAML documents on stdout in the order in which they are to be applied, or JSON; warnings for values
that have no effect go to stderr. No cluster is asked.
"""

from typing import Any

import click

from mizzen.cli import install_values, options, render
from mizzen.cli.flags import Command


@click.command("generate", cls=Command)
@install_values.values_options
@options.output_option("yaml", "json", default="yaml")
def generate(output: str, **chosen: Any) -> None:
    """Print everything that `mizzen install` applies, definitions first."""
    from mizzen.install.manifests import manifests

    values = install_values.read_values(**chosen)
    click.echo(render.render_documents(output, manifests(values)), nl=False)
