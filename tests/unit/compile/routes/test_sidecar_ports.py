"""Whether a host is looked up with its port."""

import listener_mesh
import pytest

from mizzen import protos
from mizzen.compile import resource, snapshot

MESH = """
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 8080}]}
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: shop}
spec:
  egress:
  - {port: {number: 15080, protocol: HTTP_PROXY, name: proxy}, bind: 127.0.0.1, hosts: ["*/*"]}
  - {hosts: ["*/*"]}
"""


@pytest.mark.parametrize(
    ("dialect", "name", "ignores"),
    [("envoy", "15080", False), ("istio", "15080", True), ("envoy", "8080", True), ("istio", "8080", True)],
)
def test_only_a_proxy_port_of_our_own_dialect_heeds_it(dialect, name, ignores):
    db = listener_mesh.mesh_of(MESH)
    proxy = listener_mesh.proxy_at(MIZZEN_DIALECT=dialect)
    (found,) = snapshot.resources(db, proxy, resource.ROUTE, frozenset({name}))
    configuration = protos.to_json(found.message())
    assert configuration["virtualHosts"][0]["name"] == "cart.shop.svc.cluster.local:8080"
    assert configuration.get("ignorePortInHostMatching", False) is ignores
