"""Faults: what a rule finds, before it becomes a Problem of an object.

In: rules yield them with the path they stand at. Out: `Fault`s, and the texts that istioctl makes of several of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from mizzen.api.problems import Level

REFUSED = "refused"
"""A rule of the reference's admission webhook refuses it."""
QUESTIONABLE = "questionable"
"""Admission warns of it."""
REFUSED_BY_SCHEMA = "refused-by-schema"
"""The CRD's schema refuses it, before a webhook sees it; never beside `REFUSED` at the same place."""
REFUSED_METADATA = "refused-metadata"
"""Admission refuses an annotation; what is analysed without metadata never has it."""
UNREACHABLE_RULE = "unreachable-rule"
"""A rule of a VirtualService that no request reaches."""
INEFFECTIVE_MATCH = "ineffective-match"
"""A match of a VirtualService that an earlier one covers."""


class Fault(NamedTuple):
    """One fault at a path of an object."""

    path: str
    message: str
    level: Level = "error"
    code: str = REFUSED


Faults: TypeAlias = Iterator[Fault]


def error(path: str, message: str) -> Fault:
    """What makes admission refuse the object."""
    return Fault(path, message)


def warning(path: str, message: str, code: str = QUESTIONABLE) -> Fault:
    """What admission lets pass with a warning."""
    return Fault(path, message, "warning", code)


def at(path: str, message: str | None) -> Faults:
    """The error that a rule of values gave for the value at `path`, if it gave one."""
    if message is not None:
        yield Fault(path, message)


def errors_only(faults: Iterable[Fault]) -> Faults:
    """The faults without the warnings."""
    return (fault for fault in faults if fault.level == "error")


def first_error(faults: Iterable[Fault]) -> Fault | None:
    """The first error among the faults."""
    return next(errors_only(faults), None)


def quote(text: str) -> str:
    """The text in double quotes, as Go's `%q` prints it."""
    return f'"{"".join(map(_escape, text))}"'


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ESCAPES |= {'"': '\\"', "\\": "\\\\"}


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def list_of(words: Iterable[str]) -> str:
    """Words as Go's `%v` prints a list."""
    return f"[{' '.join(words)}]"


def join_messages(messages: Sequence[str]) -> str:
    """Several messages as istioctl prints them together; a single one has the same form."""
    count = f"{len(messages)} error{'s' if len(messages) != 1 else ''} occurred:"
    return "\n\t* ".join((count, *messages)) + "\n\n"
