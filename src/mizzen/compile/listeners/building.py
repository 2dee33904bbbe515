"""Outbound plans as messages: the per-port listeners, `virtualOutbound` and the HTTP proxy's listener.

In: a plan and the settings of its side. Out: encoded listeners; equal plans with equal settings are built once.
Golden cases: base, networking/protocol-conflicts, networking/vs-tls-tcp-routes, networking/mesh-dynamic-dns.
"""

from typing import Any

import msgspec

from mizzen import protos
from mizzen.api.scalars import Duration
from mizzen.compile.addresses import Bind
from mizzen.compile.filters import access_logs, alpn, listener_filters
from mizzen.compile.filters.access_logs import AccessLog
from mizzen.compile.filters.dialect import Dialect
from mizzen.compile.filters.http import HttpChain as HttpConnection
from mizzen.compile.filters.http import HttpSettings, build_connection_manager
from mizzen.compile.filters.network import TcpRoute, TcpSettings, build_tcp_filters, to_cluster
from mizzen.compile.filters.timeouts import build_timeouts
from mizzen.compile.listeners.matches import CONNECT_TIMEOUT, bind_fields, build_match, build_origin
from mizzen.compile.listeners.plans import Chain, HttpChain, OutboundPlan, TcpChain
from mizzen.compile.resource import Resource, encode_resource
from mizzen.incremental import Engine, query
from mizzen.model import names

_listener_v3 = protos.package("envoy.config.listener.v3")

VIRTUAL_OUTBOUND = "virtualOutbound"
HTTP_PROXY_ROUTE = "http_proxy"


class OutboundSettings(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """What all outbound listeners of a sidecar share."""

    http: HttpSettings | None
    """None for listeners without HTTP, which then need not know what HTTP depends on."""
    tcp: TcpSettings
    catch_all: TcpRoute
    """Where connections go that no service is known for."""
    detection_timeout: Duration = Duration(0)
    exact_balance: bool = False
    listener_logs: tuple[AccessLog, ...] = ()
    on_demand: bool = False
    """Whether the virtual hosts of ports are asked for as requests name them."""


@query
def outbound_listener(db: Engine, plan: OutboundPlan, settings: OutboundSettings) -> Resource:
    """A per-port listener."""
    del db  # Nothing but the arguments counts.
    message = _listener_v3.Listener(
        name=plan.name,
        traffic_direction="OUTBOUND",
        continue_on_listener_filters_timeout=True,
        **bind_fields(plan.bind, plan.port),
        **_capture_fields(plan),
        **_inspection_fields(plan.chains, settings),
        **_chain_fields(plan, settings),
    )
    if settings.exact_balance:
        message.connection_balance_config.exact_balance.SetInParent()
    return encode_resource(plan.name, message)


def _capture_fields(plan: OutboundPlan) -> dict[str, Any]:
    if plan.bound:
        return {"max_connections_to_accept_per_socket_event": {"value": 1}}
    return {"bind_to_port": {"value": False}}


def _inspection_fields(chains: tuple[Chain, ...], settings: OutboundSettings) -> dict[str, Any]:
    """What looks at connections before a chain is chosen, and how long it may."""
    filters = []
    if any(c.match.server_names or _forwards_by_sni(c) for c in chains):
        filters.append(listener_filters.build_tls_inspector())
    sniffs = any(c.match.alpn for c in chains)
    if sniffs:
        filters.append(listener_filters.build_http_inspector())
    timeout = settings.detection_timeout if sniffs else Duration(0)
    return {"listener_filters": filters, "listener_filters_timeout": timeout.protobuf()}


def _forwards_by_sni(chain: Chain) -> bool:
    return isinstance(chain, TcpChain) and chain.route.sni_forward is not None


def _chain_fields(plan: OutboundPlan, settings: OutboundSettings) -> dict[str, Any]:
    """The chains. One that takes everything beside others is the default; without any, the catch-all is."""
    built = [(build_match(chain.match), chain) for chain in plan.chains]
    matching = [_chain(chain, match, plan.name, settings) for match, chain in built if match is not None]
    taking_all = [_chain(chain, None, plan.name, settings) for match, chain in built if match is None]
    if not taking_all:
        passthrough = _listener_v3.FilterChain(
            name="PassthroughFilterChain",
            filter_chain_match={},
            filters=build_tcp_filters(settings.tcp, settings.catch_all),
        )
        return {"filter_chains": matching, "default_filter_chain": passthrough}
    if not matching:
        return {"filter_chains": taking_all[:1]}
    return {"filter_chains": matching, "default_filter_chain": taking_all[0]}


def _chain(chain: Chain, match: dict[str, Any] | None, listener: str, settings: OutboundSettings) -> Any:
    fields: dict[str, Any] = {"transport_socket_connect_timeout": CONNECT_TIMEOUT}
    if match is not None:
        fields["filter_chain_match"] = match
    if isinstance(chain, HttpChain):
        fields["filters"] = [_connection_manager(chain, listener, settings)]
    else:
        fields["filters"] = build_tcp_filters(settings.tcp, chain.route)
        if chain.origin:
            fields["metadata"] = build_origin(chain.origin)
    return _listener_v3.FilterChain(**fields)


def _connection_manager(chain: HttpChain, listener: str, settings: OutboundSettings) -> Any:
    connection = HttpConnection(
        stat_prefix=f"outbound_{listener};",
        route_name=chain.route_name,
        on_demand=settings.on_demand and names.is_asked_for_hosts(chain.route_name),
        dynamic_dns=chain.dynamic_dns,
        grpc_web=chain.grpc_web,
    )
    return build_connection_manager(_http(settings), connection)


def _http(settings: OutboundSettings) -> HttpSettings:
    if settings.http is None:
        raise ValueError("an HTTP chain needs the settings of HTTP")
    return settings.http


# -- virtualOutbound --------------------------------------------------------------------------------------------------


class VirtualOutbound(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """The listener that all outbound connections arrive at first."""

    bind: Bind
    port: int
    transparent: bool = False
    http_match: tuple[str, ...] = ()
    """ALPN values by which unknown hosts are resolved as they come; empty where they are not."""


@query
def virtual_outbound(db: Engine, plan: VirtualOutbound, settings: OutboundSettings) -> Resource:
    """`virtualOutbound`: hands connections to the listener of their address, else to the catch-all."""
    del db  # Nothing but the arguments counts.
    chains = [
        _listener_v3.FilterChain(
            name="virtualOutbound-blackhole",
            filter_chain_match={"destination_port": {"value": plan.port}},
            filters=build_tcp_filters(settings.tcp, to_cluster(names.BLACK_HOLE), black_hole=True),
        )
    ]
    if plan.http_match:
        chains.append(_dynamic_dns_chain(plan, settings))
    chains.append(
        _listener_v3.FilterChain(
            name="virtualOutbound-catchall-tcp", filters=build_tcp_filters(settings.tcp, settings.catch_all)
        )
    )
    fields: dict[str, Any] = {"transparent": {"value": True}} if plan.transparent else {}
    if plan.http_match:
        fields["listener_filters"] = [listener_filters.build_http_inspector()]
    message = _listener_v3.Listener(
        name=VIRTUAL_OUTBOUND,
        traffic_direction="OUTBOUND",
        use_original_dst={"value": True},
        max_connections_to_accept_per_socket_event={"value": 1},
        access_log=[access_logs.build_listener_log(log, settings.tcp.dialect) for log in settings.listener_logs],
        filter_chains=chains,
        **bind_fields(plan.bind, plan.port),
        **fields,
    )
    return encode_resource(VIRTUAL_OUTBOUND, message)


def build_dynamic_dns_routes(dialect: Dialect) -> Any:
    """The routes of hosts that are resolved as they come."""
    route: dict[str, Any] = {
        "name": "allow_any_dynamic_dns",
        "match": {"prefix": "/"},
        "route": {"cluster": names.DYNAMIC_DNS, **build_timeouts({}, dialect)},
    }
    if dialect == "envoy":
        route["typed_per_filter_config"] = {alpn.ROUTE_FILTER: alpn.build_route_override(None)}
    host = {"name": "allow_any_dynamic_dns", "domains": ["*"], "routes": [route], "include_request_attempt_count": True}
    return protos.message_class("envoy.config.route.v3.RouteConfiguration")(
        name="allow_any_dynamic_dns",
        virtual_hosts=[host],
        validate_clusters={"value": False},
        ignore_port_in_host_matching=True,
        max_direct_response_body_size_bytes={"value": 1048576},
    )


def _dynamic_dns_chain(plan: VirtualOutbound, settings: OutboundSettings) -> Any:
    routes = build_dynamic_dns_routes(settings.tcp.dialect)
    connection = HttpConnection(stat_prefix="outbound_virtualOutbound_allow_any_dynamic_dns;")
    return _listener_v3.FilterChain(
        name="virtualOutbound-catchall-tcp-http",
        filter_chain_match={"application_protocols": plan.http_match},
        filters=[build_connection_manager(_http(settings), connection, routes)],
    )


# -- HTTP proxy -------------------------------------------------------------------------------------------------------


@query
def http_proxy(db: Engine, bind: Bind, port: int, settings: OutboundSettings) -> Resource:
    """The listener for applications that use the sidecar as their HTTP proxy."""
    del db  # Nothing but the arguments counts.
    name = f"{bind.address}_{port}"
    connection = HttpConnection(
        stat_prefix=f"outbound_{name};",
        route_name=HTTP_PROXY_ROUTE,
        allow_absolute_url=True,
        exchange_everywhere=True,
    )
    message = _listener_v3.Listener(
        name=name,
        traffic_direction="OUTBOUND",
        continue_on_listener_filters_timeout=True,
        listener_filters_timeout={},
        max_connections_to_accept_per_socket_event={"value": 1},
        filter_chains=[
            _listener_v3.FilterChain(
                transport_socket_connect_timeout=CONNECT_TIMEOUT,
                filters=[build_connection_manager(_http(settings), connection)],
            )
        ],
        **bind_fields(bind, port),
    )
    return encode_resource(name, message)
