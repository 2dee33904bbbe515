"""`mizzen remote-clusters`: which other clusters each control plane reads, and whether it is in step with them.

In: the control planes of a local mesh, or those named by `--monitoring`: their `/debug/clusterz`. Out: a table as
istioctl prints it.
"""

import http.client

import click

from mizzen.cli import options, render, targets
from mizzen.cli.flags import Command
from mizzen.diagnose.table import Table
from mizzen.errors import DecodeError

_COLUMNS = ("NAME", "SECRET", "STATUS", "ISTIOD", "REVISION")


@click.command("remote-clusters", cls=Command)
@click.option("-r", "--revision", default="default", show_default=True, help="Revision of the control planes.")
@click.option("--monitoring", multiple=True, metavar="HOST:PORT", help="A control plane's monitoring address (15014).")
@options.mesh_option
def remote_clusters(revision: str, monitoring: tuple[str, ...], mesh: str) -> None:
    """Show the other clusters that control planes read."""
    rows = []
    for plane in targets.find_control_planes(mesh=mesh, addresses=monitoring):
        rows += [(*cells, plane.name, revision) for cells in _ask(plane)]
    rows.sort(key=lambda row: row[3])
    click.echo(render.render_table(Table(columns=_COLUMNS, rows=tuple(rows))), nl=False)


def _ask(plane: targets.ControlPlane) -> list[tuple[str, str, str]]:
    """Name, secret and state of each; a control plane that reads no other clusters says so, which is no failure."""
    try:
        found = plane.get_json("debug/clusterz")
    except targets.UnexpectedStatus as refused:
        if refused.status != http.client.BAD_REQUEST:
            raise
        click.echo(f"{plane.name} reads no other clusters", err=True)
        return []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise DecodeError(f"the control plane at {plane.address} did not answer with a list of clusters")
    names = ("id", "secretName", "syncStatus")
    rows = [tuple(str(each.get(name) or "") for name in names) for each in found]
    return [(name, secret, status) for name, secret, status in rows]
