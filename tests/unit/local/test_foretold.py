"""What a mesh would add to bare manifests."""

from typing import Any

import meshes

from mizzen.api.decode import decode_object
from mizzen.api.meta import Key
from mizzen.local import foretold

MANIFESTS = """
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: app, image: cart, ports: [{containerPort: 8080, name: web}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {selector: {app: cart}, ports: [{name: http, port: 80, targetPort: web}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: outside, namespace: shop}
spec: {hosts: [outside.example.com], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
"""


def complete(text: str) -> dict[Key, Any]:
    decoded = [decode_object(document) for document in meshes.documents(text)]
    return foretold.complete({d.key: d.object for d in decoded if d.key is not None and d.object is not None})


def pods(objects: dict[Key, Any]) -> list[Any]:
    return [found for key, found in sorted(objects.items()) if key.kind == "Pod"]


def test_workloads_become_injected_pods_with_addresses():
    found = pods(complete(MANIFESTS))
    assert len(found) == 2
    assert len({pod.status.pod_ip for pod in found}) == 2
    for pod in found:
        assert {c.name for c in pod.spec.containers} == {"app", "istio-proxy"}
        assert pod.metadata.labels["security.istio.io/tlsMode"] == "istio"


def test_namespaces_that_do_not_inject_get_pods_without_a_sidecar():
    found = pods(complete(MANIFESTS.replace("istio-injection: enabled", "a: b")))
    assert [{c.name for c in pod.spec.containers} for pod in found] == [{"app"}, {"app"}]


def test_services_get_addresses_and_endpoints():
    objects = complete(MANIFESTS)
    assert objects[Key("Service", "shop", "cart")].spec.cluster_ip
    slices = objects[Key("EndpointSlice", "shop", "cart")]
    assert [port.port for port in slices.ports] == [8080]
    assert {e.addresses[0] for e in slices.endpoints} == {pod.status.pod_ip for pod in pods(objects)}
    assert objects[Key("ServiceEntry", "shop", "outside")].status.addresses


def test_what_is_written_stays():
    written = (
        MANIFESTS.replace(
            "spec: {selector: {app: cart}, ports", "spec: {clusterIP: 10.0.0.7, selector: {app: cart}, ports"
        )
        + """
---
apiVersion: v1
kind: Pod
metadata: {name: cart-x, namespace: shop, labels: {app: cart}, ownerReferences: [{kind: ReplicaSet, name: cart, controller: true}]}
spec: {containers: [{name: app, image: cart}]}
status: {podIP: 10.1.0.1, conditions: [{type: Ready, status: "False"}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-1, namespace: shop, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.1.0.1], conditions: {ready: false}}]
"""
    )
    objects = complete(written)
    (pod,) = pods(objects)
    assert (pod.metadata.name, pod.status.pod_ip) == ("cart-x", "10.1.0.1")
    assert [c.name for c in pod.spec.containers] == ["app"], "a pod that is there is as it is"
    assert objects[Key("Service", "shop", "cart")].spec.cluster_ip == "10.0.0.7"
    assert [key.name for key in objects if key.kind == "EndpointSlice"] == ["cart-1"]
