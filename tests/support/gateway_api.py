"""A small world of Gateways and routes in YAML, and its statuses as short texts."""

from collections.abc import Iterable

from meshes import mesh_of

from mizzen.api.gateway_api.statuses import Condition, Status
from mizzen.api.meta import Key
from mizzen.incremental import Engine
from mizzen.model.convert.status.objects import status

API = "gateway.networking.k8s.io/v1"

EDGE = """
apiVersion: v1
kind: Namespace
metadata: {name: edge, labels: {team: edge}}
---
apiVersion: v1
kind: Namespace
metadata: {name: web, labels: {team: web}}
---
apiVersion: v1
kind: Service
metadata: {name: gw-istio, namespace: edge}
spec:
  clusterIP: 10.96.0.20
  selector: {gateway: gw}
  ports: [{name: p80, port: 80, targetPort: 8080}, {name: p443, port: 443, targetPort: 8443}, {name: p9000, port: 9000}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: gw-istio-1, namespace: edge, labels: {kubernetes.io/service-name: gw-istio}}
addressType: IPv4
ports: [{name: p80, port: 8080}, {name: p443, port: 8443}, {name: p9000, port: 9000}]
endpoints: [{addresses: [10.0.0.20], conditions: {ready: true}}]
---
apiVersion: v1
kind: Pod
metadata: {name: gw-0, namespace: edge, labels: {gateway: gw}}
spec: {serviceAccountName: gw-istio, containers: [{name: istio-proxy, image: proxy}]}
status: {podIP: 10.0.0.20, phase: Running}
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: web}
spec: {clusterIP: 10.96.1.1, ports: [{name: http, port: 80}, {name: tcp, port: 9000}]}
"""
"""Where a Gateway `edge/gw` is served, and a backend `web/front`."""


def gateway(
    listeners: str = "{name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}",
    spec: str = "",
    meta: str = "",
    *,
    name: str = "gw",
    class_name: str = "istio",
) -> str:
    """A Gateway of the namespace `edge`."""
    return f"""
---
apiVersion: {API}
kind: Gateway
metadata: {{name: {name}, namespace: edge{meta}}}
spec:
  gatewayClassName: {class_name}
  listeners: [{listeners}]
  {spec}
"""


def route(
    rules: str = "{backendRefs: [{name: front, port: 80}]}",
    parent: str = "{name: gw, namespace: edge}",
    spec: str = "",
    *,
    kind: str = "HTTPRoute",
    name: str = "route",
    namespace: str = "web",
    day: int = 1,
) -> str:
    """A route of the namespace `web`."""
    return f"""
---
apiVersion: {API}
kind: {kind}
metadata: {{name: {name}, namespace: {namespace}, creationTimestamp: "2026-01-{day:02}T00:00:00Z"}}
spec:
  parentRefs: [{parent}]
  rules: [{rules}]
  {spec}
"""


def plain(kind: str, name: str, namespace: str, spec: str, *, group: str = API, meta: str = "") -> str:
    """Any object with a spec in one line."""
    return f"""
---
apiVersion: {group}
kind: {kind}
metadata: {{name: {name}, namespace: {namespace}{meta}}}
spec: {spec}
"""


def world(*texts: str) -> Engine:
    """An engine that holds EDGE and more."""
    return mesh_of(EDGE, *texts)


def verdicts(db: Engine, kind: str, namespace: str, name: str) -> dict[str, str]:
    """The conditions of an object by where and what they are: `True Accepted`, `False NoMatchingParent`.

    Those of a listener are called `web/Programmed`, those of a parent or ancestor `gw/Accepted`.
    """
    found = status(db, Key(kind, namespace, name))
    assert found is not None
    return dict(_verdicts(found))


def messages(db: Engine, kind: str, namespace: str, name: str) -> dict[str, str]:
    """The messages of an object's conditions, by the same names."""
    found = status(db, Key(kind, namespace, name))
    assert found is not None
    return {where: condition.message for where, condition in _conditions(found)}


def _verdicts(found: Status) -> Iterable[tuple[str, str]]:
    return ((where, f"{condition.status} {condition.reason}") for where, condition in _conditions(found))


def _conditions(found: Status) -> Iterable[tuple[str, Condition]]:
    for condition in getattr(found, "conditions", ()):
        yield condition.type, condition
    for listener in getattr(found, "listeners", ()):
        yield from ((f"{listener.name}/{condition.type}", condition) for condition in listener.conditions)
    for parent in getattr(found, "parents", ()):
        yield from ((f"{parent.parent_ref.name}/{condition.type}", condition) for condition in parent.conditions)
    for ancestor in getattr(found, "ancestors", ()):
        yield from ((f"{ancestor.ancestor_ref.name}/{condition.type}", condition) for condition in ancestor.conditions)
