"""Messages without private keys and passwords, for answers that are messages themselves.

In: a protobuf message. Out: the same with every field that holds a secret replaced, inside every Any whose type is
known here as well. Which fields these are is decided in `diagnose.printing`, so that both forms of a dump hide the
same. Kinds of message that cannot hold any are not walked.
"""

import functools
from collections.abc import Iterable
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from mizzen import protos
from mizzen.diagnose import printing
from mizzen.errors import DecodeError

_ANY = "google.protobuf.Any"


def redact(message: Any) -> Any:
    """The message itself, changed where it has to be."""
    _walk(message)
    return message


def _walk(message: Message) -> bool:
    """Whether anything was replaced."""
    if message.DESCRIPTOR.full_name == _ANY:
        return _walk_any(message)
    changed = False
    for field, value in message.ListFields():
        if field.full_name in printing.PRIVATE_FIELDS:
            _replace(message, field)
            changed = True
        elif field.full_name == printing.VARIABLES:
            changed |= _hide_variables(value)
        elif field.message_type is not None and _may_hide(field.message_type):
            for item in _items(field, value):
                changed |= _walk(item)
    return changed


def _hide_variables(variables: Any) -> bool:
    hidden = {name: printing.show_variable(name, value) for name, value in variables.items()}
    changed = hidden != dict(variables)
    variables.update(hidden)
    return changed


def _items(field: FieldDescriptor, value: Any) -> Iterable[Message]:
    if _is_map(field):
        return list(value.values())
    return value if field.is_repeated else (value,)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _walk_any(packed: Any) -> bool:
    if not packed.type_url:
        return False
    try:
        message = protos.unpack(packed)
    except DecodeError:
        return False
    if not _may_hide(message.DESCRIPTOR) or not _walk(message):
        return False
    packed.value = protos.encode(message)
    return True


def _replace(message: Any, field: FieldDescriptor) -> None:
    """One redacted DataSource in place of the field's; a map of them keeps nothing."""
    message.ClearField(field.name)
    held = getattr(message, field.name)
    if not field.is_repeated:
        held.inline_string = printing.REDACTED
    elif not _is_map(field):
        held.add(inline_string=printing.REDACTED)


def _hides(field: FieldDescriptor) -> bool:
    return field.full_name in printing.PRIVATE_FIELDS or field.full_name == printing.VARIABLES


@functools.cache
def _may_hide(kind: Descriptor) -> bool:
    """Whether a message of this kind can hold a secret, or an Any, at any depth."""
    seen, waiting = set(), [kind]
    while waiting:
        found = waiting.pop()
        if found.full_name in seen:
            continue
        seen.add(found.full_name)
        if found.full_name == _ANY or any(_hides(field) for field in found.fields):
            return True
        waiting.extend(field.message_type for field in found.fields if field.message_type is not None)
    return False
