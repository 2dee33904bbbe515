"""The pod itself: its ports, whether it runs, and whether it is fit for the mesh.

In: a Pod. Out: lines. A Pod from manifests has no status; then nothing is said of how it fares.
"""

import json
from collections.abc import Iterator

from mizzen.api.kube.pods import Container, ContainerPort, Pod
from mizzen.api.meta import key_of
from mizzen.diagnose.describe.text import REQUIREMENTS, indent, name_in
from mizzen.diagnose.nodes import PROXY_CONTAINER

REVISION = "istio.io/rev"
_STATUS = "sidecar.istio.io/status"
_RESERVED_UID = 1337
_NAME_LABELS = ("app", "app.kubernetes.io/name", "service.istio.io/canonical-name")
_REVISION_LABELS = ("version", "app.kubernetes.io/version", "service.istio.io/canonical-revision")


def is_ready(pod: Pod) -> bool:
    """Whether it takes requests; one that has no status is taken to."""
    if pod.status is None or not pod.status.conditions:
        return runs(pod)
    return runs(pod) and any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)


def runs(pod: Pod) -> bool:
    """Whether its phase is Running, or nobody says."""
    return _phase(pod) in ("", "Running")


def has_proxy(pod: Pod) -> bool:
    """Whether one of its containers is a proxy of the mesh."""
    return any(container.name == PROXY_CONTAINER for container in _containers(pod))


def describe_pod(pod: Pod, *, warn_unmeshed: bool = True) -> Iterator[str]:
    """The pod and what is wrong with it."""
    name = name_in(key_of(pod), pod.metadata.namespace)
    yield f"Pod: {name}"
    if revision := find_revision(pod):
        yield from indent((f"Pod Revision: {revision}",))
    ports = [_describe_port(port, container) for container in _containers(pod) for port in container.ports]
    yield from indent((f"Pod Ports: {', '.join(ports)}" if ports else "Pod does not expose ports",))
    if not runs(pod):
        yield from indent((f"Pod is not Running ({_phase(pod)})",))
        return
    yield from _unready(pod, name)
    if not has_proxy(pod):
        if warn_unmeshed:
            yield f"WARNING: {name} is not part of mesh; no Istio sidecar"
        return
    if _takes_reserved_user(pod):
        yield f"WARNING: User ID (UID) {_RESERVED_UID} is reserved for the sidecar proxy."
    for what, labels in (("name", _NAME_LABELS), ("revision", _REVISION_LABELS)):
        if not any(label in pod.metadata.labels for label in labels):
            yield f"Suggestion: add required service {what} label for Istio telemetry. See {REQUIREMENTS}."


def find_revision(pod: Pod) -> str:
    """The revision of the control plane that injected it, as its annotations say."""
    annotations = pod.metadata.annotations
    if REVISION in annotations:
        return annotations[REVISION]
    try:
        status = json.loads(annotations.get(_STATUS, ""))
    except ValueError:
        return ""
    return str(status.get("revision") or "") if isinstance(status, dict) else ""


def _unready(pod: Pod, name: str) -> Iterator[str]:
    if pod.status is None:
        return
    for status in pod.status.container_statuses:
        if not status.ready:
            yield f"WARNING: Pod {name} Container {status.name} NOT READY"
    for status in pod.status.init_container_statuses:
        if not status.ready:
            yield f"WARNING: Pod {name} Init Container {status.name} NOT READY"


def _containers(pod: Pod) -> tuple[Container, ...]:
    """Those that stay: sidecars among the init containers too."""
    stay = (container for container in pod.spec.init_containers if container.restart_policy == "Always")
    return (*pod.spec.containers, *stay)


def _describe_port(port: ContainerPort, container: Container) -> str:
    transport = "" if port.protocol in ("", "TCP") else f"/{port.protocol}"
    return f"{port.container_port}{transport} ({container.name})"


def _takes_reserved_user(pod: Pod) -> bool:
    whole = pod.spec.security_context
    own = (c.security_context for c in _containers(pod) if c.name != PROXY_CONTAINER)
    users = [context.run_as_user for context in (whole, *own) if context is not None]
    return _RESERVED_UID in users


def _phase(pod: Pod) -> str:
    return pod.status.phase if pod.status is not None else ""
