"""What mesh and proxy decide for all filters of one side.

In: a proxy's profile, the mesh config and the proxy's own config. Out: `HttpSettings` and `TcpSettings`, shared by all
proxies of that profile. Logs, metrics and traces come from `telemetry`.
Golden cases: gateway/topology, networking/node-settings, networking/mesh-http-settings, telemetry/proxy-config.
"""

import msgspec

from mizzen.api.mesh.config import MeshConfig
from mizzen.api.mesh.proxy import ConnectionSettings, ProxyConfig, ProxyHeaders, SetCurrentClientCertDetails
from mizzen.api.scalars import Duration
from mizzen.compile.filters.dialect import Side
from mizzen.compile.filters.http import ClientCertificate, Connections, HttpSettings
from mizzen.compile.filters.network import DnsCache, TcpSettings
from mizzen.compile.listeners import telemetry
from mizzen.compile.listeners.profiles import Profile
from mizzen.incremental import Engine, query
from mizzen.model import mesh
from mizzen.model.proxy_configs import proxy_config

SERVER_NAME = "istio-envoy"
NO_TIMEOUT = Duration(0)
DYNAMIC_DNS_CACHE = "allow_any_dfp_dns_cache"
_DYNAMIC_DNS_HOSTS = 1024

_EDGE_BUFFER_BYTES = 32768
_EDGE = Connections(
    idle_timeout=Duration.of(hours=1),
    stream_idle_timeout=Duration.of(minutes=5),
    request_timeout=Duration.of(minutes=5),
    request_headers_timeout=Duration.of(seconds=60),
    max_concurrent_streams=100,
    initial_stream_window=65536,
    initial_connection_window=1048576,
    underscores="REJECT_REQUEST",
)
_ALL_DETAILS = ("subject", "cert", "dns", "uri")


@query
def http_settings(db: Engine, own: Profile, side: Side, dynamic_dns: str) -> HttpSettings:
    """The settings of HTTP connection managers; `dynamic_dns` is the address family of the mesh-wide forward proxy's
    cache, empty where unknown hosts are not resolved."""
    config = mesh.mesh_config(db)
    proxy = proxy_config(db, own.config)
    headers = proxy.proxy_headers or ProxyHeaders()
    connection = proxy.connection_settings or ConnectionSettings()
    signals = telemetry.signals(db, own, side)
    paths = _paths(config, connection, edge=_is_edge(own, connection))
    topology = proxy.gateway_topology
    exchange = headers.metadata_exchange_headers
    return HttpSettings(
        dialect=own.dialect,
        side=side,
        access_logs=signals.access_logs,
        metrics=signals.metrics,
        tracing=signals.tracing,
        sample_by_request_id=signals.sample_by_request_id,
        connections=_connections(own, connection),
        normalize_path=paths.normalize,
        merge_slashes=paths.merge,
        escaped_slashes=paths.escaped,
        http10=own.http10,
        preserve_header_case=bool(headers.preserve_http1_header_case),
        server_name=_server_name(headers, side),
        pass_server_header=headers.server is not None and bool(headers.server.disabled),
        generate_request_id=not (headers.request_id is not None and headers.request_id.disabled),
        client_certificate=_client_certificate(proxy, headers, side),
        append_forwarded_port=headers.x_forwarded_port is not None and bool(headers.x_forwarded_port.enabled),
        suppress_envoy_headers=headers.envoy_debug_headers is not None and bool(headers.envoy_debug_headers.disabled),
        exchange_in_mesh_only=side != "inbound" and exchange is not None and exchange.mode == "IN_MESH",
        trusted_hops=topology.num_trusted_proxies if topology is not None and side == "gateway" else 0,
        dynamic_dns=_mesh_dns_cache(dynamic_dns),
    )


@query
def tcp_settings(db: Engine, own: Profile, side: Side) -> TcpSettings:
    """The settings of TCP proxies."""
    signals = telemetry.signals(db, own, side)
    return TcpSettings(
        dialect=own.dialect,
        side=side,
        access_logs=signals.access_logs,
        metrics=signals.metrics,
        idle_timeout=_duration(own.idle_timeout),
    )


@query
def buffer_limit(db: Engine, own: Profile) -> int | None:
    """Bytes that a gateway's connection may buffer; None leaves Envoy's default."""
    connection = proxy_config(db, own.config).connection_settings or ConnectionSettings()
    if connection.listener_per_connection_buffer_limit_bytes is not None:
        return connection.listener_per_connection_buffer_limit_bytes
    return _EDGE_BUFFER_BYTES if _is_edge(own, connection) else None


@query
def reads_proxy_protocol(db: Engine, own: Profile) -> bool:
    """Whether a gateway's clients send the PROXY protocol's header."""
    topology = proxy_config(db, own.config).gateway_topology
    return topology is not None and topology.proxy_protocol is not None


def _is_edge(own: Profile, connection: ConnectionSettings) -> bool:
    return own.router and connection.profile == "EDGE"


def _mesh_dns_cache(family: str) -> DnsCache | None:
    if not family:
        return None
    return DnsCache(name=DYNAMIC_DNS_CACHE, family=family, max_hosts=_DYNAMIC_DNS_HOSTS)


def _duration(text: str) -> Duration | None:
    try:
        return Duration.parse(text) if text else None
    except ValueError:
        return None


# -- parts of the connection manager ----------------------------------------------------------------------------------


class _Paths(msgspec.Struct, frozen=True, kw_only=True):
    normalize: bool
    merge: bool
    escaped: str


def _paths(config: MeshConfig, connection: ConnectionSettings, *, edge: bool) -> _Paths:
    """How paths are made uniform before they are matched: the mesh's word, then the edge's, then the proxy's."""
    chosen = config.path_normalization.normalization if config.path_normalization is not None else "DEFAULT"
    merge = edge or chosen in ("MERGE_SLASHES", "DECODE_AND_MERGE_SLASHES")
    escaped = "UNESCAPE_AND_FORWARD" if chosen == "DECODE_AND_MERGE_SLASHES" else "KEEP_UNCHANGED"
    if edge:
        escaped = "UNESCAPE_AND_REDIRECT"
    if connection.http_merge_slashes is not None:
        merge = connection.http_merge_slashes
    if connection.http_path_with_escaped_slashes_action != "PATH_WITH_ESCAPED_SLASHES_UNSPECIFIED":
        escaped = connection.http_path_with_escaped_slashes_action
    return _Paths(normalize=chosen != "NONE", merge=merge, escaped=escaped)


def _connections(own: Profile, connection: ConnectionSettings) -> Connections:
    base = _EDGE if _is_edge(own, connection) else Connections()
    action = connection.http_headers_with_underscores_action.removeprefix("HEADERS_WITH_UNDERSCORES_")
    written = {
        "idle_timeout": connection.http_idle_timeout or _duration(own.idle_timeout),
        "max_connection_duration": connection.http_max_connection_duration,
        "max_stream_duration": connection.http_max_stream_duration,
        "stream_idle_timeout": connection.http_stream_idle_timeout,
        "request_timeout": connection.http_request_timeout,
        "request_headers_timeout": connection.http_request_headers_timeout,
        "drain_timeout": connection.http_drain_timeout,
        "max_concurrent_streams": connection.http_max_concurrent_streams,
        "initial_stream_window": connection.http2_initial_stream_window_size,
        "initial_connection_window": connection.http2_initial_connection_window_size,
        "underscores": action if action != "UNSPECIFIED" else None,
    }
    return msgspec.structs.replace(base, **{name: value for name, value in written.items() if value is not None})


def _server_name(headers: ProxyHeaders, side: Side) -> str:
    if headers.server is not None and headers.server.disabled:
        return ""
    if headers.server is not None and headers.server.value:
        return headers.server.value
    return "" if side == "outbound" else SERVER_NAME


def _client_certificate(proxy: ProxyConfig, headers: ProxyHeaders, side: Side) -> ClientCertificate | None:
    if side == "inbound":
        mode = headers.forwarded_client_cert
        return ClientCertificate(
            mode="APPEND_FORWARD" if mode == "UNDEFINED" else mode,
            details=_details(headers.set_current_client_cert_details),
        )
    if side == "gateway":
        topology = proxy.gateway_topology
        mode = topology.forward_client_cert_details if topology is not None else "UNDEFINED"
        chosen = "SANITIZE_SET" if mode == "UNDEFINED" else mode
        return ClientCertificate(
            mode=chosen, details=_ALL_DETAILS if chosen in ("APPEND_FORWARD", "SANITIZE_SET") else ()
        )
    return None


def _details(written: SetCurrentClientCertDetails | None) -> tuple[str, ...]:
    """Subject, DNS names and URIs unless switched off; certificate and chain only when switched on."""
    asked = written or SetCurrentClientCertDetails()
    defaults = {"subject": True, "cert": False, "chain": False, "dns": True, "uri": True}
    chosen = {name: getattr(asked, name) for name in defaults}
    return tuple(name for name, on in defaults.items() if (on if chosen[name] is None else chosen[name]))
