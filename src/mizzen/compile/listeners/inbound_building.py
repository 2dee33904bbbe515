"""Inbound plans as messages: `virtualInbound` and the listeners of ports that really listen.

In: a plan and what holds for all ports of the workload: filters, policies, the certificate. Out: encoded listeners.
The routes of inbound HTTP stand inside, for they never change by themselves.
Golden cases: base, networking/sidecar-ingress, security/pa-* , security/authz-* .
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from mizzen import protos
from mizzen.api.scalars import Duration
from mizzen.compile.filters import access_logs, alpn, listener_filters, tls
from mizzen.compile.filters.access_logs import AccessLog
from mizzen.compile.filters.http import HttpChain, HttpPolicies, HttpSettings, build_connection_manager
from mizzen.compile.filters.network import TcpRoute, TcpSettings, build_tcp_filters, to_cluster
from mizzen.compile.filters.peers import build_network_filters
from mizzen.compile.filters.tls import WorkloadTls
from mizzen.compile.listeners.inbound import ChainShape, InboundPlan, InboundPort, chain_shapes
from mizzen.compile.listeners.matches import bind_fields, build_match, build_origin
from mizzen.compile.listeners.plans import Match
from mizzen.compile.resource import Resource, encode_resource
from mizzen.incremental import Engine, query
from mizzen.model import names
from mizzen.model.protocols import Protocol

_listener_v3 = protos.package("envoy.config.listener.v3")
_route_v3 = protos.package("envoy.config.route.v3")


class InboundSettings(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """What all inbound listeners of a workload share."""

    http: HttpSettings
    tcp: TcpSettings
    tls: WorkloadTls
    plain_alpn: tuple[str, ...]
    http_policies: HttpPolicies = HttpPolicies()
    tcp_policies: tuple[bytes, ...] = ()
    """Encoded network filters."""
    detection_timeout: Duration = Duration(0)
    exact_balance: bool = False
    listener_logs: tuple[AccessLog, ...] = ()


@query
def inbound_listener(db: Engine, plan: InboundPlan, settings: InboundSettings) -> Resource:
    """An inbound listener."""
    del db  # Nothing but the arguments counts.
    chains = [_blackhole(plan, settings)] if plan.virtual else []
    shapes = [(port, chain_shapes(port.mode, port.speaks, settings.plain_alpn)) for port in plan.ports]
    chains += [_chain(port, shape, settings) for port, of_port in shapes for shape in of_port]
    message = _listener_v3.Listener(
        name=plan.name,
        traffic_direction="INBOUND",
        continue_on_listener_filters_timeout=True,
        listener_filters_timeout=settings.detection_timeout.protobuf(),
        max_connections_to_accept_per_socket_event={"value": 1},
        access_log=[access_logs.build_listener_log(log, settings.tcp.dialect) for log in settings.listener_logs],
        listener_filters=_listener_filters(plan, shapes),
        filter_chains=chains,
        **bind_fields(plan.bind, plan.port),
    )
    if plan.transparent:
        message.transparent.value = True
    if settings.exact_balance:
        message.connection_balance_config.exact_balance.SetInParent()
    return encode_resource(plan.name, message)


# -- listener filters -------------------------------------------------------------------------------------------------


def _listener_filters(plan: InboundPlan, shapes: Iterable[tuple[InboundPort, tuple[ChainShape, ...]]]) -> list[Any]:
    filters = [listener_filters.build_original_dst()] if plan.virtual else []
    if plan.transparent:
        filters.append(listener_filters.build_original_src())
    tls_needed = {plan.port: False} if plan.virtual else {}
    http_needed = dict(tls_needed)
    for port, of_port in shapes:
        tls_needed[port.number] = any(shape.transport == "tls" for shape in of_port)
        http_needed[port.number] = any({"http/1.1", "h2c"} & set(shape.alpn) for shape in of_port)
    if any(tls_needed.values()):
        filters.append(listener_filters.build_tls_inspector(_tls_predicate(tls_needed)))
    if any(http_needed.values()):
        idle = [port for port, needed in http_needed.items() if not needed]
        filters.append(listener_filters.build_http_inspector(listener_filters.build_port_predicate(idle)))
    return filters


def _tls_predicate(needed: dict[int, bool]) -> Any | None:
    """Where not to look for TLS: on the ports that never have it, or on all but those that may."""
    if needed.get(0):
        return listener_filters.build_port_predicate(port for port, yes in needed.items() if not yes)
    looking = listener_filters.build_port_predicate(port for port, yes in needed.items() if yes)
    return listener_filters.build_not(looking) if looking is not None else None


# -- chains -----------------------------------------------------------------------------------------------------------


def _blackhole(plan: InboundPlan, settings: InboundSettings) -> Any:
    """Connections to the listener's own port: they would come back for ever."""
    return _listener_v3.FilterChain(
        name="virtualInbound-blackhole",
        filter_chain_match={"destination_port": {"value": plan.port}},
        filters=build_tcp_filters(settings.tcp, to_cluster(names.BLACK_HOLE), exchange=True, black_hole=True),
    )


def _chain(port: InboundPort, shape: ChainShape, settings: InboundSettings) -> Any:
    fields: dict[str, Any] = {
        "name": port.http_name if shape.http else port.tcp_name,
        "filter_chain_match": build_match(Match(transport=shape.transport, alpn=shape.alpn, port=port.number)),
        "filters": _http_filters(port, shape, settings) if shape.http else _tcp_filters(port, shape, settings),
    }
    if shape.terminates:
        words = alpn.TERMINATED_HTTP if shape.http else alpn.TERMINATED_TCP
        fields["transport_socket"] = tls.build_workload_socket(settings.tls, words)
    if port.origin:
        fields["metadata"] = build_origin(port.origin)
    return _listener_v3.FilterChain(**fields)


def _tcp_filters(port: InboundPort, shape: ChainShape, settings: InboundSettings) -> list[Any]:
    return build_tcp_filters(
        settings.tcp,
        TcpRoute(stat_prefix=port.stat_prefix, cluster=port.cluster, mongo=port.protocol is Protocol.MONGO),
        policies=tuple(_listener_v3.Filter.FromString(data) for data in settings.tcp_policies),
        exchange=True,
        mutual_tls=shape.terminates,
    )


def _http_filters(port: InboundPort, shape: ChainShape, settings: InboundSettings) -> list[Any]:
    connection = HttpChain(
        stat_prefix=port.http_stat_prefix,
        http2=port.protocol.is_http2,
        grpc_web=port.protocol is Protocol.GRPC_WEB,
        mutual_tls=shape.terminates,
        policies=settings.http_policies,
    )
    manager = build_connection_manager(settings.http, connection, _routes(port))
    return [*build_network_filters(settings.http.dialect), manager]


def _routes(port: InboundPort) -> Any:
    """Everything to the application, without a timeout; what never reached it is tried again."""
    action: dict[str, Any] = {
        "cluster": port.cluster,
        "timeout": {},
        "max_stream_duration": {"max_stream_duration": {}, "grpc_timeout_header_max": {}},
    }
    if port.protocol not in (Protocol.GRPC, Protocol.GRPC_WEB):
        action["retry_policy"] = {"retry_on": "reset-before-request", "num_retries": {"value": 2}}
    route = {
        "name": "default",
        "match": {"prefix": "/"},
        "decorator": {"operation": f"{port.host}:{port.service_port}/*"},
        "route": action,
    }
    return _route_v3.RouteConfiguration(
        name=port.cluster,
        validate_clusters={"value": False},
        virtual_hosts=[{"name": f"inbound|http|{port.service_port}", "domains": ["*"], "routes": [route]}],
    )
