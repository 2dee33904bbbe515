"""`mizzen experimental workload`: machines outside Kubernetes.

In: what a WorkloadGroup is to say, or one that there is. Out: its manifest, or the files that a machine of it needs.
The words and files are istioctl's.
"""

from typing import Any

import click

from mizzen.cli import clusters, options
from mizzen.cli.flags import Command
from mizzen.errors import MizzenError


@click.group()
def workload() -> None:
    """Bring machines outside Kubernetes into the mesh."""


@workload.group()
def group() -> None:
    """Groups of machines that are alike."""


@workload.group()
def entry() -> None:
    """Single machines."""


@group.command(cls=Command)
@click.option("--name", default="", help="Name of the group.")
@options.namespace_option
@click.option("-l", "--labels", multiple=True, metavar="NAME=VALUE", help="Labels of its machines; commas, or repeat.")
@click.option("-a", "--annotations", multiple=True, metavar="NAME=VALUE", help="Annotations of its machines.")
@click.option("-p", "--ports", multiple=True, metavar="NAME=PORT", help="Ports of its machines.")
@click.option("-s", "--serviceAccount", "account", default="default", show_default=True, help="Their identity.")
@click.option("--network", default="", help="Their network, if not everybody's.")
@click.option("--locality", default="", metavar="REGION/ZONE/SUBZONE", help="Where they are.")
@click.option("-w", "--weight", type=click.IntRange(min=0), default=0, help="Their share of the load.")
def create(
    name: str,
    namespace: str,
    labels: tuple[str, ...],
    annotations: tuple[str, ...],
    ports: tuple[str, ...],
    account: str,
    network: str,
    locality: str,
    weight: int,
) -> None:
    """Print the manifest of a WorkloadGroup."""
    from mizzen.cli import render

    if not name:
        raise MizzenError("expecting a workload name")
    if not namespace:
        raise MizzenError("expecting a workload namespace")
    metadata = {"labels": _pairs("--labels", labels), "annotations": _pairs("--annotations", annotations)}
    template: dict[str, Any] = {
        "ports": {port: _number(port, number) for port, number in _pairs("--ports", ports).items()},
        "serviceAccount": account,
        "network": network,
        "locality": locality,
        "weight": weight,
    }
    document = {
        "apiVersion": "networking.istio.io/v1",
        "kind": "WorkloadGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"metadata": _given(metadata), "template": _given(template)},
    }
    click.echo(render.render_document(document), nl=False)


@entry.command(cls=Command)
@click.option("-f", "--file", default="", metavar="FILE", help="Manifest of the group; without it, the cluster's.")
@click.option("--name", default="", help="Name of the group in the cluster.")
@options.namespace_option
@click.option("-o", "--output", default="", metavar="DIR", help="Where to write the files.")
@click.option("--clusterID", "cluster_id", default="", help="Cluster that the machine counts as part of.")
@click.option("--ingressIP", "ingress_ip", default="", metavar="IP", help="Where the machine reaches control planes.")
@click.option(
    "--ingressService",
    "ingress_service",
    default="istio-eastwestgateway",
    show_default=True,
    metavar="SERVICE[.NAMESPACE]",
    help="Whose address that is, if not given.",
)
@click.option("--internalIP", "internal_ip", default="", metavar="IP", help="The machine's address.")
@click.option("--externalIP", "external_ip", default="", metavar="IP", help="Its address as others see it.")
@click.option("--autoregister/--no-autoregister", default=False, help="Make its WorkloadEntry when it connects.")
@click.option(
    "--capture-dns/--no-capture-dns", default=True, show_default=True, help="Answer its DNS queries by its agent."
)
@click.option("--tokenDuration", "seconds", type=int, default=3600, show_default=True, help="Seconds of its token.")
@click.option("-r", "--revision", default="", help="Revision of the control plane.")
@clusters.cluster_options
@click.option("-i", "--istioNamespace", "system", default="istio-system", show_default=True, help="Control plane's.")
def configure(**given: Any) -> None:
    """Write the files with which a machine joins the mesh."""
    from mizzen.cli import workload_files

    workload_files.configure(workload_files.Request(**given))


def _pairs(flag: str, texts: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in (part for given in texts for part in given.split(",") if part):
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise MizzenError(f"{flag}: {text!r} is not NAME=VALUE")
        pairs[name] = value
    return dict(sorted(pairs.items()))


def _number(name: str, text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 1 << 16:
        raise MizzenError(f"--ports: {name}={text} is not NAME=PORT")
    return int(text)


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
