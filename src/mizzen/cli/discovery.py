"""`mizzen discovery`: the control plane as a process, with istiod's flags.

In: folders of objects or an API server, addresses, the authority's folder. Out: a process that serves until SIGTERM or
Ctrl-C, and whose exit code is not 0 when it could not start or a part of it has failed. Variables of the environment
are istiod's (`mizzen.settings`); its log goes to stderr.
"""

import os
from typing import TYPE_CHECKING

import click

from mizzen.cli.flags import Command
from mizzen.cli.options import parse_seconds
from mizzen.errors import UsageError

if TYPE_CHECKING:
    from mizzen.sources.kube.access import Access


def _access(kubeconfig: str, context: str) -> "Access":
    from pathlib import Path

    from mizzen.sources.kube import access

    if kubeconfig:
        return access.from_kubeconfig(Path(kubeconfig), context)
    if "KUBERNETES_SERVICE_HOST" not in os.environ:
        raise UsageError("no objects: name files by --config PATH or an API server by --kubeconfig FILE")
    return access.in_cluster()


@click.command("discovery", cls=Command)
@click.option("--config", multiple=True, metavar="PATH", help="File or folder of objects, watched; repeatable.")
@click.option("--kubeconfig", default="", metavar="FILE", help="API server of the objects; without, the pod's own.")
@click.option("--kubecontext", default="", metavar="NAME", help="Context of the kubeconfig, if not its current one.")
@click.option("--grpcAddr", "grpc_addr", default="127.0.0.1:15010", show_default=True, help="Plain discovery.")
@click.option("--secureGRPCAddr", "secure_addr", default=":15012", show_default=True, help="TLS and token.")
@click.option("--mutualGRPCAddr", "mutual_addr", default=":15011", show_default=True, help="Mutual TLS.")
@click.option("--monitoringAddr", "monitoring_addr", default=":15014", show_default=True, help="Metrics, debug.")
@click.option("--httpAddr", "http_addr", default=":8080", show_default=True, help="Readiness, debug.")
@click.option("--ctrlz_address", "introspection_host", default="localhost", show_default=True, help="Of ControlZ.")
@click.option(
    "--ctrlz_port", "introspection_port", default=9876, show_default=True, help="Levels of log scopes; 0: nowhere."
)
@click.option("--httpsAddr", "https_addr", default=":15017", show_default=True, help="Webhooks, on Kubernetes.")
@click.option("--meshConfig", "mesh_config", default="", metavar="FILE", help="Mesh config, watched.")
@click.option("--domain", default="cluster.local", show_default=True, help="DNS suffix of services.")
@click.option("--clusterID", "cluster_id", default="", metavar="NAME", help="Name of the cluster.")
@click.option(
    "--caDir", "--ca-dir", "ca_dir", default="", metavar="DIR", help="State of the authority, or one to plug in."
)
@click.option("--rootOverlap", "root_overlap", default="", metavar="DURATION", help="Announce a new root so long.")
@click.option(
    "--tokenKey", "--token-key", "token_keys", multiple=True, metavar="FILE", help="Key that signs callers' tokens."
)
@click.option("--tokenIssuer", "token_issuer", default="", metavar="URL", help="Issuer of callers' tokens.")
@click.option(
    "--keepaliveMaxServerConnectionAge", "connection_age", default="", metavar="DURATION", help="Age of a stream."
)
@click.option("--shutdownDuration", "stop_grace", default="", metavar="DURATION", help="Grace of open calls.")
@click.option("--log_output_level", "levels", default="default:info", show_default=True, help="SCOPE:LEVEL,…")
@click.option("--log_as_json/--no-log_as_json", "as_json", default=False, help="Log lines as JSON.")
def discovery(
    *,
    config: tuple[str, ...],
    kubeconfig: str,
    kubecontext: str,
    grpc_addr: str,
    secure_addr: str,
    mutual_addr: str,
    monitoring_addr: str,
    http_addr: str,
    introspection_host: str,
    introspection_port: int,
    https_addr: str,
    mesh_config: str,
    domain: str,
    cluster_id: str,
    ca_dir: str,
    root_overlap: str,
    token_keys: tuple[str, ...],
    token_issuer: str,
    connection_age: str,
    stop_grace: str,
    levels: str,
    as_json: bool,
) -> None:
    """Run the control plane."""
    import asyncio

    import msgspec

    from mizzen import observe, settings
    from mizzen.control import main
    from mizzen.control.options import Address, Options, parse_address

    observe.set_up_logging(levels, as_json)
    loaded, warnings = settings.load(os.environ)
    for warning in warnings:
        observe.scope().warning("%s", warning)
    xds, authority = loaded.xds, loaded.authority
    if connection_age:
        age = parse_seconds("--keepaliveMaxServerConnectionAge", connection_age)
        xds = msgspec.structs.replace(xds, max_connection_age=age)
    if stop_grace:
        xds = msgspec.structs.replace(xds, stop_grace=parse_seconds("--shutdownDuration", stop_grace))
    if root_overlap:
        authority = msgspec.structs.replace(authority, root_overlap=parse_seconds("--rootOverlap", root_overlap))
    options = Options(
        config=config,
        kubernetes=None if config and not kubeconfig else _access(kubeconfig, kubecontext),
        plain=parse_address("--grpcAddr", grpc_addr),
        secure=parse_address("--secureGRPCAddr", secure_addr),
        mutual=parse_address("--mutualGRPCAddr", mutual_addr),
        monitoring=parse_address("--monitoringAddr", monitoring_addr),
        http=parse_address("--httpAddr", http_addr),
        https=parse_address("--httpsAddr", https_addr),
        introspection=Address(introspection_host, introspection_port) if introspection_port else None,
        mesh_config=mesh_config,
        domain=domain,
        cluster_id=cluster_id or loaded.instance.cluster,
        ca_dir=ca_dir,
        token_keys=token_keys,
        token_issuer=token_issuer,
    )
    asyncio.run(main.run(options, msgspec.structs.replace(loaded, xds=xds, authority=authority)))
