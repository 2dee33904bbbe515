"""Messages as protobuf JSON for people: the same text in every process, and no private keys.

In: protobuf messages. Out: plain JSON values: camelCase names, `@type` first in every Any, map keys sorted, whole
floats as integers as Go and C++ write them, and `[redacted]` for keys, passwords and logins, by field and not by
guess. An Any whose type nobody here knows prints as its type URL and base64 value; what surrounds it is not touched.
How a field prints is decided once: a mesh's dump holds a hundred thousand messages.
"""

import base64
import math
from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from mizzen import protos
from mizzen.errors import DecodeError

REDACTED = "[redacted]"

Printer = Callable[[Any], Any]

_TLS = "envoy.extensions.transport_sockets.tls.v3"
PRIVATE_FIELDS = frozenset(
    {
        f"{_TLS}.TlsCertificate.private_key",
        f"{_TLS}.TlsCertificate.password",
        f"{_TLS}.TlsCertificate.pkcs12",
        f"{_TLS}.TlsSessionTicketKeys.keys",
        f"{_TLS}.GenericSecret.secret",
        f"{_TLS}.GenericSecret.secrets",
    }
)
"""Fields that hold a secret in DataSources."""
_REDACTED_SOURCE = {"inlineString": REDACTED}
VARIABLES = "envoy.extensions.wasm.v3.EnvironmentVariables.key_values"
"""Variables of a Wasm module's machine, one of which its agent is told a secret in."""
_LOGINS = "ISTIO_META_WASM_IMAGE_PULL_SECRET"
"""The variable in which the agent is told the logins of a Wasm module's registry."""

_KNOWN = "google.protobuf."
_WRAPPERS = frozenset(
    f"{_KNOWN}{kind}Value"
    for kind in ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
)
_OWN_TEXT = frozenset(f"{_KNOWN}{kind}" for kind in ("Duration", "Timestamp", "FieldMask"))
_FLOATS = (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)
_LONGS = (
    FieldDescriptor.TYPE_INT64,
    FieldDescriptor.TYPE_UINT64,
    FieldDescriptor.TYPE_SINT64,
    FieldDescriptor.TYPE_FIXED64,
    FieldDescriptor.TYPE_SFIXED64,
)

_fields: dict[FieldDescriptor, tuple[str, Printer]] = {}
_messages: dict[str, Printer] = {}


def print_any(packed: Any) -> dict[str, Any]:
    """The message in an Any, with its `@type`; an Any that holds nothing is an empty object."""
    if not packed.type_url:
        return {}
    try:
        message = protos.unpack(packed)
    except DecodeError:
        return {"@type": packed.type_url, "value": base64.b64encode(packed.value).decode()}
    printed = print_message(message)
    if isinstance(printed, dict) and not message.DESCRIPTOR.full_name.startswith(_KNOWN):
        return {"@type": packed.type_url, **printed}
    return {"@type": packed.type_url, "value": printed}


def print_message(message: Message) -> Any:
    """The message: an object, or what JSON has for Google's own types."""
    return _message_printer(message.DESCRIPTOR.full_name)(message)


def _message_printer(full_name: str) -> Printer:
    found = _messages.get(full_name)
    if found is None:
        found = _messages[full_name] = _choose_message_printer(full_name)
    return found


def _choose_message_printer(full_name: str) -> Printer:
    special: dict[str, Printer] = {
        f"{_KNOWN}Any": print_any,
        f"{_KNOWN}Struct": lambda struct: _map(struct.fields, _value),
        f"{_KNOWN}ListValue": lambda values: [_value(item) for item in values.values],
        f"{_KNOWN}Value": _value,
    }
    if full_name in special:
        return special[full_name]
    if full_name in _OWN_TEXT:
        return lambda message: message.ToJsonString()
    if full_name in _WRAPPERS:
        field = protos.message_class(full_name).DESCRIPTOR.fields_by_name["value"]
        print_scalar = _scalar_printer(field)
        return lambda message: print_scalar(message.value)
    return _print_fields


def _print_fields(message: Any) -> dict[str, Any]:
    result = {}
    for field, value in message.ListFields():
        known = _fields.get(field)
        if known is None:
            known = _fields[field] = (field.json_name, _field_printer(field))
        name, print_field = known
        result[name] = print_field(value)
    return result


def _field_printer(field: FieldDescriptor) -> Printer:
    repeated = field.is_repeated
    if field.full_name in PRIVATE_FIELDS:
        return lambda _: [_REDACTED_SOURCE] if repeated else _REDACTED_SOURCE
    if field.full_name == VARIABLES:
        return lambda items: {name: show_variable(name, items[name]) for name in sorted(items)}
    kind = field.message_type
    if kind is None:
        print_item = _scalar_printer(field)
    elif kind.GetOptions().map_entry:
        print_value = _field_printer(kind.fields_by_name["value"])
        return lambda items: _map(items, print_value)
    else:
        print_item = _message_printer(kind.full_name)
    if repeated:
        return lambda items: [print_item(item) for item in items]
    return print_item


def show_variable(name: str, value: str) -> str:
    """The value of one of `VARIABLES`, or what is shown in its place."""
    return REDACTED if name == _LOGINS and value else value


def _scalar_printer(field: FieldDescriptor) -> Printer:
    if field.type in _FLOATS:
        return _single if field.type == FieldDescriptor.TYPE_FLOAT else _float
    if field.type in _LONGS:
        return str
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda value: base64.b64encode(value).decode()
    if field.enum_type is not None:
        names = {value.number: value.name for value in field.enum_type.values}
        return lambda number: names.get(number, number)
    return lambda value: value


def _float(value: float) -> Any:
    if math.isfinite(value):
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _single(value: float) -> Any:
    """The shortest number that is this one in 32 bits: 0.1 and not 0.10000000149011612."""
    if not math.isfinite(value):
        return _float(value)
    for digits in (6, 7, 8):
        short = float(f"{value:.{digits}g}")
        if abs(short - value) <= abs(value) * 2**-25:
            return _float(short)
    return _float(value)


def _map(items: Any, print_value: Printer) -> dict[str, Any]:
    spelled = {_key(key): value for key, value in items.items()}
    return {key: print_value(spelled[key]) for key in sorted(spelled)}


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _value(value: Any) -> Any:
    """A google.protobuf.Value."""
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _map(value.struct_value.fields, _value)
    if kind == "list_value":
        return [_value(item) for item in value.list_value.values]
    if kind == "number_value":
        return _float(value.number_value)
    return None if kind in (None, "null_value") else getattr(value, kind)
