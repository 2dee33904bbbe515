"""Istio's standard metrics: `istio.stats`, or in dialect `envoy` the access logger that counts the same.

In: `Metrics`, what Telemetry decided for one side of a proxy. Out: HTTP and network filters (dialect `istio`), or
loggers whose tags are Istio's labels (dialect `envoy`). There, everything conditional is a literal chosen by chain or
logger, because expressions cost twice the counting; every logger names the same `sharing_name`, so that the series
outlive an update of the listener. Golden cases: base, telemetry/metrics-overrides.
"""

import functools
from collections.abc import Iterator
from typing import Any

import msgspec

from mizzen import protos
from mizzen.api.scalars import Duration
from mizzen.compile.filters import peers
from mizzen.compile.filters.dialect import Side

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_listener_v3 = protos.package("envoy.config.listener.v3")
_accesslog_v3 = protos.package("envoy.config.accesslog.v3")
_stats_v3 = protos.package("envoy.extensions.access_loggers.stats.v3")
_istio_stats = protos.package("stats")

FILTER = "istio.stats"

SCOPE = {"prefix": "wasmcustom", "sharing_name": "istio"}
"""The prefix that Envoy leaves out of Prometheus names, and the name under which all loggers share their series."""


class MetricOverride(msgspec.Struct, frozen=True, kw_only=True):
    """What a Telemetry changes about one metric, under the metric's Prometheus name without `istio_`."""

    name: str
    drop: bool = False
    dimensions: tuple[tuple[str, str], ...] = ()
    """Labels set or replaced by a CEL expression, sorted by label."""
    removed: tuple[str, ...] = ()


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """The standard metrics of one side."""

    overrides: tuple[MetricOverride, ...] = ()
    reporting_interval: Duration | None = None


# -- dialect istio ----------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def _plugin(side: Side, metrics: Metrics) -> Any:
    config = _istio_stats.PluginConfig(
        disable_host_header_fallback=side != "outbound",
        metrics=[
            {
                "name": override.name,
                "drop": override.drop,
                "dimensions": dict(override.dimensions),
                "tags_to_remove": override.removed,
            }
            for override in metrics.overrides
        ],
    )
    if metrics.reporting_interval is not None:
        config.tcp_reporting_duration.MergeFrom(
            type(config.tcp_reporting_duration)(**metrics.reporting_interval.protobuf())
        )
    return protos.pack(config)


def build_http_filter(side: Side, metrics: Metrics) -> Any:
    """`istio.stats` among HTTP filters."""
    return _hcm_v3.HttpFilter(name=FILTER, typed_config=_plugin(side, metrics))


def build_network_filter(side: Side, metrics: Metrics) -> Any:
    """`istio.stats` among network filters."""
    return _listener_v3.Filter(name=FILTER, typed_config=_plugin(side, metrics))


# -- dialect envoy ----------------------------------------------------------------------------------------------------

_UNKNOWN = {"command": "ENVIRONMENT", "param": peers.UNKNOWN_VARIABLE}
_GRPC = "application/grpc"


def _first_of(*operators: str | tuple[str, str]) -> str:
    """The first operator that yields something, else the word `unknown`."""
    listed = [o if isinstance(o, str) else {"command": o[0], "param": o[1]} for o in operators]
    text = msgspec.json.encode({"operators": [*listed, _UNKNOWN]}).decode()
    return f"%COALESCE({text})%"


def _own(key: str) -> str:
    return next(f"%ENVIRONMENT({fact.variable})%" for fact in peers.FACTS if fact.key == key)


def _peer_of_client(key: str) -> str:
    return _first_of(("UPSTREAM_METADATA", f"{peers.METADATA}:{key}"))


def _peer_of_server(key: str) -> str:
    return _first_of(("FILTER_STATE", f"mizzen.peer.{key}:PLAIN"))


def _workload_tags(role: str, value: Any) -> Iterator[tuple[str, str]]:
    yield f"{role}_workload", value("workload")
    yield f"{role}_workload_namespace", value("namespace")
    yield f"{role}_canonical_service", value("canonical_service")
    yield f"{role}_canonical_revision", value("canonical_revision")
    yield f"{role}_app", value("app")
    yield f"{role}_version", value("version")
    yield f"{role}_cluster", value("cluster")


def _tags(side: Side, *, http: bool, grpc: bool, mutual_tls: bool) -> Iterator[tuple[str, str]]:
    """Istio's labels in any order: a series is what its labels say."""
    client = side != "inbound"
    yield "reporter", "source" if client else "destination"
    yield from _workload_tags("source", _own if client else _peer_of_server if http else lambda _: _first_of())
    yield from _workload_tags("destination", _peer_of_client if client else _own)
    if client:
        yield "source_principal", _first_of("UPSTREAM_LOCAL_URI_SAN")
        yield "destination_principal", _first_of("UPSTREAM_PEER_URI_SAN")
    else:
        yield "source_principal", _first_of("DOWNSTREAM_PEER_URI_SAN")
        yield "destination_principal", _first_of("DOWNSTREAM_LOCAL_URI_SAN")
    fallback: tuple[tuple[str, str], ...] = (("REQ", ":authority"),) if side == "outbound" and http else ()
    yield "destination_service", _first_of(("METADATA", f"CLUSTER:{peers.METADATA}:host"), *fallback)
    yield (
        "destination_service_name",
        _first_of(("METADATA", f"CLUSTER:{peers.METADATA}:service"), "UPSTREAM_CLUSTER_RAW"),
    )
    yield "destination_service_namespace", _destination_namespace() if client else _own("namespace")
    yield "request_protocol", "tcp" if not http else "grpc" if grpc else "http"
    if http:
        yield "response_code", "%RESPONSE_CODE%"
        yield "grpc_response_status", "%GRPC_STATUS_NUMBER%" if grpc else ""
    yield "response_flags", "%RESPONSE_FLAGS%"
    yield "connection_security_policy", "unknown" if client else "mutual_tls" if mutual_tls else "none"


def _destination_namespace() -> str:
    of_cluster, of_endpoint = f"CLUSTER:{peers.METADATA}:namespace", f"{peers.METADATA}:namespace"
    return _first_of(("METADATA", of_cluster), ("UPSTREAM_METADATA", of_endpoint))


def _stat(name: str, tags: dict[str, str], metrics: Metrics) -> dict[str, Any] | None:
    """One stat with its labels, changed as Telemetry asks; None when it is dropped."""
    chosen = dict(tags)
    for override in metrics.overrides:
        if override.name != name:
            continue
        if override.drop:
            return None
        for label, expression in override.dimensions:
            chosen[label] = f"%CEL({expression})%"
        for label in override.removed:
            chosen.pop(label, None)
    return {
        "name": f"istio_{name}",
        "tags": [{"name": label, "value_format": value} for label, value in chosen.items() if value],
    }


def _logger(name: str, only: dict[str, Any], counters: list[Any], histograms: list[Any]) -> Any:
    config = _stats_v3.Config(
        stats_scope=SCOPE,
        counters=[c for c in counters if c["stat"]],
        histograms=[h for h in histograms if h["stat"]],
    )
    return _accesslog_v3.AccessLog(name=name, filter=only, typed_config=protos.pack(config))


@functools.lru_cache(maxsize=256)
def build_http_loggers(side: Side, metrics: Metrics, *, mutual_tls: bool) -> tuple[Any, ...]:
    """Dialect `envoy`: the loggers of a connection manager, one for gRPC and one for the rest."""
    return tuple(_http_logger(side, metrics, mutual_tls=mutual_tls, grpc=grpc) for grpc in (False, True))


def _http_logger(side: Side, metrics: Metrics, *, mutual_tls: bool, grpc: bool) -> Any:
    header: dict[str, Any] = {"name": "content-type", "string_match": {"prefix": _GRPC}}
    if not grpc:
        header |= {"invert_match": True, "treat_missing_header_as_empty": True}
    tags = dict(_tags(side, http=True, grpc=grpc, mutual_tls=mutual_tls))
    histograms = (
        ("request_duration_milliseconds", "Milliseconds", "%DURATION%"),
        ("request_bytes", "Bytes", "%DOWNSTREAM_WIRE_BYTES_RECEIVED%"),
        ("response_bytes", "Bytes", "%DOWNSTREAM_WIRE_BYTES_SENT%"),
    )
    return _logger(
        "mizzen.metrics.grpc" if grpc else "mizzen.metrics.http",
        {"header_filter": {"header": header}},
        [{"stat": _stat("requests_total", tags, metrics), "value_fixed": {"value": 1}}],
        [{"stat": _stat(name, tags, metrics), "unit": unit, "value_format": value} for name, unit, value in histograms],
    )


@functools.lru_cache(maxsize=256)
def build_tcp_loggers(side: Side, metrics: Metrics, *, mutual_tls: bool) -> tuple[Any, ...]:
    """Dialect `envoy`: the loggers of a TCP proxy, for its connections' beginnings and ends."""
    tags = dict(_tags(side, http=False, grpc=False, mutual_tls=mutual_tls))

    def counter(name: str, value: dict[str, Any]) -> dict[str, Any]:
        return {"stat": _stat(name, tags, metrics), **value}

    one = {"value_fixed": {"value": 1}}
    opened = [counter("tcp_connections_opened_total", one)]
    closed = [
        counter("tcp_connections_closed_total", one),
        counter("tcp_sent_bytes_total", {"value_format": "%BYTES_SENT%"}),
        counter("tcp_received_bytes_total", {"value_format": "%BYTES_RECEIVED%"}),
    ]
    return (
        _logger("mizzen.metrics.opened", {"log_type_filter": {"types": ["TcpUpstreamConnected"]}}, opened, []),
        _logger("mizzen.metrics.closed", {"log_type_filter": {"types": ["TcpConnectionEnd"]}}, closed, []),
    )
