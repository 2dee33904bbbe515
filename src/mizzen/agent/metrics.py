"""What operators see of the agent: Istio's `istio_agent_*` metrics under their exact names."""

from mizzen.observe import Counter, Gauge, Histogram

STARTUP_SECONDS = Gauge("istio_agent_startup_duration_seconds", "Time from start until Envoy was ready first")

CONNECTION_FAILURES = Counter("istio_agent_istiod_connection_failures", "Failed connections to the control plane")
CONNECTION_TERMINATIONS = Counter(
    "istio_agent_istiod_connection_terminations", "Streams that the control plane ended", ["type"]
)
ENVOY_TERMINATIONS = Counter("istio_agent_envoy_connection_terminations", "Streams that Envoy ended")
XDS_REQUESTS = Counter("istio_agent_xds_proxy_requests", "Requests passed on to the control plane")
XDS_RESPONSES = Counter("istio_agent_xds_proxy_responses", "Responses received from the control plane")

SCRAPES = Counter("istio_agent_scrapes_total", "Scrapes of the merged metrics")
SCRAPE_FAILURES = Counter("istio_agent_scrape_failures_total", "Failed scrapes behind the merged metrics", ["type"])

DNS_REQUESTS = Counter("istio_agent_dns_requests_total", "DNS queries received")
DNS_UPSTREAM_REQUESTS = Counter("istio_agent_dns_upstream_requests_total", "DNS queries sent to upstream resolvers")
DNS_UPSTREAM_FAILURES = Counter("istio_agent_dns_upstream_failures_total", "DNS queries that no resolver answered")
DNS_UPSTREAM_SECONDS = Histogram(
    "istio_agent_dns_upstream_request_duration_seconds",
    "Time that upstream resolvers took",
    (0.001, 0.005, 0.01, 0.1, 1, 5),
)

WASM_ENTRIES = Gauge("istio_agent_wasm_cache_entries", "Wasm modules that are kept")
WASM_LOOKUPS = Counter("istio_agent_wasm_cache_lookup_count", "Wasm modules asked for", ["hit"])
WASM_FETCHES = Counter("istio_agent_wasm_remote_fetch_count", "Wasm modules fetched, or not", ["result"])
WASM_CONVERSIONS = Counter(
    "istio_agent_wasm_config_conversion_count", "Extension configurations made local, or not", ["result"]
)
WASM_CONVERSION_MILLISECONDS = Histogram(
    "istio_agent_wasm_config_conversion_duration",
    "Milliseconds that it took to make an extension configuration local",
    tuple(float(2**power) for power in range(15)),
)

OUTGOING_REQUESTS = Counter("istio_agent_num_outgoing_requests", "Certificate requests sent", ["request_type"])
OUTGOING_FAILURES = Counter("istio_agent_num_failed_outgoing_requests", "Certificate requests failed", ["request_type"])
OUTGOING_RETRIES = Counter("istio_agent_num_outgoing_retries", "Certificate requests tried again", ["request_type"])
OUTGOING_MILLISECONDS = Counter(
    "istio_agent_outgoing_latency", "Milliseconds that certificate requests took, added up", ["request_type"]
)
CERTIFICATE_EXPIRY = Gauge(
    "istio_agent_cert_expiry_seconds", "Time until a certificate expires; negative once it has", ["resource_name"]
)
FILE_SECRET_FAILURES = Counter("istio_agent_num_file_secret_failures_total", "Secrets that files could not give")
