"""Traces: the tracing block of one side of a proxy.

In: what Telemetry says of a side, the proxy's profile and its own settings. Out: `Tracing`, or None where nothing is
traced; a provider that is unknown, out of reach, or that traces nothing leaves none. Without a word of Telemetry
the proxy's own settings hold, and the bootstrap has the tracer.
Golden cases: telemetry/tracing-legacy, telemetry/tracing-providers, telemetry/tracing-tags, base.
"""

import re
from collections.abc import Iterable, Iterator

from mizzen.api import policy
from mizzen.api.mesh import providers as api
from mizzen.api.mesh import proxy as proxy_api
from mizzen.api.mesh.providers import ExtensionProvider
from mizzen.api.mesh.proxy import Tracing as ProxyTracing
from mizzen.api.scalars import Duration
from mizzen.compile.filters import formats, peers
from mizzen.compile.filters.tracers import (
    Collector,
    Datadog,
    Detector,
    DynatraceSampler,
    GrpcCall,
    Header,
    HttpCall,
    OpenTelemetry,
    SkyWalking,
    Tracer,
    Zipkin,
)
from mizzen.compile.filters.tracing import Tag, Tracing
from mizzen.compile.listeners.profiles import Identity, Profile
from mizzen.incremental import Engine, query
from mizzen.model import mesh, providers
from mizzen.model.proxy_configs import proxy_config
from mizzen.model.telemetry import TraceChoice

_FULL_SAMPLING = 100.0
_TIMEOUT = Duration.of(seconds=5)
_ZIPKIN_PATH = "/api/v2/spans"
_SAMPLING_PATH = "/api/v2/samplingConfiguration"
_NEW_CALLS = (1, 29)
"""Proxies from this version on are told of a Zipkin collector as a call, and know tags in the format of logs."""
_NEW_PROPAGATION = (1, 30)
_NAME = re.compile(r"[!-~]+")

CustomTag = policy.CustomTag | proxy_api.CustomTag


def own_tracing(db: Engine, own: Profile) -> Tracing:
    """Tracing by the proxy's own settings, by the bootstrap's tracer."""
    settings = _settings(db, own)
    tags = _given(settings.custom_tags.items(), own)
    return _tracing(db, own, None, tags, istio_tags=settings.enable_istio_tags is not False)


@query
def chosen_tracing(db: Engine, own: Profile, choice: TraceChoice) -> Tracing | None:
    """Tracing as Telemetry, or the mesh's default provider, says."""
    found = providers.provider_in_any_case(db, choice.provider) if choice.provider else None
    if found is not None and found.name in own.unreached:
        return None
    tracer = _tracer(db, own, found) if found is not None else None
    if found is None or tracer is None:
        return None
    settings = _settings(db, own)
    written = settings.custom_tags.items() if choice.tags is None else choice.tags
    base = _tracing(db, own, choice.sampling, _given(written, own), istio_tags=choice.istio_tags)
    samples_itself = isinstance(tracer, OpenTelemetry) and tracer.sampler is not None
    return Tracing(
        sampling=_FULL_SAMPLING if samples_itself else base.sampling,
        tags=base.tags,
        dry_run_tags=base.dry_run_tags,
        max_path_tag_length=_tag_length(found) or base.max_path_tag_length,
        tracer=tracer,
        spawn_upstream_span=own.router or isinstance(tracer, SkyWalking),
        no_context_propagation=not choice.propagates and own.version >= _NEW_PROPAGATION,
    )


def _settings(db: Engine, own: Profile) -> ProxyTracing:
    return proxy_config(db, own.config).tracing or ProxyTracing()


def _tracing(db: Engine, own: Profile, sampling: float | None, tags: Iterable[Tag], *, istio_tags: bool) -> Tracing:
    settings = _settings(db, own)
    return Tracing(
        sampling=_sampling(db, settings) if sampling is None or not 0 <= sampling <= _FULL_SAMPLING else sampling,
        tags=(*(_identity_tags(own.identity) if istio_tags else ()), *tags),
        dry_run_tags=istio_tags,
        max_path_tag_length=settings.max_path_tag_length,
    )


def _sampling(db: Engine, settings: ProxyTracing) -> float:
    sampling = settings.sampling or mesh.control_plane(db).trace_sampling
    return sampling if sampling <= _FULL_SAMPLING else 1.0


# -- tags -------------------------------------------------------------------------------------------------------------


_VARIABLES = {fact.key: fact.variable for fact in peers.FACTS}
_ENVIRONMENT_TAGS = (
    ("canonical_revision", _VARIABLES["canonical_revision"], "latest"),
    ("canonical_service", _VARIABLES["canonical_service"], "unknown"),
    ("cluster_id", _VARIABLES["cluster"], "unknown"),
    ("mesh_id", peers.MESH_VARIABLE, "unknown"),
    ("namespace", _VARIABLES["namespace"], "default"),
)


def _identity_tags(identity: Identity | None) -> Iterator[Tag]:
    if identity is None:
        for name, variable, default in _ENVIRONMENT_TAGS:
            yield Tag(name=f"istio.{name}", kind="environment", value=variable, default=default)
        return
    for name in ("canonical_revision", "canonical_service", "cluster_id", "mesh_id", "namespace"):
        yield Tag(name=f"istio.{name}", kind="literal", value=getattr(identity, name))


def _given(written: Iterable[tuple[str, CustomTag]], own: Profile) -> Iterator[Tag]:
    """The tags that Envoy takes; one without a name or a source would cost the whole listener."""
    for name, given in sorted(written):
        tag = _given_tag(name, given)
        if tag is None or not name or not tag.value:
            continue
        if tag.kind == "header" and not _NAME.fullmatch(tag.value):
            continue
        if tag.kind != "formatter" or (own.version >= _NEW_CALLS and _reads(own, tag.value)):
            yield tag


def _reads(own: Profile, text: str) -> bool:
    """Whether the proxy reads a format; for Istio's proxies their users know best."""
    return own.dialect == "istio" or (formats.is_readable(text) and "%REQ_WITHOUT_QUERY" not in text)


def _given_tag(name: str, given: CustomTag) -> Tag | None:
    if given.literal is not None:
        return Tag(name=name, kind="literal", value=given.literal.value)
    if given.environment is not None:
        source = given.environment
        return Tag(name=name, kind="environment", value=source.name, default=source.default_value)
    if given.header is not None:
        return Tag(name=name, kind="header", value=given.header.name, default=given.header.default_value)
    if isinstance(given, policy.CustomTag) and given.formatter is not None:
        return Tag(name=name, kind="formatter", value=given.formatter.value)
    return None


# -- tracers ----------------------------------------------------------------------------------------------------------


def _tracer(db: Engine, own: Profile, found: ExtensionProvider) -> Tracer | None:
    if found.zipkin is not None:
        return _zipkin(db, own, found.zipkin)
    if found.opentelemetry is not None:
        return _opentelemetry(db, own, found.opentelemetry)
    if found.datadog is not None:
        collector = _collector(db, found.datadog.service, found.datadog.port)
        return Datadog(collector=collector, service_name=own.service) if collector is not None else None
    if found.skywalking is not None:
        collector = _collector(db, found.skywalking.service, found.skywalking.port)
        return SkyWalking(call=GrpcCall(collector=collector)) if collector is not None else None
    return None


def _tag_length(found: ExtensionProvider) -> int:
    provider = found.zipkin or found.opentelemetry or found.datadog
    return provider.max_tag_length if provider is not None else 0


def _collector(db: Engine, service: str, port: int) -> Collector | None:
    host = providers.service_host(db, service)
    return Collector(host=host, cluster=providers.cluster_name(host, port)) if host is not None else None


def _headers(written: Iterable[api.HttpHeader]) -> tuple[Header, ...]:
    """Headers with their values; one from the environment is left out, which is not the proxy's to know."""
    return tuple((header.name, header.value) for header in written if header.name and header.value is not None)


def _zipkin(db: Engine, own: Profile, provider: api.ZipkinTracingProvider) -> Zipkin | None:
    collector = _collector(db, provider.service, provider.port)
    if collector is None:
        return None
    path = provider.path or _ZIPKIN_PATH
    call = HttpCall(
        uri=f"http://{collector.host}{path}",
        collector=collector,
        timeout=provider.timeout or _TIMEOUT,
        headers=_headers(provider.headers),
    )
    return Zipkin(
        call=call,
        path=path,
        short_trace_ids=provider.enable_64bit_trace_id,
        with_w3c=provider.trace_context_option == "USE_B3_WITH_W3C_PROPAGATION",
        by_fields=own.version < _NEW_CALLS,
    )


def _opentelemetry(db: Engine, own: Profile, provider: api.OpenTelemetryTracingProvider) -> OpenTelemetry | None:
    collector = _collector(db, provider.service, provider.port)
    if collector is None:
        return None
    call: HttpCall | GrpcCall
    if provider.http is not None:
        call = _http_call(collector, provider.http, provider.http.path)
    else:
        grpc = provider.grpc or api.GrpcService()
        call = GrpcCall(collector=collector, timeout=grpc.timeout, metadata=_headers(grpc.initial_metadata))
    by_convention = provider.service_attribute_enrichment == "OTEL_SEMANTIC_CONVENTIONS"
    return OpenTelemetry(
        call=call,
        service_name=own.conventional_service if by_convention else own.service,
        detectors=tuple(_detectors(provider.resource_detectors, by_convention=by_convention)),
        sampler=_sampler(db, collector, provider),
    )


def _http_call(collector: Collector, http: api.HttpService, path: str) -> HttpCall:
    return HttpCall(
        uri=f"{collector.host}{path}",
        collector=collector,
        timeout=http.timeout or _TIMEOUT,
        headers=_headers(http.headers),
    )


def _detectors(asked: api.ResourceDetectors | None, *, by_convention: bool) -> Iterator[Detector]:
    environment = asked is not None and asked.environment is not None
    if environment:
        yield "environment"
    if asked is not None and asked.dynatrace is not None:
        yield "dynatrace"
    if by_convention and not environment:
        yield "environment"


def _sampler(db: Engine, collector: Collector, provider: api.OpenTelemetryTracingProvider) -> DynatraceSampler | None:
    """Dynatrace's sampler, which asks its own API, or the collector where spans go there over HTTP."""
    asked = provider.dynatrace_sampler
    if asked is None:
        return None
    where, http = collector if provider.http is not None else None, provider.http
    if asked.http_service is not None:
        where = _collector(db, asked.http_service.service, asked.http_service.port)
        http = asked.http_service.http or http
    if where is None:
        return None
    http = http or api.HttpService()
    own_path = asked.http_service is not None and asked.http_service.http is not None
    path = http.path if own_path and http.path else _SAMPLING_PATH
    return DynatraceSampler(
        tenant=asked.tenant,
        cluster_id=asked.cluster_id,
        spans_per_minute=asked.root_spans_per_minute,
        call=_http_call(where, http, path),
    )
