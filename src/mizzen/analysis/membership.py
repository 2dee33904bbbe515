"""Membership: which pods have a sidecar or will get one, which are in ambient mode, what belongs to the control plane.

In: pods, templates that stand for pods, and Namespaces. Out: yes or no, by the reference's rules, which look at
labels and containers only.
"""

from collections.abc import Mapping
from typing import Any

from mizzen.analysis import objects
from mizzen.api.kube.pods import PodSpec
from mizzen.api.meta import Key, ObjectMeta
from mizzen.incremental import Engine, query

PROXY = "istio-proxy"
INJECT = "sidecar.istio.io/inject"
INJECTION = "istio-injection"
REVISION = "istio.io/rev"
DATAPLANE_MODE = "istio.io/dataplane-mode"
SYSTEM_NAMESPACES = frozenset({"kube-node-lease", "kube-public", "kube-system", "local-path-storage"})
"""Namespaces of Kubernetes itself."""
_REDIRECTION = "ambient.istio.io/redirection"


def namespace_labels(db: Engine, namespace: str) -> Mapping[str, str] | None:
    """The labels of a namespace, or None where it is not among the objects."""
    found: Any = db.input(Key("Namespace", "", namespace))
    return found.metadata.labels if found is not None else None


def has_proxy(spec: PodSpec) -> bool:
    """Whether a pod runs the sidecar."""
    return any(c.name == PROXY for c in (*spec.containers, *spec.init_containers))


def is_meshed(db: Engine, namespace: str, meta: ObjectMeta, spec: PodSpec) -> bool:
    """Whether a pod is in the mesh, or will be once it is injected."""
    if any(c.name == PROXY and c.image for c in (*spec.containers, *spec.init_containers)):
        return True
    asked = meta.labels.get(INJECT, meta.annotations.get(INJECT))
    if asked is not None:
        return asked == "true"
    labels = namespace_labels(db, namespace)
    return labels is not None and labels.get(INJECTION) == "enabled"


@query
def pod_is_meshed(db: Engine, key: Key) -> bool:
    """The same of a pod by its key."""
    pod = objects.pod(db, key)
    return pod is not None and is_meshed(db, key.namespace, pod.metadata, pod.spec)


@query
def pod_is_ambient(db: Engine, key: Key) -> bool:
    """Whether a pod's traffic goes to the node's proxy."""
    pod = objects.pod(db, key)
    return pod is not None and pod.metadata.annotations.get(_REDIRECTION) == "enabled"


def is_ambient(labels: Mapping[str, str]) -> bool:
    """Whether a namespace of these labels is in ambient mode."""
    return labels.get(DATAPLANE_MODE) == "ambient" and labels.get(INJECTION) != "enabled" and not labels.get(REVISION)


@query
def namespace_is_ambient(db: Engine, namespace: str) -> bool:
    """The same by name."""
    return is_ambient(namespace_labels(db, namespace) or {})


def is_control_plane(meta: ObjectMeta) -> bool:
    """Whether an object is a part of Istio itself."""
    return "istio" in meta.labels or meta.labels.get("release") == "istio"
