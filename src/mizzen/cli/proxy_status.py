"""`mizzen proxy-status`: has every proxy what the control plane sent it, and what differs at one of them.

In: the control planes of a local mesh, or those named by flags. Out: without `-v` the classic wide table, with `-v 0`
the condensed one, with `-v 1` all resource types; with a proxy's name the difference between what the control plane
would send it now and what its Envoy holds; with `--explain` why what is not in step is so. On stderr a warning where
what a control plane sends has become old, since it hears nothing from where it has its objects.
"""

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mizzen.cli import options, render, targets
from mizzen.cli.flags import Command
from mizzen.cli.planes import Plane, find_planes, find_sent
from mizzen.cli.reach import Reach, reach_options
from mizzen.errors import MizzenError, UsageError

if TYPE_CHECKING:
    from mizzen.diagnose.dump import Dump

_ALL_TYPES = 1


@click.command("proxy-status", cls=Command)
@click.argument("pod", metavar="[POD[.NAMESPACE]]", required=False)
@click.option("-f", "--file", default="", help="Envoy's config dump of that proxy, `-` for stdin.")
@click.option(
    "-v", "--verbosity", type=click.IntRange(min=0), default=None, help="0: condensed; 1: all resource types."
)
@click.option("--explain", is_flag=True, help="Tell why what is not in step is so, and what to do next.")
@options.output_option("table", "json", "yaml", default="table")
@options.namespace_option
@reach_options
def proxy_status(
    pod: str | None, file: str, verbosity: int | None, explain: bool, output: str, namespace: str, reach: Reach
) -> None:
    """Show whether each proxy has what the control plane sent it."""
    planes = find_planes(reach)
    if explain:
        from mizzen.cli import sync_causes

        if file or verbosity is not None:
            raise UsageError("--explain goes with neither --file nor -v")
        sync_causes.explain(planes, pod or "", namespace=namespace, reach=reach, output=output)
        return
    if not pod and not file:
        _list(planes, verbosity=verbosity, output=output, namespace=namespace)
        return
    if not pod:
        raise MizzenError("proxy-status --file requires the name of the proxy that the file is from")
    name, actual = _actual(pod, file=file, namespace=namespace, mesh=reach.mesh)
    _print_difference(find_sent(planes, name), actual)


def _list(planes: Sequence[Plane], *, verbosity: int | None, output: str, namespace: str) -> None:
    from mizzen.diagnose import sync

    answers = [plane.statuses(namespace) for plane in planes]
    for plane in planes:
        for warning in _aged(plane):
            click.echo(f"! {warning}", err=True)
    if output != "table":
        for answer in answers:
            click.echo(render.render_as(output, answer.document), nl=False)
        return
    proxies = [proxy for answer in answers for proxy in answer.proxies]
    if verbosity is None:
        table = sync.build_classic_table(proxies)
    elif verbosity < _ALL_TYPES:
        table = sync.build_condensed_table(proxies)
    else:
        table = sync.build_full_table(proxies, datetime.datetime.now(datetime.UTC))
    click.echo(render.render_table(table), nl=False)


def _aged(plane: Plane) -> list[str]:
    """What is old at a control plane; nothing of one that does not tell, as istiod does not."""
    from mizzen.diagnose import sources

    try:
        page = plane.page("sources")
    except MizzenError:
        return []
    return sources.warn(plane.name, sources.read_sources(page))


def _actual(reference: str, *, file: str, namespace: str, mesh: str) -> "tuple[str, Dump]":
    """The proxy's full name and what its Envoy holds; with a file the name is taken as it was typed."""
    from mizzen.diagnose import dump

    try:
        if file:
            return targets.qualify(reference, namespace), dump.parse_dump(targets.read_file(file))
        proxy = targets.find_proxy(reference, namespace=namespace, mesh=mesh)
        return proxy.name, dump.parse_dump(proxy.get("config_dump"))
    except MizzenError as unreachable:
        raise MizzenError(f"could not contact sidecar: {unreachable}") from unreachable


def _print_difference(sent: "Dump", actual: "Dump") -> None:
    from mizzen.diagnose import diff

    for comparison in diff.compare(sent, actual):
        verdict = "Don't Match" if comparison.difference else "Match"
        click.echo(f"{comparison.kind} {verdict}{_loaded(comparison.loaded)}")
        if comparison.difference:
            click.echo(comparison.difference)


def _loaded(when: datetime.datetime | None) -> str:
    if when is None:
        return ""
    return f" (RDS last loaded at {when.astimezone().strftime('%a, %d %b %Y %H:%M:%S %Z')})"
