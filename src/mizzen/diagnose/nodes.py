"""The xDS Node that a pod's sidecar or gateway would introduce itself with.

In: a Pod. Out: the Node as protobuf JSON, as the agent inside that pod would build it: with what the environment of an
injected proxy states, else with default settings. It is what `compile --proxy` looks from when there is no running
proxy to ask.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from mizzen.api.kube.pods import Container, Pod
from mizzen.errors import DecodeError
from mizzen.model import workloads

PROXY_CONTAINER = "istio-proxy"
_VERSION = "1.32.0"
_KINDS = ("sidecar", "router", "waypoint")
_TEMPLATES = "inject.istio.io/templates"
_METADATA = "ISTIO_META_"
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
            **dict(_stated(pod)),
        },
        "userAgentName": "envoy",
    }


def _proxies(pod: Pod) -> list[Container]:
    return [c for c in (*pod.spec.containers, *pod.spec.init_containers) if c.name == PROXY_CONTAINER]


def has_proxy(pod: Pod) -> bool:
    """Whether one of the pod's containers is a proxy of the mesh."""
    return bool(_proxies(pod))


def proxy_kind(pod: Pod) -> str:
    """Sidecar, router or waypoint: by the proxy's own arguments, else a pod of nothing but a proxy is a gateway."""
    proxies = _proxies(pod)
    for container in proxies:
        stated = next((arg for arg in container.args if arg in _KINDS), None)
        if stated:
            return stated
    if "gateway" in pod.metadata.annotations.get(_TEMPLATES, "").split(","):
        return "router"
    alone = bool(proxies) and all(c.name == PROXY_CONTAINER for c in pod.spec.containers)
    return "router" if alone else "sidecar"


def _stated(pod: Pod) -> Iterator[tuple[str, Any]]:
    """What the environment of an injected proxy says: metadata, and the proxy's own configuration."""
    for container in _proxies(pod):
        for variable in container.env:
            if variable.name.startswith(_METADATA) and variable.value:
                yield variable.name.removeprefix(_METADATA), variable.value
            elif variable.name == "PROXY_CONFIG" and variable.value:
                with contextlib.suppress(ValueError):
                    yield "PROXY_CONFIG", json.loads(variable.value)


def _optional(pod: Pod, labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Metadata that the agent sends only where it is known."""
    if pod.spec.node_name:
        yield "NODE_NAME", pod.spec.node_name
    if network := labels.get(workloads.NETWORK):
        yield "NETWORK", network
