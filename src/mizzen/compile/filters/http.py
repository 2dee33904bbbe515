"""HTTP connection managers of sidecars and gateways, with their HTTP filters in order.

In: `HttpSettings`, all that is the same for every connection manager of one side of one proxy, and `HttpChain`, what
one of them is told beside it. Out: the network filter. Routes come as a name for RDS or as a ready message; policies,
JWT and Wasm as ready filters in `HttpPolicies`. Golden cases: base, gateway/topology, networking/node-settings,
networking/mesh-http-settings.
"""

import functools
from typing import Any, Literal

import msgspec

from mizzen import protos
from mizzen.api.scalars import Duration
from mizzen.compile.filters import access_logs, alpn, metric_labels, metric_loggers, metrics, peers, tracing
from mizzen.compile.filters.access_logs import AccessLog
from mizzen.compile.filters.dialect import Dialect, Side
from mizzen.compile.filters.metrics import Metrics
from mizzen.compile.filters.network import DnsCache
from mizzen.compile.filters.tracing import Tracing

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_listener_v3 = protos.package("envoy.config.listener.v3")
_uuid_v3 = protos.package("envoy.extensions.request_id.uuid.v3")
_case_v3 = protos.package("envoy.extensions.http.header_formatters.preserve_case.v3")
_HTTP = "envoy.extensions.filters.http"

FILTER = "envoy.filters.network.http_connection_manager"


class ClientCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """What `x-forwarded-client-cert` says: who may have written it, and which parts of the peer's certificate."""

    mode: Literal["SANITIZE", "FORWARD_ONLY", "APPEND_FORWARD", "SANITIZE_SET", "ALWAYS_FORWARD_ONLY"]
    details: tuple[str, ...] = ()
    """Names among subject, cert, chain, dns, uri; none leaves the field out."""


class Connections(msgspec.Struct, frozen=True, kw_only=True):
    """Timeouts and limits of HTTP connections; None leaves Envoy's default."""

    idle_timeout: Duration | None = None
    max_connection_duration: Duration | None = None
    max_stream_duration: Duration | None = None
    stream_idle_timeout: Duration = Duration(0)
    request_timeout: Duration | None = None
    request_headers_timeout: Duration | None = None
    drain_timeout: Duration | None = None
    max_concurrent_streams: int | None = None
    initial_stream_window: int | None = None
    initial_connection_window: int | None = None
    underscores: Literal["", "ALLOW", "REJECT_REQUEST", "DROP_HEADER"] = ""


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """What mesh, proxy and Telemetry decide for every connection manager of one side of one proxy."""

    dialect: Dialect
    side: Side
    access_logs: tuple[AccessLog, ...] = ()
    metrics: Metrics | None = None
    tracing: Tracing | None = None
    sample_by_request_id: bool = True
    connections: Connections = Connections()
    normalize_path: bool = True
    merge_slashes: bool = False
    escaped_slashes: str = "KEEP_UNCHANGED"
    http10: bool = False
    preserve_header_case: bool = False
    server_name: str = ""
    """The `server` header; empty leaves it to the default."""
    pass_server_header: bool = False
    generate_request_id: bool = True
    client_certificate: ClientCertificate | None = None
    append_forwarded_port: bool = False
    suppress_envoy_headers: bool = False
    exchange_in_mesh_only: bool = False
    trusted_hops: int = 0
    dynamic_dns: DnsCache | None = None
    """The cache of a forward proxy in every connection manager of the side."""


class HttpPolicies(msgspec.Struct, frozen=True, kw_only=True):
    """Encoded HTTP filters that objects ask for, each at its place in the order; Wasm is placed by `patches`."""

    custom: tuple[bytes, ...] = ()
    """External authorization."""
    jwt: tuple[bytes, ...] = ()
    authorization: tuple[bytes, ...] = ()


class HttpChain(msgspec.Struct, frozen=True, kw_only=True):
    """What one connection manager is told beside its side's settings."""

    stat_prefix: str
    route_name: str = ""
    """The route configuration asked for over RDS; empty where the caller gives the routes themselves."""
    http2: bool = False
    """Whether HTTP/2 options stand there even without a limit: a port declared HTTP/2."""
    grpc_web: bool = False
    allow_absolute_url: bool = False
    mutual_tls: bool = False
    """Whether the chain terminates mutual TLS of the mesh."""
    exchange_everywhere: bool = False
    """Whether this one ignores `exchange_in_mesh_only`."""
    on_demand: bool = False
    """Whether a request to a host that is not known yet waits for its virtual host."""
    dynamic_dns: DnsCache | None = None
    policies: HttpPolicies = HttpPolicies()


ADS_SOURCE = {"ads": {}, "initial_fetch_timeout": {}, "resource_api_version": "V3"}
"""The config source of everything that the control plane serves."""


def build_connection_manager(settings: HttpSettings, chain: HttpChain, route_config: Any = None) -> Any:
    """The connection manager as a network filter."""
    message = _hcm_v3.HttpConnectionManager()
    message.CopyFrom(_side(settings, mutual_tls=chain.mutual_tls))
    message.stat_prefix = chain.stat_prefix
    message.http_filters.extend(build_http_filters(settings, chain))
    if chain.route_name:
        message.rds.MergeFrom(_hcm_v3.Rds(config_source=ADS_SOURCE, route_config_name=chain.route_name))
    else:
        message.route_config.MergeFrom(route_config)
    if chain.http2:
        message.http2_protocol_options.SetInParent()
    if chain.allow_absolute_url:
        message.http_protocol_options.allow_absolute_url.value = True
    return _listener_v3.Filter(name=FILTER, typed_config=protos.pack(message))


@functools.lru_cache(maxsize=256)
def _side(settings: HttpSettings, *, mutual_tls: bool) -> Any:
    """The fields that all connection managers of a side share."""
    loggers = [access_logs.build_access_log(log, settings.dialect) for log in settings.access_logs]
    if settings.metrics is not None and settings.dialect == "envoy":
        loggers.append(metric_loggers.build_http_logger(settings.side, settings.metrics, mutual_tls=mutual_tls))
    request_id = _uuid_v3.UuidRequestIdConfig(
        use_request_id_for_trace_sampling={"value": settings.sample_by_request_id}
    )
    fields: dict[str, Any] = {
        **_path_fields(settings),
        **_header_fields(settings),
        **_connection_fields(settings),
        "access_log": loggers,
        "upgrade_configs": [{"upgrade_type": "websocket"}],
        "request_id_extension": {"typed_config": protos.pack(request_id)},
    }
    if settings.tracing is not None:
        fields["tracing"] = tracing.build_tracing(settings.tracing)
    return _hcm_v3.HttpConnectionManager(**fields)


def _path_fields(settings: HttpSettings) -> dict[str, Any]:
    return {
        "normalize_path": {"value": settings.normalize_path},
        "merge_slashes": settings.merge_slashes,
        "path_with_escaped_slashes_action": settings.escaped_slashes,
    }


def _header_fields(settings: HttpSettings) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "use_remote_address": {"value": settings.side == "gateway"},
        "proxy_100_continue": True,
        "append_x_forwarded_port": settings.append_forwarded_port,
        "xff_num_trusted_hops": settings.trusted_hops,
        "server_name": settings.server_name,
    }
    if settings.pass_server_header:
        fields["server_header_transformation"] = "PASS_THROUGH"
    if not settings.generate_request_id:
        fields["generate_request_id"] = {"value": False}
    if settings.client_certificate is not None:
        fields["forward_client_cert_details"] = settings.client_certificate.mode
        if details := settings.client_certificate.details:
            fields["set_current_client_cert_details"] = {
                name: {"value": True} if name == "subject" else True for name in details
            }
    return fields


def _connection_fields(settings: HttpSettings) -> dict[str, Any]:
    limits = settings.connections
    fields: dict[str, Any] = {"stream_idle_timeout": limits.stream_idle_timeout.protobuf()}
    common: dict[str, Any] = _durations(
        idle_timeout=limits.idle_timeout,
        max_connection_duration=limits.max_connection_duration,
        max_stream_duration=limits.max_stream_duration,
    )
    if limits.underscores:
        common["headers_with_underscores_action"] = limits.underscores
    if common:
        fields["common_http_protocol_options"] = common
    fields |= _durations(
        request_timeout=limits.request_timeout,
        request_headers_timeout=limits.request_headers_timeout,
        drain_timeout=limits.drain_timeout,
    )
    http2 = {
        "max_concurrent_streams": limits.max_concurrent_streams,
        "initial_stream_window_size": limits.initial_stream_window,
        "initial_connection_window_size": limits.initial_connection_window,
    }
    if any(value is not None for value in http2.values()):
        fields["http2_protocol_options"] = {k: {"value": v} for k, v in http2.items() if v is not None}
    return fields | _http1_fields(settings)


def _http1_fields(settings: HttpSettings) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if settings.http10:
        options["accept_http_10"] = True
    if settings.preserve_header_case:
        formatter = _case_v3.PreserveCaseFormatterConfig()
        options["header_key_format"] = {
            "stateful_formatter": {"name": "preserve_case", "typed_config": protos.pack(formatter)}
        }
    return {"http_protocol_options": options} if options or settings.side == "gateway" else {}


def _durations(**fields: Duration | None) -> dict[str, Any]:
    return {name: value.protobuf() for name, value in fields.items() if value is not None}


# -- filters ----------------------------------------------------------------------------------------------------------


def build_http_filters(settings: HttpSettings, chain: HttpChain) -> list[Any]:
    """The HTTP filters in the order that Istio gives them."""
    policies = chain.policies
    filters = [
        *((_plain_filter("on_demand", "OnDemand"),) if chain.on_demand else ()),
        *_peer_filters(settings, chain),
        *_decoded(policies.custom),
        *_decoded(policies.jwt),
        *_decoded(policies.authorization),
    ]
    if chain.grpc_web:
        filters.append(_plain_filter("grpc_web", "GrpcWeb"))
    filters.append(_grpc_stats())
    if settings.side != "inbound":
        filters.append(alpn.build_http_filter(settings.dialect, on_demand=chain.on_demand))
    filters += (_plain_filter("fault", "HTTPFault"), _plain_filter("cors", "Cors"))
    if settings.metrics is not None:
        if settings.dialect == "istio":
            filters.append(metrics.build_http_filter(settings.side, settings.metrics))
        else:
            filters.append(metric_loggers.build_protocol_filter())
    if (cache := chain.dynamic_dns or settings.dynamic_dns) is not None:
        filters.append(_dynamic_forward_proxy(cache))
    filters.append(_router(settings.suppress_envoy_headers))
    return filters


def _peer_filters(settings: HttpSettings, chain: HttpChain) -> tuple[Any, ...]:
    return peers.build_http_filters(
        settings.dialect,
        settings.side,
        mutual_tls=chain.mutual_tls,
        in_mesh=settings.exchange_in_mesh_only and not chain.exchange_everywhere,
        split=settings.metrics is not None and settings.metrics.changes_any(metric_labels.SOURCE),
    )


def _decoded(filters: tuple[bytes, ...]) -> list[Any]:
    return [_hcm_v3.HttpFilter.FromString(data) for data in filters]


@functools.cache
def _plain_filter(name: str, message: str) -> Any:
    config = protos.message_class(f"{_HTTP}.{name}.v3.{message}")()
    return _hcm_v3.HttpFilter(name=f"envoy.filters.http.{name}", typed_config=protos.pack(config))


@functools.cache
def _grpc_stats() -> Any:
    config = protos.message_class(f"{_HTTP}.grpc_stats.v3.FilterConfig")(
        emit_filter_state=True, stats_for_all_methods={"value": False}
    )
    return _hcm_v3.HttpFilter(name="envoy.filters.http.grpc_stats", typed_config=protos.pack(config))


def _dynamic_forward_proxy(cache: DnsCache) -> Any:
    config = protos.message_class(f"{_HTTP}.dynamic_forward_proxy.v3.FilterConfig")(dns_cache_config=cache.config())
    return _hcm_v3.HttpFilter(name="envoy.filters.http.dynamic_forward_proxy", typed_config=protos.pack(config))


@functools.cache
def _router(suppress_envoy_headers: bool) -> Any:
    config = protos.message_class(f"{_HTTP}.router.v3.Router")(suppress_envoy_headers=suppress_envoy_headers)
    return _hcm_v3.HttpFilter(name="envoy.filters.http.router", typed_config=protos.pack(config))
