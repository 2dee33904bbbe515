"""Meshes of any size: services with pods, a VirtualService and a DestinationRule for every fifth, and their proxies."""

from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]

NODE = "node-0"
"""Where all pods run."""


def documents(services: int, pods: int, namespaces: int) -> Iterator[Document]:
    """The objects of a mesh, each service in the namespace of its number."""
    for n in range(namespaces):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"ns-{n}"}}
    for number in range(services):
        yield from _service(number, pods, namespaces)
        if number % 5 == 0:
            yield virtual_service(number, namespaces, "first")
            yield destination_rule(number, namespaces, 100)


def _meta(number: int, namespaces: int) -> dict[str, Any]:
    return {"name": f"svc-{number}", "namespace": f"ns-{number % namespaces}"}


def _service(number: int, pods: int, namespaces: int) -> Iterator[Document]:
    meta = _meta(number, namespaces)
    name, namespace = meta["name"], meta["namespace"]
    ports = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "grpc", "port": 9000 + number % 40}]
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta,
        "spec": {
            "clusterIP": f"10.{96 + number // 60000}.{number // 250 % 250}.{1 + number % 250}",
            "selector": {"app": name},
            "ports": ports,
        },
    }
    endpoints = []
    for i in range(pods):
        index = number * pods + i
        address = f"10.{16 + index // 60000}.{index // 250 % 250}.{1 + index % 250}"
        labels = {"app": name, "version": f"v{1 + i % 2}", "security.istio.io/tlsMode": "istio"}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{i}", "namespace": namespace, "labels": labels},
            "spec": {"nodeName": NODE, "serviceAccountName": name, "containers": [{"name": "app", "image": "app"}]},
            "status": {"podIP": address, "phase": "Running"},
        }
        reference = {"kind": "Pod", "name": f"{name}-{i}", "namespace": namespace}
        endpoints.append({"addresses": [address], "conditions": {"ready": True}, "targetRef": reference})
    yield endpoint_slice(number, namespaces, endpoints)


def endpoint_slice(number: int, namespaces: int, endpoints: list[Document]) -> Document:
    """The endpoints of a service."""
    meta = _meta(number, namespaces)
    labels = {"kubernetes.io/service-name": meta["name"]}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{meta['name']}-1", "namespace": meta["namespace"], "labels": labels},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080}, {"name": "grpc", "port": 9000 + number % 40}],
        "endpoints": endpoints,
    }


def virtual_service(number: int, namespaces: int, marker: str) -> Document:
    """A VirtualService whose first route is named by `marker`."""
    meta = _meta(number, namespaces)
    route = [
        {"destination": {"host": meta["name"], "subset": "v1"}, "weight": 90},
        {"destination": {"host": meta["name"], "subset": "v2"}, "weight": 10},
    ]
    http = [{"name": marker, "route": route}]
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": meta,
        "spec": {"hosts": [meta["name"]], "http": http},
    }


def destination_rule(number: int, namespaces: int, requests: int) -> Document:
    """A DestinationRule with two subsets and a limit of requests."""
    meta = _meta(number, namespaces)
    subsets = [{"name": v, "labels": {"version": v}} for v in ("v1", "v2")]
    policy = {"connectionPool": {"http": {"http2MaxRequests": requests}}}
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "DestinationRule",
        "metadata": meta,
        "spec": {"host": meta["name"], "trafficPolicy": policy, "subsets": subsets},
    }


def nodes(found: list[Document]) -> Iterator[dict[str, Any]]:
    """The xDS Nodes of the sidecars of all pods, as protobuf JSON."""
    for document in found:
        if document["kind"] != "Pod":
            continue
        meta, address = document["metadata"], document["status"]["podIP"]
        name, namespace = meta["name"], meta["namespace"]
        yield {
            "id": f"sidecar~{address}~{name}.{namespace}~{namespace}.svc.cluster.local",
            "metadata": {
                "NAME": name,
                "NAMESPACE": namespace,
                "INSTANCE_IPS": address,
                "CLUSTER_ID": "Kubernetes",
                "SERVICE_ACCOUNT": document["spec"]["serviceAccountName"],
                "LABELS": meta["labels"],
            },
        }
