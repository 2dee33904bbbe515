"""One spelling for dumps: Envoy writes protobuf's own field names, control planes write JSON names.

In: a message as JSON in either spelling. Out: the same in camelCase, field by field as its descriptor says, so that map
keys, metadata and Istio's JSON-only messages stay as they are. A message or field that no descriptor knows stays too.
"""

from collections.abc import Mapping
from typing import Any

from mizzen import protos
from mizzen.diagnose.dump import Json
from mizzen.errors import DecodeError

_AS_THEY_ARE = frozenset(
    f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue", "Duration", "Timestamp", "FieldMask")
)
"""Types whose JSON form is not their fields."""


def respell(packed: Json) -> dict[str, Any]:
    """A message that names its type in `@type`."""
    return _any(packed)


def respell_as(full_name: str, message: Json) -> dict[str, Any]:
    """A message whose type the place where it stands tells."""
    return _message(message, protos.message_class(full_name).DESCRIPTOR)


def bare(packed: Json) -> dict[str, Any]:
    """A respelled message without its own `@type`, as it prints where its type is known."""
    return {name: value for name, value in respell(packed).items() if name != "@type"}


def _any(packed: Json) -> dict[str, Any]:
    full_name = str(packed.get("@type", "")).rpartition("/")[2]
    try:
        descriptor = protos.message_class(full_name).DESCRIPTOR
    except DecodeError:
        return dict(packed)
    if full_name in _AS_THEY_ARE:
        return dict(packed)
    return _message(packed, descriptor)


def _message(message: Json, descriptor: Any) -> dict[str, Any]:
    by_json = {field.json_name: field for field in descriptor.fields}
    result: dict[str, Any] = {}
    for name, value in message.items():
        field = descriptor.fields_by_name.get(name) or by_json.get(name)
        if field is None:
            result[name] = value
        else:
            result[field.json_name] = _field(value, field)
    return result


def _field(value: Any, field: Any) -> Any:
    kind = field.message_type
    if kind is None or kind.full_name in _AS_THEY_ARE:
        return value
    if kind.GetOptions().map_entry and isinstance(value, Mapping):
        entry = kind.fields_by_name["value"]
        return {key: _field(item, entry) for key, item in value.items()}
    if isinstance(value, list):
        return [_value(item, kind) for item in value]
    return _value(value, kind)


def _value(value: Any, kind: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return _any(value) if kind.full_name == "google.protobuf.Any" else _message(value, kind)
