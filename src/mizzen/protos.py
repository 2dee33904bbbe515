"""The one door to protobuf: message classes, packing, printing and parsing.

Flows in: the descriptors that xds-protos and protobuf install, read as data (no generated module is ever imported, so
nothing lands in the process-wide pool and start-up stays short), with the fields and messages of `mizzen.descriptors`
that they lack. Flows out: message classes of one private pool, deterministic bytes, and protobuf JSON.

Write `cluster_v3 = protos.package("envoy.config.cluster.v3")` and then `cluster_v3.Cluster(name=…)`. Constructors
take nested dicts for sub-messages and wrappers, and names for enum values; that path runs in C.
What a message means is not known here.
"""

import ast
import base64
import functools
import importlib.util
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.message import DecodeError as WireError
from google.protobuf.message import Message

from mizzen import descriptors
from mizzen.errors import DecodeError

TYPE_PREFIX = "type.googleapis.com/"

_SERIALIZED = re.compile(rb"AddSerializedFile\((b'(?:[^'\\]|\\.)*'|b\"(?:[^\"\\]|\\.)*\")\)", re.S)


class _InstalledDescriptors:
    """The descriptor database behind the pool: finds a `.proto` by its path, or a symbol by its package's folder."""

    def FindFileByName(self, name: str) -> descriptor_pb2.FileDescriptorProto:
        extra = descriptors.FILES.get(name)
        if extra is not None:
            return extra()
        path = _installed(name.removesuffix(".proto") + "_pb2.py")
        if path is None:
            raise KeyError(name)
        file = _read_descriptor(path)
        descriptors.add_missing_fields(file)
        return file

    def FindFileContainingSymbol(self, symbol: str) -> descriptor_pb2.FileDescriptorProto:
        for name in _candidate_files(symbol):
            file = self.FindFileByName(name)
            if symbol in _symbols(file):
                return file
        raise KeyError(symbol)


def _installed(relative: str) -> pathlib.Path | None:
    for root in _roots(relative.split("/", 1)[0]):
        path = root / relative
        if path.is_file():
            return path
    return None


@functools.cache
def _roots(top: str) -> tuple[pathlib.Path, ...]:
    """Folders that hold the installed top-level package `top`, found without importing it."""
    spec = importlib.util.find_spec(top)
    if spec is None or spec.submodule_search_locations is None:
        return ()
    return tuple(pathlib.Path(place).parent for place in spec.submodule_search_locations)


def _read_descriptor(path: pathlib.Path) -> descriptor_pb2.FileDescriptorProto:
    found = _SERIALIZED.search(path.read_bytes())
    if found is None:
        raise KeyError(str(path))
    return descriptor_pb2.FileDescriptorProto.FromString(ast.literal_eval(found.group(1).decode()))


def _candidate_files(symbol: str) -> Iterator[str]:
    """The files that may define `symbol`: a proto package lies in the folder of its name."""
    yield from (name for name, symbols in descriptors.SYMBOLS.items() if symbol in symbols)
    parts = symbol.split(".")
    for length in range(len(parts) - 1, 0, -1):
        folder = "/".join(parts[:length])
        for root in _roots(parts[0]):
            for path in sorted((root / folder).glob("*_pb2.py")):
                yield f"{folder}/{path.name.removesuffix('_pb2.py')}.proto"


def _symbols(file: descriptor_pb2.FileDescriptorProto) -> set[str]:
    found: set[str] = set()

    def walk(prefix: str, message: descriptor_pb2.DescriptorProto) -> None:
        name = f"{prefix}.{message.name}"
        found.add(name)
        found.update(f"{name}.{enum.name}" for enum in message.enum_type)
        for nested in message.nested_type:
            walk(name, nested)

    for message in file.message_type:
        walk(file.package, message)
    found.update(f"{file.package}.{enum.name}" for enum in file.enum_type)
    return found


POOL = descriptor_pool.DescriptorPool(_InstalledDescriptors())


@functools.cache
def message_class(full_name: str) -> Any:
    """The class of the message `full_name`; raises DecodeError for a name that nobody defines."""
    try:
        return message_factory.GetMessageClass(POOL.FindMessageTypeByName(full_name))
    except KeyError as missing:
        raise DecodeError(f"unknown protobuf message {full_name}") from missing


class Package:
    """The message classes of one proto package as attributes; resolved at first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, message: str) -> Any:
        if message.startswith("__"):
            raise AttributeError(message)
        found = message_class(f"{self._name}.{message}")
        setattr(self, message, found)
        return found


@functools.cache
def package(name: str) -> Package:
    """The proto package `name`; one object a name."""
    return Package(name)


_known = package("google.protobuf")


def encode(message: Message) -> bytes:
    """Deterministic bytes: equal messages encode equally in every process."""
    return message.SerializeToString(deterministic=True)


def type_url(message: Message) -> str:
    """`type.googleapis.com/` and the message's full name."""
    return TYPE_PREFIX + message.DESCRIPTOR.full_name


def pack(message: Message) -> Any:
    """The message in a `google.protobuf.Any`, its value encoded deterministically."""
    return _known.Any(type_url=type_url(message), value=encode(message))


def length_delimited(number: int, data: bytes) -> bytes:
    """One field of a message (a string, bytes or sub-message) on the wire, to append to an encoded message."""
    return delimiter(number, len(data)) + data


@functools.lru_cache(1 << 14)
def delimiter(number: int, length: int) -> bytes:
    """What stands before the bytes of such a field."""
    return _varint(number << 3 | 2) + _varint(length)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_any(full_name: str, data: bytes) -> bytes:
    """An encoded `google.protobuf.Any` around an encoded message of that name."""
    return length_delimited(1, (TYPE_PREFIX + full_name).encode()) + length_delimited(2, data)


def unpack(packed: Any) -> Message:
    """The message inside an Any; raises DecodeError where its type is unknown or its bytes are broken."""
    message: Message = message_class(packed.type_url.rpartition("/")[2])()
    try:
        message.ParseFromString(packed.value)
    except WireError as broken:
        raise DecodeError(f"broken {packed.type_url}: {broken}") from broken
    return message


def struct(value: Mapping[str, Any]) -> Any:
    """A `google.protobuf.Struct` of plain JSON values."""
    result = _known.Struct()
    json_format.ParseDict(dict(value), result, descriptor_pool=POOL)
    return result


def typed_struct(url: str, value: Mapping[str, Any]) -> Any:
    """An Any that holds `udpa.type.v1.TypedStruct`: a message known to the receiver by type URL, to us by JSON only."""
    return pack(package("udpa.type.v1").TypedStruct(type_url=url, value=struct(value)))


def to_json(message: Message) -> dict[str, Any]:
    """Protobuf JSON as plain dicts: camelCase names, `@type` first in every Any."""
    result: dict[str, Any] = json_format.MessageToDict(message, descriptor_pool=POOL)
    return result


def any_to_json(packed: Any) -> dict[str, Any]:
    """An Any as protobuf JSON. One whose type nobody here knows prints as its type URL and base64 value."""
    try:
        return {"@type": packed.type_url, **to_json(unpack(packed))}
    except (DecodeError, json_format.SerializeToJsonError, TypeError):
        return {"@type": packed.type_url, "value": base64.b64encode(packed.value).decode()}


def from_json(message_type: Any, value: Mapping[str, Any], *, ignore_unknown: bool = False) -> Any:
    """The message that protobuf JSON describes; raises DecodeError with the parser's reason.

    What it packs into an Any is encoded deterministically, which the parser alone does not do.
    """
    result = message_type()
    try:
        json_format.ParseDict(dict(value), result, ignore_unknown_fields=ignore_unknown, descriptor_pool=POOL)
    except (json_format.ParseError, TypeError, ValueError, KeyError, AttributeError, RecursionError) as bad:
        raise DecodeError(str(bad)) from bad
    _settle(result)
    return result


def _settle(message: Message) -> None:
    """Encode every Any within the message deterministically; maps inside come in an arbitrary order otherwise."""
    if message.DESCRIPTOR.full_name == "google.protobuf.Any":
        try:
            inner = unpack(message)
        except DecodeError:
            return
        _settle(inner)
        message.value = encode(inner)  # type: ignore[attr-defined]
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                for entry in value.values():
                    _settle(entry)
        elif isinstance(value, Message):
            _settle(value)
        else:
            for entry in value:
                _settle(entry)
