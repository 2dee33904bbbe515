"""Rules: the limits that Envoy's protobuf definitions put on single values, as predicates.

In: the rules of a field (`validate.FieldRules`, which every Envoy enforces before it looks at a configuration). Out: a
function from a value to what is wrong with it, or None where a field has no rules that are known here. How messages,
lists and maps are walked is `constraints`.
"""

from collections.abc import Callable
from typing import Any

import re2
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

Fault = Callable[[Any], str | None]

_NUMERIC = ("float", "double", "int32", "int64", "uint32", "uint64", "sint32", "sint64")
_NANOS = 1_000_000_000
_HEADER_NAME, _HEADER_VALUE = 1, 2
# What HTTP allows in the name and the value of a header; the loose form only keeps lines apart.
_STRICT = {
    _HEADER_NAME: re2.compile(r"^:?[0-9a-zA-Z!#$%&'*+\-.^_|~\x60]+$"),
    _HEADER_VALUE: re2.compile(r"^[^\x00-\x08\x0A-\x1F\x7F]*$"),
}
_LOOSE = re2.compile(r"^[^\x00\x0A\x0D]*$")


def value_fault(rules: Any, field: FieldDescriptor) -> Fault | None:
    """What the rules ask of one value of the field: a number, a text, bytes, an enum's number or a duration."""
    kind = rules.WhichOneof("type")
    if kind in _NUMERIC:
        return _range_fault(getattr(rules, kind), lambda value: value)
    if kind == "duration":
        return _range_fault(rules.duration, _nanoseconds)
    if kind == "string":
        return _text_fault(rules.string)
    if kind == "bytes":
        return _length_fault(rules.bytes, "bytes")
    if kind == "bool" and rules.bool.HasField("const"):
        wanted = rules.bool.const
        return lambda value: None if value == wanted else f"must be {str(wanted).lower()}"
    if kind == "enum" and field.enum_type is not None:
        return _enum_fault(rules.enum, field.enum_type)
    return None


def _nanoseconds(value: Any) -> int:
    nanos: int = value.seconds * _NANOS + value.nanos
    return nanos


def _range_fault(rules: Any, measure: Callable[[Any], Any]) -> Fault:
    """Limits of a number or a duration."""
    names = {field.name for field in rules.DESCRIPTOR.fields}
    bounds = [
        (text, test, measure(getattr(rules, name)), getattr(rules, name))
        for name, (text, test) in _COMPARISONS.items()
        if rules.HasField(name)
    ]
    allowed = [measure(each) for each in rules.__getattribute__("in")]
    excluded = [measure(each) for each in rules.not_in]
    ignore_empty = "ignore_empty" in names and rules.ignore_empty

    def fault(value: Any) -> str | None:
        measured = measure(value)
        if ignore_empty and not measured:
            return None
        for text, test, bound, written in bounds:
            if not test(measured, bound):
                return f"must be {text} {_plain(written)}"
        if (allowed and measured not in allowed) or measured in excluded:
            return "is none of the allowed values"
        return None

    return fault


_COMPARISONS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "const": ("equal to", lambda value, bound: bool(value == bound)),
    "gt": ("greater than", lambda value, bound: bool(value > bound)),
    "gte": ("at least", lambda value, bound: bool(value >= bound)),
    "lt": ("less than", lambda value, bound: bool(value < bound)),
    "lte": ("at most", lambda value, bound: bool(value <= bound)),
}


def _plain(bound: Any) -> str:
    return f"{_nanoseconds(bound) / _NANOS:g}s" if hasattr(bound, "nanos") else f"{bound:g}"


def _text_fault(rules: Any) -> Fault:
    length = _length_fault(rules, "characters")
    pattern = re2.compile(rules.pattern) if rules.HasField("pattern") else None
    known = rules.well_known_regex if rules.HasField("well_known_regex") else 0
    strict = not rules.HasField("strict") or rules.strict
    header = (_STRICT.get(known) if strict else _LOOSE) if known else None

    def fault(value: str) -> str | None:
        if rules.ignore_empty and not value:
            return None
        if header is not None and header.search(value) is None:
            return f"{value!r} cannot stand in an HTTP header"
        if pattern is not None and pattern.search(value) is None:
            return f"{value!r} does not match {rules.pattern}"
        return length(value)

    return fault


def _length_fault(rules: Any, unit: str) -> Fault:
    """Limits of a text or of bytes: length, beginning and end, and lists of what is allowed."""
    allowed = list(rules.__getattribute__("in"))
    excluded = list(rules.not_in)
    shortest = rules.min_len if rules.HasField("min_len") else 0
    longest = rules.max_len if rules.HasField("max_len") else None
    most = rules.max_bytes if unit == "characters" and rules.HasField("max_bytes") else None

    def fault(value: Any) -> str | None:
        if len(value) < shortest:
            return f"must have at least {shortest} {unit}" if value else "must not be empty"
        if longest is not None and len(value) > longest:
            return f"must have at most {longest} {unit}"
        if most is not None and len(value.encode()) > most:
            return f"must have at most {most} bytes"
        if not value.startswith(rules.prefix) or not value.endswith(rules.suffix):
            return f"must begin with {rules.prefix!r} and end with {rules.suffix!r}"
        if (allowed and value not in allowed) or value in excluded:
            return f"{value!r} is none of the allowed values"
        return None

    return fault


def _enum_fault(rules: Any, kind: EnumDescriptor) -> Fault:
    known = frozenset(kind.values_by_number) if rules.defined_only else None
    allowed = list(rules.__getattribute__("in"))
    excluded = list(rules.not_in)

    def fault(value: int) -> str | None:
        if known is not None and value not in known:
            return f"{value} is no value of {kind.name}"
        if (allowed and value not in allowed) or value in excluded:
            return f"{value} is none of the allowed values"
        return None

    return fault
