"""A Gateway of the Gateway API in the manifests is started, serves its routes, and goes with its object."""

import pathlib

import pytest
from eventually import eventually_blocking
from local_mesh import LocalMesh, get, running

pytestmark = [pytest.mark.local, pytest.mark.envoy]

GATEWAY = """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: istio
  infrastructure: {parametersRef: {group: "", kind: ConfigMap, name: edge}}
  listeners: [{name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: edge, namespace: infra}
data:
  deployment: "spec: {replicas: 2}"
"""
ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: hello, namespace: default}
spec:
  parentRefs: [{name: edge, namespace: infra}]
  rules:
    - matches: [{path: {value: /hello}}]
      filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]
      backendRefs: [{name: hello, port: 18080}]
"""


def address(mesh: LocalMesh) -> str:
    """Where the Gateway's port 80 is published."""
    (found,) = mesh.published("edge-istio", 80)
    return found


def pods(mesh: LocalMesh) -> list[str]:
    return sorted(pod.name for pod in mesh.state.pods if pod.namespace == "infra")


def status(mesh: LocalMesh, path: str) -> int:
    return get(address(mesh), path).status


def test_a_gateway_is_deployed_serves_and_goes(hello: pathlib.Path) -> None:
    (hello / "gateway.yaml").write_text(GATEWAY)
    (hello / "route.yaml").write_text(ROUTE)
    with running(LocalMesh(hello, f"test-{hello.parent.name[-20:]}")) as mesh:
        eventually_blocking(lambda: len(pods(mesh)) == 2)
        assert [name.rpartition("-")[0].startswith("edge-istio") for name in pods(mesh)] == [True, True]
        eventually_blocking(lambda: mesh.published("edge-istio", 80))
        eventually_blocking(lambda: status(mesh, "/hello/hello.yaml") == 200)
        assert status(mesh, "/elsewhere") == 404
        (hello / "route.yaml").write_text(ROUTE.replace("/hello}", "/moved}"))
        eventually_blocking(lambda: status(mesh, "/moved/hello.yaml") == 200)
        (hello / "gateway.yaml").unlink()
        eventually_blocking(lambda: pods(mesh) == [])
