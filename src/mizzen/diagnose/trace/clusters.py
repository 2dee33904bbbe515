"""Clusters: what kind one is, what limits it has, and what it was made from.

In: a cluster as protobuf JSON. Out: small facts that the walk and the causes read.
"""

from typing import Literal

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.model import names

_DEFAULT_LIMIT = 1024
"""Envoy's own, where nothing is said."""
_UNLIMITED = 4294967295
_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_LIMITS = (
    ("max_connections", "connections"),
    ("max_pending_requests", "pending requests"),
    ("max_requests", "requests"),
    ("max_retries", "retries"),
)

Speaks = Literal["http/1.1", "http/2", "downstream"]


def discovery(cluster: Json) -> str:
    """How its hosts are found: STATIC, EDS, STRICT_DNS, LOGICAL_DNS, ORIGINAL_DST, or the name of a custom type."""
    custom = dump.text(cluster, "cluster_type", "name")
    if custom == "envoy.cluster.dns":
        return "STRICT_DNS"
    return custom or dump.text(cluster, "type") or "STATIC"


def limits(cluster: Json) -> str:
    """The circuit breaker's limits that are below the highest number; empty where there are none."""
    found = []
    for threshold in dump.items(cluster, "circuit_breakers", "thresholds"):
        if dump.text(threshold, "priority") in ("", "DEFAULT"):
            for field, title in _LIMITS:
                value = dump.field(threshold, field)
                if isinstance(value, int) and value < _UNLIMITED:
                    found.append(f"{title} {value}")
    return ", ".join(found)


def capacity(cluster: Json) -> int:
    """How many requests at once the circuit breaker lets through: in flight, or waiting for a connection."""
    for threshold in dump.items(cluster, "circuit_breakers", "thresholds"):
        if dump.text(threshold, "priority") in ("", "DEFAULT"):
            connections, pending, requests = (
                _limit(threshold, name) for name in ("max_connections", "max_pending_requests", "max_requests")
            )
            return min(requests, connections + pending)
    return 2 * _DEFAULT_LIMIT


def _limit(threshold: Json, name: str) -> int:
    value = dump.field(threshold, name)
    return int(value) if isinstance(value, int) else _DEFAULT_LIMIT


def speaks(cluster: Json) -> Speaks:
    """The HTTP version towards the hosts."""
    options = dump.message(cluster, "typed_extension_protocol_options", _HTTP_OPTIONS)
    if "useDownstreamProtocolConfig" in options:
        return "downstream"
    explicit = dump.message(options, "explicit_http_config")
    return "http/2" if "http2ProtocolOptions" in explicit or "http2ProtocolOptions" in cluster else "http/1.1"


def is_inbound(name: str) -> bool:
    """Whether the cluster is the program behind a sidecar."""
    return name.startswith("inbound|") or name == names.INBOUND_PASSTHROUGH
