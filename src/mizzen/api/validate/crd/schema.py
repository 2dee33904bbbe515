"""Schema: an object held against its CRD, field by field.

What there is to check of a Struct is worked out once, so that an object is walked only where something can be wrong.
Fields that are absent or zero are passed over, for which the reference has its defaults.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from msgspec.structs import fields as struct_fields

from mizzen.api.message import Message, ProtoMessage
from mizzen.api.meta import Object
from mizzen.api.networking.traffic_policy import HTTPCookie, RetryBudget, TCPSettings
from mizzen.api.scalars import Duration
from mizzen.api.shape import Container, shape_of
from mizzen.api.validate.crd import bounds as istio_bounds
from mizzen.api.validate.crd import gateway_api_bounds, gateway_api_rules
from mizzen.api.validate.crd import rules as istio_rules
from mizzen.api.validate.crd.bounds import Check, Found
from mizzen.api.validate.faults import REFUSED_BY_SCHEMA, Fault, Faults
from mizzen.api.validate.values.numbers import MILLISECOND

_BOUNDS: Mapping[type[Message], Mapping[str, tuple[Check, ...]]] = {**istio_bounds.BOUNDS, **gateway_api_bounds.BOUNDS}
_REQUIRED = {**istio_bounds.REQUIRED, **gateway_api_bounds.REQUIRED}
_RULES = {**istio_rules.RULES, **gateway_api_rules.RULES}
UNRULED_DURATIONS = ((TCPSettings, "idle_timeout"), (HTTPCookie, "ttl"), (RetryBudget, "budget_interval"))
"""Durations without a rule."""


class _Field(NamedTuple):
    """What is to be checked of one field."""

    name: str
    wire: str
    absent: Any
    """What stands for a field that is not written; of those, the optional ones are fine."""
    required: bool
    bounds: tuple[Check, ...]
    container: Container
    nested: "_Plan | None"


class _Plan(NamedTuple):
    """What is to be checked of one Struct."""

    rules: tuple[Callable[[Any], Found], ...]
    fields: tuple[_Field, ...]


def check_schema(found: Object) -> Faults:
    """All that the CRD refuses in an object's spec."""
    plan = _plan_of(type(found))
    return (Fault(path, message, "error", REFUSED_BY_SCHEMA) for path, message in _walk(found, plan, ""))


def _walk(value: Any, plan: _Plan, path: str) -> Iterable[tuple[str, str]]:
    for rule in plan.rules:
        for where, message in rule(value):
            yield f"{path}{where}", message
    for field in plan.fields:
        child = getattr(value, field.name)
        here = f"{path}.{field.wire}" if path else field.wire
        if child == field.absent:
            if field.required:
                yield here, "Required value"
            continue
        for bound in field.bounds:
            for where, message in bound(child):
                yield f"{here}{where}", message
        if field.nested is not None:
            for place, item in _items(child, field.container):
                yield from _walk(item, field.nested, f"{here}{place}")


def _items(child: Any, container: Container) -> Iterable[tuple[str, Any]]:
    if container == "list":
        return ((f"[{index}]", item) for index, item in enumerate(child))
    if container == "map":
        return ((f"[{key}]", item) for key, item in child.items())
    return (("", child),)


@cache
def _plan_of(cls: type[Message]) -> _Plan:
    """The plan of a Struct; fields in which nothing can be wrong are not in it."""
    shape, bare = shape_of(cls), cls()
    bounds, required = _BOUNDS.get(cls, {}), _REQUIRED.get(cls, ())
    plans: list[_Field] = []
    for info in struct_fields(cls):
        field = shape.fields[info.encode_name]
        own = bounds.get(info.name, ())
        if field.leaf is Duration and issubclass(cls, ProtoMessage) and (cls, info.name) not in UNRULED_DURATIONS:
            own = (*own, _duration)
        nested = _plan_of(field.shape.cls) if field.shape is not None else None
        if nested is not None and not nested.rules and not nested.fields:
            nested = None
        if own or nested or info.name in required:
            absent = getattr(bare, info.name)
            plans.append(_Field(info.name, field.wire, absent, info.name in required, own, field.container, nested))
    return _Plan(_RULES.get(cls, ()), tuple(plans))


def _duration(duration: Duration) -> Found:
    if duration < MILLISECOND:
        yield "", 'Invalid value: "string": must be a valid duration greater than 1ms'
