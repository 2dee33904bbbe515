"""Small worlds for tests of `trace`: manifests completed as a mesh would complete them, and requests from one line."""

from typing import Any

import meshes
import msgspec

from mizzen.api.decode import decode_object
from mizzen.api.meta import Key
from mizzen.diagnose.trace import request, walk, world_objects
from mizzen.diagnose.trace.verdict import Trace
from mizzen.diagnose.trace.world import World
from mizzen.local import foretold
from mizzen.sources.origins import Origin

BASE = """
apiVersion: v1
kind: Namespace
metadata: {name: web, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Namespace
metadata: {name: bare}
"""


def pod(name: str, *, namespace: str = "web", ports: str = "8080, 9000", **labels: str) -> str:
    """A pod whose program declares ports; with a sidecar in namespace `web`, without one in `bare`."""
    listed = ", ".join(f"{{containerPort: {port.strip()}}}" for port in ports.split(","))
    marks = ", ".join(f"{key}: {value}" for key, value in {"app": name, **labels}.items())
    return f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, labels: {{{marks}}}}}
spec: {{serviceAccountName: {name}, containers: [{{name: app, image: app, ports: [{listed}]}}]}}
"""


def service(
    name: str, *, namespace: str = "web", port: str = "{name: http, port: 80, targetPort: 8080}", **selector: str
) -> str:
    """A Service over the pods of its own name, or of the selector."""
    wanted = ", ".join(f"{key}: {value}" for key, value in (selector or {"app": name}).items())
    return f"""
---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{selector: {{{wanted}}}, ports: [{port}]}}
"""


SHOP = BASE + pod("client") + pod("server", version="v1") + service("server")
"""A client and a server, both with sidecars."""


DOOR = """
---
kind: Deployment
apiVersion: apps/v1
metadata: {name: door, namespace: web}
spec:
  selector: {matchLabels: {gateway: door}}
  template:
    metadata: {labels: {gateway: door}, annotations: {inject.istio.io/templates: gateway}}
    spec: {containers: [{name: istio-proxy, image: auto}]}
---
kind: Gateway
apiVersion: networking.istio.io/v1
metadata: {name: door, namespace: web}
spec:
  selector: {gateway: door}
  servers:
  - {port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}
  - {port: {number: 443, name: https, protocol: HTTPS}, hosts: [a.example], tls: {mode: SIMPLE, credentialName: a}}
---
kind: Secret
apiVersion: v1
metadata: {name: a, namespace: web}
type: kubernetes.io/tls
data: {tls.crt: "", tls.key: ""}
"""
"""A gateway that terminates TLS with a Secret's certificate."""


def world_of(*texts: str, config: dict[str, Any] | None = None, **options: Any) -> World:
    """The world of these manifests; each object stands in `mesh.yaml`, on the line of its number."""
    documents = [d for text in texts for d in meshes.documents(text)]
    decoded = [decode_object(document) for document in documents]
    objects = {d.key: d.object for d in decoded if d.key is not None and d.object is not None}
    db = meshes.mesh_of(config=config)
    for key, value in foretold.complete(objects).items():
        db.set(key, value)
    places: dict[Key, Any] = {key: Origin("mesh.yaml", line) for line, key in enumerate(objects, 1)}
    return world_objects.of_objects(db, places, **options)


def told_otherwise(world: World, kind: str, change: dict[str, Any], source: str = "client.web") -> World:
    """The same world, in which every resource of that kind that the source's proxy holds has these fields besides."""
    own = world.holdings(world.find(source))
    changed = {name: {**resource, **change} for name, resource in getattr(own, kind).items()}
    held = msgspec.structs.replace(own, **{kind: changed})
    return world.held_by(lambda pod: held if pod.reference == source else world.holdings(pod))


def ask(
    world: World, url: str, source: str = "client.web", headers: dict[str, str] | None = None, **more: Any
) -> Trace:
    """What a request meets."""
    scheme, host, port, path = request.parse_target(url)
    sent = request.Request(
        source=source,
        scheme=scheme,
        host=host,
        port=port,
        path=path or "/",
        headers=tuple((headers or {}).items()),
        **more,
    )
    return walk.trace(world, sent)


def titles(found: Trace, link: str) -> list[str]:
    """The titles of the steps of one link."""
    return [step.title for step in found.steps if step.link == link]


def blamed(found: Trace) -> str:
    """The cause as `Kind/name`."""
    return f"{found.cause.kind}/{found.cause.name}" if found.cause is not None else ""
