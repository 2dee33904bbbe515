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


# -- after an edit ----------------------------------------------------------------------------------------------------


def objects(text: str) -> dict[Key, Any]:
    decoded = [decode_object(document) for document in meshes.documents(text)]
    return {d.key: d.object for d in decoded if d.key is not None and d.object is not None}


def running(mesh: foretold.Foretold) -> dict[str, Any]:
    return {key.name: each.pod for key, each in mesh.pods.items()}


FIRST = """
---
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: shop, labels: {app: a}}
spec: {containers: [{name: app, image: a}]}
---
apiVersion: v1
kind: Service
metadata: {name: a, namespace: shop}
spec: {selector: {app: a}, ports: [{name: http, port: 80}]}
"""


def test_what_stays_keeps_its_addresses_whatever_comes_before_it() -> None:
    old = foretold.foretell(objects(MANIFESTS))
    new = foretold.foretell(objects(MANIFESTS + FIRST), before=old)

    before, after = running(old), running(new)
    assert {name: pod.status.pod_ip for name, pod in before.items()} == {
        name: after[name].status.pod_ip for name in before
    }
    assert len({pod.status.pod_ip for pod in after.values()}) == 3
    assert new.cluster_ips.items() >= old.cluster_ips.items()
    assert new.entries == old.entries


def test_a_pod_of_another_template_is_another_pod() -> None:
    old = foretold.foretell(objects(MANIFESTS))
    new = foretold.foretell(
        objects(MANIFESTS.replace("labels: {app: cart}}", "labels: {app: cart, tier: x}}")), before=old
    )

    assert not running(old).keys() & running(new).keys()
    assert not {p.status.pod_ip for p in running(old).values()} & {p.status.pod_ip for p in running(new).values()}


def test_a_pod_that_stays_keeps_its_proxy_as_it_was_injected() -> None:
    config = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: "defaultConfig: {concurrency: 3}"}
"""
    old = foretold.foretell(objects(MANIFESTS))
    later, fresh = (
        foretold.foretell(objects(MANIFESTS + config), before=old),
        foretold.foretell(objects(MANIFESTS + config)),
    )

    assert {n: p.spec for n, p in running(later).items()} == {n: p.spec for n, p in running(old).items()}
    assert {n: p.spec for n, p in running(fresh).items()} != {n: p.spec for n, p in running(old).items()}


def test_labels_of_a_pod_that_stands_alone_are_edited_in_place() -> None:
    old = foretold.foretell(objects(MANIFESTS + FIRST))
    new = foretold.foretell(objects(MANIFESTS + FIRST.replace("labels: {app: a}", "labels: {tier: back}")), before=old)

    before, after = running(old)["a"], running(new)["a"]
    assert after.status.pod_ip == before.status.pod_ip
    assert "app" not in after.metadata.labels
    assert after.metadata.labels["tier"] == "back"
    # What injection has added stays.
    assert after.metadata.labels["security.istio.io/tlsMode"] == before.metadata.labels["security.istio.io/tlsMode"]
