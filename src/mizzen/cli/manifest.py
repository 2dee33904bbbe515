"""`mizzen manifest`: manifests that the control plane would make, or needs.

`gateway` prints what managed Gateways of the Gateway API want to have running. In: manifests, the files of an
installation. Out: YAML documents, or JSON, on stdout; what cannot be deployed is told on stderr with exit code 1.
Manifests that cannot be read in full give exit code 1 and nothing on stdout.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from mizzen.cli import installation, offline, options, render
from mizzen.cli.flags import Command
from mizzen.cli.groups import AliasGroup
from mizzen.cli.manifest_crds import crds
from mizzen.cli.manifest_generate import generate
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.api.meta import Key
    from mizzen.incremental import Engine


@click.group("manifest", cls=AliasGroup)
def manifest() -> None:
    """Print manifests that the control plane would make, or needs."""


@click.command("gateway", cls=Command)
@click.argument("names", nargs=-1, metavar="[NAME[.NAMESPACE]]…")
@options.manifests_option(required=True)
@options.namespace_option
@installation.installation_options
@options.output_option("yaml", "json", default="yaml")
def gateway(
    names: tuple[str, ...], paths: tuple[str, ...], namespace: str, mesh_config_file: str, output: str, **chosen: Any
) -> int:
    """Print the Deployment, Service and all else that Gateways want; those named, or every managed one.

    A Gateway is managed unless it names the host of a Service of its own. ConfigMaps that customise it, by
    parametersRef or as defaults of its class, are taken from the same manifests.
    """
    from mizzen.inject.gateways.manifests import gateway_manifests
    from mizzen.model.convert.gateways.deployments import deployment

    with offline.collector_off():
        engine = offline.fill(offline.load_whole(paths), mesh_config_file)
        config = installation.injection_config(**chosen)
        mesh = installation.mesh_config(mesh_config_file) if mesh_config_file else {}
        documents: list[dict[str, Any]] = []
        failed = False
        for key in _asked(engine, names, namespace):
            wanted = deployment(engine, key)
            if wanted is None:
                if names:
                    raise MizzenError(f"Gateway {key.namespace}/{key.name} is not one that the control plane deploys")
                continue
            rendered = gateway_manifests(wanted, config, mesh)
            documents.extend(rendered.documents)
            failed = failed or bool(rendered.problems)
            for problem in rendered.problems:
                click.echo(f"{problem.level}: {problem}", err=True)
    click.echo(render.render_documents(output, documents), nl=False)
    return 1 if failed else 0


manifest.add(generate)
manifest.add(gateway)
manifest.add(crds)


def _asked(engine: "Engine", names: tuple[str, ...], namespace: str) -> Iterator["Key"]:
    """The Gateways that are named, or all."""
    from mizzen.api.meta import Key

    known = sorted(Key(*key) for key in engine.keys("KubernetesGateway"))
    if not names:
        yield from (key for key in known if namespace in ("", key.namespace))
        return
    for reference in names:
        name, _, own = reference.partition(".")
        where = own or namespace
        found = [key for key in known if key.name == name and where in ("", key.namespace)]
        if not found:
            raise MizzenError(f"there is no Gateway {name}{f' in namespace {where}' if where else ''}")
        yield from found
