"""`mizzen install`: a control plane in a cluster, or what it has become.

In: values, an API server. Out: the objects that `mizzen manifest generate` prints, applied; lines about what is waited
for. Who declines the prompt gets exit code 1, as from istioctl.
"""

import sys
from typing import Any

import click

from mizzen.cli import clusters, install_values
from mizzen.cli.flags import Command
from mizzen.cli.options import parse_seconds
from mizzen.errors import MizzenError


@click.command("install", cls=Command)
@install_values.values_options
@clusters.cluster_options
@click.option("-y", "--skip-confirmation", is_flag=True, help="Do not ask.")
@click.option("--dry-run/--no-dry-run", "dry_run", default=False, help="Have the server check it all, store nothing.")
@click.option("--force", is_flag=True, help="Overwrite a control plane of the same name that is not Mizzen's.")
@click.option(
    "--readiness-timeout",
    default="300s",
    show_default=True,
    metavar="DURATION",
    help="How long workloads may take to be available; 0s does not wait.",
)
@click.option("--verify", is_flag=True, help="In the end, compare the cluster with what was applied.")
def install(
    kubeconfig: str,
    context: str,
    skip_confirmation: bool,
    dry_run: bool,
    force: bool,
    readiness_timeout: str,
    verify: bool,
    **chosen: Any,
) -> int:
    """Install a control plane, or change one that is there; a revision of another name stands beside."""
    import asyncio
    import importlib.metadata

    from mizzen.cli.install_run import Plan
    from mizzen.install.manifests import manifests

    wait = parse_seconds("--readiness-timeout", readiness_timeout)
    values = install_values.read_values(**chosen)
    access = clusters.open_cluster(kubeconfig, context)
    if not (skip_confirmation or dry_run):
        version, which = importlib.metadata.version("mizzen"), values.identity.revision_label
        question = f'This will install Mizzen {version}, revision "{which}", into the cluster. Proceed? (y/N) '
        if not ask(question):
            click.echo("Cancelled.")
            return 1
    plan = Plan(values.identity, tuple(manifests(values)))
    asyncio.run(_install(access, plan, dry_run=dry_run, force=force, wait=wait, verify=verify))
    return 0


def ask(question: str) -> bool:
    """Whether somebody says yes; nobody to ask is a no."""
    click.echo(question, nl=False)
    answer = sys.stdin.readline()
    if not answer:
        click.echo()
    return answer.strip().lower() in ("y", "yes")


async def _install(access: Any, plan: Any, *, dry_run: bool, force: bool, wait: float, verify: bool) -> None:
    from mizzen.cli.install_run import Installer, summarize
    from mizzen.sources.kube.client import Client

    async with Client(access) as client:
        installer = Installer(client, plan, click.echo, dry_run=dry_run, wait=wait)
        await installer.run(force=force)
        if verify and not dry_run:
            different = await installer.verify()
            if different:
                raise MizzenError("the cluster is not as it was made:\n  " + "\n  ".join(different))
            click.echo("✔ Verified")
        mark = "Dry run complete" if dry_run else "✔ Installation complete"
        click.echo(f"{mark}: {summarize(installer.outcomes)}")
