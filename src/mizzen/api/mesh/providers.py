"""Extension providers: the external authorizers, tracers, metrics and access logs that policies refer to by name."""

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from mizzen.api.mesh.proxy import OpenCensusContext
from mizzen.api.message import FreeForm, ProtoMessage
from mizzen.api.scalars import Duration, Int32, Int64, UInt32

TraceContextOption = Literal["USE_B3", "USE_B3_WITH_W3C_PROPAGATION"]
ServiceAttributeEnrichment = Literal["ISTIO_CANONICAL", "OTEL_SEMANTIC_CONVENTIONS"]


class HttpHeader(ProtoMessage, frozen=True, kw_only=True):
    """A header sent to a provider; its value is written or taken from the environment."""

    name: str = ""
    value: str | None = None
    env_name: str | None = None


class HttpService(ProtoMessage, frozen=True, kw_only=True):
    """How a provider is called over HTTP."""

    path: str = ""
    timeout: Duration | None = None
    headers: tuple[HttpHeader, ...] = ()


class GrpcService(ProtoMessage, frozen=True, kw_only=True):
    """How a provider is called over gRPC."""

    timeout: Duration | None = None
    initial_metadata: tuple[HttpHeader, ...] = ()


class EnvoyExternalAuthorizationRequestBody(ProtoMessage, frozen=True, kw_only=True):
    """How much of a request's body the authorizer sees."""

    max_request_bytes: UInt32 = 0
    allow_partial_message: bool = False
    pack_as_bytes: bool = False


class EnvoyExternalAuthorizationHttpProvider(ProtoMessage, frozen=True, kw_only=True):
    """An authorizer called over HTTP."""

    service: str = ""
    port: UInt32 = 0
    timeout: Duration | None = None
    path_prefix: str = ""
    fail_open: bool = False
    clear_route_cache: bool = False
    status_on_error: str = ""
    include_headers_in_check: tuple[str, ...] = ()
    """Deprecated spelling of `include_request_headers_in_check`."""
    include_request_headers_in_check: tuple[str, ...] = ()
    include_additional_headers_in_check: Mapping[str, str] = {}
    include_request_body_in_check: EnvoyExternalAuthorizationRequestBody | None = None
    headers_to_upstream_on_allow: tuple[str, ...] = ()
    headers_to_downstream_on_deny: tuple[str, ...] = ()
    headers_to_downstream_on_allow: tuple[str, ...] = ()


class EnvoyExternalAuthorizationGrpcProvider(ProtoMessage, frozen=True, kw_only=True):
    """An authorizer called over gRPC."""

    service: str = ""
    port: UInt32 = 0
    timeout: Duration | None = None
    fail_open: bool = False
    clear_route_cache: bool = False
    status_on_error: str = ""
    include_request_body_in_check: EnvoyExternalAuthorizationRequestBody | None = None


class ZipkinTracingProvider(ProtoMessage, frozen=True, kw_only=True):
    """A Zipkin collector."""

    service: str = ""
    port: UInt32 = 0
    max_tag_length: UInt32 = 0
    enable_64bit_trace_id: bool = field(name="enable64bitTraceId", default=False)
    path: str = ""
    trace_context_option: TraceContextOption = "USE_B3"
    timeout: Duration | None = None
    headers: tuple[HttpHeader, ...] = ()


class LightstepTracingProvider(ProtoMessage, frozen=True, kw_only=True):
    """A Lightstep satellite pool; deprecated."""

    service: str = ""
    port: UInt32 = 0
    access_token: str = ""
    max_tag_length: UInt32 = 0


class DatadogTracingProvider(ProtoMessage, frozen=True, kw_only=True):
    """A Datadog agent."""

    service: str = ""
    port: UInt32 = 0
    max_tag_length: UInt32 = 0


class SkyWalkingTracingProvider(ProtoMessage, frozen=True, kw_only=True):
    """A SkyWalking receiver."""

    service: str = ""
    port: UInt32 = 0
    access_token: str = ""


class StackdriverLogging(ProtoMessage, frozen=True, kw_only=True):
    """Labels of Stackdriver's access logs, by CEL expressions."""

    labels: Mapping[str, str] = {}


class StackdriverProvider(ProtoMessage, frozen=True, kw_only=True):
    """Stackdriver."""

    debug: bool = False
    max_number_of_attributes: Int64 | None = None
    max_number_of_annotations: Int64 | None = None
    max_number_of_message_events: Int64 | None = None
    max_tag_length: UInt32 = 0
    logging: StackdriverLogging | None = None


class OpenCensusAgentTracingProvider(ProtoMessage, frozen=True, kw_only=True):
    """An OpenCensus agent; deprecated."""

    service: str = ""
    port: UInt32 = 0
    context: tuple[OpenCensusContext, ...] = ()
    max_tag_length: UInt32 = 0


class EnvironmentResourceDetector(ProtoMessage, frozen=True, kw_only=True):
    """Its presence turns the detector on."""


class DynatraceResourceDetector(ProtoMessage, frozen=True, kw_only=True):
    """Its presence turns the detector on."""


class ResourceDetectors(ProtoMessage, frozen=True, kw_only=True):
    """What adds attributes to the traced resource."""

    environment: EnvironmentResourceDetector | None = None
    dynatrace: DynatraceResourceDetector | None = None


class DynatraceApi(ProtoMessage, frozen=True, kw_only=True):
    """The API that the sampler asks."""

    service: str = ""
    port: UInt32 = 0
    http: HttpService | None = None


class DynatraceSampler(ProtoMessage, frozen=True, kw_only=True):
    """Sampling steered by Dynatrace."""

    tenant: str = ""
    cluster_id: Int32 = 0
    root_spans_per_minute: UInt32 = 0
    http_service: DynatraceApi | None = None


class OpenTelemetryTracingProvider(ProtoMessage, frozen=True, kw_only=True):
    """An OpenTelemetry collector for traces."""

    service: str = ""
    port: UInt32 = 0
    max_tag_length: UInt32 = 0
    http: HttpService | None = None
    grpc: GrpcService | None = None
    resource_detectors: ResourceDetectors | None = None
    service_attribute_enrichment: ServiceAttributeEnrichment = "ISTIO_CANONICAL"
    dynatrace_sampler: DynatraceSampler | None = None


class PrometheusMetricsProvider(ProtoMessage, frozen=True, kw_only=True):
    """Metrics to be scraped; its presence says all."""


class FileLogFormat(ProtoMessage, frozen=True, kw_only=True):
    """A line of text, or a JSON object."""

    text: str | None = None
    labels: FreeForm | None = None


class EnvoyFileAccessLogProvider(ProtoMessage, frozen=True, kw_only=True):
    """Access logs in a file."""

    path: str = ""
    log_format: FileLogFormat | None = None
    omit_empty_values: bool = False


class EnvoyHttpGrpcV3LogProvider(ProtoMessage, frozen=True, kw_only=True):
    """Envoy's access log service, for HTTP."""

    service: str = ""
    port: UInt32 = 0
    log_name: str = ""
    filter_state_objects_to_log: tuple[str, ...] = ()
    additional_request_headers_to_log: tuple[str, ...] = ()
    additional_response_headers_to_log: tuple[str, ...] = ()
    additional_response_trailers_to_log: tuple[str, ...] = ()


class EnvoyTcpGrpcV3LogProvider(ProtoMessage, frozen=True, kw_only=True):
    """Envoy's access log service, for TCP."""

    service: str = ""
    port: UInt32 = 0
    log_name: str = ""
    filter_state_objects_to_log: tuple[str, ...] = ()


class OpenTelemetryLogFormat(ProtoMessage, frozen=True, kw_only=True):
    """The body and the attributes of a log record."""

    text: str = ""
    labels: FreeForm | None = None


class EnvoyOpenTelemetryLogProvider(ProtoMessage, frozen=True, kw_only=True):
    """An OpenTelemetry collector for access logs."""

    service: str = ""
    port: UInt32 = 0
    log_name: str = ""
    log_format: OpenTelemetryLogFormat | None = None


class SDSProvider(ProtoMessage, frozen=True, kw_only=True):
    """A server of secrets."""

    name: str = ""
    service: str = ""
    port: UInt32 = 0


class ExtensionProvider(ProtoMessage, frozen=True, kw_only=True):
    """One of the providers below, under a name."""

    name: str = ""
    envoy_ext_authz_http: EnvoyExternalAuthorizationHttpProvider | None = None
    envoy_ext_authz_grpc: EnvoyExternalAuthorizationGrpcProvider | None = None
    zipkin: ZipkinTracingProvider | None = None
    lightstep: LightstepTracingProvider | None = None
    datadog: DatadogTracingProvider | None = None
    stackdriver: StackdriverProvider | None = None
    opencensus: OpenCensusAgentTracingProvider | None = None
    skywalking: SkyWalkingTracingProvider | None = None
    opentelemetry: OpenTelemetryTracingProvider | None = None
    prometheus: PrometheusMetricsProvider | None = None
    envoy_file_access_log: EnvoyFileAccessLogProvider | None = None
    envoy_http_als: EnvoyHttpGrpcV3LogProvider | None = None
    envoy_tcp_als: EnvoyTcpGrpcV3LogProvider | None = None
    envoy_otel_als: EnvoyOpenTelemetryLogProvider | None = None
    sds: SDSProvider | None = None
