"""Istio's standard metrics in dialect `envoy`: access loggers that count, with Istio's labels as tags.

In: what is counted on one side, and whether the chain terminates mutual TLS. Out: loggers for connection managers and
TCP proxies, and the filter that finds out once a request what all its counters say. Tags are formatted for each metric,
so whatever can be a literal of the chain is one, and words for missing values are put in once, into filter state.
Every logger names the same `sharing_name`: the series outlive an update of the listener. No Envoy counts bytes of TCP
before the connection ends.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from mizzen import protos
from mizzen.compile.filters import expressions, peers
from mizzen.compile.filters.dialect import Side
from mizzen.compile.filters.metrics import Metrics

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_accesslog_v3 = protos.package("envoy.config.accesslog.v3")
_stats_v3 = protos.package("envoy.extensions.access_loggers.stats.v3")
_set_filter_state_v3 = protos.package("envoy.extensions.filters.http.set_filter_state.v3")

SCOPE = {"prefix": "wasmcustom", "sharing_name": "istio"}
"""The prefix that Envoy leaves out of Prometheus names, and the name under which all loggers share their series."""

_PROTOCOL = "mizzen.request_protocol"
_IS_GRPC = "'content-type' in request.headers && request.headers['content-type'].startsWith('application/grpc')"
_ONE = {"value_fixed": {"value": 1}}
_UNKNOWN = "unknown"


@functools.cache
def build_protocol_filter() -> Any:
    """The HTTP filter that finds whether a request is gRPC; evaluating it once costs less than for each metric."""
    state = {
        "object_key": _PROTOCOL,
        "factory_key": "envoy.string",
        "format_string": {"text_format_source": {"inline_string": f"%CEL({_IS_GRPC} ? 'grpc' : 'http')%"}},
    }
    config = _set_filter_state_v3.Config(on_request_headers=[state])
    return _hcm_v3.HttpFilter(name="mizzen.protocol", typed_config=protos.pack(config))


@functools.lru_cache(maxsize=256)
def build_http_logger(side: Side, metrics: Metrics, *, mutual_tls: bool) -> Any:
    """The logger of a connection manager."""
    tags = dict(_tags(side, http=True, mutual_tls=mutual_tls))
    histograms = (
        ("request_duration_milliseconds", "Milliseconds", "%DURATION%"),
        ("request_bytes", "Bytes", "%DOWNSTREAM_WIRE_BYTES_RECEIVED%"),
        ("response_bytes", "Bytes", "%DOWNSTREAM_WIRE_BYTES_SENT%"),
    )
    return _logger(
        "mizzen.metrics.http",
        [{"stat": _stat("requests_total", tags, metrics), **_ONE}],
        [{"stat": _stat(name, tags, metrics), "unit": unit, "value_format": value} for name, unit, value in histograms],
    )


@functools.lru_cache(maxsize=256)
def build_tcp_loggers(side: Side, metrics: Metrics, *, mutual_tls: bool) -> tuple[Any, ...]:
    """The loggers of a TCP proxy, for its connections' beginnings and ends."""
    tags = dict(_tags(side, http=False, mutual_tls=mutual_tls))
    opened = [{"stat": _stat("tcp_connections_opened_total", tags, metrics), **_ONE}]
    closed = [
        {"stat": _stat("tcp_connections_closed_total", tags, metrics), **_ONE},
        {"stat": _stat("tcp_sent_bytes_total", tags, metrics), "value_format": "%BYTES_SENT%"},
        {"stat": _stat("tcp_received_bytes_total", tags, metrics), "value_format": "%BYTES_RECEIVED%"},
    ]
    return (
        _logger("mizzen.metrics.opened", opened, [], log_type="TcpUpstreamConnected"),
        _logger("mizzen.metrics.closed", closed, [], log_type="TcpConnectionEnd"),
    )


def _logger(name: str, counters: list[Any], histograms: list[Any], *, log_type: str = "") -> Any:
    config = _stats_v3.Config(
        stats_scope=SCOPE,
        counters=[c for c in counters if c["stat"]],
        histograms=[h for h in histograms if h["stat"]],
    )
    only = {"filter": {"log_type_filter": {"types": [log_type]}}} if log_type else {}
    return _accesslog_v3.AccessLog(name=name, typed_config=protos.pack(config), **only)


def _stat(name: str, tags: dict[str, str], metrics: Metrics) -> dict[str, Any] | None:
    """One stat with its labels, changed as Telemetry asks; None when it is dropped.

    As with `istio.stats`, an expression that cannot be read changes nothing.
    """
    chosen = dict(tags)
    for override in metrics.overrides:
        if override.name != name:
            continue
        if override.drop:
            return None
        for label, expression in override.dimensions:
            text = expressions.translate(expression, "value")
            if text is not None:
                chosen[label] = f"%CEL({text})%"
        for label in override.removed:
            chosen.pop(label, None)
    return {
        "name": f"istio_{name}",
        "tags": [{"name": label, "value_format": value} for label, value in chosen.items()],
    }


# -- labels -----------------------------------------------------------------------------------------------------------


def _tags(side: Side, *, http: bool, mutual_tls: bool) -> Iterator[tuple[str, str]]:
    """Istio's labels, in Istio's order."""
    client = side != "inbound"
    known_peer = http and mutual_tls
    yield "reporter", "source" if client else "destination"
    yield from _workload("source", _own if client else _peer_of_server if known_peer else lambda _: _UNKNOWN)
    yield from _workload("destination", _peer_of_client if client else _own)
    yield from _principals(client=client, mutual_tls=mutual_tls)
    yield from _destination(side, http=http)
    yield "request_protocol", f"%FILTER_STATE({_PROTOCOL}:PLAIN)%" if http else "tcp"
    if http:
        yield "response_code", "%RESPONSE_CODE%"
        yield "grpc_response_status", "%GRPC_STATUS_NUMBER%"
    yield "response_flags", "%RESPONSE_FLAGS%"
    yield "connection_security_policy", _UNKNOWN if client else "mutual_tls" if mutual_tls else "none"


def _workload(role: str, value: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    yield f"{role}_workload", value("workload")
    yield f"{role}_workload_namespace", value("namespace")
    yield f"{role}_canonical_service", value("canonical_service")
    yield f"{role}_canonical_revision", value("canonical_revision")
    yield f"{role}_app", value("app")
    yield f"{role}_version", value("version")
    yield f"{role}_cluster", value("cluster")


def _principals(*, client: bool, mutual_tls: bool) -> Iterator[tuple[str, str]]:
    if client:
        yield "source_principal", peers.first_of("UPSTREAM_LOCAL_URI_SAN")
        yield "destination_principal", peers.first_of("UPSTREAM_PEER_URI_SAN")
    else:
        yield "source_principal", peers.first_of("DOWNSTREAM_PEER_URI_SAN") if mutual_tls else _UNKNOWN
        yield "destination_principal", peers.first_of("DOWNSTREAM_LOCAL_URI_SAN") if mutual_tls else _UNKNOWN


def _destination(side: Side, *, http: bool) -> Iterator[tuple[str, str]]:
    """The service that was called; only sidecars' clients may fall back to what the request says."""
    asked = (("REQ", ":authority"),) if side == "outbound" and http else ()
    yield "destination_service", peers.first_of(_cluster("host"), *asked)
    yield "destination_service_name", peers.first_of(_cluster("service"), "UPSTREAM_CLUSTER_RAW")
    if side == "inbound":
        yield "destination_service_namespace", _own("namespace")
    else:
        yield "destination_service_namespace", peers.first_of(_cluster("namespace"), _endpoint("namespace"))


def _own(key: str) -> str:
    return next(f"%ENVIRONMENT({fact.variable})%" for fact in peers.FACTS if fact.key == key)


def _peer_of_client(key: str) -> str:
    return peers.first_of(_endpoint(key))


def _peer_of_server(key: str) -> str:
    return next(f"%FILTER_STATE({fact.state}:PLAIN)%" for fact in peers.FACTS if fact.key == key)


def _cluster(key: str) -> tuple[str, str]:
    return ("METADATA", f"CLUSTER:{peers.METADATA}:{key}")


def _endpoint(key: str) -> tuple[str, str]:
    return ("UPSTREAM_METADATA", f"{peers.METADATA}:{key}")
