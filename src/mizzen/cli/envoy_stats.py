"""`mizzen experimental envoy-stats`: what a proxy counts.

In: pods of the local mesh, by name or labels. Out: Envoy's own text, JSON or YAML, or what Prometheus would get of the
proxy alone (`prom`) or of proxy, agent and application together (`prom-merged`).
"""

import json
import os
from typing import TYPE_CHECKING

import click

from mizzen.cli import options, render, targets, views
from mizzen.cli.flags import Command
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.local import runtime

_PATHS = {"server": "stats", "clusters": "clusters"}
_FORMS = ("json", "yaml", "short", "prom", "prom-merged")


@click.command("envoy-stats", cls=Command)
@click.argument("pod", metavar="[[TYPE/]NAME[.NAMESPACE]]", required=False, shell_complete=options.complete_pods)
@click.option("-l", "--selector", default="", metavar="LABEL=VALUE,…", help="The pods with these labels.")
@click.option(
    "-t", "--type", "kind", default="server", show_default=True, metavar="server|clusters", help="What to ask."
)
@click.option("-o", "--output", default="short", show_default=True, metavar="|".join(_FORMS), help="Output format.")
@options.namespace_option
@options.mesh_option
def envoy_stats(pod: str | None, selector: str, kind: str, output: str, namespace: str, mesh: str) -> None:
    """Show what a proxy counts."""
    if not pod and not selector:
        raise MizzenError("stats requires pod name or label selector")
    if pod and selector:
        raise MizzenError("name cannot be provided when the label selector is specified")
    if kind not in _PATHS:
        raise MizzenError(f"unknown stats type {kind}")
    if output not in _FORMS:
        allowed = f"allowed formats are: {','.join(_FORMS)}"
        raise MizzenError(f"unable to match a printer suitable for the output format {output}, {allowed}")
    for proxy in views.find_proxies(pod or "", selector=selector, namespace=namespace, mesh=mesh):
        click.echo(f"\nThe result of pod {proxy.name}:\n")
        click.echo(_ask(proxy, kind, output, mesh), nl=False)


def _ask(proxy: targets.Proxy, kind: str, output: str, mesh: str) -> str:
    if output == "prom-merged":
        return _scrape(proxy, targets.read_state(mesh))
    if output == "prom":
        return proxy.get("stats/prometheus").decode(errors="replace")
    if output == "short":
        return proxy.get(_PATHS[kind]).decode(errors="replace")
    value = json.loads(proxy.get(f"{_PATHS[kind]}?format=json"))
    return render.render_as(output, value)


def _scrape(proxy: targets.Proxy, state: "runtime.State") -> str:
    from mizzen.local import observer, runtime

    return observer.scrape(state, runtime.find_pod(state, proxy.name), os.environ)
