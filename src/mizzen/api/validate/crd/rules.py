"""Rules over several fields: those of the schemas that the webhook's rules do not hold, and oneofs of protobuf.

Each is a function from a Struct to its faults, with where in the Struct they are.
"""

from collections.abc import Callable, Mapping
from typing import Any

from mizzen.api.message import Message
from mizzen.api.networking.envoy_filter import EnvoyConfigObjectMatch
from mizzen.api.networking.traffic_policy import ConsistentHashLB, LoadBalancerSettings
from mizzen.api.networking.virtual_service import Abort, Delay, HTTPBody, HTTPRedirect, StringMatch
from mizzen.api.networking.workload_entry import WorkloadEntrySpec
from mizzen.api.networking.workload_group import ReadinessProbe
from mizzen.api.policy import CustomTag, JWTRule, MetricSelector
from mizzen.api.validate.crd.bounds import Found

_UNIX = "unix://"

ONE_OF: Mapping[type[Message], tuple[tuple[str, ...], ...]] = {
    Abort: (("http_status", "grpc_status", "http2_error"),),
    ConsistentHashLB: (
        ("http_header_name", "http_cookie", "use_source_ip", "http_query_parameter_name"),
        ("ring_hash", "maglev"),
    ),
    CustomTag: (("literal", "environment", "header", "formatter"),),
    Delay: (("fixed_delay", "exponential_delay"),),
    EnvoyConfigObjectMatch: (("listener", "route_configuration", "cluster", "waypoint"),),
    HTTPBody: (("string", "bytes"),),
    HTTPRedirect: (("port", "derive_port"),),
    LoadBalancerSettings: (("simple", "consistent_hash"),),
    MetricSelector: (("metric", "custom_metric"),),
    ReadinessProbe: (("http_get", "tcp_socket", "exec", "grpc"),),
    StringMatch: (("exact", "prefix", "regex"),),
}
"""Fields of which only one may be set."""


def _check_jwt(rule: JWTRule) -> Found:
    if rule.jwks and rule.jwks_uri:
        yield "", _cel("object", "only one of jwks or jwksUri can be set")


def _check_endpoint(entry: WorkloadEntrySpec) -> Found:
    if not entry.address.startswith(_UNIX):
        return
    path = entry.address.removeprefix(_UNIX)
    if not path.startswith(("/", "@")):
        yield ".address", _cel("string", "UDS must be an absolute path or abstract socket")
    if path.endswith("/"):
        yield ".address", _cel("string", "UDS may not be a dir")
    if entry.ports:
        yield ".address", _cel("object", "UDS may not include ports")


def _check_object_match(match: EnvoyConfigObjectMatch) -> Found:
    if (match.context == "WAYPOINT") != (match.waypoint is not None):
        yield "", _cel("object", "only support waypointMatch when context is WAYPOINT")


def _cel(kind: str, message: str) -> str:
    return f'Invalid value: "{kind}": {message}'


def check_one_of(value: Message) -> Found:
    """That of fields which exclude each other no two are set."""
    for names in ONE_OF[type(value)]:
        present = [name for name in names if getattr(value, name) is not None]
        if len(present) > 1:
            wires = dict(zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True))
            yield "", f"only one of {', '.join(wires[name] for name in present)} may be set"


RULES: Mapping[type[Message], tuple[Callable[[Any], Found], ...]] = {
    **{cls: (check_one_of,) for cls in ONE_OF},
    EnvoyConfigObjectMatch: (check_one_of, _check_object_match),
    JWTRule: (_check_jwt,),
    WorkloadEntrySpec: (_check_endpoint,),
}
