"""Application probes that go through the agent, since the kubelet speaks no mutual TLS.

In: containers as the user wrote them. Out: containers whose HTTP, TCP and gRPC probes ask the agent's status port, and
the original probes by path, which travel to the agent in `ISTIO_KUBE_APP_PROBERS`. `restore_probes` is the inverse.
Commands (`exec`) run inside the container and stay.
"""

from collections.abc import Mapping
from typing import Any

from mizzen.inject.workload import Manifest, items, mapping

Probers = dict[str, Any]

_PROBES = {"readinessProbe": "readyz", "livenessProbe": "livez", "startupProbe": "startupz"}
_HOOKS = {"preStop": "prestopz", "postStart": "poststartz"}
_KINDS = ("httpGet", "tcpSocket", "grpc")


def rewrite_probes(container: Manifest, *, status_port: int) -> tuple[dict[str, Any], Probers]:
    """The container with its probes redirected, and what they were."""
    changed, probers = dict(container), Probers()
    for field, suffix in _PROBES.items():
        probe = mapping(container, field)
        path = f"/app-health/{container.get('name', '')}/{suffix}"
        original = _original(probe, container, _KINDS)
        if original is not None and not _redirected(probe, path):
            timeout = {"timeoutSeconds": probe["timeoutSeconds"]} if "timeoutSeconds" in probe else {}
            probers[path] = {**original, **timeout}
            changed[field] = {**_without_handler(probe), "httpGet": {"path": path, "port": status_port}}
    hooks, hook_probers = _rewrite_hooks(container, status_port)
    if hook_probers:
        changed["lifecycle"] = hooks
    return changed, probers | hook_probers


def restore_probes(container: Manifest, probers: Mapping[str, Any]) -> dict[str, Any]:
    """The container with every redirected probe as it was; named ports come back as numbers."""
    restored = dict(container)
    for field in _PROBES:
        probe = mapping(container, field)
        original = probers.get(_path(probe))
        if isinstance(original, Mapping):
            restored[field] = {**_without_handler(probe), **original}
    lifecycle = dict(mapping(container, "lifecycle"))
    for hook in _HOOKS:
        original = probers.get(_path(mapping(lifecycle, hook)))
        if isinstance(original, Mapping):
            lifecycle[hook] = dict(original)
            restored["lifecycle"] = lifecycle
    return restored


def _rewrite_hooks(container: Manifest, status_port: int) -> tuple[dict[str, Any], Probers]:
    lifecycle, probers = dict(mapping(container, "lifecycle")), Probers()
    for hook, suffix in _HOOKS.items():
        handler = mapping(lifecycle, hook)
        path = f"/app-lifecycle/{container.get('name', '')}/{suffix}"
        original = _original(handler, container, ("httpGet", "tcpSocket"))
        if original is not None and not _redirected(handler, path):
            probers[path] = original
            lifecycle[hook] = {"httpGet": {"path": path, "port": status_port}}
    return lifecycle, probers


def _original(probe: Manifest, container: Manifest, kinds: tuple[str, ...]) -> dict[str, Any] | None:
    """The probe's handler with its port as a number; None if the agent cannot ask it."""
    kind = next((kind for kind in kinds if isinstance(probe.get(kind), Mapping)), None)
    if kind is None:
        return None
    handler = dict(probe[kind])
    port = _number(handler.get("port"), container)
    return None if port is None else {kind: {**handler, "port": port}}


def _number(port: Any, container: Manifest) -> int | None:
    if isinstance(port, int):
        return port
    named = (entry.get("containerPort") for entry in items(container, "ports") if entry.get("name") == port)
    found = next(named, None)
    if found is None and isinstance(port, str) and port.isdecimal():
        return int(port)
    return found if isinstance(found, int) else None


def _redirected(probe: Manifest, path: str) -> bool:
    return _path(probe) == path


def _path(probe: Manifest) -> str:
    return str(mapping(probe, "httpGet").get("path", ""))


def _without_handler(probe: Manifest) -> dict[str, Any]:
    return {field: value for field, value in probe.items() if field not in _KINDS}
