"""Takes an earlier injection out of a pod, so that injecting again starts from what the user wrote.

In: a pod that may carry `sidecar.istio.io/status`. Out: the pod without the containers, volumes and pull secrets that
the status lists, with the user's own proxy container, probes and Prometheus annotations put back. Labels and
annotations that injection sets stay: it sets them to the same values again.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from mizzen.inject.environment import APP_PROBERS, PROMETHEUS
from mizzen.inject.probes import restore_probes
from mizzen.inject.prometheus import restore_annotations
from mizzen.inject.workload import PROXY, Manifest, items, mapping, texts

STATUS = "sidecar.istio.io/status"
OVERRIDES = "proxy.istio.io/overrides"

_LISTS = ("initContainers", "containers", "volumes", "imagePullSecrets")


def is_injected(pod: Manifest) -> bool:
    """Whether the pod says that it has been injected."""
    return STATUS in texts(mapping(pod, "metadata"), "annotations")


def strip_injection(pod: Manifest) -> dict[str, Any]:
    """The pod as before its last injection; one that never was comes back as it is."""
    if not is_injected(pod):
        return dict(pod)
    metadata, spec = mapping(pod, "metadata"), mapping(pod, "spec")
    annotations = texts(metadata, "annotations")
    status, overrides = _decode(annotations.pop(STATUS)), _decode(annotations.pop(OVERRIDES, "{}"))
    variables = _proxy_variables(spec)
    annotations = restore_annotations(annotations, _decode(variables.get(PROMETHEUS, "{}")))
    probers = _decode(variables.get(APP_PROBERS, "{}"))
    stripped = dict(spec)
    for field in _LISTS:
        kept = _without_named(spec, field, status.get(field))
        if field in ("initContainers", "containers"):
            kept = [restore_probes(container, probers) for container in kept]
            kept += items(overrides, field)
        if kept or field == "containers":
            stripped[field] = kept
        else:
            stripped.pop(field, None)
    return {**pod, "metadata": {**metadata, "annotations": annotations}, "spec": stripped}


def _without_named(spec: Manifest, field: str, names: Any) -> list[Any]:
    injected = set(names) if isinstance(names, list) else set()
    return [item for item in items(spec, field) if item.get("name") not in injected]


def _proxy_variables(spec: Manifest) -> dict[str, str]:
    proxies = [c for field in ("containers", "initContainers") for c in items(spec, field) if c.get("name") == PROXY]
    return {
        str(variable.get("name")): str(variable.get("value", ""))
        for proxy in proxies
        for variable in items(proxy, "env")
    }


def _decode(text: str) -> Mapping[str, Any]:
    """JSON that an injector wrote; what somebody spoilt by hand counts as nothing."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}
