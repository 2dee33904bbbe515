"""`mizzen proxy-config`: what one proxy's Envoy has loaded, as istioctl shows it.

In: a pod of the local mesh, or a file with Envoy's answer (`--file`, `-` for stdin), or a pod that a control plane
serves (`--monitoring`): then what that sent. Out: a table, or the resources as JSON or YAML in protobuf's JSON
spelling. What the tables hold is decided in `mizzen.diagnose`, a module a subcommand.
"""

import datetime
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from mizzen.cli import options, proxy_log, render, root_certificates, targets, views
from mizzen.cli.groups import AliasGroup
from mizzen.diagnose.table import Table
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.diagnose.dump import Dump

_CLUSTERS = "config_dump?mask=dynamic_active_clusters,dynamic_warming_clusters,static_clusters"
_LISTENERS = "config_dump?mask=dynamic_listeners,static_listeners"
_ROUTES = "config_dump?mask=dynamic_route_configs,static_route_configs"
_BOOTSTRAP = "config_dump?mask=bootstrap"
_ALL = "config_dump?include_eds=true"
_HOSTS = "clusters?format=json"

_ENVOY_ONLY = {_HOSTS: "the health of hosts", _BOOTSTRAP: "what it was started with"}

_NO_SECRETS = "No active or warming secrets found."
_TABLE_FORMS = ("table", "short", "json", "yaml")


@click.group(cls=AliasGroup)
def proxy_config() -> None:
    """Show what one proxy's Envoy has really loaded."""


class Source:
    """Where Envoy's answers come from: the file that was named, or the proxy."""

    def __init__(self, *, pod: str, file: str, monitoring: Sequence[str], namespace: str, mesh: str) -> None:
        self._pod = pod
        self._file = file
        self._monitoring = monitoring
        self._namespace = namespace
        self._mesh = mesh

    def read(self, query: str) -> bytes:
        """The answer to an admin request, or the file's bytes, or what a control plane sent, whatever was asked."""
        if self._file:
            return targets.read_file(self._file)
        if self._monitoring:
            if query in _ENVOY_ONLY:
                raise MizzenError(f"only Envoy itself knows {_ENVOY_ONLY[query]}: ask the pod, without --monitoring")
            name = targets.qualify(self._pod, self._namespace or options.DEFAULT_NAMESPACE)
            return views.read_sent(self._monitoring, name, with_endpoints=query == _ALL)
        return targets.find_proxy(self._pod, namespace=self._namespace, mesh=self._mesh).get(query)

    def dump(self, query: str) -> "Dump":
        """The configuration dump that the request gives."""
        from mizzen.diagnose import dump

        return dump.parse_dump(self.read(query))


def _subcommand(
    name: str,
    aliases: Sequence[str],
    *extra: Callable[[Any], Any],
    output: str = "short",
    hidden: bool = False,
    wanted: str = "",
) -> Callable[[Callable[..., None]], click.Command]:
    """A subcommand that reads one proxy or file; `wanted` names it in the error when neither is given."""

    def decorate(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def call(
            pod: str | None, file: str, monitoring: tuple[str, ...], namespace: str, mesh: str, **rest: Any
        ) -> None:
            if bool(pod) == bool(file):
                click.echo(click.get_current_context().get_usage(), err=True)
                raise MizzenError(f"{wanted or name} requires pod name or --file parameter")
            source = Source(pod=pod or "", file=file, monitoring=monitoring, namespace=namespace, mesh=mesh)
            function(source, **rest)

        decorated = options.compose(_flags(extra, output))(call)
        command = click.command(name, cls=proxy_config.command_class, hidden=hidden)(decorated)
        proxy_config.add(command, *aliases)
        return command

    return decorate


def _flags(extra: Sequence[Callable[[Any], Any]], output: str) -> list[Callable[[Any], Any]]:
    """The argument and options of a subcommand, its own among them."""
    pod = click.argument("pod", metavar="[POD[.NAMESPACE]]", required=False, shell_complete=options.complete_pods)
    file = click.option("-f", "--file", default="", help="Read Envoy's answer from a file, `-` for stdin.")
    sent = click.option("--monitoring", multiple=True, metavar="HOST:PORT", help="Ask this control plane what it sent.")
    form = options.output_option(*_TABLE_FORMS, default=output)
    return [pod, file, sent, *extra, form, options.namespace_option, options.mesh_option]


def _print(output: str, table: Callable[[], Table], value: Callable[[], Any]) -> None:
    """The table, or the value in the form asked for."""
    if output in ("table", "short"):
        click.echo(render.render_table(table()), nl=False)
    else:
        click.echo(render.render_as(output, value()), nl=False)


def _bare(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    from mizzen.diagnose import spelling

    return [spelling.bare(message) for message in messages]


_fqdn = click.option("--fqdn", default="", help="Clusters whose name contains this.")
_direction = click.option("--direction", default="", help="Clusters of this direction: inbound or outbound.")
_subset = click.option("--subset", default="", help="Clusters of this subset.")
_port = options.port_option("--port", help="Only this port.")
_address = click.option("--address", default="", help="Only this address.")
_type = click.option("--type", "kind", default="", help="Listeners of this type: HTTP, TCP or HTTP+TCP.")
_verbose = click.option("--verbose/--no-verbose", default=True, help="Show all columns (default), or the short view.")
_name = click.option("--name", default="", help="Only the route configuration of this name.")
_cluster = click.option("--cluster", default="", help="Only endpoints of this cluster.")
_status = click.option("--status", default="", help="Only endpoints of this health status.")


@_subcommand("cluster", ("clusters", "c"), _fqdn, _direction, _subset, _port)
def cluster(source: Source, output: str, **wanted: Any) -> None:
    """Show the clusters."""
    from mizzen.diagnose.tables import clusters

    found = clusters.select_clusters(source.dump(_CLUSTERS), clusters.ClusterFilter(**wanted))
    _print(output, lambda: clusters.build_table(found), lambda: _bare(found))


@_subcommand("listener", ("listeners", "l"), _address, _port, _type, _verbose)
def listener(source: Source, output: str, verbose: bool, **wanted: Any) -> None:
    """Show the listeners and their filter chains."""
    from mizzen.diagnose.tables import listeners

    found = listeners.select_listeners(source.dump(_LISTENERS), listeners.ListenerFilter(**wanted))
    _print(output, lambda: listeners.build_table(found, verbose=verbose), lambda: _bare(found))


@_subcommand("route", ("routes", "r"), _name, _verbose)
def route(source: Source, output: str, name: str, verbose: bool) -> None:
    """Show the routes."""
    from mizzen.diagnose.tables import routes

    found = routes.select_routes(source.dump(_ROUTES), name)
    _print(output, lambda: routes.build_table(found, verbose=verbose), lambda: _bare(found))


@_subcommand("endpoint", ("endpoints", "ep"), _address, _port, _cluster, _status, wanted="endpoints")
def endpoint(source: Source, output: str, **wanted: Any) -> None:
    """Show the hosts of the clusters and their health."""
    from mizzen.diagnose import dump, spelling
    from mizzen.diagnose.tables import endpoints

    keep = endpoints.EndpointFilter(**wanted)
    found = endpoints.select_statuses(dump.parse_json(source.read(_HOSTS)), keep)
    _print(
        output,
        lambda: endpoints.build_table(found, keep),
        lambda: [spelling.respell_as("envoy.admin.v3.ClusterStatus", status) for status in found],
    )


@_subcommand("eds", (), _address, _port, _cluster, _status, hidden=True)
def eds(source: Source, output: str, **wanted: Any) -> None:
    """Show the endpoints that the proxy was told."""
    from mizzen.diagnose.tables import endpoints

    keep = endpoints.EndpointFilter(**wanted)
    found = endpoints.select_assignments(source.dump(_ALL), keep)
    _print(output, lambda: endpoints.build_assigned_table(found, keep), lambda: _bare(found))


@_subcommand("secret", ("secrets", "s"))
def secret(source: Source, output: str) -> None:
    """Show the certificates that the proxy got over SDS."""
    from mizzen.diagnose import spelling
    from mizzen.diagnose.tables import secrets

    dumped = source.dump(root_certificates.SECRETS)
    found = secrets.select_secrets(dumped, _now())
    if not found and output in ("table", "short"):
        click.echo(_NO_SECRETS)
        return
    _print(output, lambda: secrets.build_table(found), lambda: spelling.bare(dumped.section("Secrets")))


@_subcommand("bootstrap", ("b",), output="json")
def bootstrap(source: Source, output: str) -> None:
    """Show what Envoy was started with."""
    from mizzen.diagnose import spelling
    from mizzen.diagnose.tables import bootstrap as started

    dumped = source.dump(_BOOTSTRAP)
    _print(output, lambda: started.summarize(dumped), lambda: spelling.bare(dumped.section("Bootstrap")))


@_subcommand("ecds", ("ec",))
def ecds(source: Source, output: str) -> None:
    """Show the extensions that the proxy discovered by name."""
    from mizzen.diagnose import spelling
    from mizzen.diagnose.tables import extensions

    dumped = source.dump(_ALL)
    _print(
        output,
        lambda: extensions.build_table(extensions.select_extensions(dumped)),
        lambda: spelling.respell_as("envoy.admin.v3.EcdsConfigDump", extensions.merge_sections(dumped)),
    )


_headers = click.option("--with-headers", is_flag=True, help="Write a heading above each section.")


@_subcommand("all", ("a",), _fqdn, _direction, _subset, _port, _address, _type, _verbose, _name, _headers)
def everything(source: Source, output: str, with_headers: bool, **wanted: Any) -> None:
    """Show everything, section by section; json and yaml are Envoy's own answer."""
    from mizzen.diagnose import dump

    raw = source.read(_ALL)
    if output == "json":
        click.echo(raw.rstrip(b"\n"))
        return
    dumped = dump.parse_dump(raw)
    if output == "yaml":
        click.echo(render.render_yaml(dump.parse_json(raw)), nl=False)
        return
    sections = []
    for title, build in _sections(dumped, **wanted).items():
        heading = f"------ {title} INFO ------\n\n" if with_headers else ""
        sections.append(heading + _table_or_reason(build))
    click.echo("\n".join(sections), nl=False)


def _table_or_reason(build: Callable[[], Table]) -> str:
    """The section's table; a section that is not there says so and leaves the others alone."""
    try:
        return render.render_table(build())
    except MizzenError as absent:
        return f"{absent}\n"


def _require_rows(table: Table, otherwise: str) -> Table:
    if not table.rows:
        raise MizzenError(otherwise)
    return table


def _sections(
    dumped: "Dump",
    *,
    fqdn: str,
    direction: str,
    subset: str,
    port: int,
    address: str,
    kind: str,
    verbose: bool,
    name: str,
) -> dict[str, Callable[[], Table]]:
    from mizzen.diagnose.tables import bootstrap as started
    from mizzen.diagnose.tables import clusters, endpoints, listeners, routes, secrets

    cluster_filter = clusters.ClusterFilter(fqdn=fqdn, port=port, subset=subset, direction=direction)
    listener_filter = listeners.ListenerFilter(address=address, port=port, kind=kind)
    keep = endpoints.EndpointFilter(port=port)
    return {
        "BOOTSTRAP": lambda: started.summarize(dumped),
        "CLUSTER": lambda: clusters.build_table(clusters.select_clusters(dumped, cluster_filter), named=True),
        "LISTENER": lambda: listeners.build_table(
            listeners.select_listeners(dumped, listener_filter), verbose=verbose, named=True
        ),
        "ROUTE": lambda: routes.build_table(routes.select_routes(dumped, name), verbose=verbose, prefix="route/"),
        "SECRET": lambda: _require_rows(
            secrets.build_table(secrets.select_secrets(dumped, _now()), prefix="secret/"), _NO_SECRETS
        ),
        "ENDPOINTS": lambda: endpoints.build_assigned_table(
            endpoints.select_assignments(dumped, keep), keep, prefix="endpoint/"
        ),
    }


proxy_config.add(proxy_log.log, "o")
proxy_config.add(root_certificates.rootca_compare, "rc")


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
