"""Merging: how the message of a MERGE patch goes into a finished one.

In: a target and a patch of one message type. Out: the target, changed. Scalars that are not zero replace, lists are
appended (or, for MERGE_AND_REPLACE_LIST, replaced in the patched message itself), a map's entries replace by key,
messages merge field by field, a oneof's member displaces the others; durations and wrappers replace. A scalar cannot be
merged back to zero. What stands inside an `Any` merges only where Istio looks inside: typed configurations of filters
and transport sockets. Golden cases: networking/ef-clusters, networking/ef-filters, networking/ef-routes.
"""

import functools
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from mizzen import protos

_ANY = "google.protobuf.Any"
_REPLACED = frozenset(
    f"google.protobuf.{name}"
    for name in (
        "Duration",
        "Timestamp",
        "BoolValue",
        "StringValue",
        "BytesValue",
        "DoubleValue",
        "FloatValue",
        "Int32Value",
        "Int64Value",
        "UInt32Value",
        "UInt64Value",
    )
)


def merge(target: Message, patch: Message, *, replace_lists: bool = False) -> None:
    """Merge `patch` into `target`; `replace_lists` holds for the lists of this message, not of those inside."""
    for field, value in patch.ListFields():
        if _is_map(field):
            _merge_map(getattr(target, field.name), value, field)
        elif field.is_repeated:
            existing = getattr(target, field.name)
            if replace_lists:
                del existing[:]
            existing.extend(value)
        elif field.message_type is None:
            setattr(target, field.name, value)
        else:
            _merge_message(getattr(target, field.name), value)


def _merge_message(target: Any, patch: Any) -> None:
    name = patch.DESCRIPTOR.full_name
    if name in _REPLACED or (name == _ANY and (patch.value or patch.type_url != target.type_url)):
        target.CopyFrom(patch)
        return
    target.SetInParent()
    merge(target, patch)


def _merge_map(target: Any, patch: Any, field: FieldDescriptor) -> None:
    of_messages = field.message_type is not None and field.message_type.fields_by_name["value"].message_type is not None
    for key in patch:
        if of_messages:
            target[key].CopyFrom(patch[key])
        else:
            target[key] = patch[key]


@functools.cache
def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.is_repeated and field.message_type.GetOptions().map_entry


def merge_packed(target: Any, patch: Any, *, replace_lists: bool = False) -> None:
    """Merge what stands inside two `Any`; one of another type replaces."""
    if not target.type_url or _type_name(target) != _type_name(patch):
        target.CopyFrom(patch)
        return
    message = protos.unpack(target)
    merge(message, protos.unpack(patch), replace_lists=replace_lists)
    target.value = protos.encode(message)


def _type_name(packed: Any) -> str:
    name: str = packed.type_url.rpartition("/")[2]
    return name


def merge_socket(socket: Any, patch: Any, *, replace_lists: bool = False) -> bool:
    """Merge the typed configuration of a transport socket; False where one of the two has none."""
    if not socket.HasField("typed_config") or not patch.HasField("typed_config"):
        return False
    merge_packed(socket.typed_config, patch.typed_config, replace_lists=replace_lists)
    return True
