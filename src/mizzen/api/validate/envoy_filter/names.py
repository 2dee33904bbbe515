"""Names of filters that Envoy once had, and those it has now."""

from collections.abc import Mapping

_HTTP = "envoy.filters.http"
_NETWORK = "envoy.filters.network"
_LISTENER = "envoy.filters.listener"

CURRENT_NAMES: Mapping[str, str] = {
    "envoy.buffer": f"{_HTTP}.buffer",
    "envoy.cors": f"{_HTTP}.cors",
    "envoy.csrf": f"{_HTTP}.csrf",
    "envoy.ext_authz": f"{_HTTP}.ext_authz",
    "envoy.fault": f"{_HTTP}.fault",
    "envoy.grpc_http1_bridge": f"{_HTTP}.grpc_http1_bridge",
    "envoy.grpc_json_transcoder": f"{_HTTP}.grpc_json_transcoder",
    "envoy.grpc_web": f"{_HTTP}.grpc_web",
    "envoy.gzip": f"{_HTTP}.gzip",
    "envoy.health_check": f"{_HTTP}.health_check",
    "envoy.http_dynamo_filter": f"{_HTTP}.dynamo",
    "envoy.ip_tagging": f"{_HTTP}.ip_tagging",
    "envoy.lua": f"{_HTTP}.lua",
    "envoy.rate_limit": f"{_HTTP}.ratelimit",
    "envoy.router": f"{_HTTP}.router",
    "envoy.squash": f"{_HTTP}.squash",
    "envoy.client_ssl_auth": f"{_NETWORK}.client_ssl_auth",
    "envoy.echo": f"{_NETWORK}.echo",
    "envoy.http_connection_manager": f"{_NETWORK}.http_connection_manager",
    "envoy.mongo_proxy": f"{_NETWORK}.mongo_proxy",
    "envoy.ratelimit": f"{_NETWORK}.ratelimit",
    "envoy.redis_proxy": f"{_NETWORK}.redis_proxy",
    "envoy.tcp_proxy": f"{_NETWORK}.tcp_proxy",
    "envoy.listener.http_inspector": f"{_LISTENER}.http_inspector",
    "envoy.listener.original_dst": f"{_LISTENER}.original_dst",
    "envoy.listener.original_src": f"{_LISTENER}.original_src",
    "envoy.listener.proxy_protocol": f"{_LISTENER}.proxy_protocol",
    "envoy.listener.tls_inspector": f"{_LISTENER}.tls_inspector",
}

CONNECTION_MANAGER = f"{_NETWORK}.http_connection_manager"
OLD_CONNECTION_MANAGER = "envoy.http_connection_manager"
