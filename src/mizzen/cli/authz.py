"""`mizzen authz check`: the AuthorizationPolicies that one proxy enforces.

In: a pod of the local mesh, a pod that a control plane serves (`--monitoring`, `--xds-address`), or a file with a dump
(`-f`). Out: a table as istioctl prints it. What it holds is decided in `mizzen.diagnose.tables.authorization`.
"""

import click

from mizzen.cli import options, planes, render, targets
from mizzen.cli.flags import Command
from mizzen.cli.groups import AliasGroup
from mizzen.cli.reach import Reach, reach_options
from mizzen.errors import MizzenError


@click.group(cls=AliasGroup)
def authz() -> None:
    """Show which AuthorizationPolicies a proxy enforces."""


@authz.command("check", cls=Command)
@click.argument("pods", metavar="[[TYPE/]NAME[.NAMESPACE]]", nargs=-1, shell_complete=options.complete_pods)
@click.option("-f", "--file", default="", help="Envoy's config dump, `-` for stdin.")
@options.namespace_option
@reach_options
def check(pods: tuple[str, ...], file: str, namespace: str, reach: Reach) -> None:
    """Show the policies of a proxy, by action, with the number of their rules."""
    from mizzen.diagnose import dump
    from mizzen.diagnose.tables import authorization

    if len(pods) > 1:
        raise MizzenError("check requires only <pod-name>[.<pod-namespace>]")
    if bool(pods) == bool(file):
        raise MizzenError(f"expecting pod name or config dump, found: {len(pods) + bool(file)}")
    if file:
        found = dump.parse_dump(targets.read_file(file))
    elif reach.names_control_plane:
        name = targets.qualify(pods[0], namespace or options.DEFAULT_NAMESPACE)
        found = planes.find_sent(planes.find_planes(reach), name)
    else:
        proxy = targets.find_proxy(pods[0], namespace=namespace, mesh=reach.mesh)
        found = dump.parse_dump(proxy.get("config_dump"))
    click.echo(render.render_table(authorization.build_table(found)), nl=False)
