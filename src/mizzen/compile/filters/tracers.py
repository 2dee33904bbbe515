"""Tracers: where the spans of a connection manager go.

In: a tracer as a small value, its collector's cluster known. Out: the encoded provider of a tracing block. What a
Telemetry or the mesh config asks for is decided elsewhere. Golden cases: telemetry/tracing-providers,
telemetry/default-providers.
"""

import functools
from typing import Any, Literal

import msgspec

from mizzen import protos
from mizzen.api.scalars import Duration

_trace_v3 = protos.package("envoy.config.trace.v3")
_detectors_v3 = protos.package("envoy.extensions.tracers.opentelemetry.resource_detectors.v3")
_samplers_v3 = protos.package("envoy.extensions.tracers.opentelemetry.samplers.v3")

Header = tuple[str, str]
Detector = Literal["environment", "dynatrace"]

_DETECTORS = {"environment": "EnvironmentResourceDetectorConfig", "dynatrace": "DynatraceResourceDetectorConfig"}
_OTEL = "envoy.tracers.opentelemetry"


class Collector(msgspec.Struct, frozen=True, kw_only=True):
    """The service that takes spans."""

    host: str
    cluster: str


class HttpCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a collector over HTTP."""

    uri: str
    collector: Collector
    timeout: Duration
    headers: tuple[Header, ...] = ()

    def service(self) -> dict[str, Any]:
        """The fields of an `HttpService`."""
        fields: dict[str, Any] = {
            "http_uri": {"uri": self.uri, "cluster": self.collector.cluster, "timeout": self.timeout.protobuf()}
        }
        if self.headers:
            fields["request_headers_to_add"] = [
                {"header": {"key": key, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
                for key, value in self.headers
            ]
        return fields


class GrpcCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a collector over gRPC."""

    collector: Collector
    timeout: Duration | None = None
    metadata: tuple[Header, ...] = ()

    def service(self) -> dict[str, Any]:
        """The fields of a `GrpcService`."""
        fields: dict[str, Any] = {
            "envoy_grpc": {"cluster_name": self.collector.cluster, "authority": self.collector.host},
            "initial_metadata": [{"key": key, "value": value} for key, value in self.metadata],
        }
        if self.timeout is not None:
            fields["timeout"] = self.timeout.protobuf()
        return fields


class Zipkin(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A Zipkin collector."""

    call: HttpCall
    path: str
    short_trace_ids: bool = False
    with_w3c: bool = False
    """Whether W3C's headers are read and written beside B3's."""
    by_fields: bool = False
    """Whether the proxy is too old to be told of the call as a whole."""


class Datadog(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A Datadog agent."""

    collector: Collector
    service_name: str


class SkyWalking(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A SkyWalking receiver."""

    call: GrpcCall


class DynatraceSampler(msgspec.Struct, frozen=True, kw_only=True):
    """Sampling steered by Dynatrace."""

    tenant: str
    cluster_id: int
    spans_per_minute: int
    call: HttpCall


class OpenTelemetry(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An OpenTelemetry collector."""

    call: HttpCall | GrpcCall
    service_name: str
    detectors: tuple[Detector, ...] = ()
    sampler: DynatraceSampler | None = None


Tracer = Zipkin | Datadog | SkyWalking | OpenTelemetry


@functools.lru_cache(maxsize=256)
def build_tracer(tracer: Tracer) -> Any:
    """The provider of a tracing block."""
    match tracer:
        case Zipkin():
            name, config = "envoy.tracers.zipkin", _zipkin(tracer)
        case Datadog():
            name, config = "envoy.tracers.datadog", _datadog(tracer)
        case SkyWalking():
            name, config = "envoy.tracers.skywalking", _trace_v3.SkyWalkingConfig(grpc_service=tracer.call.service())
        case OpenTelemetry():
            name, config = _OTEL, _opentelemetry(tracer)
    return _trace_v3.Tracing.Http(name=name, typed_config=protos.pack(config))


def _zipkin(tracer: Zipkin) -> Any:
    config = _trace_v3.ZipkinConfig(
        trace_id_128bit=not tracer.short_trace_ids,
        shared_span_context={"value": False},
        collector_endpoint_version="HTTP_JSON",
    )
    if tracer.by_fields:
        config.collector_cluster = tracer.call.collector.cluster
        config.collector_endpoint = tracer.path
        config.collector_hostname = tracer.call.collector.host
        return config
    config.collector_service.MergeFrom(type(config.collector_service)(**tracer.call.service()))
    if tracer.with_w3c:
        config.trace_context_option = _trace_v3.ZipkinConfig.TraceContextOption.Value("USE_B3_WITH_W3C_PROPAGATION")
    return config


def _datadog(tracer: Datadog) -> Any:
    return _trace_v3.DatadogConfig(
        collector_cluster=tracer.collector.cluster,
        collector_hostname=tracer.collector.host,
        service_name=tracer.service_name,
    )


def _opentelemetry(tracer: OpenTelemetry) -> Any:
    transport = "http_service" if isinstance(tracer.call, HttpCall) else "grpc_service"
    fields: dict[str, Any] = {transport: tracer.call.service()}
    if tracer.sampler is not None:
        fields["sampler"] = _sampler(tracer.sampler)
    return _trace_v3.OpenTelemetryConfig(
        service_name=tracer.service_name,
        resource_detectors=[_detector(kind) for kind in tracer.detectors],
        **fields,
    )


def _detector(kind: Detector) -> dict[str, Any]:
    config = getattr(_detectors_v3, _DETECTORS[kind])()
    return {"name": f"{_OTEL}.resource_detectors.{kind}", "typed_config": protos.pack(config)}


def _sampler(sampler: DynatraceSampler) -> dict[str, Any]:
    config = _samplers_v3.DynatraceSamplerConfig(
        tenant=sampler.tenant,
        cluster_id=sampler.cluster_id,
        http_service=sampler.call.service(),
        root_spans_per_minute=sampler.spans_per_minute,
    )
    return {"name": f"{_OTEL}.samplers.dynatrace", "typed_config": protos.pack(config)}
