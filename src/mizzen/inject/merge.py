"""The user's own container of a name that injection uses, laid over the injected one.

Follows Kubernetes' strategic merge for the fields of a container: lists of named things merge by their key, commands
are replaced whole, objects merge field by field. The user's fields win; the image `auto` (or none) means the injected
image.
"""

from collections.abc import Mapping
from typing import Any

from mizzen.inject.workload import Manifest

_LIST_KEYS: Mapping[str, tuple[str, ...]] = {
    "env": ("name",),
    "ports": ("containerPort", "protocol"),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
}
_PROBES = frozenset({"readinessProbe", "livenessProbe", "startupProbe"})
_HANDLERS = frozenset({"exec", "httpGet", "tcpSocket", "grpc"})

AUTO = "auto"


def merge_container(injected: Manifest, wanted: Manifest) -> dict[str, Any]:
    """`wanted` over `injected`."""
    wanted = without_auto_image(wanted)
    merged = dict(injected)
    for field, value in wanted.items():
        merged[field] = _merge_field(field, merged.get(field), value)
    return merged


def without_auto_image(container: Manifest) -> dict[str, Any]:
    """The container without an image that only stands for the injected one."""
    return {field: value for field, value in container.items() if field != "image" or value not in (AUTO, "", None)}


def merge_named(first: list[Any], second: list[Any], keys: tuple[str, ...] = ("name",)) -> list[Any]:
    """`first` with each item of `second` laid over the one of the same key, or after all of them."""
    merged = list(first)
    places = {_identity(item, keys): at for at, item in enumerate(merged)}
    for item in second:
        at = places.get(_identity(item, keys))
        if at is None:
            merged.append(item)
        elif keys == ("name",):
            merged[at] = item
        else:
            merged[at] = {**merged[at], **item}
    return merged


def _merge_field(field: str, injected: Any, value: Any) -> Any:
    if field in _LIST_KEYS and isinstance(injected, list) and isinstance(value, list):
        return merge_named(injected, value, _LIST_KEYS[field])
    if isinstance(injected, Mapping) and isinstance(value, Mapping):
        if field in _PROBES and _HANDLERS & set(value):
            injected = {name: part for name, part in injected.items() if name not in _HANDLERS}
        return _merge_objects(injected, value)
    return value


def _merge_objects(injected: Manifest, value: Manifest) -> dict[str, Any]:
    merged = dict(injected)
    for field, part in value.items():
        earlier = merged.get(field)
        if isinstance(earlier, Mapping) and isinstance(part, Mapping):
            merged[field] = _merge_objects(earlier, part)
        else:
            merged[field] = part
    return merged


def _identity(item: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    if not isinstance(item, Mapping):
        return (id(item),)
    defaults = {"protocol": "TCP"}
    return tuple(item.get(key, defaults.get(key)) for key in keys)
