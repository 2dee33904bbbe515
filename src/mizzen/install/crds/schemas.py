"""A Struct as the structural OpenAPI schema of a CRD.

In: the Struct of a kind's spec. Out: plain data. Types, enums and integers' ranges are those that decoding holds
values to; lengths, patterns and required fields are those of validation; the rest stands in `terms`. A scalar that may
be absent as well as zero is nullable, as protobuf's wrappers are.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, get_args, get_origin

from msgspec import Meta
from msgspec.structs import FieldInfo
from msgspec.structs import fields as struct_fields

from mizzen.api.message import FreeForm, Message
from mizzen.api.scalars import Duration, Int32
from mizzen.api.shape import Field, shape_of
from mizzen.api.validate.crd.bounds import BOUNDS, REQUIRED, Schema, cel, merge
from mizzen.api.validate.crd.rules import ONE_OF
from mizzen.api.validate.crd.schema import UNRULED_DURATIONS
from mizzen.install.crds.descriptions import description_of, field_descriptions
from mizzen.install.crds.terms import Terms, terms_of

ANYTHING = "x-kubernetes-preserve-unknown-fields"

_LEAVES: Mapping[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number", "format": "double"},
    bytes: {"type": "string", "format": "byte"},
    datetime: {"type": "string", "format": "date-time"},
    Duration: {"type": "string"},
    FreeForm: {"type": "object", ANYTHING: True},
}
_RULED_DURATION = cel("duration(self) >= duration('1ms')", "must be a valid duration greater than 1ms")


def schema_of(cls: type[Message], place: tuple[type[Message], str] | None = None) -> dict[str, Any]:
    """The schema of a Struct that stands in a field of another, its `place`."""
    shape, terms = shape_of(cls), terms_of(cls, place)
    texts = field_descriptions(cls)
    properties: dict[str, Any] = {}
    wires: dict[str, str] = {}
    for info in struct_fields(cls):
        wires[info.name] = info.encode_name
        schema = _field_schema(cls, info, shape.fields[info.encode_name], terms)
        text = texts.get(info.name)
        properties[info.encode_name] = {"description": text, **schema} if text else schema
    for name in (name for one in terms for name in one.also_as):
        properties[name] = merge(properties[wires[name]])
    whole: dict[str, Any] = {"type": "object", "description": description_of(cls), "properties": properties}
    required = dict.fromkeys((*REQUIRED.get(cls, ()), *(name for one in terms for name in one.required)))
    if required:
        whole["required"] = [wires[name] for name in required]
    choices = [_choice([wires[name] for name in group]) for group in _choices(cls, terms)]
    if choices:
        whole |= choices[0] if len(choices) == 1 else {"allOf": choices}
    return merge(whole, *(one.rules for one in terms))


def _choices(cls: type[Message], terms: tuple[Terms, ...]) -> Iterator[tuple[str, ...]]:
    yield from ONE_OF.get(cls, ())
    for one in terms:
        yield from one.one_of


def _choice(names: list[str]) -> dict[str, Any]:
    """That none or one of these fields is there."""
    each = [{"required": [name]} for name in names]
    return {"oneOf": [{"not": {"anyOf": each}}, *each]}


def _field_schema(cls: type[Message], info: FieldInfo, field: Field, terms: tuple[Terms, ...]) -> dict[str, Any]:
    if field.shape is not None:
        value = schema_of(field.shape.cls, (cls, info.name))
    else:
        value = _leaf_schema(field.leaf)
        if field.container == "one" and _is_wrapper(cls, info, field, terms):
            value["nullable"] = True
        if field.leaf is Duration and (cls, info.name) not in UNRULED_DURATIONS:
            value = merge(value, _RULED_DURATION)
    whole: dict[str, Any] = value
    if field.container == "list":
        whole = {"type": "array", "items": value}
    elif field.container == "map":
        whole = {"type": "object", "additionalProperties": value}
    bounds = BOUNDS.get(cls, {}).get(info.name, ())
    asked = [bound.schema for bound in bounds]
    return merge(whole, *asked, *(one.fields.get(info.name, {}) for one in terms))


def _leaf_schema(leaf: Any) -> dict[str, Any]:
    origin = get_origin(leaf)
    if origin is Literal:
        return {"type": "string", "enum": list(get_args(leaf))}
    if origin is not Annotated:
        return dict(_LEAVES[leaf])
    base, meta = get_args(leaf)
    if leaf == Int32:
        return {**_LEAVES[base], "format": "int32"}
    return {**_LEAVES[base], **_range_of(meta)}


def _range_of(meta: Meta) -> dict[str, Any]:
    limits = {"minimum": meta.ge, "maximum": meta.le}
    return {name: limit for name, limit in limits.items() if limit is not None}


def _is_wrapper(cls: type[Message], info: FieldInfo, field: Field, terms: tuple[Terms, ...]) -> bool:
    """Whether None is more than a field that is not the one of several that is set."""
    if info.default is not None or field.leaf in (Duration, FreeForm):
        return False
    return not any(info.name in group for group in _choices(cls, terms))
