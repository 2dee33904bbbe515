"""The base of all Structs that stand for something a user writes.

A `Message` is a frozen msgspec Struct whose Python names are the snake_case of the wire's camelCase. Absent means the
default: "" for a string, () for a list, an empty mapping for a map, zero for a number, the first name for an enum,
and None for a sub-message, a protobuf wrapper, a duration or a member of a oneof, where absent differs from zero.
Defaults that a CRD declares stand here as the field's default. Messages are compared with == and never changed;
mappings in them are read, not written.
"""

from typing import Any, ClassVar

from msgspec import Struct

FreeForm = dict[str, Any]
"""A google.protobuf.Struct, or an object of a type we do not know: plain data, kept as written."""


def names(text: str) -> frozenset[str]:
    """The names in a text, for `Message.unread`."""
    return frozenset(text.split())


class Message(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, repr_omit_defaults=True, gc=False):
    """One shape of the API; `unread` names fields that exist in the API and are dropped, without a warning."""

    unread: ClassVar[frozenset[str]] = frozenset()
    confidential: ClassVar[bool] = False
    """Whether its values must not be shown in messages."""


class ProtoMessage(Message, frozen=True, kw_only=True):
    """A message that protobuf defines: its fields may also be written under protobuf's own snake_case names."""
