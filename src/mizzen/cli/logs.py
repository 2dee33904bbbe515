"""`mizzen logs`: what the containers of a local mesh have written.

In: a pod, or `control-plane`. Out: its log on stdout, with `-f` also what comes. Without `-c` the application's
container is shown, or the proxy of a pod that has no other.
"""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from mizzen.cli import options
from mizzen.cli.flags import Command
from mizzen.errors import LocalError, MizzenError

if TYPE_CHECKING:
    from mizzen.local import runtime

CONTROL_PLANE = "control-plane"
_BLOCK = 1 << 16


@click.command(cls=Command)
@click.argument("pod", metavar="[TYPE/]NAME[.NAMESPACE]|control-plane", shell_complete=options.complete_pods)
@click.option("-c", "--container", default="", help="The container; the application's without it.")
@click.option("-f", "--follow", is_flag=True, help="Go on as lines are written.")
@click.option("--tail", type=click.IntRange(min=-1), default=-1, help="Only the last N lines.")
@options.namespace_option
@options.mesh_option
def logs(pod: str, container: str, follow: bool, tail: int, namespace: str, mesh: str) -> None:
    """Print the logs of a pod of the local mesh."""
    from mizzen.cli import targets
    from mizzen.local import runtime

    try:
        layout = targets.find_layout(mesh)
    except LocalError:
        # Of a killed mesh, the logs are left.
        layout = runtime.select_remains(runtime.find_base(os.getuid(), os.environ), mesh or None, "with --mesh")
    path = layout.control_log if pod == CONTROL_PLANE else _find_log(layout, pod, container, namespace)
    with path.open("rb") as log:
        if tail >= 0:
            _seek_lines(log, tail)
        _copy(log)
        while follow:
            _copy(log)
            if log.tell() > path.stat().st_size:
                log.seek(0)  # It was cut.
            time.sleep(0.2)


def _find_log(layout: "runtime.Layout", reference: str, container: str, namespace: str) -> Path:
    from mizzen.cli import targets
    from mizzen.local import runtime

    pod = targets.find_running(runtime.read_state(layout), reference, namespace)
    folder = layout.log(pod.namespace, pod.name, "").parent
    names = sorted(path.stem for path in folder.glob("*.log"))
    chosen = container or next((name for name in names if name != "istio-proxy"), "istio-proxy")
    if chosen not in names:
        known = ", ".join(names) or "none yet"
        raise MizzenError(f"{pod.name}.{pod.namespace} has no log of a container {chosen}; there are: {known}")
    return layout.log(pod.namespace, pod.name, chosen)


def _seek_lines(log: BinaryIO, count: int) -> None:
    """To the beginning of the last `count` lines."""
    end = position = log.seek(0, os.SEEK_END)
    kept = b""
    while position > 0 and kept.count(b"\n") <= count:
        position = max(0, position - _BLOCK)
        log.seek(position)
        kept = log.read(end - position)
    lines = kept.splitlines(keepends=True)
    log.seek(end - sum(map(len, lines[len(lines) - count :] if count else ())))


def _copy(log: BinaryIO) -> None:
    while block := log.read(_BLOCK):
        sys.stdout.buffer.write(block)
    sys.stdout.buffer.flush()
