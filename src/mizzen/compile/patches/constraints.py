"""Constraints: what Envoy's protobuf definitions demand of a message and of everything in it.

In: a finished message. Out: the first violation as `path: reason`, or None. Envoy checks the same before it reads a
configuration, so a violation is a sure refusal; no violation is no promise. What stands inside an `Any` or a
TypedStruct is checked as its own type; a type that is not known here is left to Envoy.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import re2
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from mizzen import protos
from mizzen.compile.patches.opaque import TYPED_STRUCTS
from mizzen.compile.patches.rules import Fault, value_fault
from mizzen.errors import DecodeError

_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Bool", "String", "Bytes", "Double", "Float", "Int32", "Int64", "UInt32", "UInt64")
)
_OPAQUE = frozenset(("google.protobuf.Duration", "google.protobuf.Timestamp", "google.protobuf.Struct"))

_REGEX = "envoy.type.matcher.v3.RegexMatcher"
_RELAXED = frozenset(("envoy.extensions.access_loggers.stats.v3.Config.stat_prefix",))
"""Fields whose rules the Envoys that we speak to no longer have: `stats_scope` stands in for the prefix."""

Check = Callable[[Any], Iterator[str]]
"""Yields what is wrong with one field of a message, each with its path."""


def violation(message: Any) -> str | None:
    """The first violation in the message; None where there is none."""
    return next(_violations(message), None)


def _violations(message: Any) -> Iterator[str]:
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Any":
        yield from _packed_violations(message)
    elif name not in _OPAQUE:
        for check in _checks(message.DESCRIPTOR):
            yield from check(message)


def _packed_violations(packed: Any) -> Iterator[str]:
    if not packed.type_url:
        return
    try:
        inside: Any = protos.unpack(packed)
    except DecodeError:
        return
    if inside.DESCRIPTOR.full_name in TYPED_STRUCTS:
        yield from _struct_violations(inside)
    else:
        yield from _violations(inside)


def _struct_violations(struct: Any) -> Iterator[str]:
    """What is wrong with the message that a TypedStruct stands for, where its type is known."""
    name = struct.type_url.rpartition("/")[2]
    try:
        kind = protos.message_class(name)
    except DecodeError:
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
def _checks(descriptor: Descriptor) -> tuple[Check, ...]:
    """The checks of a message type, made once."""
    known = _options()
    checks = [
        _oneof_check(oneof.name)
        for oneof in descriptor.oneofs
        if known.of(oneof, "OneofOptions").Extensions[known.required]
    ]
    if descriptor.full_name == _REGEX:
        checks.append(_check_regex)
    for field in descriptor.fields:
        options = known.of(field, "FieldOptions")
        if options.Extensions[known.disallowed]:
            checks.append(_disallowed_check(field))
        check = _field_check(field, options.Extensions[known.rules])
        if check is not None and field.full_name not in _RELAXED:
            checks.append(check)
    return tuple(checks)


def _oneof_check(name: str) -> Check:
    def check(message: Any) -> Iterator[str]:
        if message.WhichOneof(name) is None:
            yield f"{name}: one of its members is required"

    return check


def _check_regex(message: Any) -> Iterator[str]:
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(message.regex, options)
    except re2.error:
        yield f"regex: {message.regex!r} is not a regular expression of RE2"


def _disallowed_check(field: FieldDescriptor) -> Check:
    def check(message: Any) -> Iterator[str]:
        if any(present.number == field.number for present, _ in message.ListFields()):
            yield f"{field.name}: deprecated, and no longer accepted"

    return check


# -- fields ---------------------------------------------------------------------------------------------------------


def _field_check(field: FieldDescriptor, rules: Any) -> Check | None:
    inside = field.message_type
    if field.is_repeated:
        is_map = inside is not None and inside.GetOptions().map_entry
        return _map_check(field.name, inside, rules.map) if inside is not None and is_map else _list_check(field, rules)
    if inside is not None:
        return _message_check(field, inside, rules)
    fault = value_fault(rules, field)
    return _scalar_check(field, fault) if fault is not None else None


def _scalar_check(field: FieldDescriptor, fault: Fault) -> Check:
    name, has_presence = field.name, field.has_presence

    def check(message: Any) -> Iterator[str]:
        if (not has_presence or message.HasField(name)) and (reason := fault(getattr(message, name))) is not None:
            yield f"{name}: {reason}"

    return check


def _message_check(field: FieldDescriptor, inside: Descriptor, rules: Any) -> Check:
    name = field.name
    wanted = rules.message.required or rules.duration.required or rules.any.required or rules.timestamp.required
    required = wanted and field.containing_oneof is None
    skip = rules.message.skip
    wrapped = inside.full_name in _WRAPPERS
    fault = value_fault(rules, inside.fields_by_name["value"] if wrapped else field)

    def check(message: Any) -> Iterator[str]:
        if not message.HasField(name):
            if required:
                yield f"{name}: required"
            return
        value = getattr(message, name)
        if fault is not None and (reason := fault(value.value if wrapped else value)) is not None:
            yield f"{name}: {reason}"
        if not skip and not wrapped:
            yield from (f"{name}.{deeper}" for deeper in _violations(value))

    return check


def _list_check(field: FieldDescriptor, rules: Any) -> Check:
    name, limits = field.name, rules.repeated
    fault = value_fault(limits.items, field)
    nested = field.message_type is not None and field.message_type.full_name not in _WRAPPERS

    def check(message: Any) -> Iterator[str]:
        values = getattr(message, name)
        yield from _count_faults(name, len(values), limits.min_items, limits.max_items, limits.ignore_empty)
        if limits.unique and len({repr(v) for v in values}) < len(values):
            yield f"{name}: holds an element twice"
        for index, value in enumerate(values):
            if fault is not None and (reason := fault(value)) is not None:
                yield f"{name}[{index}]: {reason}"
            if nested:
                yield from (f"{name}[{index}].{inside}" for inside in _violations(value))

    return check


def _map_check(name: str, entry: Descriptor, limits: Any) -> Check:
    key_field, value_field = entry.fields_by_name["key"], entry.fields_by_name["value"]
    key_fault, fault = value_fault(limits.keys, key_field), value_fault(limits.values, value_field)
    nested = value_field.message_type is not None

    def check(message: Any) -> Iterator[str]:
        values = getattr(message, name)
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
