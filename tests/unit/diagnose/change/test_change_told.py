"""What a proxy asks for by name, of the parts that it shares with others."""

import pytest
from traced_mesh import SHOP, pod, service, world_of

from mizzen.compile import resource
from mizzen.diagnose import references
from mizzen.diagnose.change import told

INGRESS = """
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
  servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: [a.example], tls: {mode: SIMPLE, credentialName: a}}]
"""


@pytest.mark.parametrize("dialect", ["istio", "envoy"])
def test_the_names_of_all_parts_are_those_of_the_whole(dialect: told.Dialect) -> None:
    world = world_of(SHOP, pod("other"), service("other", port="{name: tcp, port: 9000}"), INGRESS)
    assert world.db is not None
    reader = told.Reader()
    everybody = told.read(world.db, reader, dialect)
    assert len(everybody) == 4
    for each in everybody.values():
        printed = (map(reader.printed, each.sets[kind]) for kind in (resource.CLUSTER, resource.LISTENER))
        clusters, listeners = ([one for one in kind if one is not None] for kind in printed)
        whole = references.find_references(clusters, listeners)
        assert each.asked == {
            resource.ROUTE: set(whole.routes),
            resource.ENDPOINT: set(whole.endpoints),
            resource.EXTENSION: set(whole.extensions),
            resource.SECRET: set(whole.secrets),
        }
    assert any(each.asked[resource.SECRET] - {"default", "ROOTCA"} for each in everybody.values())
