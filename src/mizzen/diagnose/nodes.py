"""The xDS Node that a pod's sidecar or gateway would introduce itself with.

In: a Pod. Out: the Node as protobuf JSON, as the agent inside that pod would build it with default settings. It is
what `compile --proxy` looks from when there is no running proxy to ask.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mizzen.api.kube.pods import Pod
from mizzen.errors import DecodeError
from mizzen.model import workloads

PROXY_CONTAINER = "istio-proxy"
_VERSION = "1.32.0"
_KINDS = ("sidecar", "router", "waypoint")
_TEMPLATES = "inject.istio.io/templates"
_INTERCEPTION = "sidecar.istio.io/interceptionMode"


def build_node(pod: Pod, domain: str = "cluster.local") -> dict[str, Any]:
    """The Node of that pod; raises DecodeError for a pod that has no address of its own yet."""
    name, namespace = pod.metadata.name, pod.metadata.namespace or "default"
    addresses = workloads.pod_addresses(pod)
    if not addresses:
        raise DecodeError(f"pod {name}.{namespace} has no address of its own (status.podIP): it cannot be a proxy")
    labels = pod.metadata.labels
    return {
        "id": f"{proxy_kind(pod)}~{addresses[0]}~{name}.{namespace}~{namespace}.svc.{domain}",
        "cluster": f"{labels.get('app', name)}.{namespace}",
        "metadata": {
            "NAME": name,
            "NAMESPACE": namespace,
            "INSTANCE_IPS": ",".join(addresses),
            "CLUSTER_ID": labels.get(workloads.CLUSTER, "Kubernetes"),
            "ISTIO_VERSION": _VERSION,
            "MESH_ID": domain,
            "SERVICE_ACCOUNT": pod.spec.service_account_name or "default",
            "LABELS": dict(labels),
            "PROXY_CONFIG": {},
            "INTERCEPTION_MODE": pod.metadata.annotations.get(_INTERCEPTION, "REDIRECT"),
            "WORKLOAD_NAME": workloads.owner_name(pod),
            **dict(_optional(pod, labels)),
        },
        "userAgentName": "envoy",
    }


def proxy_kind(pod: Pod) -> str:
    """Sidecar, router or waypoint: by the proxy's own arguments, else a pod of nothing but a proxy is a gateway."""
    proxies = [c for c in (*pod.spec.containers, *pod.spec.init_containers) if c.name == PROXY_CONTAINER]
    for container in proxies:
        stated = next((arg for arg in container.args if arg in _KINDS), None)
        if stated:
            return stated
    if "gateway" in pod.metadata.annotations.get(_TEMPLATES, "").split(","):
        return "router"
    alone = bool(proxies) and all(c.name == PROXY_CONTAINER for c in pod.spec.containers)
    return "router" if alone else "sidecar"


def _optional(pod: Pod, labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Metadata that the agent sends only where it is known."""
    if pod.spec.node_name:
        yield "NODE_NAME", pod.spec.node_name
    if network := labels.get(workloads.NETWORK):
        yield "NETWORK", network
