"""What Istio's public Grafana dashboards and Kiali ask Prometheus: names of metrics, and the labels they select or group by.

Names alone, as facts: the Mesh, Service, Workload and Control Plane dashboards of Istio 1.2x, and Kiali's graph,
traffic, metrics and health queries. What a cluster brings (`container_*`, `kube_*`) is left out.
"""

from collections.abc import Mapping

_DESTINATION = ("destination_service", "destination_workload", "destination_workload_namespace")
_SOURCE = ("source_workload", "source_workload_namespace")
_SERVICE = ("reporter", "connection_security_policy", "source_cluster", "destination_cluster", *_SOURCE, *_DESTINATION)
_TCP = ("istio_tcp_received_bytes_total", "istio_tcp_sent_bytes_total")
_SIZES = ("istio_request_bytes", "istio_response_bytes", "istio_request_duration_milliseconds")

GRAFANA: Mapping[str, tuple[str, ...]] = {
    "istio_requests_total": (*_SERVICE, "response_code"),
    **{f"{name}_bucket": (*_SERVICE, "le") for name in _SIZES},
    **dict.fromkeys(_TCP, _SERVICE),
}
"""The Mesh, Service and Workload dashboards, of proxies."""

_KIALI = (
    *("reporter", "source_cluster", "source_workload", "source_workload_namespace", "source_principal"),
    *("source_canonical_service", "source_canonical_revision"),
    *("destination_cluster", "destination_service", "destination_service_name", "destination_service_namespace"),
    *("destination_workload", "destination_workload_namespace", "destination_principal"),
    *("destination_canonical_service", "destination_canonical_revision"),
    *("request_protocol", "response_flags", "connection_security_policy"),
)
_KIALI_HTTP = (*_KIALI, "response_code", "grpc_response_status")

KIALI: Mapping[str, tuple[str, ...]] = {
    "istio_requests_total": _KIALI_HTTP,
    **{f"{name}_{part}": _KIALI_HTTP for name in _SIZES for part in ("bucket", "sum", "count")},
    **dict.fromkeys((*_TCP, "istio_tcp_connections_opened_total", "istio_tcp_connections_closed_total"), _KIALI),
}
"""Kiali, of proxies."""

UNREACHABLE = ("istio_request_messages_total", "istio_response_messages_total")
"""What Kiali asks for gRPC streams beside these, and no upstream Envoy can count."""

PROXY_ITSELF: Mapping[str, tuple[str, ...]] = {
    "envoy_cluster_upstream_cx_active": ("cluster_name",),
    "envoy_cluster_upstream_cx_total": ("cluster_name",),
    "envoy_server_live": (),
    "envoy_server_uptime": (),
    "envoy_server_memory_allocated": (),
    "envoy_server_memory_heap_size": (),
    "process_cpu_seconds_total": (),
    "istio_agent_startup_duration_seconds": (),
}
"""Of the proxy's own state."""

CONTROL_PLANE: Mapping[str, tuple[str, ...]] = {
    "istio_build": ("component", "tag"),
    "pilot_xds": ("version",),
    "pilot_xds_pushes": ("type",),
    "pilot_xds_push_time_bucket": ("type", "le"),
    "pilot_xds_send_time_bucket": ("le",),
    "pilot_xds_config_size_bytes_bucket": ("type", "le"),
    "pilot_proxy_convergence_time_bucket": ("le",),
    "pilot_proxy_convergence_time_sum": (),
    "pilot_proxy_convergence_time_count": (),
    "pilot_proxy_queue_time_bucket": ("le",),
    "pilot_push_triggers": ("type",),
    "pilot_inbound_updates": ("type",),
    "pilot_services": (),
    "pilot_virt_services": (),
    "citadel_server_csr_count": (),
    "citadel_server_success_cert_issuance_count": (),
    "citadel_server_root_cert_expiry_timestamp": (),
    "process_cpu_seconds_total": (),
    "process_resident_memory_bytes": (),
}
"""The Control Plane dashboard and Kiali's health of the control plane: what is there whenever one serves."""
