"""The metrics of Istio's control plane and agent: name, kind (`S` a sum, `G` a gauge, `D` a distribution), labels."""

from typing import NamedTuple


class Metric(NamedTuple):
    kind: str
    labels: frozenset[str]


_CONTROL_PLANE = """
pilot_xds G version
pilot_xds_pushes S type
pilot_xds_push_time D type
pilot_xds_send_time D
pilot_xds_config_size_bytes D type
pilot_proxy_convergence_time D
pilot_proxy_queue_time D
pilot_debounce_time D
pilot_pushcontext_init_seconds D
pilot_push_triggers S type
pilot_inbound_updates S type
pilot_xds_expired_nonce S type
pilot_total_xds_rejects S type
pilot_xds_cds_reject G node err
pilot_xds_eds_reject G node err
pilot_xds_lds_reject G node err
pilot_xds_rds_reject G node err
pilot_total_xds_internal_errors S
pilot_xds_write_timeout S
pilot_xds_recv_max G
pilot_sds_certificate_errors_total S
pilot_services G
pilot_virt_services G
pilot_destrule_subsets G
pilot_vservice_dup_domain G
pilot_conflict_inbound_listener G
pilot_conflict_outbound_listener_tcp_over_current_tcp G
pilot_duplicate_envoy_clusters G
pilot_eds_no_instances G
pilot_dns_cluster_without_endpoints G
pilot_no_ip G
pilot_endpoint_not_ready G
endpoint_no_pod G
pilot_total_rejected_configs S type name
pilot_envoy_filter_status G name patch result
pilot_k8s_reg_events S type event
pilot_k8s_cfg_events S type event
pilot_k8s_endpoints_with_no_pods S
pilot_k8s_endpoints_pending_pod G
pilot_k8s_proxies_with_no_service_targets S reason
pilot_jwks_resolver_network_fetch_success_total S
pilot_jwks_resolver_network_fetch_fail_total S
pilot_worker_queue_depth G queueID
pilot_worker_queue_latency D queueID
pilot_worker_queue_duration D queueID
pilot_info G version
istio_build G component tag
istiod_uptime_seconds G
xds_cache_reads S type
xds_cache_evictions S
xds_cache_size G
xds_cache_dependent_config_size G
provider_lookup_cluster_failures S type
controller_sync_errors_total S cluster
remote_cluster_sync_timeouts_total S cluster
istiod_managed_clusters G cluster_type
istiod_remote_cluster_sync_status G cluster status
remote_cluster_secret_events_total S event
auto_registration_success_total S
auto_registration_updates_total S
auto_registration_unregister_total S
auto_registration_deletes_total S
auto_registration_errors_total S
galley_validation_passed S group version resource
galley_validation_failed S group version resource reason
galley_validation_http_error S status
galley_validation_config_updates S
galley_validation_config_update_error S reason
galley_validation_config_load_error S reason
webhook_patch_attempts_total S name
webhook_patch_retries_total S name
webhook_patch_failures_total S name reason
sidecar_injection_requests_total S
sidecar_injection_success_total S
sidecar_injection_failure_total S
sidecar_injection_skip_total S
sidecar_injection_time_seconds D
citadel_server_csr_count S
citadel_server_csr_parsing_err_count S
citadel_server_id_extraction_err_count S
citadel_server_success_cert_issuance_count S
citadel_server_authentication_failure_count S
citadel_server_csr_sign_err_count S error
citadel_server_root_cert_expiry_timestamp G
citadel_server_root_cert_expiry_seconds G
citadel_server_cert_chain_expiry_timestamp G
citadel_server_cert_chain_expiry_seconds G
"""
_AGENT = """
startup_duration_seconds G
istiod_connection_failures S
istiod_connection_terminations S type
envoy_connection_terminations S
xds_proxy_requests S
xds_proxy_responses S
scrapes_total S
scrape_failures_total S type
dns_requests_total S
dns_upstream_requests_total S
dns_upstream_failures_total S
dns_upstream_request_duration_seconds D
wasm_cache_entries G
wasm_cache_lookup_count S hit
wasm_remote_fetch_count S result
wasm_config_conversion_count S result
wasm_config_conversion_duration D
num_outgoing_requests S request_type
num_failed_outgoing_requests S request_type
num_outgoing_retries S request_type
outgoing_latency S request_type
num_file_watcher_failures_total S
num_file_secret_failures_total S
cert_expiry_seconds G resource_name
"""


def _read(table: str, prefix: str = "") -> dict[str, Metric]:
    rows = (line.split() for line in table.strip().splitlines())
    return {prefix + name: Metric(kind, frozenset(labels)) for name, kind, *labels in rows}


METRICS = _read(_CONTROL_PLANE) | _read(_AGENT, "istio_agent_")
"""By name. Of those with a series for each reason of a failure, only failures have the label."""
