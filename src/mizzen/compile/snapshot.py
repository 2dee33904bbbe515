"""The roots: every resource of one type that one proxy is told.

In: a proxy, a type URL and, for types that are asked for by name, the names. Out: a `ResourceSet`. These queries only
select what matters for the proxy and pass the selection on, so that proxies that differ in nothing else share one set.
Golden cases: all.
"""

from collections.abc import Callable, Iterator
from typing import Any, cast

from mizzen import protos
from mizzen.api.mesh.proxy import ProxyHeaders
from mizzen.compile import addresses, endpoints, name_tables, on_demand, resource, secrets, trust_bundles
from mizzen.compile.assignments import ClientPlace
from mizzen.compile.clusters import gateway as gateway_clusters
from mizzen.compile.clusters import sidecar as sidecar_clusters
from mizzen.compile.context import client_traits
from mizzen.compile.endpoints import EndpointClient
from mizzen.compile.filters import sds
from mizzen.compile.listeners import gateway as gateway_listeners
from mizzen.compile.listeners import sidecar as sidecar_listeners
from mizzen.compile.patches import application
from mizzen.compile.resource import Resource, ResourceSet
from mizzen.compile.routes import gateway as gateway_routes
from mizzen.compile.routes import sidecar as sidecar_routes
from mizzen.compile.routes.destinations import RouteClient
from mizzen.compile.routes.mesh_hosts import SidecarClient
from mizzen.compile.routes.on_demand import encode_bare_configuration, with_hosts
from mizzen.compile.routes.virtual_service import source_labels
from mizzen.incremental import Engine, query
from mizzen.model import (
    credentials,
    destination_rules,
    envoy_filters,
    gateways,
    mesh,
    proxy_configs,
    scope,
    targets,
    workloads,
)
from mizzen.model import names as model_names
from mizzen.model.proxy import Labels, Proxy
from mizzen.model.scope import ScopeId

_CONNECTION_MANAGER = (
    protos.TYPE_PREFIX + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
)

Names = frozenset[str] | None


@query
def resources(db: Engine, proxy: Proxy, type_url: str, names: Names) -> ResourceSet:
    """The resources of one type for a proxy; `names` None means all that are for it, else those asked for.

    A proxy on demand gets the clusters that the virtual hosts of these names need, and clusters so named.
    """
    found = _told(db, proxy, type_url, names)
    return _used_clusters(db, proxy, found, names) if proxy.on_demand and type_url == resource.CLUSTER else found


def _told(db: Engine, proxy: Proxy, type_url: str, names: Names) -> ResourceSet:
    """What other queries ask: a root that another brings up to date would not be seen to change."""
    return application.patched(db, proxy, pristine(db, proxy, type_url, names))


def pristine(db: Engine, proxy: Proxy, type_url: str, names: Names) -> ResourceSet:
    """The same before extensions are placed and patches of EnvoyFilters applied."""
    build = _BUILDERS.get(type_url)
    return build(db, proxy, names) if build is not None else ResourceSet(type_url, ())


def proxy_scope(db: Engine, proxy: Proxy) -> ScopeId:
    """The scope of a proxy; gateways see everything their namespace may."""
    if proxy.kind != "sidecar":
        return ScopeId(proxy.namespace)
    return scope.select_scope(db, proxy.namespace, workloads.proxy_workload(db, proxy).labels)


def rule_labels(db: Engine, proxy: Proxy) -> Labels:
    """The proxy's labels, as far as DestinationRules of its namespace select by them."""
    return destination_rules.selector_labels(db, proxy.namespace, workloads.proxy_workload(db, proxy).labels)


def _clusters(db: Engine, proxy: Proxy, names: Names) -> ResourceSet:
    del names  # Envoy always asks for all of them.
    headers = proxy_configs.proxy_config(db, proxy.proxy_config).proxy_headers or ProxyHeaders()
    traits = client_traits(proxy, preserve_header_case=bool(headers.preserve_http1_header_case))
    selected = proxy_scope(db, proxy)
    place = _place(db, proxy)
    if proxy.kind == "router":
        return gateway_clusters.clusters(
            db, traits, selected, rule_labels(db, proxy), place, _passes_mesh_tls(db, proxy)
        )
    sidecar = scope.sidecar(db, selected)
    served = sidecar_clusters.Served(
        targets=targets.service_targets(db, proxy),
        addresses=proxy.ip_addresses if sidecar is not None and sidecar.spec.ingress else (),
        captured=proxy.interception != "NONE",
    )
    return sidecar_clusters.clusters(db, traits, selected, rule_labels(db, proxy), place, served)


def _passes_mesh_tls(db: Engine, proxy: Proxy) -> bool:
    servers = gateways.gateway_servers(db, gateways.gateway_workload(db, proxy))
    return any(s.server.tls is not None and s.server.tls.mode == "AUTO_PASSTHROUGH" for s in servers)


def _place(db: Engine, proxy: Proxy) -> ClientPlace:
    """Where the proxy is, as far as any service in its scope asks: most scopes do not, and share everything."""
    names = endpoints.scope_place(db, proxy_scope(db, proxy), rule_labels(db, proxy))
    if names is None:
        return _NOWHERE
    workload = workloads.proxy_workload(db, proxy)
    return ClientPlace(locality=workload.locality, labels=tuple(pair for pair in workload.labels if pair[0] in names))


_NOWHERE = ClientPlace()


def _endpoints(db: Engine, proxy: Proxy, names: Names) -> ResourceSet:
    return endpoints.assignments(db, _endpoint_client(db, proxy), names or frozenset())


@query
def _endpoint_client(db: Engine, proxy: Proxy) -> EndpointClient:
    """The proxy as its endpoints depend on it, which change far more often than it does."""
    workload, selected = workloads.proxy_workload(db, proxy), proxy_scope(db, proxy)
    return EndpointClient(
        scope=selected,
        dialect=proxy.dialect,
        is_router=proxy.kind == "router",
        rule_labels=rule_labels(db, proxy),
        place=_place(db, proxy),
        node_name=workload.node_name if endpoints.scope_is_node_local(db, selected) else "",
        networks=proxy.requested_networks,
    )


def _listeners(db: Engine, proxy: Proxy, names: Names) -> ResourceSet:
    del names  # Envoy always asks for all of them.
    if proxy.kind == "router":
        return ResourceSet(resource.LISTENER, gateway_listeners.listeners(db, proxy))
    return sidecar_listeners.listeners(db, proxy)


def _routes(db: Engine, proxy: Proxy, names: Names) -> ResourceSet:
    asked = names or frozenset()
    client = route_client(db, proxy)
    if proxy.kind == "router":
        gateway = gateway_routes.GatewayClient(routes=client, workload=gateways.gateway_workload(db, proxy))
        return gateway_routes.configurations(db, gateway, asked)
    if not proxy.on_demand:
        return sidecar_routes.configurations(db, _sidecar_client(db, proxy), asked)
    bare = frozenset(filter(model_names.is_asked_for_hosts, asked))
    found = sidecar_routes.configurations(db, _sidecar_client(db, proxy), asked - bare)
    return ResourceSet(resource.ROUTE, [*found, *map(encode_bare_configuration, sorted(bare))])


def _sidecar_client(db: Engine, proxy: Proxy) -> SidecarClient:
    network = addresses.network(proxy, dual_stack=mesh.control_plane(db).dual_stack)
    return SidecarClient(routes=route_client(db, proxy), network=network, dns_domain=proxy.dns_domain)


def _virtual_hosts(db: Engine, proxy: Proxy, names: Names) -> ResourceSet:
    if not proxy.on_demand:
        return ResourceSet(resource.VIRTUAL_HOST, ())
    patches = envoy_filters.select(db, proxy).routes
    return on_demand.virtual_hosts(db, _sidecar_client(db, proxy), patches, names or frozenset())


def full_routes(db: Engine, proxy: Proxy, names: Names) -> ResourceSet:
    """Route configurations, of a proxy on demand with all virtual hosts that it could ask for."""
    told = resources(db, proxy, resource.ROUTE, names)
    if not proxy.on_demand:
        return told
    client, patches = _sidecar_client(db, proxy), envoy_filters.select(db, proxy).routes
    asked = filter(model_names.is_asked_for_hosts, (each.name for each in told))
    hosts = [host for route in asked for host in on_demand.every_host(db, client, patches, route)]
    return ResourceSet(resource.ROUTE, [with_hosts(each, hosts) for each in told])


def _used_clusters(db: Engine, proxy: Proxy, whole: ResourceSet, names: Names) -> ResourceSet:
    """Of all clusters those that the proxy uses while it holds the virtual hosts of these names, and those so named."""
    held = _told(db, proxy, resource.VIRTUAL_HOST, names)
    used = _always_used(db, proxy).union(names or (), *(on_demand.named_clusters(db, host) for host in held))
    return on_demand.clusters(db, whole, used)


@query
def _always_used(db: Engine, proxy: Proxy) -> frozenset[str]:
    """The clusters that listeners name, or what they make Envoy ask for, virtual hosts on demand excepted."""
    uses = [listener_uses(db, listener) for listener in _told(db, proxy, resource.LISTENER, None)]
    asked = {
        resource.ROUTE: frozenset[str]().union(*(each.routes for each in uses)),
        resource.EXTENSION: frozenset[str]().union(*(each.extensions for each in uses)),
    }
    told = (found for kind, names in asked.items() for found in _told(db, proxy, kind, names))
    return frozenset[str]().union(
        *(each.clusters for each in uses), *(on_demand.named_clusters(db, each) for each in told)
    )


@query
def listener_uses(db: Engine, listener: Resource) -> on_demand.Uses:
    """What a listener names."""
    alone = ResourceSet(resource.LISTENER, (listener,))
    return on_demand.Uses(
        clusters=on_demand.named_clusters(db, listener),
        routes=route_names(alone),
        extensions=extension_names(alone),
    )


@query
def route_client(db: Engine, proxy: Proxy) -> RouteClient:
    """The proxy as its routes depend on it."""
    headers = proxy_configs.proxy_config(db, proxy.proxy_config).proxy_headers or ProxyHeaders()
    counted = headers.attempt_count is None or not headers.attempt_count.disabled
    return RouteClient(
        scope=proxy_scope(db, proxy),
        dialect=proxy.dialect,
        source_labels=source_labels(db, workloads.proxy_workload(db, proxy).labels),
        rule_labels=rule_labels(db, proxy),
        attempt_count=counted,
        forwarded_host=headers.x_forwarded_host is not None and bool(headers.x_forwarded_host.enabled),
        is_router=proxy.kind == "router",
    )


def _name_table(db: Engine, proxy: Proxy, names: Names) -> ResourceSet:
    del names  # There is one table.
    network = addresses.network(proxy, dual_stack=mesh.control_plane(db).dual_stack)
    return name_tables.name_table(db, proxy_scope(db, proxy), network)


def _secrets(db: Engine, proxy: Proxy, names: Names) -> ResourceSet:
    """The certificates of a gateway, those that rules name for this workload, and trusted roots."""
    asked = names or frozenset()
    if proxy.kind != "router":
        own = {sds.credential_name(name) for name in credentials.keys_by_rule(db, proxy)}
        return secrets.secrets(db, proxy.namespace, frozenset(n for n in asked if n in own or secrets.is_public(n)))
    if not credentials.may_have_keys(db, proxy):
        return secrets.secrets(db, proxy.namespace, frozenset(n for n in asked if secrets.is_public(n)))
    granted = gateways.granted_credentials(db, gateways.gateway_workload(db, proxy))
    return secrets.secrets(db, proxy.namespace, asked, granted & {n.removesuffix(secrets.CA_SUFFIX) for n in asked})


def _extensions(db: Engine, proxy: Proxy, names: Names) -> ResourceSet:
    return application.extension_configurations(db, proxy, names or frozenset())


def _trust_bundle(db: Engine, proxy: Proxy, names: Names) -> ResourceSet:
    del proxy, names  # There is one for everybody.
    return trust_bundles.trust_bundle(db)


_BUILDERS: dict[str, Callable[[Engine, Proxy, Names], ResourceSet]] = {
    resource.CLUSTER: _clusters,
    resource.ENDPOINT: _endpoints,
    resource.EXTENSION: _extensions,
    resource.LISTENER: _listeners,
    resource.NAME_TABLE: _name_table,
    resource.SECRET: _secrets,
    resource.ROUTE: _routes,
    resource.TRUST_BUNDLE: _trust_bundle,
    resource.VIRTUAL_HOST: _virtual_hosts,
}


def everything(db: Engine, proxy: Proxy) -> dict[str, ResourceSet]:
    """All that a proxy would be told by kind, following the subscriptions that its own resources make it send."""
    found = {"clusters": resources(db, proxy, resource.CLUSTER, None)}
    found["endpoints"] = resources(db, proxy, resource.ENDPOINT, endpoint_names(found["clusters"]))
    found["listeners"] = resources(db, proxy, resource.LISTENER, None)
    found["routes"] = resources(db, proxy, resource.ROUTE, route_names(found["listeners"]))
    found["extensions"] = resources(db, proxy, resource.EXTENSION, extension_names(found["listeners"]))
    return found


def route_names(listeners: ResourceSet) -> frozenset[str]:
    """The route configurations that Envoy asks for once it has these listeners."""
    managers = (manager for listener in listeners for manager in _managers(listener.message()))
    return frozenset(manager.rds.route_config_name for manager in managers if manager.HasField("rds"))


def extension_names(listeners: ResourceSet) -> frozenset[str]:
    """The extension configurations that Envoy asks for once it has these listeners."""
    found: set[str] = set()
    for listener in listeners:
        message: Any = listener.message()
        filters = [*message.listener_filters, *(f for chain in _chains(message) for f in chain.filters)]
        filters += [f for manager in _managers(message) for f in manager.http_filters]
        found.update(each.name for each in filters if each.HasField("config_discovery"))
    return frozenset(found)


def _chains(listener: Any) -> list[Any]:
    chains = [*listener.filter_chains]
    return [*chains, listener.default_filter_chain] if listener.HasField("default_filter_chain") else chains


def _managers(listener: Any) -> Iterator[Any]:
    """The connection managers of a listener."""
    for chain in _chains(listener):
        for network_filter in chain.filters:
            if network_filter.typed_config.type_url == _CONNECTION_MANAGER:
                yield protos.unpack(network_filter.typed_config)


def endpoint_names(clusters: ResourceSet) -> frozenset[str]:
    """The load assignments that Envoy asks for once it has these clusters."""
    messages = ((cluster.name, cast(Any, cluster.message())) for cluster in clusters)
    return frozenset(
        message.eds_cluster_config.service_name or name
        for name, message in messages
        if message.HasField("eds_cluster_config")
    )
