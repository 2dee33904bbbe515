"""Network filters: the TCP proxy and what stands before it in a chain.

In: `TcpSettings` (one side of one proxy) and `TcpRoute` (where the bytes go). Out: the filters of a TCP chain, in
order. Policies come in as ready filters. Golden cases: base, networking/vs-tls-tcp-routes,
networking/dr-connection-pool, networking/dr-consistent-hash, networking/dr-proxy-protocol-tunnel.
"""

import functools
from typing import Any

import msgspec

from mizzen import protos
from mizzen.api.scalars import Duration
from mizzen.compile.filters import access_logs, metric_loggers, metrics, peers
from mizzen.compile.filters.access_logs import AccessLog
from mizzen.compile.filters.dialect import Dialect, Side
from mizzen.compile.filters.metrics import Metrics

_listener_v3 = protos.package("envoy.config.listener.v3")
_tcp_v3 = protos.package("envoy.extensions.filters.network.tcp_proxy.v3")
_mongo_v3 = protos.package("envoy.extensions.filters.network.mongo_proxy.v3")
_sni_forward_v3 = protos.package("envoy.extensions.filters.network.sni_dynamic_forward_proxy.v3")

SNI_FORWARD = "envoy.extensions.filters.network.sni_dynamic_forward_proxy"


class TcpSettings(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """What mesh, proxy and Telemetry decide for every TCP proxy of one side of one proxy."""

    dialect: Dialect
    side: Side
    access_logs: tuple[AccessLog, ...] = ()
    metrics: Metrics | None = None
    idle_timeout: Duration | None = None


class Weighted(msgspec.Struct, frozen=True, kw_only=True):
    """One of several clusters."""

    cluster: str
    weight: int


class Tunnel(msgspec.Struct, frozen=True, kw_only=True):
    """CONNECT (or POST) to this host and port instead of bare TCP."""

    target: str
    use_post: bool = False


class TcpRoute(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Where a TCP proxy sends a connection, and what the destination's rule says about it."""

    stat_prefix: str
    cluster: str = ""
    weighted: tuple[Weighted, ...] = ()
    """Clusters that share the connections; none where all go to `cluster`."""
    idle_timeout: Duration | None = None
    max_connection_duration: Duration | None = None
    hash_source_ip: bool = False
    tunnel: Tunnel | None = None
    mongo: bool = False
    sni_forward: "DnsCache | None" = None


class DnsCache(msgspec.Struct, frozen=True, kw_only=True):
    """The DNS cache of a dynamic forward proxy; the cluster names the same."""

    name: str
    family: str = "V4_ONLY"
    max_hosts: int = 0
    port: int = 0
    """The port that the SNI forward proxy connects to."""

    def config(self) -> dict[str, Any]:
        """The fields of a `DnsCacheConfig`."""
        fields: dict[str, Any] = {"name": self.name, "dns_lookup_family": self.family}
        if self.max_hosts:
            fields["max_hosts"] = {"value": self.max_hosts}
        return fields


def to_cluster(cluster: str, stat_prefix: str = "") -> TcpRoute:
    """Everything to one cluster."""
    return TcpRoute(stat_prefix=stat_prefix or cluster, cluster=cluster)


def build_tcp_filters(
    settings: TcpSettings,
    route: TcpRoute,
    *,
    policies: tuple[Any, ...] = (),
    exchange: bool = False,
    mutual_tls: bool = False,
    black_hole: bool = False,
) -> list[Any]:
    """The filters of a TCP chain.

    `policies` are authorization and Wasm filters; `exchange` adds peer metadata in front; `mutual_tls` says that the
    chain terminates it; a `black_hole` neither logs nor times out.
    """
    filters = [*(peers.build_network_filters(settings.dialect) if exchange else ()), *policies]
    if settings.metrics is not None and settings.dialect == "istio":
        filters.append(metrics.build_network_filter(settings.side, settings.metrics))
    if route.sni_forward is not None:
        filters.append(_sni_forward(route.sni_forward))
    if route.mongo:
        mongo = _mongo_v3.MongoProxy(stat_prefix=route.stat_prefix)
        filters.append(_listener_v3.Filter(name="envoy.filters.network.mongo_proxy", typed_config=protos.pack(mongo)))
    filters.append(_tcp_proxy(settings, route, mutual_tls=mutual_tls, black_hole=black_hole))
    return filters


def _sni_forward(cache: DnsCache) -> Any:
    config = _sni_forward_v3.FilterConfig(dns_cache_config=cache.config(), port_value=cache.port)
    return _listener_v3.Filter(name=SNI_FORWARD, typed_config=protos.pack(config))


@functools.lru_cache(maxsize=256)
def _loggers(settings: TcpSettings, *, mutual_tls: bool, black_hole: bool) -> tuple[Any, ...]:
    counted = settings.dialect == "envoy" and settings.metrics is not None
    build = access_logs.build_end_log if counted else access_logs.build_access_log
    loggers = [build(log, settings.dialect) for log in settings.access_logs if not black_hole]
    if settings.metrics is not None and counted:
        loggers += metric_loggers.build_tcp_loggers(settings.side, settings.metrics, mutual_tls=mutual_tls)
    return tuple(loggers)


def _tcp_proxy(settings: TcpSettings, route: TcpRoute, *, mutual_tls: bool, black_hole: bool) -> Any:
    fields: dict[str, Any] = _destination(route)
    idle = route.idle_timeout if route.idle_timeout is not None else settings.idle_timeout
    if idle is not None and not black_hole:
        fields["idle_timeout"] = idle.protobuf()
    if route.max_connection_duration is not None:
        fields["max_downstream_connection_duration"] = route.max_connection_duration.protobuf()
    if route.hash_source_ip:
        fields["hash_policy"] = [{"source_ip": {}}]
    if route.tunnel is not None:
        fields["tunneling_config"] = {"hostname": route.tunnel.target, "use_post": route.tunnel.use_post}
    if settings.dialect == "envoy":
        fields |= _upstream_only_fields(settings, mutual_tls=mutual_tls)
    config = _tcp_v3.TcpProxy(
        stat_prefix=route.stat_prefix,
        access_log=_loggers(settings, mutual_tls=mutual_tls, black_hole=black_hole),
        **fields,
    )
    return _listener_v3.Filter(name="envoy.filters.network.tcp_proxy", typed_config=protos.pack(config))


def _destination(route: TcpRoute) -> dict[str, Any]:
    if not route.weighted:
        return {"cluster": route.cluster}
    return {"weighted_clusters": {"clusters": [{"name": w.cluster, "weight": w.weight} for w in route.weighted]}}


def _upstream_only_fields(settings: TcpSettings, *, mutual_tls: bool) -> dict[str, Any]:
    """What stands in for Istio's filters: counting at the beginning, and peers known before the application is."""
    fields: dict[str, Any] = {}
    if settings.metrics is not None:
        fields["access_log_options"] = {"flush_access_log_on_connected": True}
    if mutual_tls:
        fields["upstream_connect_mode"] = "ON_DOWNSTREAM_TLS_HANDSHAKE"
        fields["max_early_data_bytes"] = {"value": 0}
    return fields
