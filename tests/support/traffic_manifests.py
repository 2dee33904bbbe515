"""Manifests of the traffic tests: what stands beside each test, and the pods that all of them share.

`behaviour(...)` marks a test with its manifests. They are YAML in short: `apiVersion` follows from the kind, and the
namespace is `traffic` where none is stated. All pods are made once; a test has Services of its own over them, so that
no test's rules touch another's.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
import yaml

NAMESPACE = "traffic"
_GATEWAY_API = ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "ListenerSet", "ReferenceGrant", "BackendTLSPolicy")
_NETWORKING = ("VirtualService", "DestinationRule", "Gateway", "ServiceEntry", "Sidecar", "EnvoyFilter")
_API_VERSIONS = {
    **dict.fromkeys(_NETWORKING, "networking.istio.io/v1"),
    **dict.fromkeys(("WorkloadEntry", "WorkloadGroup"), "networking.istio.io/v1"),
    "EnvoyFilter": "networking.istio.io/v1alpha3",
    **dict.fromkeys(("PeerAuthentication", "AuthorizationPolicy", "RequestAuthentication"), "security.istio.io/v1"),
    **dict.fromkeys(_GATEWAY_API, "gateway.networking.k8s.io/v1"),
    **dict.fromkeys(("Ingress", "IngressClass"), "networking.k8s.io/v1"),
    "Telemetry": "telemetry.istio.io/v1",
    "WasmPlugin": "extensions.istio.io/v1alpha1",
}
_CLUSTER_WIDE = ("Namespace", "Node", "IngressClass")

WORLD = """
kind: ServiceEntry
metadata: {name: world, namespace: outside}
spec:
  hosts: [world.example.net, one.names.example.net]
  exportTo: ["."]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: "$(outer)"}]
---
"""
"""Names on the internet: name servers have them, and the mesh does not know them, as nothing is exported."""


def behaviour(*manifests: str) -> pytest.MarkDecorator:
    """This test shows one behaviour of the mesh under these manifests."""
    return pytest.mark.behaviour(*manifests)


def complete(text: str) -> list[dict[str, Any]]:
    """The documents of a short manifest with all that is left out there."""
    documents = [document for document in yaml.safe_load_all(text) if document]
    return [fill(document) for document in documents]


def fill(document: Mapping[str, Any]) -> dict[str, Any]:
    """One document with its version and namespace; a Gateway of the Gateway API states its version."""
    kind = document["kind"]
    metadata = dict(document["metadata"])
    if kind not in _CLUSTER_WIDE:
        metadata.setdefault("namespace", NAMESPACE)
    return {"apiVersion": _API_VERSIONS.get(kind, "v1"), **document, "metadata": metadata}


def render(documents: Iterable[Mapping[str, Any]]) -> str:
    """A file of manifests. Each name must be had once: tests that share one would disturb each other."""
    names: set[tuple[str, str, str]] = set()
    for document in documents:
        metadata = document["metadata"]
        name = (document["kind"], metadata.get("namespace", ""), metadata["name"])
        assert name not in names, f"two tests bring {name}"
        names.add(name)
    return yaml.safe_dump_all(documents, sort_keys=False)


def service(
    name: str,
    *,
    port: int = 80,
    port_name: str = "http",
    target: int = 8080,
    selector: str = "app: echo",
    more: str = "",
) -> str:
    """A Service over the echo pods with one port."""
    return f"""
kind: Service
metadata: {{name: {name}}}
spec:
  selector: {{{selector}}}
  ports: [{{name: {port_name}, port: {port}, targetPort: {target}}}]
---
"""


def routes(name: str, http: str, **options: Any) -> str:
    """A Service, and a VirtualService of that name with these HTTP routes."""
    lines = "\n".join(f"  {line}" for line in http.strip("\n").splitlines())
    return f"""
{service(name, **options)}
kind: VirtualService
metadata: {{name: {name}}}
spec:
  hosts: [{name}]
  http:
{lines}
---
"""


def matching(name: str, match: str, **options: Any) -> str:
    """A Service whose requests say, at the receiver, whether they were taken by the route with that match."""
    return routes(
        name,
        f"""
- match: [{{{match}}}]
  headers: {{request: {{set: {{x-route: matched}}}}}}
  route: [{{destination: {{host: {name}}}}}]
- headers: {{request: {{set: {{x-route: default}}}}}}
  route: [{{destination: {{host: {name}}}}}]
""",
        **options,
    )


def subsets(name: str) -> str:
    """A DestinationRule with the versions of the echo pods as subsets."""
    return f"""
kind: DestinationRule
metadata: {{name: {name}}}
spec:
  host: {name}
  subsets:
    - {{name: v1, labels: {{version: v1}}}}
    - {{name: v2, labels: {{version: v2}}}}
---
"""


def policy(name: str, traffic_policy: str) -> str:
    """A DestinationRule with this traffic policy."""
    return f"""
kind: DestinationRule
metadata: {{name: {name}}}
spec:
  host: {name}
  trafficPolicy: {{{traffic_policy}}}
---
"""
