"""Patches for tests: EnvoyFilters from plain data, read as the compiler reads them, and the messages that they change."""

from collections.abc import Callable
from typing import Any

from mizzen import protos
from mizzen.api.decode import decode_object
from mizzen.api.problems import Problem
from mizzen.compile.patches import values
from mizzen.compile.patches.values import ReadyPatch
from mizzen.compile.resource import Resource, ResourceSet, encode_resource
from mizzen.incremental import Engine
from mizzen.model.envoy_filters import PatchId

TYPE = "type.googleapis.com/"
NETWORK = TYPE + "envoy.extensions.filters.network."
HTTP = TYPE + "envoy.extensions.filters.http."
MANAGER = "envoy.filters.network.http_connection_manager"
_MESSAGES = {
    "cluster": "envoy.config.cluster.v3.Cluster",
    "listener": "envoy.config.listener.v3.Listener",
    "route": "envoy.config.route.v3.RouteConfiguration",
}


def write_patch(apply_to: str, operation: str, value: dict[str, Any] | None = None, **match: Any) -> dict[str, Any]:
    """One entry of `configPatches`; the context is written into `match` like the rest."""
    patch = {"operation": operation} if value is None else {"operation": operation, "value": value}
    return {"applyTo": apply_to, "match": match, "patch": patch} if match else {"applyTo": apply_to, "patch": patch}


def add_filter(
    db: Engine, *patches: dict[str, Any], name: str = "f", namespace: str = "shop", created: str = "", **spec: Any
) -> None:
    """Set an EnvoyFilter with these patches."""
    metadata = {"name": name, "namespace": namespace}
    if created:
        metadata["creationTimestamp"] = created
    document = {
        "apiVersion": "networking.istio.io/v1alpha3",
        "kind": "EnvoyFilter",
        "metadata": metadata,
        "spec": {"configPatches": list(patches), **spec},
    }
    decoded = decode_object(document)
    assert decoded.object is not None, decoded.problems
    db.set(decoded.key, decoded.object)


def ask(db: Engine, query: Callable[..., ResourceSet], *arguments: Any) -> tuple[ResourceSet, list[Problem]]:
    """What a query gives, and the Problems that were remarked for it."""
    root = db.root(query, *arguments)
    found = root.value(), db.remarks()
    root.release()
    return found


def ids(count: int, name: str = "f", namespace: str = "shop") -> tuple[PatchId, ...]:
    """The keys of the first patches of an EnvoyFilter."""
    return tuple(PatchId(namespace, name, position) for position in range(count))


def read(*patches: dict[str, Any]) -> list[ReadyPatch]:
    """The patches as the compiler applies them; none may be unusable."""
    db = Engine()
    add_filter(db, *patches)
    found = values.patches(db, ids(len(patches)))
    assert len(found) == len(patches), values.problems(db, ids(1)[0].key)
    return found


def read_one(apply_to: str, operation: str, value: dict[str, Any] | None = None, **match: Any) -> ReadyPatch:
    """One patch as the compiler applies it."""
    return read(write_patch(apply_to, operation, value, **match))[0]


def message(kind: str, **fields: Any) -> Any:
    """A cluster, listener or route configuration (or any message by its full name) from protobuf JSON."""
    return protos.from_json(protos.message_class(_MESSAGES.get(kind, kind)), fields)


def resource_of(kind: str, **fields: Any) -> Resource:
    """The same as a resource under its name."""
    return encode_resource(fields["name"], message(kind, **fields))


def tcp_proxy(**fields: Any) -> dict[str, Any]:
    """A TCP proxy as a network filter."""
    config = {"@type": NETWORK + "tcp_proxy.v3.TcpProxy", "statPrefix": "x", "cluster": "x", **fields}
    return {"name": "envoy.filters.network.tcp_proxy", "typedConfig": config}


def rbac(name: str = "rbac", **fields: Any) -> dict[str, Any]:
    """A network filter that ends nothing."""
    return {"name": name, "typedConfig": {"@type": NETWORK + "rbac.v3.RBAC", "statPrefix": "x", **fields}}


def manager(*http_filters: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A connection manager as a network filter; it ends with a router."""
    router = {"name": "envoy.filters.http.router", "typedConfig": {"@type": HTTP + "router.v3.Router"}}
    config = {
        "@type": NETWORK + "http_connection_manager.v3.HttpConnectionManager",
        "statPrefix": "x",
        "httpFilters": [*http_filters, router],
        **fields,
    }
    if "routeConfig" not in fields:
        config["rds"] = {"routeConfigName": "80", "configSource": {"ads": {}}}
    return {"name": MANAGER, "typedConfig": config}


def fault(name: str = "envoy.filters.http.fault", **fields: Any) -> dict[str, Any]:
    """An HTTP filter that ends nothing."""
    return {"name": name, "typedConfig": {"@type": HTTP + "fault.v3.HTTPFault", **fields}}


def http_names(network_filter: Any) -> list[str]:
    """The names of the HTTP filters in a connection manager."""
    found: Any = protos.unpack(network_filter.typed_config)
    return [each.name for each in found.http_filters]
