"""Bounds: lengths, ranges, patterns and required fields of the CRDs, by Struct and field.

Words are those of the API server. A bound is a function from a value to its faults, each with where in the value it is,
and says the same as a schema, of which the CRDs that we install are made.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mizzen.api.message import Message
from mizzen.api.networking.destination_rule import Subset
from mizzen.api.networking.envoy_filter import EnvoyFilterSpec, WaypointMatch
from mizzen.api.networking.gateway import ServerTLSSettings
from mizzen.api.networking.proxy_config import ProxyConfigSpec
from mizzen.api.networking.selectors import MatchLabels, PolicyTargetReference, WorkloadSelector
from mizzen.api.networking.service_entry import ServiceEntrySpec, ServicePort
from mizzen.api.networking.traffic_policy import (
    OutlierDetection,
    RetryBudget,
    TrafficPolicy,
    WarmupConfiguration,
    ZoneAwareLoadBalancerSetting,
)
from mizzen.api.networking.workload_entry import WorkloadEntrySpec
from mizzen.api.networking.workload_group import (
    ExecHealthCheckConfig,
    GrpcHealthCheckConfig,
    TemplateMeta,
    WorkloadGroupSpec,
)
from mizzen.api.policy import (
    AuthorizationPolicySpec,
    EnvVar,
    JWTRule,
    RequestAuthenticationSpec,
    Rule,
    Source,
    TagFormatter,
    TelemetrySpec,
    TrafficExtensionSpec,
    TrafficSelector,
    VmConfig,
    WasmConfig,
    WasmPluginSpec,
)

Found = Iterator[tuple[str, str]]
"""Where in the value, as the end of a path, and what is wrong."""
Check = Callable[[Any], Found]
Schema = Mapping[str, Any]
"""A part of an OpenAPI schema as CRDs have it."""
RULES = "x-kubernetes-validations"
"""The CEL rules of a schema."""


class Bound(Struct, frozen=True):
    """What the value of a field has to keep to."""

    check: Check
    schema: Schema

    def __call__(self, value: Any) -> Found:
        return self.check(value)


_GROUP = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_KIND = r"[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?"
_PORT_NAME = re.compile(r"[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?")


def merge(*schemas: Schema) -> dict[str, Any]:
    """One schema that says all of these; later ones win, but their rules come together."""
    whole: dict[str, Any] = {}
    for schema in schemas:
        for name, value in schema.items():
            if isinstance(value, Mapping):
                whole[name] = merge(whole.get(name, {}), value)
            elif name == RULES:
                whole[name] = [*whole.get(name, ()), *value]
            else:
                whole[name] = value
    return whole


def longest(limit: int) -> Bound:
    """A text of at most so many characters."""

    def check(text: str) -> Found:
        if len(text) > limit:
            yield "", f"Too long: may not be more than {limit} characters"

    return Bound(check, {"maxLength": limit})


def _at_most(limit: int, what: str) -> Check:
    def check(items: Collection[Any]) -> Found:
        if len(items) > limit:
            yield "", f"Too many: {len(items)}: must have at most {limit} {what}"

    return check


def most(limit: int) -> Bound:
    """At most so many items."""
    return Bound(_at_most(limit, "items"), {"maxItems": limit})


def pairs(limit: int) -> Bound:
    """A map of at most so many entries."""
    return Bound(_at_most(limit, "properties"), {"maxProperties": limit})


def between(least: float, greatest: float) -> Bound:
    """A number from one bound to another."""

    def check(number: float) -> Found:
        if number < least:
            yield "", f"Invalid value: {number:g}: should be greater than or equal to {least:g}"
        elif number > greatest:
            yield "", f"Invalid value: {number:g}: should be less than or equal to {greatest:g}"

    return Bound(check, {k: v for k, v in (("minimum", least), ("maximum", greatest)) if not math.isinf(v)})


def shaped(pattern: str, *, set_always: bool = False) -> Bound:
    """A text that is wholly of a pattern; in a schema an empty one stands for none unless it is `set_always`."""
    compiled = re.compile(pattern)

    def check(text: str) -> Found:
        if not compiled.fullmatch(text):
            yield "", f"Invalid value: should match '^{pattern}$'"

    return Bound(check, {"pattern": f"^{pattern}$" if set_always else f"^$|^{pattern}$"})


def each(*bounds: Bound) -> Bound:
    """Bounds for each item of a list."""

    def check(items: Sequence[Any]) -> Found:
        for index, item in enumerate(items):
            for bound in bounds:
                for where, message in bound(item):
                    yield f"[{index}]{where}", message

    return Bound(check, {"items": merge(*(bound.schema for bound in bounds))})


def each_value(*bounds: Bound) -> Bound:
    """Bounds for each value of a map."""

    def check(entries: Mapping[Any, Any]) -> Found:
        for key, value in entries.items():
            for bound in bounds:
                for where, message in bound(value):
                    yield f"[{key}]{where}", message

    return Bound(check, {"additionalProperties": merge(*(bound.schema for bound in bounds))})


def _not_empty(text: str) -> Found:
    if not text:
        yield "", "Invalid value: should be at least 1 chars long"


not_empty = Bound(_not_empty, {"minLength": 1})
"""A text that is there."""


def unlike(field: str, schema: Schema | None = None) -> Bound:
    """Items that differ in a field, by which a schema can tell them apart unless it says it otherwise."""

    def check(items: Sequence[Any]) -> Found:
        known: set[Any] = set()
        for index, item in enumerate(items):
            name = getattr(item, field)
            if name in known:
                yield f"[{index}].{field}", f"Duplicate value: {name!r}"
            known.add(name)

    return Bound(
        check, {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [field]} if schema is None else schema
    )


def cel(rule: str, message: str) -> Schema:
    """A rule in CEL over `self`, and what the API server says of a value that breaks it."""
    return {RULES: [{"rule": rule, "message": message}]}


def _check_port_names(ports: Mapping[str, int]) -> Found:
    for name in ports:
        if len(name) >= 63 or not _PORT_NAME.fullmatch(name):
            yield f"[{name}]", 'Invalid value: "object": port name must be valid'


_port_names = Bound(
    _check_port_names,
    cel(f"self.all(name, size(name) <= 62 && name.matches('^{_PORT_NAME.pattern}$'))", "port name must be valid"),
)


def _check_port(number: int) -> Found:
    if not 1 <= number <= 65535:
        yield "", 'Invalid value: "integer": port must be between 1-65535'


_ports = Bound(_check_port, cel("self >= 1 && self <= 65535", "port must be between 1-65535"))
_UNLIKE_NUMBERS = cel(
    "self.all(one, self.filter(other, other.number == one.number).size() == 1)", "port number cannot be duplicated"
)


_TARGETS: Mapping[str, tuple[Bound, ...]] = {"target_refs": (most(16),)}
_MODULE: Mapping[str, tuple[Bound, ...]] = {
    "image_pull_secret": (longest(253),),
    "plugin_name": (longest(256),),
    "sha256": (shaped("[a-f0-9]{64}"),),
}

BOUNDS: Mapping[type[Message], Mapping[str, tuple[Bound, ...]]] = {
    AuthorizationPolicySpec: {"rules": (most(512),), **_TARGETS},
    EnvoyFilterSpec: _TARGETS,
    EnvVar: {"name": (longest(256),), "value": (longest(2048),)},
    ExecHealthCheckConfig: {"command": (each(not_empty),)},
    GrpcHealthCheckConfig: {"port": (_ports,)},
    JWTRule: {
        "audiences": (each(not_empty),),
        "from_params": (each(not_empty),),
        "from_cookies": (each(not_empty),),
        "jwks_uri": (longest(2048),),
        "space_delimited_claims": (most(64), each(not_empty)),
    },
    MatchLabels: {"match_labels": (pairs(4096), each_value(longest(63)))},
    OutlierDetection: {"outlier_detection_http_error_codes": (each(between(100, 599)),)},
    PolicyTargetReference: {
        "group": (longest(253), shaped(_GROUP)),
        "kind": (longest(63), shaped(_KIND, set_always=True)),
        "name": (longest(253),),
    },
    ProxyConfigSpec: {"environment_variables": (each_value(longest(2048)),)},
    RequestAuthenticationSpec: {"jwt_rules": (most(4096),), **_TARGETS},
    RetryBudget: {"percent": (between(0, 100),)},
    Rule: {"from_": (most(512),)},
    ServerTLSSettings: {"credential_names": (most(2),), "tls_certificates": (most(2),)},
    ServiceEntrySpec: {
        "hosts": (most(256),),
        "addresses": (most(256), each(longest(64))),
        "endpoints": (most(4096),),
        "ports": (most(256), unlike("name"), unlike("number", _UNLIKE_NUMBERS)),
    },
    ServicePort: {
        "name": (longest(256),),
        "protocol": (longest(256),),
        "number": (_ports,),
        "target_port": (_ports,),
    },
    Source: {
        "service_accounts": (most(16), each(longest(320))),
        "not_service_accounts": (most(16), each(longest(320))),
    },
    TelemetrySpec: _TARGETS,
    TemplateMeta: {"labels": (pairs(256),), "annotations": (pairs(256),)},
    TrafficExtensionSpec: _TARGETS,
    TrafficPolicy: {"port_level_settings": (most(4096),)},
    TrafficSelector: {"ports": (unlike("number"),)},
    VmConfig: {"env": (most(256), unlike("name"))},
    WarmupConfiguration: {"minimum_percent": (between(0, 100),), "aggression": (between(0, float("inf")),)},
    WasmConfig: _MODULE,
    WasmPluginSpec: {**_MODULE, **_TARGETS},
    WaypointMatch: {"port_number": (_ports,)},
    WorkloadEntrySpec: {
        "address": (longest(256),),
        "labels": (pairs(256),),
        "locality": (longest(2048),),
        "network": (longest(2048),),
        "ports": (pairs(128), _port_names, each_value(_ports)),
        "service_account": (longest(253),),
    },
    WorkloadSelector: {"labels": (pairs(256), each_value(longest(63)))},
    ZoneAwareLoadBalancerSetting: {"min_cluster_size": (between(1, float("inf")),)},
}
"""What a field that is set has to keep to."""

REQUIRED: Mapping[type[Message], tuple[str, ...]] = {
    PolicyTargetReference: ("kind", "name"),
    Subset: ("name",),
    TagFormatter: ("value",),
    WorkloadGroupSpec: ("template",),
}
"""Fields that have to be set; those that the webhook asks for as well are not named again."""
