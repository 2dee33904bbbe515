"""`mizzen proxy-config log`: what an Envoy logs, read and changed.

In: pods of the local mesh, by name or labels, and levels. Out: Envoy's list of its loggers, for each pod.
"""

from collections.abc import Sequence

import click

from mizzen.cli import options, views
from mizzen.cli.flags import Command
from mizzen.errors import MizzenError

_LEVELS = ("trace", "debug", "info", "warning", "warn", "error", "critical", "off")
_RESET_LEVEL = "warning"
_PATHS = "logging?paths="


@click.command("log", cls=Command)
@click.argument("pods", metavar="POD[.NAMESPACE]...", nargs=-1, shell_complete=options.complete_pods)
@click.option("-l", "--selector", default="", metavar="LABEL=VALUE,…", help="The pods with these labels.")
@click.option("--level", default="", help="LEVEL, or LOGGER:LEVEL,… to change single loggers.")
@click.option("-r", "--reset", is_flag=True, help=f"Set all loggers back to {_RESET_LEVEL}.")
@click.option("-o", "--output", default="", hidden=True)
@options.namespace_option
@options.mesh_option
def log(pods: tuple[str, ...], selector: str, level: str, reset: bool, output: str, namespace: str, mesh: str) -> None:
    """Show or change what Envoy logs."""
    if not pods and not selector:
        raise MizzenError("log requires pod name or --selector")
    if pods and selector:
        raise MizzenError("name cannot be provided when the label selector is specified")
    if output:
        raise MizzenError("--output is not applicable for this command")
    if level and reset:
        raise MizzenError("--level cannot be combined with --reset")
    queries = _parse_levels(_RESET_LEVEL if reset else level)
    for pod in pods or ("",):
        for proxy in views.find_proxies(pod, selector=selector, namespace=namespace, mesh=mesh):
            answer = proxy.get("logging", "POST")
            _check_loggers(queries, answer)
            for query in queries:
                answer = proxy.get(query, "POST")
            click.echo(f"{proxy.name}:\n{answer.decode(errors='replace')}")


def _parse_levels(level: str) -> list[str]:
    """The requests that `--level` asks for: all loggers first, then single ones."""
    pairs = [part.rpartition(":") for part in level.split(",") if part]
    for _, _, word in pairs:
        if word not in _LEVELS:
            raise MizzenError(f"unrecognized logging level: {word}")
    everywhere = [f"logging?level={_canonical(word)}" for logger, _, word in pairs if not logger]
    single = [f"{logger}:{_canonical(word)}" for logger, _, word in pairs if logger]
    return [*everywhere, *([f"{_PATHS}{','.join(single)}"] if single else [])]


def _canonical(level: str) -> str:
    return "warning" if level == "warn" else level


def _check_loggers(queries: Sequence[str], listed: bytes) -> None:
    """Envoy names no culprit when one of several loggers is unknown, so look first."""
    known = {line.strip().partition(":")[0] for line in listed.decode(errors="replace").splitlines()}
    for query in queries:
        if query.startswith(_PATHS):
            for part in query.removeprefix(_PATHS).split(","):
                if (logger := part.partition(":")[0]) not in known:
                    raise MizzenError(f"unrecognized logger name: {logger}")
