"""`mizzen experimental`: commands that istioctl keeps under `x`, by the names that operators have in their fingers.

Commands that stand at the top level too are the same commands. As there, a command is imported when it is called.
"""

import click

from mizzen.cli.groups import Entry, LazyGroup

COMMANDS = {
    "describe": Entry("mizzen.cli.describe:describe", "Tell what the mesh does with a pod or a Service.", ("des",)),
    "proxy-status": Entry(
        "mizzen.cli.proxy_status:proxy_status", "Show whether each proxy has what the control plane sent it.", ("ps",)
    ),
    "version": Entry("mizzen.cli.version:version", "Print the versions of client, control plane and proxies."),
}


@click.group(cls=LazyGroup, entries=COMMANDS)
def experimental() -> None:
    """Commands that istioctl keeps under `x`."""
