"""`mizzen dashboard`: what a proxy or the control plane of a local mesh shows of itself, in a browser.

In: which, and where to listen. Out: an address on stdout, and a browser if there is one. The control plane's interfaces
are reached from the host as they are; an Envoy's is inside its pod, so for it a port of this machine is carried there
until Ctrl-C.
"""

import contextlib
import socket
import threading
import webbrowser
from typing import Any

import click

from mizzen.cli import options, targets
from mizzen.cli.flags import Command
from mizzen.cli.groups import AliasGroup
from mizzen.errors import MizzenError

_CHUNK = 1 << 16
_CONNECT_SECONDS = 10.0

_browser = click.option("--browser/--no-browser", default=True, help="Open a browser (default), or only print.")


@click.group(cls=AliasGroup)
def dashboard() -> None:
    """Open what a proxy or the control plane shows of itself."""


@dashboard.command("controlz", cls=Command)
@_browser
@options.mesh_option
def controlz(browser: bool, mesh: str) -> None:
    """Show the control plane's log scopes."""
    state = targets.read_state(mesh)
    _show(f"http://{targets.require_up(state, state.control_plane.introspection)}/scopej/", browser)


@dashboard.command("istiod-debug", cls=Command)
@_browser
@options.mesh_option
def istiod_debug(browser: bool, mesh: str) -> None:
    """Show the control plane's debug pages."""
    _show(f"http://{_monitoring(mesh)}/debug", browser)


@dashboard.command("ui", cls=Command)
@_browser
@options.mesh_option
def ui(browser: bool, mesh: str) -> None:
    """Show the control plane's page: who has what, chains, traces, findings."""
    _show(f"http://{_monitoring(mesh)}/ui/", browser)


@dashboard.command("envoy", cls=Command)
@click.argument("pod", metavar="[TYPE/]NAME[.NAMESPACE]", shell_complete=options.complete_pods)
@options.port_option("-p", "--port", help="The port of this machine; any free one without it.")
@click.option("--address", default="localhost", show_default=True, help="Where to listen.")
@_browser
@options.namespace_option
@options.mesh_option
def envoy(pod: str, port: int, address: str, browser: bool, namespace: str, mesh: str) -> None:
    """Show the admin pages of a pod's Envoy, until Ctrl-C."""
    proxy = targets.find_proxy(pod, namespace=namespace, mesh=mesh)
    try:
        listener = socket.create_server((address, port))
    except OSError as taken:
        raise MizzenError(f"failure running port forward process: {address}:{port}: {taken.strerror}") from taken
    with listener:
        _show(f"http://{address}:{listener.getsockname()[1]}", browser)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                near, _ = listener.accept()
                threading.Thread(target=_carry, args=(near, proxy.admin), daemon=True).start()


dashboard.add(envoy, "proxy")


def _monitoring(mesh: str) -> str:
    (plane,) = targets.find_control_planes(mesh=mesh, addresses=())
    return plane.address


def _show(url: str, browser: bool) -> None:
    click.echo(url)
    if not browser:
        click.echo("skipping opening a browser", err=True)
    elif not webbrowser.open(url):
        click.echo(f"Failed to open browser; open {url} in your browser.", err=True)


def _carry(near: socket.socket, path: str) -> None:
    """One connection, both ways, until both sides have said all."""
    from mizzen.local.net import unix

    with near, contextlib.suppress(OSError), unix.connect(path, _CONNECT_SECONDS) as far:
        far.settimeout(None)
        answers = threading.Thread(target=_copy, args=(far, near), daemon=True)
        answers.start()
        _copy(near, far)
        answers.join()


def _copy(source: Any, target: Any) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
