"""Gateway plans as messages.

In: a plan and what all listeners of a gateway share. Out: encoded listeners; equal plans with equal settings are built
once. Golden cases: gateway/* , security/authz-gateway-root.
"""

from typing import Any

import msgspec

from mizzen import protos
from mizzen.compile.filters import access_logs, alpn, listener_filters, tls
from mizzen.compile.filters.access_logs import AccessLog
from mizzen.compile.filters.http import HttpChain, HttpPolicies, HttpSettings, build_connection_manager
from mizzen.compile.filters.network import TcpSettings, build_tcp_filters
from mizzen.compile.listeners.matches import CONNECT_TIMEOUT, bind_fields, build_match
from mizzen.compile.listeners.servers import GatewayPlan, HttpServer, TcpServer
from mizzen.compile.resource import Resource, encode_resource
from mizzen.incremental import Engine, query

_listener_v3 = protos.package("envoy.config.listener.v3")


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """What all listeners of a gateway share."""

    http: HttpSettings
    tcp: TcpSettings
    http_policies: HttpPolicies = HttpPolicies()
    tcp_policies: tuple[bytes, ...] = ()
    """Encoded network filters."""
    listener_logs: tuple[AccessLog, ...] = ()
    buffer_limit: int | None = None
    proxy_protocol: bool = False
    exact_balance: bool = False


@query
def gateway_listener(db: Engine, plan: GatewayPlan, settings: GatewaySettings) -> Resource:
    """A listener of a gateway."""
    del db  # Nothing but the arguments counts.
    message = _listener_v3.Listener(
        name=plan.name,
        traffic_direction="OUTBOUND",
        max_connections_to_accept_per_socket_event={"value": 1},
        access_log=[access_logs.build_listener_log(log, settings.tcp.dialect) for log in settings.listener_logs],
        listener_filters=_listener_filters(plan, settings),
        filter_chains=[_chain(chain, plan, settings) for chain in plan.chains],
        **bind_fields(plan.bind, plan.port),
    )
    if settings.buffer_limit is not None:
        message.per_connection_buffer_limit_bytes.value = settings.buffer_limit
    if settings.exact_balance:
        message.connection_balance_config.exact_balance.SetInParent()
    return encode_resource(plan.name, message)


def _listener_filters(plan: GatewayPlan, settings: GatewaySettings) -> list[Any]:
    filters = [listener_filters.build_proxy_protocol()] if settings.proxy_protocol else []
    if any(chain.match.server_names or chain.tls is not None for chain in plan.chains):
        filters.append(listener_filters.build_tls_inspector())
    return filters


def _chain(chain: HttpServer | TcpServer, plan: GatewayPlan, settings: GatewaySettings) -> Any:
    fields: dict[str, Any] = {"transport_socket_connect_timeout": CONNECT_TIMEOUT}
    if (match := build_match(chain.match)) is not None:
        fields["filter_chain_match"] = match
    if isinstance(chain, HttpServer):
        fields["filters"] = [_connection_manager(chain, plan, settings)]
    else:
        fields["filters"] = build_tcp_filters(
            settings.tcp,
            chain.route,
            policies=_policies(settings) if chain.guarded else (),
            exchange=chain.in_mesh,
            mutual_tls=chain.in_mesh,
        )
    if chain.tls is not None:
        in_mesh = isinstance(chain, TcpServer) and chain.in_mesh
        words = alpn.TERMINATED_TCP if in_mesh else alpn.TERMINATED_HTTP
        fields["transport_socket"] = tls.build_server_socket(chain.tls, words)
    return _listener_v3.FilterChain(**fields)


def _policies(settings: GatewaySettings) -> tuple[Any, ...]:
    return tuple(_listener_v3.Filter.FromString(data) for data in settings.tcp_policies)


def _connection_manager(chain: HttpServer, plan: GatewayPlan, settings: GatewaySettings) -> Any:
    connection = HttpChain(
        stat_prefix=chain.stat_name or f"outbound_{plan.name};",
        route_name=chain.route_name,
        grpc_web=chain.grpc_web,
        policies=settings.http_policies,
    )
    return build_connection_manager(settings.http, connection)
