"""`mizzen up`: the manifests of a directory as a mesh on this machine.

In: directories or files of manifests. Out: a running mesh, its timeline on stdout, until Ctrl-C; with `--detach` only
until it is ready. What it runs is in `mizzen.local`.
"""

import os
import sys

import click

from mizzen.cli.flags import Command


@click.command(cls=Command)
@click.argument("manifests", metavar="DIR...", nargs=-1, required=True)
@click.option("--name", default="", metavar="MESH", help="Name of the mesh; the directory's name without it.")
@click.option("--no-capture", is_flag=True, help="No namespaces: loopback addresses and an HTTP proxy port.")
@click.option(
    "--port",
    "ports",
    multiple=True,
    metavar="HOSTPORT:SERVICE[.NAMESPACE][:PORT]",
    help="Publish a Service's port on this port of 127.0.0.1; repeatable.",
)
@click.option("-d", "--detach", is_flag=True, help="Return when the mesh is ready and leave it running.")
def up(manifests: tuple[str, ...], name: str, no_capture: bool, ports: tuple[str, ...], detach: bool) -> int:
    """Run the manifests of a directory as a mesh on this machine."""
    from pathlib import Path

    from mizzen.local import launcher, runtime
    from mizzen.local.options import parse_port
    from mizzen.local.remarks import describe_emptiness

    environ = dict(os.environ)
    wanted = tuple(parse_port(port) for port in ports)
    if not detach:
        request = launcher.Request(manifests=manifests, name=name, capture=not no_capture, ports=wanted)
        return launcher.launch(request, environ, terminal=sys.stdout.isatty())
    launcher.require_readable(manifests)
    chosen = name or launcher.default_name(manifests)
    layout = runtime.lay_out(runtime.find_base(os.getuid(), environ), chosen)
    arguments = [str(Path(path).resolve()) for path in manifests]
    arguments += ["--name", chosen, *(["--no-capture"] if no_capture else [])]
    arguments += [word for port in ports for word in ("--port", port)]
    state = launcher.detach(arguments, layout, environ)
    click.echo(f"mesh {state.mesh} is running with {len(state.pods)} pods; stop it with `mizzen down {state.mesh}`")
    click.echo(f"what is wrong with its manifests is told in {launcher.detached_log(layout)}")
    if not state.pods:
        click.echo(describe_emptiness(state.manifests))
    for item in state.published:
        click.echo(f"{item.address} leads to {item.service}.{item.namespace}:{item.port}")
    return 0
