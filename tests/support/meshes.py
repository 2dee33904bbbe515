"""Small meshes from YAML, and proxies to look from, for tests of the model and the compiler."""

from typing import Any

import golden
import yaml

from mizzen import protos
from mizzen.api.mesh.merge import merge_mesh_config
from mizzen.compile import resource, snapshot
from mizzen.incremental import Engine
from mizzen.model.mesh import MESH
from mizzen.model.proxy import Proxy, parse_node


def documents(text: str) -> list[dict[str, Any]]:
    """The objects of a YAML stream."""
    return [d for d in yaml.safe_load_all(text) if d]


def mesh_of(*texts: str, config: dict[str, Any] | None = None) -> Engine:
    """An engine that holds the objects of some YAML, under a mesh config over the defaults."""
    db = Engine()
    db.set(MESH, merge_mesh_config(config or {})[0])
    for text in texts:
        for document in documents(text):
            golden.set_object(db, document)
    return db


def apply(db: Engine, text: str) -> None:
    """Set further objects, or new versions of them."""
    for document in documents(text):
        golden.set_object(db, document)


def delete(db: Engine, text: str) -> None:
    """Take objects out."""
    for document in documents(text):
        golden.remove_object(db, document)


def proxy(
    namespace: str = "web",
    name: str = "app-0",
    ip: str = "10.0.0.9",
    kind: str = "sidecar",
    labels: dict[str, str] | None = None,
    dialect: str = "istio",
    **metadata: Any,
) -> Proxy:
    """A proxy with an Istio-style node."""
    spec = {"kind": kind, "ip": ip, "name": name, "namespace": namespace, "labels": labels or {}}
    if dialect != "istio":
        metadata["MIZZEN_DIALECT"] = dialect
    return parse_node(golden.node_of({**spec, "metadata": metadata}))


def told(db: Engine, who: Proxy, type_url: str, *names: str) -> dict[str, dict[str, Any]]:
    """What a proxy is told of one type, as protobuf JSON by name."""
    found = snapshot.resources(db, who, type_url, frozenset(names) if names else None)
    return {r.name: protos.to_json(r.message()) for r in found}


def routes(db: Engine, who: Proxy, name: str) -> dict[str, list[dict[str, Any]]]:
    """The routes of a route configuration by virtual host."""
    configuration = told(db, who, resource.ROUTE, name)[name]
    return {h["name"]: h.get("routes", []) for h in configuration.get("virtualHosts", [])}


def service(
    name: str, namespace: str = "web", ip: str = "10.96.0.1", port: str = "{name: http, port: 80}", **extra: str
) -> str:
    """A Service as YAML."""
    meta = "".join(f", {key}: {value}" for key, value in extra.items())
    return f"""
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: {namespace}{meta}}}
spec: {{clusterIP: {ip}, selector: {{app: {name}}}, ports: [{port}]}}
"""


def endpoints(name: str, *addresses: str, namespace: str = "web", port: str = "{name: http, port: 8080}") -> str:
    """The EndpointSlice of a service and the pods behind it, as YAML."""
    pods = "".join(
        f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}-{i}, namespace: {namespace}, labels: {{app: {name}, security.istio.io/tlsMode: istio}}}}
spec: {{serviceAccountName: {name}, containers: [{{name: app, image: app}}]}}
status: {{podIP: {address}, phase: Running}}
"""
        for i, address in enumerate(addresses)
    )
    ready = "conditions: {ready: true}"
    listed = ", ".join(
        f"{{addresses: [{a}], {ready}, targetRef: {{kind: Pod, name: {name}-{i}, namespace: {namespace}}}}}"
        for i, a in enumerate(addresses)
    )
    return f"""
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: {namespace}, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{port}]
endpoints: [{listed}]
{pods}"""
