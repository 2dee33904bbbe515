"""`mizzen agent`: one Envoy and all that it needs in its pod, with pilot-agent's commands and arguments.

In: arguments and environment as the injector writes them. Out: a running sidecar or gateway until it is told to stop.
`istio-iptables` is what the init container of the same image runs, `wait` and `request` are what lifecycle hooks call.
"""

import os
import sys
import time
import urllib.error
import urllib.request
from typing import Any

import click

from mizzen.capture.arguments import PROGRAM
from mizzen.cli import capture
from mizzen.cli.groups import AliasGroup
from mizzen.errors import AgentError

_READY = "http://localhost:15021/healthz/ready"


@click.group(cls=AliasGroup)
def agent() -> None:
    """Run the agent of one sidecar or gateway."""


agent.add_command(capture.iptables, PROGRAM)


@agent.command()
@click.argument("role", default="sidecar")
@click.option("--domain", default="", help="DNS domain of the proxy; <namespace>.svc.cluster.local without it.")
@click.option("--proxyLogLevel", "log_level", default="warning", show_default=True, help="Envoy's log level.")
@click.option(
    "--proxyComponentLogLevel",
    "component_log_level",
    default="misc:error",
    show_default=True,
    help="Levels of single components of Envoy.",
)
@click.option(
    "--log_output_level",
    "agent_levels",
    default="default:info",
    show_default=True,
    help="Levels by scope of the agent.",
)
@click.option("--log_as_json", is_flag=True, help="Write logs, Envoy's too, as JSON.")
@click.option("--concurrency", type=click.IntRange(min=0), default=None, help="Envoy's worker threads; 0 means cores.")
@click.option("--serviceCluster", "service_cluster", default="", help="Name of the service for traces.")
@click.option("--outlierLogPath", "outlier_log_path", default="", help="File to which Envoy logs ejections.")
@click.option("--stsPort", "sts_port", type=click.IntRange(0, 65535), default=0, help="Port told to the control plane.")
@click.option("--meshConfig", "mesh_config", default="", help="File with the mesh's defaultConfig.")
@click.option("--envoy-path", default="", help="Envoy's binary.  [ENVOY_PATH]")
@click.option(
    "--root-dir",
    type=click.Path(exists=True, file_okay=False),
    default=None,
    help="Directory below which sockets, tokens and certificates lie; the working directory without it.",
)
def proxy(agent_levels: str, root_dir: str | None, **given: Any) -> None:
    """Run Envoy as ROLE (sidecar or router) until told to stop."""
    import asyncio

    # gRPC's own lines about connections that end say nothing that the agent does not say better.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from mizzen import observe, settings
    from mizzen.agent import interfaces, machine, main, options

    if root_dir is not None:
        os.chdir(root_dir)
    flags = options.Flags(**given)
    environ = machine.read_environment(os.environ)
    loaded, warnings = settings.load(environ)
    found = interfaces.merge_addresses(environ.get("INSTANCE_IP", ""), interfaces.find_addresses())
    told = options.read_options(flags, environ, loaded.agent, found)
    observe.set_up_logging(agent_levels, flags.log_as_json, stream=sys.stdout)
    for warning in warnings:
        observe.scope("agent").warning("%s", warning)
    asyncio.run(main.run_agent(told))


@agent.command()
@click.option("--url", default=_READY, show_default=True, help="Asked until it answers 200.")
@click.option("--timeoutSeconds", "timeout", type=float, default=60.0, show_default=True)
@click.option("--requestTimeoutMillis", "request_timeout", type=float, default=500.0, show_default=True)
@click.option("--periodMillis", "period", type=float, default=500.0, show_default=True)
def wait(url: str, timeout: float, request_timeout: float, period: float) -> None:
    """Wait until Envoy is ready."""
    deadline = time.monotonic() + timeout
    while True:
        reason = _ask("GET", url, request_timeout / 1000)[1]
        if not reason:
            return
        if time.monotonic() >= deadline:
            raise AgentError(f"Envoy is not ready after {timeout:g} s: {reason}")
        time.sleep(period / 1000)


@agent.command()
@click.option("--debug-port", type=click.IntRange(1, 65535), default=15000, show_default=True)
@click.argument("method")
@click.argument("path")
def request(debug_port: int, method: str, path: str) -> None:
    """Send METHOD PATH to Envoy's admin port, or to the agent's, and print the answer."""
    body, reason = _ask(method.upper(), f"http://localhost:{debug_port}/{path.lstrip('/')}", 60.0)
    if reason:
        raise AgentError(reason)
    click.echo(body, nl=False)


def _ask(method: str, url: str, timeout: float) -> tuple[str, str]:
    """The answer's body, and why it is no success."""
    data = b"" if method == "POST" else None
    asked = urllib.request.Request(url, data=data, method=method)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=timeout) as answer:
            return answer.read().decode(errors="replace"), ""
    except urllib.error.HTTPError as refused:
        return "", f"{url} answers {refused.code}: {refused.read().decode(errors='replace').strip()}"
    except OSError as failed:
        return "", f"{url}: {failed}"
