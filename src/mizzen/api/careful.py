"""Reading plain data field by field: forgiving what Kubernetes and protobuf forgive, naming every other fault.

The slow way of `decode`, for what msgspec refuses or does not know. null counts as absent. Messages of protobuf may
spell a field in snake_case and an enum as its number; with `protobuf_json` numbers may be strings, as where no CRD
stands before the reader (mesh config). Every fault becomes a Problem with its path; a field at fault is left out, so
that what remains can still be told.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from mizzen.api.message import Message, ProtoMessage
from mizzen.api.meta import Key
from mizzen.api.problems import Level, Problem
from mizzen.api.scalars import decode_scalar
from mizzen.api.shape import Field, Shape, in_words, shape_of

M = TypeVar("M", bound=Message)

_ABSENT: Any = object()
_MOST_PROBLEMS = 100
_INTEGER = re.compile(r"-?[0-9]{1,20}")


def read_carefully(
    value: Mapping[str, Any], cls: type[M], *, key: Key | None = None, protobuf_json: bool = False
) -> tuple[M, tuple[Problem, ...]]:
    """The Struct, without the fields at fault, and the Problems; those of level "error" are why fields are missing."""
    plain, problems = read_fields(value, cls, key=key, protobuf_json=protobuf_json)
    return build(plain, cls), problems


def read_fields(
    value: Mapping[str, Any], cls: type[Message], *, key: Key | None = None, protobuf_json: bool = False
) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """As `read_carefully`, but plain data: only the fields that were written, under their wire names."""
    reader = _Reader(key, protobuf_json=protobuf_json)
    return reader.read_message(value, shape_of(cls), ""), tuple(reader.problems)


def build(plain: Mapping[str, Any], cls: type[M]) -> M:
    """The Struct of plain data that `read_fields` gave."""
    return msgspec.convert(plain, cls, dec_hook=decode_scalar, str_keys=True)


class _Reader:
    """One reading of one document; gathers its Problems."""

    def __init__(self, key: Key | None, *, protobuf_json: bool) -> None:
        self.key = key
        self.protobuf_json = protobuf_json
        self.confidential = False
        self.problems: list[Problem] = []

    def read_message(self, value: Mapping[Any, Any], shape: Shape, path: str) -> dict[str, Any]:
        """The message under its wire names, without what is absent or at fault."""
        self.confidential = self.confidential or shape.cls.confidential
        plain: dict[str, Any] = {}
        for name, child in value.items():
            field = shape.fields.get(name) or shape.aliases.get(name)
            here = f"{path}.{name}" if path else str(name)
            if field is None:
                if name not in shape.known:
                    self.report_unknown(name, shape, here)
            elif name != field.wire and field.wire in value:
                self.report("repeated-field", f"also written as {field.wire}, which counts", here, level="warning")
            elif child is not None:
                read = self.read_field(child, field, here, shape)
                if read is not _ABSENT:
                    plain[field.wire] = read
        return plain

    def read_field(self, value: Any, field: Field, path: str, shape: Shape) -> Any:
        """The value of a field, or _ABSENT if it is at fault."""
        if field.container == "one":
            return self.read_value(value, field, path, shape)
        if field.container == "list":
            if not isinstance(value, (list, tuple)):
                return self.expected("list", value, path)
            items = [self.read_value(item, field, f"{path}[{at}]", shape) for at, item in enumerate(value)]
            return [item for item in items if item is not _ABSENT]
        if not isinstance(value, Mapping):
            return self.expected("map", value, path)
        entries: dict[str, Any] = {}
        for name, item in value.items():
            here = f"{path}[{name}]"
            if not _converts(name, field.key, strict=field.key is str):
                self.report("invalid-field", f"expected {in_words(field.key)} as key, got {self.show(name)}", here)
            elif item is not None:
                read = self.read_value(item, field, here, shape)
                if read is not _ABSENT:
                    entries[name] = read
            elif field.leaf is str:
                entries[name] = ""  # as Kubernetes reads a label without a value
        return entries

    def read_value(self, value: Any, field: Field, path: str, shape: Shape) -> Any:
        """One value of a field, in a form that msgspec takes, or _ABSENT if it is at fault."""
        if field.shape:
            if not isinstance(value, Mapping):
                return self.expected("map", value, path)
            return self.read_message(value, field.shape, path)
        for form in self.forms(value, field, issubclass(shape.cls, ProtoMessage)):
            if _converts(form, field.leaf):
                return form
        return self.expected(field.expected, value, path)

    def forms(self, value: Any, field: Field, is_protobuf: bool) -> Iterator[Any]:
        """The value as written, then what else it may stand for."""
        yield value
        if isinstance(value, float) and value.is_integer():
            yield int(value)
        if field.leaf is bytes and isinstance(value, str):
            compact = "".join(value.split())
            yield compact
            if is_protobuf:
                yield compact.replace("-", "+").replace("_", "/") + "=" * (-len(compact) % 4)
        if is_protobuf and type(value) is int and value in field.enum:
            yield field.enum[value]
        if self.protobuf_json and isinstance(value, str) and _INTEGER.fullmatch(value):
            yield int(value)

    def expected(self, what: str, value: Any, path: str) -> Any:
        """Reports a value of a wrong type; gives _ABSENT."""
        self.report("invalid-field", f"expected {what}, got {self.show(value)}", path)
        return _ABSENT

    def report_unknown(self, name: Any, shape: Shape, path: str) -> None:
        """Reports a field that the message does not have."""
        message = "unknown field"
        if isinstance(name, str) and len(name) <= 64 and len(self.problems) < _MOST_PROBLEMS:
            spellings = {wire.lower(): wire for wire in shape.fields}
            close = difflib.get_close_matches(name.replace("_", "").lower(), spellings, n=1, cutoff=0.75)
            message += f"; did you mean {spellings[close[0]]}?" if close else ""
        self.report("unknown-field", message, path, level="warning")

    def report(self, code: str, message: str, path: str, *, level: Level = "error") -> None:
        """Adds a Problem; very many of them are cut short, but one error is always among them."""
        full = len(self.problems) >= _MOST_PROBLEMS
        if full and (level != "error" or any(problem.level == "error" for problem in self.problems)):
            return
        self.problems.append(Problem(key=self.key, path=path, message=message, code=code, level=level))

    def show(self, value: Any) -> str:
        """A value in a message: scalars as written, unless they are secret; of all else only the type."""
        if value is None:
            return "null"
        if isinstance(value, Mapping):
            return "a map"
        if isinstance(value, (list, tuple)):
            return "a list"
        if self.confidential:
            return "another type" if not isinstance(value, str) else "other text"
        text = repr(value)
        return text if len(text) <= 60 else text[:57] + "..."


def _converts(value: Any, wanted: Any, *, strict: bool = True) -> bool:
    """Whether msgspec takes the value."""
    try:
        msgspec.convert(value, wanted, dec_hook=decode_scalar, strict=strict, str_keys=True)
    except (msgspec.ValidationError, UnicodeError):
        return False
    return True
