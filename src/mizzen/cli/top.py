"""`mizzen top pushes`: which objects cost proxies and control plane most, by how they changed.

In: the control planes of a local mesh, or those named by flags: their page `pushes`. Out: a table, JSON or YAML, the
most expensive first, over all replicas.
"""

import click

from mizzen.cli import options, render
from mizzen.cli.flags import Command
from mizzen.cli.groups import AliasGroup
from mizzen.cli.planes import find_planes
from mizzen.cli.reach import Reach, reach_options


@click.group(cls=AliasGroup)
def top() -> None:
    """Show what costs most."""


@top.command("pushes", cls=Command)
@click.option(
    "--by",
    type=click.Choice(("type", "namespace")),
    default="type",
    show_default=True,
    help="Tell proxies apart by it.",
)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Objects that are shown.")
@options.output_option("table", "json", "yaml", default="table")
@click.option(
    "-n",
    "--namespace",
    default="",
    callback=options.inherit_namespace,
    help="Count only what proxies of this namespace were sent.",
)
@reach_options
def pushes(by: str, limit: int, output: str, namespace: str, reach: Reach) -> None:
    """Show which objects caused how many pushes and bytes, the most expensive first."""
    from mizzen.diagnose import push_costs

    reports = [push_costs.read_report(plane.page("pushes"), plane.name) for plane in find_planes(reach)]
    report = push_costs.in_namespace(push_costs.merge_reports(reports), namespace)
    if output == "table":
        click.echo(render.render_table(push_costs.build_table(report, by=by, limit=limit)), nl=False)
    else:
        click.echo(render.render_as(output, push_costs.build_document(report, limit), indent=2), nl=False)
