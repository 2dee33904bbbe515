"""Gateways as clients: what one speaks to a Service when a route leads there.

In: a world and a gateway. Out: the same world, in which the gateway's proxy hands whatever its pod sends straight to
one cluster, so that a trace can start there: which of its routes lead to the Service does not matter for TLS.
"""

from typing import Any

import msgspec

from mizzen.diagnose.trace.capture import OUTBOUND_PORT
from mizzen.diagnose.trace.world import Holdings, Workload, World

_TCP_PROXY = "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"


def has_cluster(world: World, gateway: Workload, cluster: str) -> bool:
    """Whether the gateway may send there: some are told only of what their routes name."""
    return cluster in world.holdings(gateway).clusters


def as_client(world: World, gateway: Workload, cluster: str) -> tuple[World, Workload]:
    """The world as the cluster's client sees it, and the gateway in it."""
    client = msgspec.structs.replace(gateway, proxy="sidecar")
    held = msgspec.structs.replace(world.holdings(gateway), listeners={cluster: _listener(cluster)})

    def hold(asked: Workload) -> Holdings:
        return held if asked.reference == gateway.reference else world.holdings(asked)

    pods = (client if pod.reference == gateway.reference else pod for pod in world.pods)
    return world.held_by(hold, pods), client


def _listener(cluster: str) -> dict[str, Any]:
    proxy = {"name": "tcp", "typedConfig": {"@type": _TCP_PROXY, "cluster": cluster}}
    return {
        "name": cluster,
        "address": {"socketAddress": {"address": "0.0.0.0", "portValue": OUTBOUND_PORT}},
        "filterChains": [{"filters": [proxy]}],
    }
