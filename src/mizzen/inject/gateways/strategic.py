"""Strategic merge: a patch laid over a manifest as `kubectl patch` does.

Objects merge field by field and null takes a field away. Lists of named things merge by the key that Kubernetes gives
them, others are replaced whole. A patch directs with `$patch: delete` and `$patch: replace`, in an object or in an item
of a list.
"""

from collections.abc import Mapping
from typing import Any

Manifest = Mapping[str, Any]

_DIRECTIVE = "$patch"
_LIST_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "imagePullSecrets": "name",
    "secrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
    "ownerReferences": "uid",
    "conditions": "type",
}
_PORT_KEYS = ("containerPort", "port")
"""Of the lists called `ports`: a container's, then a Service's."""


def merge(manifest: Manifest, patch: Manifest) -> dict[str, Any]:
    """`patch` over `manifest`; neither is changed."""
    if patch.get(_DIRECTIVE) == "replace":
        return _plain(patch)
    merged = dict(manifest)
    for field, value in patch.items():
        if field.startswith("$"):
            continue
        if value is None or (isinstance(value, Mapping) and value.get(_DIRECTIVE) == "delete"):
            merged.pop(field, None)
        else:
            merged[field] = _merge_field(field, merged.get(field), value)
    return merged


def _merge_field(field: str, earlier: Any, value: Any) -> Any:
    if isinstance(value, Mapping):
        return merge(earlier if isinstance(earlier, Mapping) else {}, value)
    key = _list_key(field, value) if isinstance(value, list) else None
    if key is None:
        return value
    return _merge_list(earlier if isinstance(earlier, list) else [], value, key)


def _list_key(field: str, value: list[Any]) -> str | None:
    """The key by which a list merges; None where it is replaced."""
    if not all(isinstance(item, Mapping) for item in value):
        return None
    if field != "ports":
        return _LIST_KEYS.get(field)
    return next((key for key in _PORT_KEYS if any(key in item for item in value)), None)


def _merge_list(earlier: list[Any], patch: list[Manifest], key: str) -> list[Any]:
    merged = [] if any(item.get(_DIRECTIVE) == "replace" and len(item) == 1 for item in patch) else list(earlier)
    for item in patch:
        directive = item.get(_DIRECTIVE)
        at = _place(merged, key, item.get(key))
        if directive == "delete":
            merged = merged if at is None else merged[:at] + merged[at + 1 :]
        elif directive == "replace" and len(item) == 1:
            continue
        elif at is None:
            merged.append(merge({}, item))
        else:
            merged[at] = merge(merged[at], item)
    return merged


def _place(items: list[Any], key: str, value: Any) -> int | None:
    return next((i for i, own in enumerate(items) if isinstance(own, Mapping) and own.get(key) == value), None)


def _plain(patch: Manifest) -> dict[str, Any]:
    return {field: value for field, value in patch.items() if field != _DIRECTIVE}
