"""Istio's standard metrics in dialect `envoy`: access loggers that count.

In: what is counted on one side, and whether the chain terminates mutual TLS. Out: loggers for connection managers and
TCP proxies, and the filter that finds out once a request what all its counters say. Their tags are in `metric_labels`.
Every logger names the same `sharing_name`: the series outlive an update of the listener. No Envoy counts bytes of TCP
before the connection ends.
"""

import functools
import re
from collections.abc import Iterator
from typing import Any

from mizzen import protos
from mizzen.compile.filters import expressions, metric_labels
from mizzen.compile.filters.dialect import Side
from mizzen.compile.filters.metric_labels import Group
from mizzen.compile.filters.metrics import MetricOverride, Metrics

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_accesslog_v3 = protos.package("envoy.config.accesslog.v3")
_stats_v3 = protos.package("envoy.extensions.access_loggers.stats.v3")
_set_filter_state_v3 = protos.package("envoy.extensions.filters.http.set_filter_state.v3")

SCOPE = {"prefix": "wasmcustom", "sharing_name": "istio"}
"""The prefix that Envoy leaves out of Prometheus names, and the name under which all loggers share their series."""

_IS_GRPC = "'content-type' in request.headers && request.headers['content-type'].startsWith('application/grpc')"
_ONE = {"value_fixed": {"value": 1}}
_CONSTANT = re.compile(r"""'([^'\\%]+)'|"([^"\\%]+)\"""")


@functools.cache
def build_protocol_filter() -> Any:
    """The HTTP filter that finds whether a request is gRPC; evaluating it once costs less than for each metric."""
    state = {
        "object_key": metric_labels.PROTOCOL_STATE,
        "factory_key": "envoy.string",
        "format_string": {"text_format_source": {"inline_string": f"%CEL({_IS_GRPC} ? 'grpc' : 'http')%"}},
    }
    config = _set_filter_state_v3.Config(on_request_headers=[state])
    return _hcm_v3.HttpFilter(name="mizzen.protocol", typed_config=protos.pack(config))


@functools.lru_cache(maxsize=256)
def build_http_logger(side: Side, metrics: Metrics, *, mutual_tls: bool) -> Any:
    """The logger of a connection manager."""
    labels = tuple(metric_labels.groups(side, http=True, mutual_tls=mutual_tls))
    histograms = (
        ("request_duration_milliseconds", "Milliseconds", "%DURATION%"),
        ("request_bytes", "Bytes", "%DOWNSTREAM_WIRE_BYTES_RECEIVED%"),
        ("response_bytes", "Bytes", "%DOWNSTREAM_WIRE_BYTES_SENT%"),
    )
    return _logger(
        "mizzen.metrics.http",
        [{"stat": _stat("requests_total", labels, metrics), **_ONE}],
        [
            {"stat": _stat(name, labels, metrics), "unit": unit, "value_format": value}
            for name, unit, value in histograms
        ],
    )


@functools.lru_cache(maxsize=256)
def build_tcp_loggers(side: Side, metrics: Metrics, *, mutual_tls: bool) -> tuple[Any, ...]:
    """The loggers of a TCP proxy, for its connections' beginnings and ends."""
    labels = tuple(metric_labels.groups(side, http=False, mutual_tls=mutual_tls))
    opened = [{"stat": _stat("tcp_connections_opened_total", labels, metrics), **_ONE}]
    closed = [
        {"stat": _stat("tcp_connections_closed_total", labels, metrics), **_ONE},
        {"stat": _stat("tcp_sent_bytes_total", labels, metrics), "value_format": "%BYTES_SENT%"},
        {"stat": _stat("tcp_received_bytes_total", labels, metrics), "value_format": "%BYTES_RECEIVED%"},
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


def _stat(name: str, groups: tuple[Group, ...], metrics: Metrics) -> dict[str, Any] | None:
    """One stat with its labels, changed as Telemetry asks; None when it is dropped."""
    override = next((each for each in metrics.overrides if each.name == name), MetricOverride(name=name))
    if override.drop:
        return None
    written = dict(_written(override))
    changed = frozenset((*written, *override.removed))
    tags = {label: value for group in groups for label, value in group.tags(changed).items()}
    tags = {label: value for label, value in (tags | written).items() if label not in override.removed}
    return {
        "name": f"istio_{name}",
        "tags": [{"name": label, "value_format": value} for label, value in tags.items()],
    }


def _written(override: MetricOverride) -> Iterator[tuple[str, str]]:
    """The labels that a Telemetry sets. As with `istio.stats`, an expression that cannot be read changes nothing."""
    for label, expression in override.dimensions:
        constant = _CONSTANT.fullmatch(expression.strip())
        text = expressions.translate(expression, "value")
        if not label or text is None:
            continue
        # A constant needs no evaluation for every request.
        yield label, (constant[1] or constant[2]) if constant is not None else f"%CEL({text})%"
