"""ProxyConfig: the settings of one proxy, as the mesh config, an annotation and the agent hold them."""

from collections.abc import Mapping
from typing import Literal

from mizzen.api.message import ProtoMessage
from mizzen.api.networking.proxy_config import ProxyImage
from mizzen.api.networking.traffic_policy import ClientTLSSettings, TcpKeepalive
from mizzen.api.networking.workload_group import ReadinessProbe
from mizzen.api.scalars import Duration, Int32, Int64, UInt32

OpenCensusContext = Literal["UNSPECIFIED", "W3C_TRACE_CONTEXT", "GRPC_BIN", "CLOUD_TRACE_CONTEXT", "B3"]
ForwardClientCertDetails = Literal[
    "UNDEFINED", "SANITIZE", "FORWARD_ONLY", "APPEND_FORWARD", "SANITIZE_SET", "ALWAYS_FORWARD_ONLY"
]
AuthenticationPolicy = Literal["NONE", "MUTUAL_TLS", "INHERIT"]
TracingServiceName = Literal["APP_LABEL_AND_NAMESPACE", "CANONICAL_NAME_ONLY", "CANONICAL_NAME_AND_NAMESPACE"]
InboundInterceptionMode = Literal["REDIRECT", "TPROXY", "NONE"]
MetadataExchangeMode = Literal["UNDEFINED", "IN_MESH"]
ConnectionProfile = Literal["SIDECAR", "EDGE"]
HeadersWithUnderscoresAction = Literal[
    "HEADERS_WITH_UNDERSCORES_UNSPECIFIED",
    "HEADERS_WITH_UNDERSCORES_ALLOW",
    "HEADERS_WITH_UNDERSCORES_REJECT_REQUEST",
    "HEADERS_WITH_UNDERSCORES_DROP_HEADER",
]
PathWithEscapedSlashesAction = Literal[
    "PATH_WITH_ESCAPED_SLASHES_UNSPECIFIED",
    "KEEP_UNCHANGED",
    "REJECT_REQUEST",
    "UNESCAPE_AND_REDIRECT",
    "UNESCAPE_AND_FORWARD",
]


class Zipkin(ProtoMessage, frozen=True, kw_only=True):
    """A Zipkin collector."""

    address: str = ""


class Lightstep(ProtoMessage, frozen=True, kw_only=True):
    """A Lightstep satellite pool."""

    address: str = ""
    access_token: str = ""


class Datadog(ProtoMessage, frozen=True, kw_only=True):
    """A Datadog agent."""

    address: str = ""


class Stackdriver(ProtoMessage, frozen=True, kw_only=True):
    """Stackdriver tracing."""

    debug: bool = False
    max_number_of_attributes: Int64 | None = None
    max_number_of_annotations: Int64 | None = None
    max_number_of_message_events: Int64 | None = None


class OpenCensusAgent(ProtoMessage, frozen=True, kw_only=True):
    """An OpenCensus agent."""

    address: str = ""
    context: tuple[OpenCensusContext, ...] = ()


class TagLiteral(ProtoMessage, frozen=True, kw_only=True):
    """A constant tag."""

    value: str = ""


class TagEnvironment(ProtoMessage, frozen=True, kw_only=True):
    """A tag from the proxy's environment."""

    name: str = ""
    default_value: str = ""


class TagHeader(ProtoMessage, frozen=True, kw_only=True):
    """A tag from a request header."""

    name: str = ""
    default_value: str = ""


class CustomTag(ProtoMessage, frozen=True, kw_only=True):
    """The value of a span's tag: one of these."""

    literal: TagLiteral | None = None
    environment: TagEnvironment | None = None
    header: TagHeader | None = None


class Tracing(ProtoMessage, frozen=True, kw_only=True):
    """Tracing without Telemetry: one tracer of the first five, and what is common to them."""

    zipkin: Zipkin | None = None
    lightstep: Lightstep | None = None
    datadog: Datadog | None = None
    stackdriver: Stackdriver | None = None
    open_census_agent: OpenCensusAgent | None = None
    custom_tags: Mapping[str, CustomTag] = {}
    max_path_tag_length: UInt32 = 0
    sampling: float = 0.0
    tls_settings: ClientTLSSettings | None = None
    enable_istio_tags: bool | None = None


class SDS(ProtoMessage, frozen=True, kw_only=True):
    """Deprecated and without effect."""

    enabled: bool = False
    k8s_sa_jwt_path: str = ""


class ProxyProtocolConfiguration(ProtoMessage, frozen=True, kw_only=True):
    """Its presence turns the PROXY protocol on."""


class Topology(ProtoMessage, frozen=True, kw_only=True):
    """What stands in front of a gateway."""

    num_trusted_proxies: UInt32 = 0
    forward_client_cert_details: ForwardClientCertDetails = "UNDEFINED"
    proxy_protocol: ProxyProtocolConfiguration | None = None


class CryptoMb(ProtoMessage, frozen=True, kw_only=True):
    """Private keys handled by CryptoMB."""

    poll_delay: Duration | None = None
    fallback: bool | None = None


class QAT(ProtoMessage, frozen=True, kw_only=True):
    """Private keys handled by QAT."""

    poll_delay: Duration | None = None
    fallback: bool | None = None


class PrivateKeyProvider(ProtoMessage, frozen=True, kw_only=True):
    """Who handles private keys: one of these, else Envoy itself."""

    cryptomb: CryptoMb | None = None
    qat: QAT | None = None


class RemoteService(ProtoMessage, frozen=True, kw_only=True):
    """A service that Envoy itself calls."""

    address: str = ""
    tls_settings: ClientTLSSettings | None = None
    tcp_keepalive: TcpKeepalive | None = None


class ProxyStatsMatcher(ProtoMessage, frozen=True, kw_only=True):
    """Which of Envoy's statistics are kept beyond Istio's own."""

    inclusion_prefixes: tuple[str, ...] = ()
    inclusion_suffixes: tuple[str, ...] = ()
    inclusion_regexps: tuple[str, ...] = ()


class ServerHeader(ProtoMessage, frozen=True, kw_only=True):
    """The header `server`."""

    disabled: bool | None = None
    value: str = ""


class RequestId(ProtoMessage, frozen=True, kw_only=True):
    """The header `x-request-id`."""

    disabled: bool | None = None


class AttemptCount(ProtoMessage, frozen=True, kw_only=True):
    """The header `x-envoy-attempt-count`."""

    disabled: bool | None = None


class XForwardedHost(ProtoMessage, frozen=True, kw_only=True):
    """The header `x-forwarded-host`."""

    enabled: bool | None = None


class XForwardedPort(ProtoMessage, frozen=True, kw_only=True):
    """The header `x-forwarded-port`."""

    enabled: bool | None = None


class EnvoyDebugHeaders(ProtoMessage, frozen=True, kw_only=True):
    """The headers `x-envoy-*`."""

    disabled: bool | None = None


class MetadataExchangeHeaders(ProtoMessage, frozen=True, kw_only=True):
    """The headers by which peers exchange metadata."""

    mode: MetadataExchangeMode = "UNDEFINED"


class SetCurrentClientCertDetails(ProtoMessage, frozen=True, kw_only=True):
    """What of the client's certificate is passed on."""

    subject: bool | None = None
    cert: bool | None = None
    chain: bool | None = None
    dns: bool | None = None
    uri: bool | None = None


class ProxyHeaders(ProtoMessage, frozen=True, kw_only=True):
    """Headers that the proxy adds by itself."""

    forwarded_client_cert: ForwardClientCertDetails = "UNDEFINED"
    set_current_client_cert_details: SetCurrentClientCertDetails | None = None
    request_id: RequestId | None = None
    server: ServerHeader | None = None
    attempt_count: AttemptCount | None = None
    envoy_debug_headers: EnvoyDebugHeaders | None = None
    metadata_exchange_headers: MetadataExchangeHeaders | None = None
    preserve_http1_header_case: bool | None = None
    x_forwarded_host: XForwardedHost | None = None
    x_forwarded_port: XForwardedPort | None = None


class ConnectionSettings(ProtoMessage, frozen=True, kw_only=True):
    """Limits and timeouts of the proxy's listeners."""

    profile: ConnectionProfile = "SIDECAR"
    listener_per_connection_buffer_limit_bytes: Int32 | None = None
    cluster_per_connection_buffer_limit_bytes: Int32 | None = None
    http_idle_timeout: Duration | None = None
    http_max_connection_duration: Duration | None = None
    http_drain_timeout: Duration | None = None
    http_request_timeout: Duration | None = None
    http_request_headers_timeout: Duration | None = None
    http_stream_idle_timeout: Duration | None = None
    http_max_stream_duration: Duration | None = None
    http_max_concurrent_streams: Int32 | None = None
    http2_initial_stream_window_size: Int32 | None = None
    http2_initial_connection_window_size: Int32 | None = None
    http_headers_with_underscores_action: HeadersWithUnderscoresAction = "HEADERS_WITH_UNDERSCORES_UNSPECIFIED"
    http_merge_slashes: bool | None = None
    http_path_with_escaped_slashes_action: PathWithEscapedSlashesAction = "PATH_WITH_ESCAPED_SLASHES_UNSPECIFIED"
    listener_connection_limit: Int32 | None = None
    global_downstream_connection_limit: Int32 | None = None


class ProxyConfig(ProtoMessage, frozen=True, kw_only=True):
    """Settings of one proxy. Not the kind ProxyConfig, which sets a few of these for selected workloads."""

    config_path: str = ""
    binary_path: str = ""
    service_cluster: str | None = None
    """The cluster name that Envoy reports: this, or the rule `tracing_service_name`."""
    tracing_service_name: TracingServiceName | None = None
    drain_duration: Duration | None = None
    discovery_address: str = ""
    discovery_refresh_delay: Duration | None = None
    zipkin_address: str = ""
    statsd_udp_address: str = ""
    envoy_metrics_service_address: str = ""
    proxy_admin_port: Int32 = 0
    availability_zone: str = ""
    control_plane_auth_policy: AuthenticationPolicy = "NONE"
    custom_config_file: str = ""
    stat_name_length: Int32 = 0
    concurrency: Int32 | None = None
    """Worker threads; None follows the CPU limit, 0 takes all cores."""
    proxy_bootstrap_template_path: str = ""
    interception_mode: InboundInterceptionMode = "REDIRECT"
    tracing: Tracing | None = None
    sds: SDS | None = None
    envoy_access_log_service: RemoteService | None = None
    envoy_metrics_service: RemoteService | None = None
    proxy_metadata: Mapping[str, str] = {}
    runtime_values: Mapping[str, str] = {}
    status_port: Int32 = 0
    extra_stat_tags: tuple[str, ...] = ()
    gateway_topology: Topology | None = None
    termination_drain_duration: Duration | None = None
    mesh_id: str = ""
    readiness_probe: ReadinessProbe | None = None
    proxy_stats_matcher: ProxyStatsMatcher | None = None
    hold_application_until_proxy_starts: bool | None = None
    ca_certificates_pem: tuple[str, ...] = ()
    image: ProxyImage | None = None
    private_key_provider: PrivateKeyProvider | None = None
    proxy_headers: ProxyHeaders | None = None
    file_flush_interval: Duration | None = None
    file_flush_min_size_kb: UInt32 = 0
    stats_compression: bool | None = None
    connection_settings: ConnectionSettings | None = None
