"""`mizzen experimental`: commands that istioctl keeps under `x`, by the names that operators have in their fingers.

Commands that stand at the top level too are the same commands. As there, a command is imported when it is called.
"""

import click

from mizzen.cli.groups import Entry, LazyGroup

COMMANDS = {
    "authz": Entry("mizzen.cli.authz:authz", "Show which AuthorizationPolicies a proxy enforces."),
    "describe": Entry("mizzen.cli.describe:describe", "Tell what the mesh does with a pod or a Service.", ("des",)),
    "check-inject": Entry("mizzen.cli.injectors:check_inject", "Tell whether a pod gets a sidecar, and why."),
    "injector": Entry("mizzen.cli.injectors:injector", "List injectors of sidecars, and whom they inject."),
    "envoy-stats": Entry("mizzen.cli.envoy_stats:envoy_stats", "Show what a proxy counts.", ("es",)),
    "internal-debug": Entry("mizzen.cli.internal_debug:internal_debug", "Show a page of the control plane's state."),
    "precheck": Entry("mizzen.cli.precheck:precheck", "Check whether it is safe to install or upgrade."),
    "proxy-status": Entry(
        "mizzen.cli.proxy_status:proxy_status", "Show whether each proxy has what the control plane sent it.", ("ps",)
    ),
    "workload": Entry("mizzen.cli.workload:workload", "Bring machines outside Kubernetes into the mesh."),
    "version": Entry("mizzen.cli.version:version", "Print the versions of client, control plane and proxies."),
}


@click.group(cls=LazyGroup, entries=COMMANDS)
def experimental() -> None:
    """Commands that istioctl keeps under `x`."""
