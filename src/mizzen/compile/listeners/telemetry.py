"""Telemetry: which logs, metrics and traces hold for one side of a proxy.

In: the proxy's profile, with the Telemetries that hold for it. Out: `Signals`, shared by all proxies of that profile.
Where neither a Telemetry nor a default provider says anything, the older settings of mesh and proxy hold.
Golden cases: telemetry/*, networking/mesh-http-settings, base.
"""

from collections.abc import Iterator

import msgspec

from mizzen.compile.filters.access_logs import AccessLog
from mizzen.compile.filters.dialect import Side
from mizzen.compile.filters.metrics import MetricOverride, Metrics
from mizzen.compile.filters.tracing import Tracing
from mizzen.compile.listeners import log_sinks, traces
from mizzen.compile.listeners.profiles import Profile
from mizzen.incremental import Engine, query
from mizzen.model import mesh, providers, telemetry
from mizzen.model.telemetry import LogChoice, MetricChange, Mode

_SERIES = {
    "REQUEST_COUNT": "requests_total",
    "REQUEST_DURATION": "request_duration_milliseconds",
    "REQUEST_SIZE": "request_bytes",
    "RESPONSE_SIZE": "response_bytes",
    "TCP_OPENED_CONNECTIONS": "tcp_connections_opened_total",
    "TCP_CLOSED_CONNECTIONS": "tcp_connections_closed_total",
    "TCP_SENT_BYTES": "tcp_sent_bytes_total",
    "TCP_RECEIVED_BYTES": "tcp_received_bytes_total",
    "GRPC_REQUEST_MESSAGES": "request_messages_total",
    "GRPC_RESPONSE_MESSAGES": "response_messages_total",
}


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """What one side of a proxy reports."""

    access_logs: tuple[AccessLog, ...] = ()
    listener_logs: tuple[AccessLog, ...] = ()
    """Those of listeners, for connections that no chain takes."""
    metrics: Metrics | None = None
    tracing: Tracing | None = None
    sample_by_request_id: bool = True


@query
def signals(db: Engine, own: Profile, side: Side) -> Signals:
    """What the proxies of a profile report of one side."""
    mode: Mode = "SERVER" if side == "inbound" else "CLIENT"
    config = mesh.mesh_config(db)
    choices = telemetry.access_logs(db, own.telemetries, mode)
    logs = _logs(db, choices, listener=False)
    choice = telemetry.traces(db, own.telemetries, mode)
    if choice is not None:
        tracing = traces.chosen_tracing(db, own, choice)
    else:
        tracing = traces.own_tracing(db, own) if config.enable_tracing else None
    return Signals(
        access_logs=logs,
        listener_logs=() if config.disable_envoy_listener_log else _logs(db, choices, listener=True),
        metrics=_metrics(db, own, mode),
        tracing=tracing,
        sample_by_request_id=choice is None or choice.sample_by_request_id,
    )


def _logs(db: Engine, choices: tuple[LogChoice, ...] | None, *, listener: bool) -> tuple[AccessLog, ...]:
    if choices is None:
        return tuple(log_sinks.mesh_logs(mesh.mesh_config(db), listener=listener))
    return tuple(_chosen_logs(db, choices))


def _chosen_logs(db: Engine, choices: tuple[LogChoice, ...]) -> Iterator[AccessLog]:
    for choice in choices:
        sink = log_sinks.sink(db, choice.provider)
        if sink is not None:
            yield AccessLog(sink=sink, expression=choice.expression)


def _metrics(db: Engine, own: Profile, mode: Mode) -> Metrics | None:
    """What the first provider counts that is Prometheus; no other kind counts."""
    for choice in telemetry.metrics(db, own.telemetries, mode):
        found = providers.provider_in_any_case(db, choice.provider)
        if found is not None and found.prometheus is not None:
            overrides = tuple(_override(change) for change in choice.changes)
            return Metrics(overrides=overrides, reporting_interval=choice.reporting_interval)
    return None


def _override(change: MetricChange) -> MetricOverride:
    return MetricOverride(
        name=_SERIES.get(change.metric, change.metric),
        drop=change.drop,
        dimensions=tuple((tag.label, tag.expression) for tag in change.tags if tag.expression is not None),
        removed=tuple(tag.label for tag in change.tags if tag.expression is None),
    )
