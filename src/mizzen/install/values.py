"""The values of an installation: the defaults of `data/values.yaml`, and what a user lays over them.

In: maps, as read from files of values or an IstioOperator, and `--set` assignments. Out: `Values`: everything that the
manifests are made from, with a warning for each value that nothing reads. The file of defaults is the Helm chart's own;
maps merge, anything else replaces, and null takes a default away, as Helm does it.
"""

import difflib
import functools
import importlib.resources
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from mizzen.api.mesh.merge import merge_mesh_config
from mizzen.errors import DecodeError
from mizzen.install.identity import Identity

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_GATEWAYS, _GATEWAY_DEFAULTS = "gateways", "gatewayDefaults"
_OPEN = (
    "dashboards.labels",
    "global.proxy.resources",
    "meshConfig",
    "pilot.pdb",
    "pilot.resources",
    "pilot.seccompProfile",
)
"""Maps with defaults to which any other key may be added; what they hold is judged by whoever reads it."""
_OPEN_OF_GATEWAYS = ("resources", "podDisruptionBudget")
_MESH_CONFIG = "meshConfig"

Tree = Mapping[str, Any]


class Values(msgspec.Struct, frozen=True):
    """What manifests are made from."""

    tree: Tree
    warnings: tuple[str, ...] = ()

    def get(self, path: str) -> Any:
        """The value at a dotted path; None where it was taken away."""
        return look_up(self.tree, path)

    def text(self, path: str) -> str:
        """A value as templates print it."""
        return as_text(self.get(path))

    @property
    def identity(self) -> Identity:
        """Whose values these are."""
        return Identity(namespace=self.text("global.istioNamespace"), revision=self.text("revision"))

    @property
    def gateways(self) -> dict[str, Tree]:
        """Those that are enabled, by name, each over the defaults of gateways."""
        defaults = self.get(_GATEWAY_DEFAULTS) or {}
        laid = {name: merge(defaults, own or {}) for name, own in (self.get(_GATEWAYS) or {}).items()}
        return {name: laid[name] for name in sorted(laid) if laid[name].get("enabled")}


@functools.cache
def default_values() -> Tree:
    """The file of defaults."""
    data = importlib.resources.files("mizzen.install").joinpath("data/values.yaml").read_bytes()
    found: Tree = msgspec.yaml.decode(data)
    return found


def lay_over(layers: Iterable[Tree]) -> Values:
    """The defaults under all layers, a later one on top. Raises DecodeError for a value that cannot be meant."""
    tree = default_values()
    warnings: list[str] = []
    for layer in layers:
        warnings += unread(layer)
        tree = merge(tree, layer)
    warnings += _check_mesh_config(tree.get(_MESH_CONFIG))
    values = Values(tree, tuple(dict.fromkeys(warnings)))
    _check(values)
    return values


def merge(lower: Tree, upper: Tree) -> dict[str, Any]:
    """`upper` over `lower`: maps merge, anything else replaces; null removes, and stays for what may lie deeper yet."""
    merged = dict(lower)
    for key, value in upper.items():
        below = merged.get(key)
        if value is None and key in merged:
            del merged[key]
        elif isinstance(value, Mapping):
            merged[key] = merge(below if isinstance(below, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged


def look_up(tree: Tree, path: str) -> Any:
    """What stands at a dotted path, or None."""
    found: Any = tree
    for step in path.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def as_text(value: Any) -> str:
    """A value as Go's templates print it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


# -- values that nothing reads ----------------------------------------------------------------------------------------


def unread(layer: Tree) -> Iterator[str]:
    """A warning for each value that has no effect, with the nearest one that has."""
    known = default_values()
    for path in _unknown(layer, known, ""):
        near = difflib.get_close_matches(path, _paths(known), n=1, cutoff=0.75)
        hint = f"; did you mean {near[0]}?" if near else ""
        yield f"unknown value {path} has no effect{hint}"


def _unknown(layer: Tree, known: Tree, at: str) -> Iterator[str]:
    for key, value in layer.items():
        path = f"{at}{key}"
        if path == _GATEWAYS and isinstance(value, Mapping):
            yield from _unknown_of_gateways(value, known[_GATEWAY_DEFAULTS])
        elif key not in known:
            yield path
        elif isinstance(value, Mapping) and isinstance(known[key], Mapping) and known[key] and path not in _OPEN:
            yield from _unknown(value, known[key], f"{path}.")


def _unknown_of_gateways(gateways: Tree, defaults: Tree) -> Iterator[str]:
    for name, own in gateways.items():
        for path in _unknown(own if isinstance(own, Mapping) else {}, defaults, ""):
            if not path.startswith(tuple(f"{each}." for each in _OPEN_OF_GATEWAYS)):
                yield f"{_GATEWAYS}.{name}.{path}"


def _paths(tree: Tree, at: str = "") -> list[str]:
    """The dotted paths of all values."""
    found: list[str] = []
    for key, value in tree.items():
        found.append(f"{at}{key}")
        if isinstance(value, Mapping):
            found += _paths(value, f"{at}{key}.")
    return found


def _check_mesh_config(written: Any) -> list[str]:
    """A warning for each field that it does not have. Raises DecodeError for a value that cannot be meant."""
    _, problems = merge_mesh_config(written)
    for problem in problems:
        if problem.level == "error":
            raise DecodeError(problem.message, f"values.{_MESH_CONFIG}.{problem.path}".rstrip("."))
    return [f"values.{_MESH_CONFIG}.{problem}" for problem in problems]


# -- values that cannot be meant --------------------------------------------------------------------------------------


def _check(values: Values) -> None:
    known = default_values()
    gateways = values.get(_GATEWAYS) or {}
    places: list[tuple[str, Any, Any, tuple[str, ...]]] = [("", values.tree, known, _OPEN)]
    places += [
        (f"{_GATEWAYS}.{each}", gateways[each], known[_GATEWAY_DEFAULTS], _OPEN_OF_GATEWAYS) for each in gateways
    ]
    for place, tree, defaults, is_open in places:
        for path, found, meant in _mismatched(tree, defaults, "", is_open):
            where = ".".join(part for part in ("values", place, path) if part)
            raise DecodeError(f"expected {meant}, got {_print(found)}", where)
    names = [("revision", values.text("revision"))] if values.text("revision") else []
    names += [("global.istioNamespace", values.text("global.istioNamespace"))]
    names += [(f"revisionTags[{at}]", str(tag)) for at, tag in enumerate(values.get("revisionTags") or ())]
    names += [(f"{_GATEWAYS}.{name}", name) for name in values.gateways]
    for path, name in names:
        if not _NAME.fullmatch(name):
            raise DecodeError(f"{name!r} is no name of lower-case letters, digits and dashes", f"values.{path}")


def _mismatched(value: Any, default: Any, at: str, is_open: tuple[str, ...]) -> Iterator[tuple[str, Any, str]]:
    """Where a value is of another type than the default, and what was meant; null is of every type."""
    if value is None:
        return
    takes, meant = _type_of(default)
    if not takes(value):
        yield at, value, meant
    elif isinstance(value, Mapping) and at not in is_open:
        for key in default:
            yield from _mismatched(value.get(key), default[key], f"{at}.{key}".lstrip("."), is_open)


def _type_of(default: Any) -> tuple[Callable[[Any], bool], str]:
    """What may stand for a default, and in words; a text may be written as a number or a word of YAML."""
    if isinstance(default, Mapping):
        return lambda value: isinstance(value, Mapping), "a map"
    if isinstance(default, list):
        return lambda value: isinstance(value, list | tuple), "a list"
    if isinstance(default, bool):
        return lambda value: isinstance(value, bool), "true or false"
    if isinstance(default, int | float):
        types, meant = (int, "a whole number") if isinstance(default, int) else (int | float, "a number")
        return lambda value: isinstance(value, types) and not isinstance(value, bool), meant
    return lambda value: not isinstance(value, Mapping | list | tuple), "a single value"


def _print(value: Any) -> str:
    if isinstance(value, Mapping | list | tuple):
        return "a map" if isinstance(value, Mapping) else "a list"
    return repr(value) if isinstance(value, str) else as_text(value)
