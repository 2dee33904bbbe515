"""`mizzen describe`: what the mesh does with one pod or Service.

In: a name, and where to look: manifests (`-f`), a proxy's dump (`--file`), a control plane (`--monitoring`,
`--xds-address`), or else the local mesh. Out: text as istioctl prints it. What it says is decided in
`mizzen.diagnose.describe`.
"""

from collections.abc import Callable, Iterable
from typing import Any

import click

from mizzen.cli import offline, options, views
from mizzen.cli.groups import AliasGroup
from mizzen.cli.reach import reach_options
from mizzen.errors import MizzenError


class _Kinds(AliasGroup):
    """Subcommands by the kind of what is described."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As the base does; another kind is an error of its own."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise MizzenError(f'unknown resource type "{args[0]}"')
        return super().resolve_command(ctx, args)


@click.group(cls=_Kinds)
def describe() -> None:
    """Tell what the mesh does with a pod or a Service."""


def _looking(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say where to look."""
    return options.compose(
        (
            options.manifests_option("manifests", help="Manifests; repeatable."),
            click.option("--file", "dump_file", default="", help="Envoy's dump of the described proxy, `-` for stdin."),
            click.option("--meshConfigFile", "mesh_file", default="", metavar="FILE", help="Mesh config of -f."),
            options.namespace_option,
            reach_options,
        )
    )(function)


@describe.command("pod")
@click.argument("pod", metavar="[TYPE/]NAME[.NAMESPACE]", required=False, shell_complete=options.complete_pods)
@click.option("--ignoreUnmeshed", "ignore_unmeshed", is_flag=True, help="Say nothing of a sidecar that is not there.")
@_looking
def describe_pod(pod: str | None, ignore_unmeshed: bool, **where: Any) -> None:
    """Tell what applies to a pod."""
    from mizzen.diagnose.describe import overview, pods
    from mizzen.diagnose.describe.text import RULE

    if not pod:
        raise MizzenError("expecting pod name")
    with offline.collector_off():
        view = views.View(views.Request(mesh=where["reach"].mesh, **where))
        found = view.find_pod(pod)
        _say(pods.describe_pod(found, warn_unmeshed=not ignore_unmeshed))
        if not pods.has_proxy(found):
            if ignore_unmeshed:
                return
            _say((RULE,))
            raise MizzenError(
                f"failed to execute command on sidecar: pod {found.metadata.name} has no container istio-proxy"
            )
        source = _need(view.described_dump, found)
        _say(overview.describe_meshed_pod(view.engine, found, source, _outside(view)))


@describe.command("service")
@click.argument("service", metavar="NAME[.NAMESPACE]", required=False)
@_looking
def describe_service(service: str | None, **where: Any) -> None:
    """Tell what applies to a Service."""
    from mizzen.diagnose.describe import overview

    if not service:
        raise MizzenError("expecting service name")
    with offline.collector_off():
        view = views.View(views.Request(mesh=where["reach"].mesh, **where))
        found = view.find_service(service)
        _say(overview.describe_whole_service(view.engine, found, _outside(view)))


describe.add(describe_pod, "pods", "po")
describe.add(describe_service, "services", "svc")


def _need(read: Callable[[Any], Any], pod: Any) -> Any:
    try:
        return read(pod)
    except MizzenError as failed:
        raise MizzenError(f"failed to execute command on sidecar: {failed}") from failed


def _outside(view: views.View) -> Any:
    """How gateways are looked at; one that does not answer is passed over."""
    from mizzen.diagnose.describe import gateways

    def dump(pod: Any) -> Any:
        try:
            return view.dump(pod)
        except MizzenError as failed:
            click.echo(f"Warning: {failed}", err=True)
            return None

    return gateways.Outside(dump=dump, published=view.published)


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)
