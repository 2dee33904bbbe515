"""`mizzen authz check`: the AuthorizationPolicies that one proxy enforces.

In: a pod of the local mesh, a pod that a control plane serves (`--monitoring`), or a file with a dump (`-f`). Out: a
table as istioctl prints it. What it holds is decided in `mizzen.diagnose.tables.authorization`.
"""

import click

from mizzen.cli import options, render, targets, views
from mizzen.cli.flags import Command
from mizzen.cli.groups import AliasGroup
from mizzen.errors import MizzenError


@click.group(cls=AliasGroup)
def authz() -> None:
    """Show which AuthorizationPolicies a proxy enforces."""


@authz.command("check", cls=Command)
@click.argument("pods", metavar="[[TYPE/]NAME[.NAMESPACE]]", nargs=-1, shell_complete=options.complete_pods)
@click.option("-f", "--file", default="", help="Envoy's config dump, `-` for stdin.")
@click.option("--monitoring", multiple=True, metavar="HOST:PORT", help="Ask this control plane what it sent.")
@options.namespace_option
@options.mesh_option
def check(pods: tuple[str, ...], file: str, monitoring: tuple[str, ...], namespace: str, mesh: str) -> None:
    """Show the policies of a proxy, by action, with the number of their rules."""
    from mizzen.diagnose import dump
    from mizzen.diagnose.tables import authorization

    if len(pods) > 1:
        raise MizzenError("check requires only <pod-name>[.<pod-namespace>]")
    if bool(pods) == bool(file):
        raise MizzenError(f"expecting pod name or config dump, found: {len(pods) + bool(file)}")
    if file:
        text = targets.read_file(file)
    elif monitoring:
        name = targets.qualify(pods[0], namespace or options.DEFAULT_NAMESPACE)
        text = views.read_sent(monitoring, name)
    else:
        text = targets.find_proxy(pods[0], namespace=namespace, mesh=mesh).get("config_dump")
    click.echo(render.render_table(authorization.build_table(dump.parse_dump(text))), nl=False)
