"""`mizzen inject` (istioctl's `kube-inject`): manifests in, the same manifests with sidecars out.

Input: a file or stdin with YAML or JSON documents. Output: YAML on stdout or to a file, document for document. What is
skipped is said on stderr; if a workload cannot be injected, nothing is written, so that no half of a manifest is
deployed without its sidecars.
"""

from pathlib import Path
from typing import Any

import click

from mizzen.cli import installation, render
from mizzen.cli.flags import Command
from mizzen.errors import MizzenError


@click.command("inject", cls=Command)
@installation.file_option("-f", "--filename", help="Manifests to inject; - reads stdin.")
@installation.file_option("-o", "--output", help="Where to write; stdout if absent.")
@installation.installation_options
@click.option(
    "--native-sidecars", is_flag=True, envvar="ENABLE_NATIVE_SIDECARS", help="Sidecars as init containers that stay."
)
def inject(filename: str, output: str, mesh_config_file: str, **chosen: Any) -> int:
    """Add the sidecar to the pods of manifests, offline.

    Pods, Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs, CronJobs, whatever else has a pod template, and
    Lists of them are injected; every other document passes unchanged. Injecting again changes nothing.
    """
    from mizzen.inject.manifests import inject_documents

    if not filename:
        raise click.UsageError("filename not specified (see -f)")
    mesh = installation.mesh_config(mesh_config_file) if mesh_config_file else None
    done = inject_documents(
        installation.read_documents(filename), mesh=mesh, config=installation.injection_config(**chosen)
    )
    for skipped in done.skipped:
        name = f"{skipped.key.namespace}/{skipped.key.name}"
        click.echo(f'===> Skipping injection because "{name}": {skipped.reason}', err=True)
    for problem in done.problems:
        click.echo(f"Error: {problem}", err=True)
    if done.problems:
        return 1
    _write(output, "".join(f"{render.render_document(document)}---\n" for document in done.documents))
    return 0


def _write(path: str, text: str) -> None:
    if not path:
        click.echo(text, nl=False)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise MizzenError(f"{path}: {error.strerror}") from error
