"""What the control plane and its worker for traces say to each other.

In and out: frames on a pipe, each a length and that many bytes: `Changes` and `Question`s pickled on the way to the
worker, a process of our own making, and JSON on the way back. The state of the mesh is told by what differs from what
was told before, in pieces, so that no piece holds an event loop for long.
"""

import pickle
import struct
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Literal

import msgspec

from mizzen.diagnose.trace.request import Request

Table = Literal["inputs", "places", "proxies"]
State = Mapping[Table, Mapping[Any, Any]]
"""The mesh at one moment: objects by key, where each stands, connected proxies by `POD.NAMESPACE`."""

_LENGTH = struct.Struct("!Q")
_PIECE = 200
"""Entries in one frame."""


class Changes(msgspec.Struct, frozen=True):
    """Entries of one table that are new or others; None for those that are gone."""

    table: Table
    entries: dict[Any, Any]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What will this request meet."""

    request: Request
    now: float
    """Clock time (seconds since 1970)."""
    refusals: dict[str, str]
    """What connected proxies refuse now, by `POD.NAMESPACE`."""


Message = Changes | Question


def find_changes(before: State, now: State) -> Iterator[Changes]:
    """What leads from one state to the other, in pieces. Only places are compared by value: they are made anew."""
    for table, entries in now.items():
        held = before.get(table, {})
        other = {key: None for key in held if key not in entries}
        if table == "places":
            other |= {key: value for key, value in entries.items() if held.get(key) != value}
        else:
            other |= {key: value for key, value in entries.items() if held.get(key) is not value}
        keys = list(other)
        for start in range(0, len(keys), _PIECE):
            yield Changes(table, {key: other[key] for key in keys[start : start + _PIECE]})


def encode(message: Message) -> bytes:
    """A frame for the worker."""
    return frame(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))


def frame(data: bytes) -> bytes:
    """The bytes with their length in front."""
    return _LENGTH.pack(len(data)) + data


LENGTH_SIZE = _LENGTH.size


def length(head: bytes) -> int:
    """The length that a frame begins with."""
    (value,) = _LENGTH.unpack(head)
    return int(value)


def read(stream: BinaryIO) -> Message | None:
    """The next message from the control plane; None when it has gone."""
    head = stream.read(LENGTH_SIZE)
    if len(head) < LENGTH_SIZE:
        return None
    data = stream.read(length(head))
    message: Message = pickle.loads(data)
    return message
