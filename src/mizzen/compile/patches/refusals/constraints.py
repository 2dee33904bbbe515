"""Constraints: what Envoy's protobuf definitions demand of a message and of everything in it.

In: a finished message. Out: the first violation as `path: reason`, or None. Envoy checks the same before it reads a
configuration, so a violation is a sure refusal; no violation is no promise. What stands inside an `Any` or a
TypedStruct is checked as its own type; a type that is not known here is left to Envoy.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from mizzen import protos
from mizzen.compile.patches.opaque import TYPED_STRUCTS, known_class
from mizzen.compile.patches.refusals.rules import Fault, value_fault
from mizzen.errors import DecodeError
from mizzen.model.patterns import is_expression

_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Bool", "String", "Bytes", "Double", "Float", "Int32", "Int64", "UInt32", "UInt64")
)
_OPAQUE = frozenset(("google.protobuf.Duration", "google.protobuf.Timestamp", "google.protobuf.Struct"))

_REGEX = "envoy.type.matcher.v3.RegexMatcher.regex"
_LOGGERS = "envoy.extensions.access_loggers."
_RELAXED = frozenset(
    (
        _LOGGERS + "stats.v3.Config.stat_prefix",
        _LOGGERS + "open_telemetry.v3.OpenTelemetryAccessLogConfig.common_config",
    )
)
"""Fields whose rules the Envoys that we speak to no longer have: newer fields stand in for them."""

Check = Callable[[Any], Iterator[str]]
"""Yields what is wrong with the value of one field, each with its path."""


class _Rules(NamedTuple):
    """The rules of a message type: what must be there, and what must hold for what is."""

    absent: tuple[tuple[int, str], ...]
    """The number of a field that may not be missing (or zero, or empty), and the words for it."""
    oneofs: tuple[str, ...]
    """Of these one member must be set."""
    present: dict[int, Check]


def violation(message: Any) -> str | None:
    """The first violation in the message; None where there is none."""
    return next(_violations(message), None)


def _violations(message: Any) -> Iterator[str]:
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Any":
        yield from _packed_violations(message)
        return
    if name in _OPAQUE:
        return
    rules = _rules(message.DESCRIPTOR)
    present = message.ListFields()
    if rules.absent:
        numbers = {field.number for field, _ in present}
        yield from (words for number, words in rules.absent if number not in numbers)
    yield from (f"{o}: one of its members is required" for o in rules.oneofs if message.WhichOneof(o) is None)
    for field, value in present:
        check = rules.present.get(field.number)
        if check is not None:
            yield from check(value)


def _packed_violations(packed: Any) -> Iterator[str]:
    if not packed.type_url:
        return
    if known_class(packed.type_url.rpartition("/")[2]) is None:
        return
    inside: Any = protos.unpack(packed)
    if inside.DESCRIPTOR.full_name in TYPED_STRUCTS:
        yield from _struct_violations(inside)
    else:
        yield from _violations(inside)


def _struct_violations(struct: Any) -> Iterator[str]:
    """What is wrong with the message that a TypedStruct stands for, where its type is known."""
    name = struct.type_url.rpartition("/")[2]
    kind = known_class(name)
    if kind is None:
        return
    try:
        message = protos.from_json(kind, protos.to_json(struct.value), ignore_unknown=True)
    except DecodeError as bad:
        yield f"not a {name}: {bad}"
        return
    yield from _violations(message)


# -- the options that hold the rules --------------------------------------------------------------------------------


class _Options:
    """The extensions of protobuf options in which the rules are written."""

    def __init__(self) -> None:
        validate = protos.POOL.FindFileByName("validate/validate.proto").extensions_by_name
        deprecation = protos.POOL.FindFileByName("envoy/annotations/deprecation.proto").extensions_by_name
        self.rules, self.required = validate["rules"], validate["required"]
        self.disallowed = deprecation["disallowed_by_default"]

    def of(self, described: Any, kind: str) -> Any:
        """The options of a descriptor as a message that knows these extensions."""
        return protos.message_class(f"google.protobuf.{kind}").FromString(described.GetOptions().SerializeToString())


@functools.cache
def _options() -> _Options:
    return _Options()


@functools.cache
def _rules(descriptor: Descriptor) -> _Rules:
    """The rules of a message type, read once."""
    known = _options()
    absent: list[tuple[int, str]] = []
    present: dict[int, Check] = {}
    for field in descriptor.fields:
        options = known.of(field, "FieldOptions")
        rules = options.Extensions[known.rules]
        if options.Extensions[known.disallowed]:
            present[field.number] = _disallowed_check(field.name)
            continue
        if field.full_name in _RELAXED:
            continue
        if (words := _absence_fault(field, rules)) is not None:
            absent.append((field.number, words))
        if (check := _field_check(field, rules)) is not None:
            present[field.number] = check
    oneofs = (o.name for o in descriptor.oneofs if known.of(o, "OneofOptions").Extensions[known.required])
    return _Rules(tuple(absent), tuple(oneofs), present)


def _disallowed_check(name: str) -> Check:
    def check(value: Any) -> Iterator[str]:  # noqa: ARG001 (whatever it is)
        yield f"{name}: deprecated, and no longer accepted"

    return check


# -- fields that are not there ----------------------------------------------------------------------------------------


def _absence_fault(field: FieldDescriptor, rules: Any) -> str | None:
    """What is wrong when the field is not there; None where it may be missing."""
    if field.containing_oneof is not None:
        return None
    if field.is_repeated:
        entry = field.message_type
        is_map = entry is not None and entry.GetOptions().map_entry
        limits = rules.map if is_map else rules.repeated
        least = limits.min_pairs if is_map else limits.min_items
        return next(_count_faults(field.name, 0, least, 0, limits.ignore_empty), None)
    if field.message_type is not None:
        required = rules.message.required or rules.duration.required or rules.any.required or rules.timestamp.required
        return f"{field.name}: required" if required else None
    fault = value_fault(rules, field) if not field.has_presence else None
    reason = fault(field.default_value) if fault is not None else None
    return f"{field.name}: {reason}" if reason is not None else None


# -- fields that are --------------------------------------------------------------------------------------------------


def _field_check(field: FieldDescriptor, rules: Any) -> Check | None:
    if field.full_name == _REGEX:
        return _check_regex
    inside = field.message_type
    if field.is_repeated:
        is_map = inside is not None and inside.GetOptions().map_entry
        return _map_check(field.name, inside, rules.map) if inside is not None and is_map else _list_check(field, rules)
    if inside is not None:
        return _message_check(field, inside, rules)
    fault = value_fault(rules, field)
    return _scalar_check(field.name, fault) if fault is not None else None


def _scalar_check(name: str, fault: Fault) -> Check:
    def check(value: Any) -> Iterator[str]:
        if (reason := fault(value)) is not None:
            yield f"{name}: {reason}"

    return check


def _check_regex(value: str) -> Iterator[str]:
    if not is_expression(value):
        yield f"regex: {value!r} is not a regular expression that Envoy takes"


def _message_check(field: FieldDescriptor, inside: Descriptor, rules: Any) -> Check | None:
    name = field.name
    wrapped = inside.full_name in _WRAPPERS
    fault = value_fault(rules, inside.fields_by_name["value"] if wrapped else field)
    nested = not rules.message.skip and not wrapped and inside.full_name not in _OPAQUE
    if fault is None and not nested:
        return None

    def check(value: Any) -> Iterator[str]:
        if fault is not None and (reason := fault(value.value if wrapped else value)) is not None:
            yield f"{name}: {reason}"
        if nested:
            yield from (f"{name}.{deeper}" for deeper in _violations(value))

    return check


def _list_check(field: FieldDescriptor, rules: Any) -> Check:
    name, limits = field.name, rules.repeated
    fault = value_fault(limits.items, field)
    nested = field.message_type is not None and field.message_type.full_name not in _WRAPPERS

    def check(values: Any) -> Iterator[str]:
        yield from _count_faults(name, len(values), limits.min_items, limits.max_items, limits.ignore_empty)
        if limits.unique and len({repr(v) for v in values}) < len(values):
            yield f"{name}: holds an element twice"
        for index, value in enumerate(values) if fault is not None or nested else ():
            if fault is not None and (reason := fault(value)) is not None:
                yield f"{name}[{index}]: {reason}"
            if nested:
                yield from (f"{name}[{index}].{inside}" for inside in _violations(value))

    return check


def _map_check(name: str, entry: Descriptor, limits: Any) -> Check:
    key_field, value_field = entry.fields_by_name["key"], entry.fields_by_name["value"]
    key_fault, fault = value_fault(limits.keys, key_field), value_fault(limits.values, value_field)
    nested = value_field.message_type is not None

    def check(values: Any) -> Iterator[str]:
        yield from _count_faults(name, len(values), limits.min_pairs, limits.max_pairs, limits.ignore_empty)
        for key in sorted(values):
            value = values[key]
            reasons = (key_fault(key) if key_fault is not None else None, fault(value) if fault is not None else None)
            yield from (f"{name}[{key}]: {reason}" for reason in reasons if reason is not None)
            if nested:
                yield from (f"{name}[{key}].{inside}" for inside in _violations(value))

    return check


def _count_faults(name: str, count: int, least: int, most: int, ignore_empty: bool) -> Iterator[str]:
    if ignore_empty and not count:
        return
    if count < least:
        yield f"{name}: must have at least {least} elements"
    if most and count > most:
        yield f"{name}: must have at most {most} elements"
