"""Connection pools, retry budgets and outlier detection of a DestinationRule, written into a cluster's draft.

Golden cases: networking/dr-connection-pool, networking/dr-outlier-detection, networking/mesh-connections.
"""

from typing import Any

from mizzen.api.mesh.config import MeshConfig
from mizzen.api.networking.traffic_policy import (
    ConnectionPoolSettings,
    HTTPSettings,
    OutlierDetection,
    RetryBudget,
    TcpKeepalive,
    TCPSettings,
)
from mizzen.compile.clusters.draft import Draft
from mizzen.compile.upstreams import select_upstream
from mizzen.compile.values import duration, percent, wrapped
from mizzen.model.protocols import Protocol

_MILLISECOND = 1_000_000
_DEFAULT_BUDGET_PERCENT = 20.0
_DEFAULT_BUDGET_CONCURRENCY = 3


def apply_connection_pool(draft: Draft, pool: ConnectionPoolSettings | None, mesh: MeshConfig) -> None:
    """Limits and timeouts; the mesh's keepalive lies beneath the pool's, field by field."""
    tcp = (pool.tcp if pool is not None else None) or TCPSettings()
    http = (pool.http if pool is not None else None) or HTTPSettings()
    connect = tcp.connect_timeout if tcp.connect_timeout is not None else mesh.connect_timeout
    if connect is not None:
        draft.fields["connect_timeout"] = duration(connect)
    if draft.thresholds is not None:
        limits = {
            "max_connections": tcp.max_connections,
            "max_pending_requests": http.http1_max_pending_requests,
            "max_requests": http.http2_max_requests,
            "max_retries": http.max_retries,
        }
        draft.thresholds.update({name: wrapped(value) for name, value in limits.items() if value > 0})
    keepalive = _keepalive(mesh.tcp_keepalive, tcp.tcp_keepalive)
    if keepalive is not None:
        draft.fields["upstream_connection_options"] = {"tcp_keepalive": keepalive}
    idle = http.idle_timeout if http.idle_timeout is not None else tcp.idle_timeout
    if idle is not None:
        draft.http_common()["idle_timeout"] = duration(idle)
    if tcp.max_connection_duration is not None:
        draft.http_common()["max_connection_duration"] = duration(tcp.max_connection_duration)
    if http.max_requests_per_connection > 0:
        draft.http_common()["max_requests_per_connection"] = wrapped(http.max_requests_per_connection)


def _keepalive(mesh: TcpKeepalive | None, own: TcpKeepalive | None) -> dict[str, Any] | None:
    if mesh is None and own is None:
        return None
    below, above = mesh or TcpKeepalive(), own or TcpKeepalive()
    fields: dict[str, Any] = {}
    if probes := above.probes or below.probes:
        fields["keepalive_probes"] = wrapped(probes)
    if (time := above.time if above.time is not None else below.time) is not None:
        fields["keepalive_time"] = wrapped(time // 1_000_000_000)
    if (interval := above.interval if above.interval is not None else below.interval) is not None:
        fields["keepalive_interval"] = wrapped(interval // 1_000_000_000)
    return fields


def apply_http_version(
    draft: Draft,
    pool: ConnectionPoolSettings | None,
    protocol: Protocol,
    mesh: MeshConfig,
    *,
    sniffs: bool,
    upgrades: bool = True,
) -> None:
    """Which HTTP version the destination is spoken to in; see `select_upstream`."""
    http = (pool.http if pool is not None else None) or HTTPSettings()
    draft.upstream = select_upstream(http, protocol, mesh, sniffs=sniffs, upgrades=upgrades)
    if http.max_concurrent_streams or http.http2_keep_alive is not None:
        draft.http_common()
        if draft.upstream == "http2":
            _apply_http2_options(draft, http)


def _apply_http2_options(draft: Draft, http: HTTPSettings) -> None:
    if http.max_concurrent_streams > 0:
        draft.http2_options["max_concurrent_streams"] = wrapped(http.max_concurrent_streams)
    keepalive = http.http2_keep_alive
    fields = {"interval": keepalive.interval, "timeout": keepalive.timeout} if keepalive is not None else {}
    known = {name: value for name, value in fields.items() if value is not None}
    # Without a timeout, or with less than a millisecond of either, Envoy would refuse the cluster.
    if "timeout" in known and min(known.values()) >= _MILLISECOND:
        draft.http2_options["connection_keepalive"] = {name: duration(value) for name, value in known.items()}


def apply_retry_budget(draft: Draft, budget: RetryBudget | None) -> None:
    """Retries as a share of the requests in flight."""
    if budget is None or draft.thresholds is None:
        return
    share = budget.percent if budget.percent is not None else _DEFAULT_BUDGET_PERCENT
    fields: dict[str, Any] = {
        "budget_percent": percent(share),
        "min_retry_concurrency": wrapped(budget.min_retry_concurrency or _DEFAULT_BUDGET_CONCURRENCY),
    }
    if budget.budget_interval is not None:
        fields["budget_interval"] = duration(budget.budget_interval)
    draft.thresholds["retry_budget"] = fields


def apply_outlier_detection(draft: Draft, detection: OutlierDetection | None) -> None:
    """Ejection by errors; success rates are never judged. What is unset keeps Envoy's default."""
    if detection is None:
        return
    fields: dict[str, Any] = {"enforcing_success_rate": {}}
    if (errors := detection.consecutive_5xx_errors) is not None:
        fields["consecutive_5xx"] = wrapped(errors)
        fields["enforcing_consecutive_5xx"] = wrapped(100 if errors else 0)
    if (errors := detection.consecutive_gateway_errors) is not None:
        fields["consecutive_gateway_failure"] = wrapped(errors)
        fields["enforcing_consecutive_gateway_failure"] = wrapped(100 if errors else 0)
    if detection.interval is not None:
        fields["interval"] = duration(detection.interval)
    if detection.base_ejection_time is not None:
        fields["base_ejection_time"] = duration(detection.base_ejection_time)
    if detection.max_ejection_percent > 0:
        fields["max_ejection_percent"] = wrapped(detection.max_ejection_percent)
    if detection.split_external_local_origin_errors:
        fields["split_external_local_origin_errors"] = True
        if failures := detection.consecutive_local_origin_failures or 0:
            fields["consecutive_local_origin_failure"] = wrapped(failures)
            fields["enforcing_consecutive_local_origin_failure"] = wrapped(100)
        fields["enforcing_local_origin_success_rate"] = {}
    draft.fields["outlier_detection"] = fields
    if detection.outlier_detection_http_error_codes:
        draft.outlier_matcher = _status_matcher(detection.outlier_detection_http_error_codes)


def _status_matcher(codes: tuple[int, ...]) -> dict[str, Any]:
    rules: list[dict[str, Any]] = [
        {"http_response_headers_match": {"headers": [{"name": ":status", "string_match": {"exact": str(code)}}]}}
        for code in codes
    ]
    return rules[0] if len(rules) == 1 else {"or_match": {"rules": rules}}
