"""A connection as the debug console reads it, without a stream."""

from typing import Any

import mesh_of_resources
import msgspec

from mizzen.compile.resource import Resource, ResourceSet
from mizzen.model.proxy import parse_node
from mizzen.xds.status import TypeStatus
from mizzen.xds.watch import State

NODE = {
    "id": "sidecar~10.0.0.1~cart-0.shop~shop.svc.cluster.local",
    "metadata": {
        "NAMESPACE": "shop",
        "CLUSTER_ID": "c1",
        "LABELS": {"app": "cart"},
        "PROXY_CONFIG": {"discoveryAddress": "here:15012"},
    },
    "locality": {"region": "r1", "zone": "z1"},
}


class Connection(msgspec.Struct):
    """One proxy."""

    statuses: list[TypeStatus] = []
    sets: dict[str, ResourceSet] = {}
    id: str = "cart-0.shop-1"
    proxy: Any = parse_node(NODE)
    version: str = "1.32.0"
    address: str = "10.0.0.1:5000"
    connected_at: float = 1_700_000_000.25
    stream: Any = None

    def types(self) -> list[TypeStatus]:
        """The types that it watches."""
        return self.statuses

    def sent(self, type_url: str) -> ResourceSet | None:
        """What it was sent."""
        return self.sets.get(type_url)


def connection(*statuses: TypeStatus, **fields: Any) -> Any:
    """The connection, of whichever type is asked for."""
    return Connection(list(statuses), **fields)


def client(name: str, namespace: str, **fields: Any) -> Any:
    """The connection of another proxy."""
    node = {
        "id": f"sidecar~10.0.0.2~{name}.{namespace}~{namespace}.svc.cluster.local",
        "metadata": {"NAMESPACE": namespace, "PROXY_CONFIG": {"discoveryAddress": "here:15012"}},
    }
    return connection(id=f"{name}.{namespace}-2", proxy=parse_node(node), **fields)


def status(type_url: str, **fields: Any) -> TypeStatus:
    """One type that is watched."""
    defaults: dict[str, Any] = {
        "state": State.SYNCED,
        "names": (),
        "sent_version": "",
        "accepted_version": "",
        "sent_nonce": "",
        "acked_nonce": "",
        "sent_at": 0.0,
        "error": "",
        "culprits": (),
    }
    return TypeStatus(type_url=type_url, **{**defaults, **fields})


def resources(type_url: str, *names: str) -> ResourceSet:
    """Resources of these names."""
    return ResourceSet(type_url, [Resource(name, mesh_of_resources.build(type_url, name)) for name in names])
