"""Bounds: lengths, ranges, patterns and required fields of the CRDs, by Struct and field.

Words are those of the API server. A bound is a function from a value to its faults, each with where in the value it is.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from mizzen.api.message import Message
from mizzen.api.networking.destination_rule import Subset
from mizzen.api.networking.envoy_filter import WaypointMatch
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
Bound = Callable[[Any], Found]

_GROUP = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_KIND = r"[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?"
_PORT_NAME = re.compile(r"[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?")


def longest(limit: int) -> Bound:
    """A text of at most so many characters."""

    def check(text: str) -> Found:
        if len(text) > limit:
            yield "", f"Too long: may not be more than {limit} characters"

    return check


def most(limit: int, what: str = "items") -> Bound:
    """At most so many items."""

    def check(items: Collection[Any]) -> Found:
        if len(items) > limit:
            yield "", f"Too many: {len(items)}: must have at most {limit} {what}"

    return check


def pairs(limit: int) -> Bound:
    """A map of at most so many entries."""
    return most(limit, "properties")


def between(least: float, greatest: float) -> Bound:
    """A number from one bound to another."""

    def check(number: float) -> Found:
        if number < least:
            yield "", f"Invalid value: {number:g}: should be greater than or equal to {least:g}"
        elif number > greatest:
            yield "", f"Invalid value: {number:g}: should be less than or equal to {greatest:g}"

    return check


def shaped(pattern: str) -> Bound:
    """A text that is wholly of a pattern."""
    compiled = re.compile(pattern)

    def check(text: str) -> Found:
        if not compiled.fullmatch(text):
            yield "", f"Invalid value: should match '^{pattern}$'"

    return check


def each(*bounds: Bound) -> Bound:
    """Bounds for each item of a list."""

    def check(items: Sequence[Any]) -> Found:
        for index, item in enumerate(items):
            for bound in bounds:
                for where, message in bound(item):
                    yield f"[{index}]{where}", message

    return check


def each_value(*bounds: Bound) -> Bound:
    """Bounds for each value of a map."""

    def check(entries: Mapping[Any, Any]) -> Found:
        for key, value in entries.items():
            for bound in bounds:
                for where, message in bound(value):
                    yield f"[{key}]{where}", message

    return check


def not_empty(text: str) -> Found:
    """A text that is there."""
    if not text:
        yield "", "Invalid value: should be at least 1 chars long"


def unlike(field: str) -> Bound:
    """Items that differ in a field."""

    def check(items: Sequence[Any]) -> Found:
        known: set[Any] = set()
        for index, item in enumerate(items):
            name = getattr(item, field)
            if name in known:
                yield f"[{index}].{field}", f"Duplicate value: {name!r}"
            known.add(name)

    return check


def _port_names(ports: Mapping[str, int]) -> Found:
    for name in ports:
        if len(name) >= 63 or not _PORT_NAME.fullmatch(name):
            yield f"[{name}]", 'Invalid value: "object": port name must be valid'


def _ports(number: int) -> Found:
    if not 1 <= number <= 65535:
        yield "", 'Invalid value: "integer": port must be between 1-65535'


_TARGETS: Mapping[str, tuple[Bound, ...]] = {"target_refs": (most(16),)}
_MODULE: Mapping[str, tuple[Bound, ...]] = {
    "image_pull_secret": (longest(253),),
    "plugin_name": (longest(256),),
    "sha256": (shaped("[a-f0-9]{64}"),),
}

BOUNDS: Mapping[type[Message], Mapping[str, tuple[Bound, ...]]] = {
    AuthorizationPolicySpec: {"rules": (most(512),), **_TARGETS},
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
        "kind": (longest(63), shaped(_KIND)),
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
        "ports": (most(256), unlike("name"), unlike("number")),
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
