"""Envoy's configuration dump as plain JSON: its sections, and fields by either spelling.

In: the bytes of `/config_dump` (Envoy, snake_case) or of a control plane's dump (camelCase), or a file that holds one.
Out: `Dump`, whose sections the other modules of this package read with `field` and `items`. Unknown types, unknown
fields and entries that lack what they should have (Envoy lists a refused listener without a name) are no errors.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mizzen.errors import DecodeError

Json = Mapping[str, Any]
"""One protobuf message as JSON."""

_PREFIX = "type.googleapis.com/envoy.admin.v3."
_MISSING: Json = {}


class MissingSection(DecodeError):
    """The dump lacks a section that it should have: a masked dump, or the dump of another program."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"config dump has no configuration type {_PREFIX}{kind}ConfigDump")


class Dump(msgspec.Struct, frozen=True):
    """The sections of one configuration dump, in the order in which they came."""

    configs: tuple[Json, ...]

    def section(self, kind: str) -> Json:
        """The section `kind` ("Clusters", "Listeners", …): the last where there are several, as istioctl reads them."""
        found = self.sections(kind)
        if not found:
            raise MissingSection(kind)
        return found[-1]

    def sections(self, kind: str) -> tuple[Json, ...]:
        """All sections of that kind; only ECDS merges them."""
        return tuple(c for c in self.configs if c.get("@type") == f"{_PREFIX}{kind}ConfigDump")


def parse_dump(text: str | bytes) -> Dump:
    """The dump in `{"configs": […]}`; raises DecodeError for anything else."""
    value = parse_json(text)
    configs = value.get("configs", [])
    if not isinstance(configs, list):
        raise DecodeError("error unmarshalling config dump response from Envoy: `configs` is not a list")
    return Dump(tuple(c for c in configs if isinstance(c, dict)))


def parse_json(text: str | bytes) -> Json:
    """A JSON object from Envoy's admin interface."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as bad:
        raise DecodeError(f"error unmarshalling config dump response from Envoy: {bad}") from bad
    if not isinstance(value, dict):
        raise DecodeError("error unmarshalling config dump response from Envoy: not an object")
    return value


@functools.cache
def camel(name: str) -> str:
    """protobuf's JSON spelling of a field name."""
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def field(message: Json, *path: str) -> Any:
    """The value at a path of snake_case field names, in either spelling; None where a step is absent."""
    value: Any = message
    for name in path:
        if type(value) is not dict and not isinstance(value, Mapping):  # What JSON has is told fast: a walk asks often.
            return None
        value = value[name] if name in value else value.get(camel(name))
    return value


def message(parent: Json, *path: str) -> Json:
    """The sub-message at the path; empty where it is absent or something else."""
    value = field(parent, *path)
    return value if type(value) is dict or isinstance(value, Mapping) else _MISSING


def text(parent: Json, *path: str) -> str:
    """The string at the path; empty where it is absent or something else."""
    value = field(parent, *path)
    return value if isinstance(value, str) else ""


def number(parent: Json, *path: str) -> int:
    """The integer at the path; 0 where it is absent. 64-bit numbers are strings in protobuf JSON."""
    value = field(parent, *path)
    if isinstance(value, bool):
        return 0
    if isinstance(value, str):
        return int(value) if value.lstrip("-").isdigit() else 0
    return int(value) if isinstance(value, int | float) else 0


def items(parent: Json, *path: str) -> Iterator[Json]:
    """The sub-messages of a repeated field."""
    value = field(parent, *path)
    return (v for v in value if type(v) is dict or isinstance(v, Mapping)) if isinstance(value, list) else iter(())


def texts(parent: Json, *path: str) -> list[str]:
    """The strings of a repeated field."""
    value = field(parent, *path)
    return [v for v in value if isinstance(v, str)] if isinstance(value, list) else []


def describe_origin(metadata: Json) -> str:
    """`NAME.NAMESPACE` of the object that a resource came from, by Istio's metadata; empty when it does not say."""
    istio = message(metadata, "filter_metadata", "istio")
    path = istio.get("config")
    if not isinstance(path, str):
        return ""
    parts = path.split("/")
    if parts[:3] != ["", "apis", "networking.istio.io"] or parts[4:5] != ["namespaces"]:
        return "<unknown>"
    return f"{parts[7]}.{parts[5]}" if len(parts) == 8 else ""
