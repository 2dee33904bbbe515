"""`mizzen tls-check`: whether clients and servers agree about TLS, for one pair or for all.

In: a client and a Service, or `--all`; manifests (`-f`), or a local mesh that runs. Out: the pair in full or a table of
pairs that are alike, or JSON with every pair. The exit code is 1 where some connection fails in TLS, or manifests
cannot be read in full.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

import click

from mizzen.cli import offline, options
from mizzen.cli.flags import Command
from mizzen.errors import MizzenError, UsageError

if TYPE_CHECKING:
    from mizzen.diagnose.tls_checks.checks import Check
    from mizzen.diagnose.trace.world import World
    from mizzen.model import services

Pair = tuple["services.Service", "services.Port"]


@click.command("tls-check", cls=Command)
@click.argument("source", metavar="[SRC", required=False, default="", shell_complete=options.complete_pods)
@click.argument("target", metavar="DST[:PORT]]", required=False, default="")
@click.option("--all", "everything", is_flag=True, help="Every pod against every port of every Service.")
@options.world_options
@options.output_option("table", "json", default="table")
def tls_check(
    source: str,
    target: str,
    everything: bool,
    paths: tuple[str, ...],
    mesh: str,
    dialect: Literal["istio", "envoy"],
    output: str,
) -> int:
    """Tell whether clients and servers agree about TLS, and by which objects."""
    from mizzen.cli import trace_worlds

    if everything == bool(source and target) or (everything and source):
        raise click.UsageError("give SRC and DST, or --all", click.get_current_context())
    with offline.collector_off():
        world = trace_worlds.find_world(paths, mesh, dialect)
        conflict = _everything(world, output) if everything else _one(world, source, target, output)
    return 1 if conflict else 0


def _everything(world: "World", output: str) -> bool:
    """Print all pairs; whether some of them is a conflict."""
    from mizzen.cli import render
    from mizzen.diagnose.tls_checks import matrix, report

    found = list(matrix.check_all(world))
    if output == "json":
        _print_json(check for group in found for check in group.checks())
    else:
        click.echo(render.render_table(report.build_table(matrix.group(found))), nl=False)
        counts = report.count(found)
        listed = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
        click.echo(f"\n{sum(counts.values())} pairs: {listed}")
    return any(group.first.conflicts for group in found)


def _one(world: "World", source: str, target: str, output: str) -> bool:
    """Print one pair, or the ports of one; whether some of them is a conflict."""
    from mizzen.diagnose.tls_checks import report

    found = _pair(world, source, target)
    if output == "json":
        _print_json(found)
    else:
        for check in found:
            for line in report.describe(check):
                click.echo(line)
    return any(check.conflicts for check in found)


def _pair(world: "World", source: str, target: str) -> list["Check"]:
    from mizzen.diagnose.tls_checks import checks

    pod = world.find(source)
    return [checks.check(world, pod, service, port) for service, port in _ports(world, pod.namespace, target)]


def _ports(world: "World", namespace: str, target: str) -> Iterator[Pair]:
    """The ports that `HOST[:PORT]` means to a client in the namespace."""
    from mizzen.diagnose.tls_checks import matrix

    host, colon, number = target.rpartition(":")
    host = host if colon else target
    if colon and not number.isdigit():
        raise UsageError(f"{target!r} is not SERVICE[.NAMESPACE][:PORT]")
    spellings = (f"{host}.{namespace}.svc.{world.domain}", f"{host}.svc.{world.domain}", f"{host}.{world.domain}", host)
    known = matrix.all_ports(world)
    for spelling in spellings:
        found = [pair for pair in known if pair[0].host == spelling]
        if found:
            chosen = [pair for pair in found if not colon or pair[1].number == int(number)]
            if not chosen:
                listed = ", ".join(str(port.number) for _, port in found)
                raise MizzenError(f"{spelling} has no port {number}; it has {listed}")
            yield from chosen
            return
    raise MizzenError(f"there is no Service {host}")


def _print_json(found: Iterable["Check"]) -> None:
    from mizzen.cli import render
    from mizzen.diagnose.tls_checks import report

    click.echo(render.render_json([report.to_json(check) for check in found], indent=2), nl=False)
