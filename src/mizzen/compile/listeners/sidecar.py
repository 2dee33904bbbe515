"""The listeners of one sidecar.

In: a proxy. Out: its listeners: per-port outbound ones, the HTTP proxy's,
`virtualOutbound`, then the inbound ones. Nothing is built here: what matters for the proxy is selected, and the shared
queries are asked. Golden cases: base, networking/node-settings, networking/sidecar-outbound-policy.
"""

from collections.abc import Iterator

import msgspec

from mizzen.compile import addresses
from mizzen.compile.filters import alpn
from mizzen.compile.filters.network import TcpRoute, to_cluster
from mizzen.compile.listeners import (
    building,
    inbound,
    inbound_building,
    inbound_settings,
    outbound,
    settings,
    streams,
    telemetry,
)
from mizzen.compile.listeners.building import OutboundSettings, VirtualOutbound
from mizzen.compile.listeners.destinations import Client
from mizzen.compile.listeners.inbound import Workload
from mizzen.compile.listeners.outbound import Ground
from mizzen.compile.listeners.plans import HttpChain, OutboundPlan
from mizzen.compile.listeners.profiles import Profile, profile
from mizzen.compile.resource import LISTENER, Resource, ResourceSet
from mizzen.compile.security import applied
from mizzen.incremental import Engine, attempt, query
from mizzen.model import destination_rules, mesh, names, policies, scope, targets, workloads
from mizzen.model.proxy import Proxy
from mizzen.model.scope import ScopeId


@query
def listeners(db: Engine, proxy: Proxy) -> ResourceSet:
    """All listeners of a sidecar; those per port are a part that it shares with all that have the same."""
    if mesh.mesh_config(db).proxy_listen_port <= 0:
        return ResourceSet(LISTENER, ())
    settings_out = _outbound_settings(db, proxy)
    ports = built_listeners(db, _outbound_plans(db, proxy), settings_out)
    others = (*_other_outbound(db, proxy, settings_out), *_inbound_listeners(db, proxy))
    if any(other.name in ports for other in others):
        return ResourceSet(LISTENER, (*ports, *others))
    return ResourceSet.join(LISTENER, (ports, _listener_set(db, others)))


@query
def _listener_set(db: Engine, found: tuple[Resource, ...]) -> ResourceSet:  # noqa: ARG001 (the pods of a service share it)
    return ResourceSet(LISTENER, found)


@query
def route_names(db: Engine, proxy: Proxy) -> tuple[str, ...]:
    """The names of the route configurations that its listeners ask for, sorted."""
    found = {
        chain.route_name for plan in _outbound_plans(db, proxy) for chain in plan.chains if isinstance(chain, HttpChain)
    }
    if _http_proxy_port(db, proxy):
        found.add(building.HTTP_PROXY_ROUTE)
    return tuple(sorted(found))


# -- outbound ---------------------------------------------------------------------------------------------------------


def _outbound_settings(db: Engine, proxy: Proxy) -> OutboundSettings:
    return outbound_settings(
        db, profile(db, proxy), _scope(db, proxy), _ground(db, proxy), proxy.outbound_exact_balance, proxy.on_demand
    )


def _other_outbound(db: Engine, proxy: Proxy, shared: OutboundSettings) -> Iterator[Resource]:
    """The listener of the HTTP proxy, where there is one, and that of captured connections."""
    ground = _ground(db, proxy)
    if port := _http_proxy_port(db, proxy):
        yield building.http_proxy(db, ground.network.localhost, port, shared)
    if ground.captured:
        virtual = virtual_outbound_plan(db, _scope(db, proxy), ground, proxy.interception == "TPROXY")
        needed = shared if virtual.http_match else msgspec.structs.replace(shared, http=None, on_demand=False)
        yield building.virtual_outbound(db, virtual, needed)


def _outbound_plans(db: Engine, proxy: Proxy) -> tuple[OutboundPlan, ...]:
    selected = _scope(db, proxy)
    address = proxy.ip_addresses[0]
    own_address = address if address in outbound.headless_addresses(db, selected) else ""
    return outbound.outbound_plans(db, _client(db, proxy), _ground(db, proxy), own_address)


@query
def built_listeners(db: Engine, plans: tuple[OutboundPlan, ...], shared: OutboundSettings) -> ResourceSet:
    """The per-port listeners of all proxies with these plans and settings."""
    without_http = msgspec.structs.replace(shared, http=None, on_demand=False)
    built = (
        attempt(building.outbound_listener, db, plan, shared if plan.serves_http else without_http) for plan in plans
    )
    return ResourceSet(LISTENER, (listener for listener in built if listener is not None))


@query
def outbound_settings(
    db: Engine, own: Profile, selected: ScopeId, ground: Ground, exact_balance: bool, on_demand: bool
) -> OutboundSettings:
    """What the outbound listeners of a profile and a scope share."""
    policy = scope.outbound_policy(db, selected)
    resolving = policy.mode == "ALLOW_ANY_DYNAMIC_DNS"
    config = mesh.mesh_config(db)
    return OutboundSettings(
        http=settings.http_settings(db, own, "outbound", ground.network.dns_family if resolving else ""),
        tcp=settings.tcp_settings(db, own, "outbound"),
        catch_all=catch_all(db, selected),
        detection_timeout=config.protocol_detection_timeout or settings.NO_TIMEOUT,
        exact_balance=exact_balance,
        listener_logs=telemetry.signals(db, own, "outbound").listener_logs,
        on_demand=on_demand,
    )


@query
def catch_all(db: Engine, selected: ScopeId) -> TcpRoute:
    """Where connections go that no service is known for."""
    policy = scope.outbound_policy(db, selected)
    if policy.mode == "REGISTRY_ONLY":
        return to_cluster(names.BLACK_HOLE)
    proxy = policy.egress_proxy
    if proxy is None:
        return to_cluster(names.PASSTHROUGH)
    host = names.resolve_host(proxy.host.lower(), policy.namespace, mesh.domain(db))
    port = proxy.port.number if proxy.port is not None else 0
    return to_cluster(names.subset_key(names.OUTBOUND, port, proxy.subset, host))


@query
def virtual_outbound_plan(db: Engine, selected: ScopeId, ground: Ground, transparent: bool) -> VirtualOutbound:
    """`virtualOutbound` of a scope."""
    resolving = scope.outbound_policy(db, selected).mode == "ALLOW_ANY_DYNAMIC_DNS"
    return VirtualOutbound(
        bind=ground.network.virtual_wildcard,
        port=mesh.mesh_config(db).proxy_listen_port,
        transparent=transparent,
        http_match=ground.plain_alpn if resolving else (),
    )


# -- inbound ----------------------------------------------------------------------------------------------------------


def _inbound_listeners(db: Engine, proxy: Proxy) -> tuple[Resource, ...]:
    own, ground, selected = profile(db, proxy), _ground(db, proxy), _scope(db, proxy)
    labels = workloads.proxy_workload(db, proxy).labels
    workload = Workload(
        scope=selected,
        targets=targets.service_targets(db, proxy),
        modes=policies.peer_modes(db, proxy.namespace, labels),
        address=inbound.global_address(proxy.ip_addresses) if inbound.needs_address(db, selected) else "",
    )
    applying = applied.applied_policies(db, proxy.namespace, labels, ())
    tls = inbound_settings.server_tls(db, proxy.dialect, proxy.tls_files, proxy.file_credential)
    shared = inbound_settings.inbound_settings(db, own, tls, applying, proxy.inbound_exact_balance)
    planned = inbound.inbound_plans(db, workload, ground, proxy.interception == "TPROXY")
    return tuple(inbound_building.inbound_listener(db, plan, shared) for plan in planned)


# -- the proxy, as far as listeners differ by it ----------------------------------------------------------------------


def _scope(db: Engine, proxy: Proxy) -> ScopeId:
    return scope.select_scope(db, proxy.namespace, workloads.proxy_workload(db, proxy).labels)


def _client(db: Engine, proxy: Proxy) -> Client:
    selected, labels = _scope(db, proxy), workloads.proxy_workload(db, proxy).labels
    return Client(
        scope=selected,
        labels=streams.source_labels(db, selected, labels),
        rule_labels=destination_rules.selector_labels(db, proxy.namespace, labels),
    )


def _ground(db: Engine, proxy: Proxy) -> Ground:
    config = mesh.mesh_config(db)
    return Ground(
        network=addresses.network(proxy, dual_stack=mesh.control_plane(db).dual_stack),
        captured=proxy.interception != "NONE",
        reserved=tuple(sorted({*proxy.reserved_ports, config.proxy_listen_port, config.proxy_inbound_listen_port})),
        unprivileged=proxy.unprivileged,
        plain_alpn=alpn.plain_http(http10=mesh.control_plane(db).http10),
    )


def _http_proxy_port(db: Engine, proxy: Proxy) -> int:
    return proxy.http_proxy_port or mesh.mesh_config(db).proxy_http_port
