"""`mizzen exec`: a command inside a pod of the local mesh.

In: a pod and a command. Out: the command's output and exit code. It joins the network and the file system view of one
of the pod's processes, and runs as that container's user, so what it calls is captured as if the application called.
"""

import os

import click

from mizzen.cli import options
from mizzen.cli.flags import Command


@click.command("exec", cls=Command, context_settings={"ignore_unknown_options": True})
@click.argument("pod", metavar="[TYPE/]NAME[.NAMESPACE]", shell_complete=options.complete_pods)
@click.option("-c", "--container", default="", help="The container; the application's without it.")
@options.namespace_option
@options.mesh_option
@click.argument("command", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(pod: str, container: str, namespace: str, mesh: str, command: tuple[str, ...]) -> None:
    """Run a command inside a pod of the local mesh."""
    from mizzen.cli import targets
    from mizzen.local import execution

    state = targets.read_state(mesh)
    found = targets.find_running(state, pod, namespace)
    request = execution.Request(state=state, pod=found, container=container, command=command)
    execution.replace_process(execution.build_entry(request, os.environ))
