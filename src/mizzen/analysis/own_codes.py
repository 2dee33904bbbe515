"""Mizzen's own codes, as `catalogue` has the reference's. A number is never used for anything else."""

from collections.abc import Mapping

from mizzen.analysis.findings import Message

FIELD_NOT_READ = Message("MZ0001", "FieldNotRead", "Warning", "Not as the kind has it: %s")
FIELD_NOT_IN_FORCE = Message(
    "MZ0002",
    "FieldNotInForce",
    "Error",
    "The object is not in force, everything that it selects is denied instead: %s",
)
DEFINED_TWICE = Message(
    "MZ0003", "DefinedTwice", "Warning", "The object stands a second time at %s, where it has no effect."
)

_ALL: tuple[Message, ...] = (FIELD_NOT_READ, FIELD_NOT_IN_FORCE, DEFINED_TWICE)

OWN_CODES: Mapping[str, Message] = {message.code: message for message in _ALL}
