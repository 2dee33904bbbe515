"""The shape of each Struct, worked out once: its wire names, what nests in what, and the words for what is expected.

Decoding asks it two things: whether plain data holds only names that the Struct knows (`is_plain`, the fast way),
and for each field what may stand there (`Shape.fields`, the careful way). A field is one value, a list or a map of
values, and a value is either another Struct or a leaf that msgspec converts.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import cache, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from msgspec import Meta
from msgspec.structs import fields as struct_fields

from mizzen.api.message import FreeForm, Message, ProtoMessage
from mizzen.api.scalars import Duration, Quantity

Container = Literal["one", "list", "map"]

_WORDS: Mapping[Any, str] = {
    str: "string",
    bool: "bool",
    int: "int",
    float: "number",
    bytes: "base64",
    datetime: "a time such as 2024-01-31T12:00:00Z",
    Duration: Duration.expected,
    Quantity: Quantity.expected,
    FreeForm: "map",
}

# The number of an enum value where it is not the value's place in the list, and protobuf names that no rule gives.
_ENUM_NUMBERS = {"INHERIT": 1000}
_PROTOBUF_NAMES = {"meshMTLS": "mesh_mTLS"}


class Field(NamedTuple):
    """What may stand under one wire name."""

    wire: str
    container: Container
    shape: "Shape | None"
    """The shape of the value, or of each value; None for a leaf."""
    leaf: Any
    """The type of a value, for msgspec."""
    key: Any
    """The type of a map's keys."""
    expected: str
    """A value in words."""
    enum: Mapping[int, str]
    """The names of an enum by their numbers."""


class Shape(NamedTuple):
    """A Struct as the decoder sees it."""

    cls: type[Message]
    fields: Mapping[str, Field]
    aliases: Mapping[str, Field]
    """Fields under protobuf's own names, where those differ from the wire's."""
    known: frozenset[str]
    nested: Mapping[str, tuple[Container, "Shape"]]
    """The fields that hold Structs."""


@cache
def shape_of(cls: type[Message]) -> Shape:
    """The shape of a Struct; shapes are shared and never change."""
    fields: dict[str, Field] = {}
    aliases: dict[str, Field] = {}
    for info in struct_fields(cls):
        field = _build_field(info.encode_name, info.type)
        fields[field.wire] = field
        if issubclass(cls, ProtoMessage):
            aliases[_PROTOBUF_NAMES.get(field.wire, info.name)] = field
    return Shape(
        cls=cls,
        fields=fields,
        aliases={name: field for name, field in aliases.items() if name not in fields},
        known=cls.unread | fields.keys(),
        nested={name: (field.container, field.shape) for name, field in fields.items() if field.shape},
    )


def is_plain(value: Mapping[str, Any], shape: Shape) -> bool:
    """Whether all names in the data, at every depth, are the Struct's own; values of wrong types are skipped."""
    if not value.keys() <= shape.known:
        return False
    for name, (container, nested) in shape.nested.items():
        child = value.get(name)
        if not child:
            continue
        items: Any = ()
        if container == "one":
            items = (child,)
        elif container == "list" and isinstance(child, (list, tuple)):
            items = child
        elif container == "map" and isinstance(child, Mapping):
            items = child.values()
        for item in items:
            if isinstance(item, Mapping) and not is_plain(item, nested):
                return False
    return True


def _build_field(wire: str, annotation: Any) -> Field:
    """The field of an annotation, which is T, T | None, tuple[T, ...] or Mapping[K, T]."""
    container: Container = "one"
    key: Any = str
    leaf = _without_none(annotation)
    origin = get_origin(leaf)
    if origin is tuple:
        container, leaf = "list", get_args(leaf)[0]
    elif origin is Mapping:
        container, (key, leaf) = "map", get_args(leaf)
    nested = shape_of(leaf) if isinstance(leaf, type) and issubclass(leaf, Message) else None
    names = [name for name in get_args(leaf) if isinstance(name, str)] if get_origin(leaf) is Literal else []
    return Field(
        wire=wire,
        container=container,
        shape=nested,
        leaf=leaf,
        key=key,
        expected="map" if nested else in_words(leaf),
        enum={_ENUM_NUMBERS.get(name, number): name for number, name in enumerate(names)},
    )


def _without_none(annotation: Any) -> Any:
    """T of T | None; other unions stay."""
    if get_origin(annotation) not in (UnionType, Union):
        return annotation
    members = [member for member in get_args(annotation) if member is not type(None)]
    return reduce(or_, members)


def in_words(leaf: Any) -> str:
    """What a leaf's type admits."""
    origin = get_origin(leaf)
    if origin is Literal:
        return "one of " + ", ".join(str(name) for name in get_args(leaf))
    if origin is Annotated:
        base, meta = get_args(leaf)
        return _WORDS[base] + _rangein_words(meta)
    if origin in (UnionType, Union):
        return " or ".join(in_words(member) for member in get_args(leaf))
    return _WORDS[leaf]


def _rangein_words(meta: Meta) -> str:
    """The bounds of a number, as words to append."""
    if meta.ge is None:
        return ""
    return f" ({meta.ge} to {meta.le})" if meta.le is not None else f" ({meta.ge} or more)"
