"""What Envoy is started with: its bootstrap as protobuf JSON.

In: the node, ProxyConfig and a few facts of this agent. Out: one object in a fixed order of keys; the same input gives
the same bytes. Everything that an Envoy built from upstream's sources accepts: no extension of Istio's own.

The static part is small: a socket to the agent for configuration (`xds-grpc`) and one for secrets (`sds-grpc`), the
agent's status port, the admin port, and two listeners, Prometheus (15090) and readiness (15021). Socket paths are
relative to the directory in which Envoy runs. Everything else arrives over ADS.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mizzen.agent.bootstrap import node, stats
from mizzen.agent.bootstrap.proxy_config import ProxyConfig

SDS_SOCKET = "./var/run/secrets/workload-spiffe-uds/socket"

_EXTENSIONS = "type.googleapis.com/envoy.extensions."
_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_NO_CONNECTION_LIMIT = "2147483647"

# A Wasm module that does nothing, assembled by hand: one page of memory and the functions that Proxy-Wasm demands of
# every plugin. Loading a plugin makes Envoy register the stat namespace `wasmcustom`, see `stats.NAMESPACE`.
STAT_NAMESPACE_MODULE = (
    "AGFzbQEAAAABFARgAABgAX8Bf2ACf38AYAJ/fwF/AwYFAAECAwMFAwEAAQeCAQYGbWVtb3J5AgAXcHJveHlfYWJpX3ZlcnNpb25fMF8yXzEAABhw"
    "cm94eV9vbl9tZW1vcnlfYWxsb2NhdGUAARdwcm94eV9vbl9jb250ZXh0X2NyZWF0ZQACEXByb3h5X29uX3ZtX3N0YXJ0AAMScHJveHlfb25fY29u"
    "ZmlndXJlAAQKFwUCAAsFAEGACAsCAAsEAEEBCwQAQQEL"
)


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the bootstrap needs beside node and ProxyConfig."""

    xds_socket: str
    """Path of the relay's socket."""
    sds_socket: str = SDS_SOCKET
    ipv6: bool = False
    """Whether loopback and wildcard addresses are those of IPv6."""
    bind_address: str = ""
    """One address in place of both, where pods share a network namespace."""
    annotations: Mapping[str, str] = {}
    outlier_log: str = ""
    """File to which ejections are logged."""
    log_as_json: bool = False
    count_connections: bool = False
    """Whether the statistics for draining by active connections are kept."""
    socket_mark: int = 0
    """Mark on Envoy's upstream sockets, where capture rules tell its traffic by a mark and not by its user."""

    @property
    def loopback(self) -> str:
        """Where Envoy and the agent find each other."""
        return self.bind_address or ("::1" if self.ipv6 else "127.0.0.1")

    @property
    def wildcard(self) -> str:
        """The address that means every address of the pod."""
        return self.bind_address or ("::" if self.ipv6 else "0.0.0.0")


def build_bootstrap(identity: Mapping[str, Any], config: ProxyConfig, facts: Facts) -> dict[str, Any]:
    """The whole bootstrap; `identity` is the node."""
    connections = facts.count_connections
    bootstrap: dict[str, Any] = {
        "applicationLogConfig": _build_log_format(facts),
        "node": dict(identity),
        "layeredRuntime": _build_runtime(config),
        "bootstrapExtensions": _build_extensions(),
        "statsConfig": stats.build_stats_config(facts.annotations, config, count_connections=connections),
        **stats.parse_flush_interval(facts.annotations),
        "deferredStatOptions": {"enableDeferredCreationStats": True},
        "admin": _build_admin(config, facts),
        "clusterManager": _build_cluster_manager(facts),
        "dynamicResources": _build_dynamic_resources(),
        "staticResources": {
            "clusters": _build_clusters(config, facts),
            "listeners": [_build_prometheus_listener(facts), _build_readiness_listener(facts)],
        },
        "overloadManager": _build_overload_manager(),
    }
    return {field: value for field, value in bootstrap.items() if value}


def _build_log_format(facts: Facts) -> dict[str, Any]:
    if not facts.log_as_json:
        return {}
    fields = {"time": "%Y-%m-%dT%T.%FZ", "level": "%l", "scope": "envoy %n", "msg": "%j"}
    return {"logFormat": {"jsonFormat": fields}}


def _build_runtime(config: ProxyConfig) -> dict[str, Any]:
    values: dict[str, Any] = {
        "re2.max_program_size.error_level": "32768",
        "envoy.deprecated_features:envoy.config.listener.v3.Listener.hidden_envoy_deprecated_use_original_dst": True,
        "envoy.reloadable_features.fixed_heap_use_allocated": True,
        "envoy.reloadable_features.http_reject_path_with_fragment": False,
        "envoy.reloadable_features.coalesce_lb_rebuilds_on_batch_update": False,
        **config.runtime_values,
    }
    return {
        "layers": [
            {"name": "global config", "staticLayer": dict(sorted(values.items()))},
            {"name": "admin", "adminLayer": {}},
        ]
    }


def _build_extensions() -> list[dict[str, Any]]:
    module = {
        "runtime": "envoy.wasm.runtime.v8",
        "code": {"local": {"inlineBytes": STAT_NAMESPACE_MODULE}},
    }
    return [
        {
            "name": "envoy.bootstrap.internal_listener",
            "typedConfig": {
                "@type": _EXTENSIONS + "bootstrap.internal_listener.v3.InternalListener",
                "bufferSizeKb": 64,
            },
        },
        {
            "name": "envoy.bootstrap.wasm",
            "typedConfig": {
                "@type": _EXTENSIONS + "wasm.v3.WasmService",
                "singleton": True,
                "config": {"name": "stat-namespace", "vmConfig": module},
            },
        },
    ]


def _build_admin(config: ProxyConfig, facts: Facts) -> dict[str, Any]:
    return {
        "accessLog": [
            {
                "name": "envoy.access_loggers.file",
                "typedConfig": {
                    "@type": _EXTENSIONS + "access_loggers.file.v3.FileAccessLog",
                    "path": "/dev/null",
                },
            }
        ],
        "profilePath": "./var/lib/istio/data/envoy.prof",
        "address": _address(facts.loopback, config.proxy_admin_port),
    }


def _build_cluster_manager(facts: Facts) -> dict[str, Any]:
    manager: dict[str, Any] = {"enableDeferredClusterCreation": True}
    if facts.outlier_log:
        manager["outlierDetection"] = {"eventLogPath": facts.outlier_log}
    if facts.socket_mark:
        # 1 and 36 are SOL_SOCKET and SO_MARK.
        option = {"description": "mark", "level": "1", "name": "36", "intValue": str(facts.socket_mark)}
        manager["upstreamBindConfig"] = {"socketOptions": [{**option, "state": "STATE_PREBIND"}]}
    return manager


def _build_dynamic_resources() -> dict[str, Any]:
    # The agent is always there, so a lost stream is worth trying again soon; it is the agent that backs off from the
    # control plane.
    back_off = {"baseInterval": "0.200s", "maxInterval": "2s"}
    over_ads = {"ads": {}, "initialFetchTimeout": "0s", "resourceApiVersion": "V3"}
    return {
        "ldsConfig": over_ads,
        "cdsConfig": over_ads,
        "adsConfig": {
            "apiType": "DELTA_GRPC",
            "transportApiVersion": "V3",
            "setNodeOnFirstMessageOnly": True,
            "grpcServices": [
                {"envoyGrpc": {"clusterName": "xds-grpc", "retryPolicy": {"retryBackOff": back_off}}},
            ],
        },
    }


def _build_clusters(config: ProxyConfig, facts: Facts) -> list[dict[str, Any]]:
    unlimited = {name: 100000 for name in ("maxConnections", "maxPendingRequests", "maxRequests")}
    thresholds = [{"priority": priority, **unlimited} for priority in ("DEFAULT", "HIGH")]
    relay = _build_cluster("xds-grpc", _pipe(facts.xds_socket), http2=True, connect_timeout="1s")
    options = relay["typedExtensionProtocolOptions"][_HTTP_OPTIONS]
    options["commonHttpProtocolOptions"] = {"maxRequestsPerConnection": 1}
    relay["circuitBreakers"] = {"thresholds": thresholds}
    relay["upstreamConnectionOptions"] = {"tcpKeepalive": {"keepaliveTime": 300}}
    return [
        _build_cluster("agent", _address(facts.loopback, config.status_port)),
        _build_cluster("sds-grpc", _pipe(facts.sds_socket), http2=True, connect_timeout="1s"),
        relay,
    ]


def _build_cluster(
    name: str, address: Mapping[str, Any], *, http2: bool = False, connect_timeout: str = "0.250s"
) -> dict[str, Any]:
    protocol: dict[str, Any] = {"http2ProtocolOptions": {}} if http2 else {"httpProtocolOptions": {}}
    return {
        "name": name,
        "altStatName": f"{name};",
        "type": "STATIC",
        "connectTimeout": connect_timeout,
        "loadAssignment": {
            "clusterName": name,
            "endpoints": [{"lbEndpoints": [{"endpoint": {"address": dict(address)}}]}],
        },
        "typedExtensionProtocolOptions": {
            _HTTP_OPTIONS: {
                "@type": f"type.googleapis.com/{_HTTP_OPTIONS}",
                "explicitHttpConfig": protocol,
            }
        },
    }


def _build_prometheus_listener(facts: Facts) -> dict[str, Any]:
    # The agent fetches them from the admin port and gives them Istio's labels.
    action = {"cluster": "agent", "prefixRewrite": node.ENVOY_METRICS}
    route = {"match": {"prefix": "/stats/prometheus"}, "route": action}
    filters = [_build_compressor(kind) for kind in ("brotli", "zstd", "gzip")]
    return _build_listener(facts, node.PROMETHEUS_PORT, "stats;", route, filters)


def _build_readiness_listener(facts: Facts) -> dict[str, Any]:
    route = {"match": {"prefix": "/healthz/ready"}, "route": {"cluster": "agent"}}
    return _build_listener(facts, node.STATUS_PORT, "agent;", route, [])


def _build_listener(
    facts: Facts, port: int, prefix: str, route: Mapping[str, Any], filters: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    router = {
        "name": "envoy.filters.http.router",
        "typedConfig": {"@type": _EXTENSIONS + "filters.http.router.v3.Router"},
    }
    manager = {
        "@type": _EXTENSIONS + "filters.network.http_connection_manager.v3.HttpConnectionManager",
        "codecType": "AUTO",
        "statPrefix": prefix,
        "routeConfig": {"virtualHosts": [{"name": "backend", "domains": ["*"], "routes": [dict(route)]}]},
        "httpFilters": [*filters, router],
    }
    return {
        "name": f"{facts.wildcard}_{port}",
        "address": _address(facts.wildcard, port),
        "filterChains": [
            {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typedConfig": manager}]}
        ],
        "ignoreGlobalConnLimit": True,
    }


def _build_compressor(kind: str) -> dict[str, Any]:
    library = {
        "name": f"envoy.compression.{kind}.compressor",
        "typedConfig": {"@type": f"{_EXTENSIONS}compression.{kind}.compressor.v3.{kind.capitalize()}"},
    }
    return {
        "name": f"envoy.filters.http.compressor.{kind}",
        "typedConfig": {
            "@type": _EXTENSIONS + "filters.http.compressor.v3.Compressor",
            "compressorLibrary": library,
        },
    }


def _build_overload_manager() -> dict[str, Any]:
    config = "resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig"
    monitor = {
        "name": "envoy.resource_monitors.global_downstream_max_connections",
        "typedConfig": {
            "@type": _EXTENSIONS + config,
            "maxActiveDownstreamConnections": _NO_CONNECTION_LIMIT,
        },
    }
    return {"resourceMonitors": [monitor]}


def _address(host: str, port: int) -> dict[str, Any]:
    return {"socketAddress": {"address": host, "portValue": port}}


def _pipe(path: str) -> dict[str, Any]:
    return {"pipe": {"path": path}}
