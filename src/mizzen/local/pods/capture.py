"""Applies the capture rules that an injected pod asks for, as its init container would.

In: the arguments and variables of `istio-init`, and the pod's namespace. The rules are the same as in a cluster. Where
the mesh has one user only, the sidecar's traffic is told by its socket mark, and what the agent itself calls, having
none, is left out: the control plane.
"""

from collections.abc import Mapping

import msgspec

from mizzen.api.kube.pods import Container, Pod
from mizzen.capture import apply, arguments
from mizzen.capture.config import CaptureConfig
from mizzen.local.isolation import SOCKET_MARK, Isolation
from mizzen.local.net import namespaces

INIT_CONTAINER = "istio-init"
VALIDATION_CONTAINER = "istio-validation"
CONTAINERS = frozenset({INIT_CONTAINER, VALIDATION_CONTAINER})
"""The injected init containers that are no programs of the user."""


def build_config(
    container: Container, environ: Mapping[str, str], resolver: str, isolation: Isolation, agent_calls: str
) -> CaptureConfig:
    """The rules of one pod; `agent_calls` is the address that its agent must reach without Envoy."""
    config = arguments.parse_arguments(container.args, environ).config
    config = msgspec.structs.replace(config, dns_servers=config.dns_servers or (resolver,), ipv6=False)
    if isolation is not Isolation.SINGLE:
        return config
    excluded = (*config.exclude_outbound_ranges, f"{agent_calls}/32")
    return msgspec.structs.replace(config, proxy_socket_mark=SOCKET_MARK, exclude_outbound_ranges=excluded)


def find_init(pod: Pod) -> Container | None:
    """The container that would set the rules; None for a pod without capture."""
    return next((container for container in pod.spec.init_containers if container.name == INIT_CONTAINER), None)


def apply_rules(config: CaptureConfig, namespace: int) -> None:
    """Loads the rules into the namespace; blocks, for a worker thread."""
    with namespaces.inside(namespace):
        apply.apply(config)
