"""A small mesh from YAML for tests of compiled listeners, and the plain JSON of what a proxy would get."""

from typing import Any

import yaml

from mizzen import protos
from mizzen.api.decode import decode_object
from mizzen.api.mesh.merge import merge_mesh_config
from mizzen.compile.listeners import gateway, sidecar
from mizzen.incremental import Engine
from mizzen.model.mesh import MESH
from mizzen.model.proxy import Proxy, parse_node


def mesh_of(text: str, **mesh: Any) -> Engine:
    """An engine that holds the YAML documents and a mesh config with these fields."""
    db = Engine()
    db.set(MESH, merge_mesh_config(mesh)[0])
    for document in yaml.safe_load_all(text):
        add(db, document)
    return db


def add(db: Engine, document: dict[str, Any] | str) -> None:
    """Set one object, given as YAML or plain data."""
    raw = yaml.safe_load(document) if isinstance(document, str) else document
    decoded = decode_object(raw)
    assert decoded.object is not None, decoded.problems
    db.set(decoded.key, decoded.object)


def proxy_at(
    ip: str = "10.0.0.1", *, kind: str = "sidecar", namespace: str = "shop", name: str = "app-0", **metadata: Any
) -> Proxy:
    """A proxy of that address with further node metadata."""
    return parse_node(
        {
            "id": f"{kind}~{ip}~{name}.{namespace}~{namespace}.svc.cluster.local",
            "metadata": {"NAMESPACE": namespace, "CLUSTER_ID": "Kubernetes", "PROXY_CONFIG": {}, **metadata},
        }
    )


def listeners_of(db: Engine, proxy: Proxy) -> dict[str, dict[str, Any]]:
    """The proxy's listeners as JSON, by name."""
    found = gateway.listeners(db, proxy) if proxy.kind == "router" else sidecar.listeners(db, proxy)
    return {r.name: protos.to_json(r.message()) for r in found}


def filters_of(chain: dict[str, Any]) -> list[str]:
    """The names of a chain's network filters."""
    return [f["name"] for f in chain["filters"]]


def manager_of(chain: dict[str, Any]) -> dict[str, Any]:
    """The connection manager of a chain."""
    name = "envoy.filters.network.http_connection_manager"
    return next(f["typedConfig"] for f in chain["filters"] if f["name"] == name)


def tcp_of(chain: dict[str, Any]) -> dict[str, Any]:
    """The TCP proxy of a chain."""
    return next(f["typedConfig"] for f in chain["filters"] if f["name"] == "envoy.filters.network.tcp_proxy")
