"""Istio's standard metrics: what is counted, and the filter `istio.stats` that counts it.

In: `Metrics`, what Telemetry decided for one side of a proxy. Out: HTTP and network filters of dialect `istio`;
dialect `envoy` has `metric_loggers`. Golden cases: base, telemetry/metrics-overrides.
"""

import functools
from typing import Any

import msgspec

from mizzen import protos
from mizzen.api.scalars import Duration
from mizzen.compile.filters.dialect import Side

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_listener_v3 = protos.package("envoy.config.listener.v3")
_istio_stats = protos.package("stats")

FILTER = "istio.stats"


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

    def changes_any(self, labels: frozenset[str]) -> bool:
        """Whether any of these labels is set or removed on any metric."""
        return any(
            label in labels
            for override in self.overrides
            for label in (*override.removed, *(label for label, _ in override.dimensions))
        )


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
