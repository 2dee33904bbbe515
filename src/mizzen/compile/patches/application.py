"""Application: the patches of one proxy on what it would be told without them.

In: a proxy and a pristine set of resources. Out: the set with the proxy's patches, which is the pristine one where it
has none. Nothing is patched here: what matters for the proxy is selected,
and the shared queries are asked.
"""

from collections.abc import Callable, Mapping

from mizzen.compile import resource
from mizzen.compile.patches import clusters, listeners, routes
from mizzen.compile.patches.clusters import InboundHosts
from mizzen.compile.patches.extensions import configurations, placement
from mizzen.compile.resource import ResourceSet
from mizzen.incremental import Engine, query
from mizzen.model import envoy_filters, gateways, scope, targets, wasm, workloads
from mizzen.model.attachments import Audience
from mizzen.model.proxy import Proxy
from mizzen.model.wasm import Extension


def patched(db: Engine, proxy: Proxy, pristine: ResourceSet) -> ResourceSet:
    """The set as the proxy's patches leave it; in listeners the filters of its extensions stand before that."""
    patch = _PATCHED.get(pristine.type_url)
    return patch(db, proxy, pristine) if patch is not None else pristine


def _clusters(db: Engine, proxy: Proxy, pristine: ResourceSet) -> ResourceSet:
    chosen = envoy_filters.select(db, proxy)
    if not chosen.clusters:
        return pristine
    hosts = inbound_hosts(db, proxy) if proxy.kind == "sidecar" else ()
    client = clusters.Client(kind=proxy.kind, dialect=proxy.dialect, inbound_hosts=hosts)
    return clusters.clusters(db, pristine, chosen.clusters, client)


def _listeners(db: Engine, proxy: Proxy, pristine: ResourceSet) -> ResourceSet:
    if found := proxy_extensions(db, proxy):
        pristine = placement.listeners(db, pristine, found, proxy.kind)
    chosen = envoy_filters.select(db, proxy)
    if not chosen.listeners and not chosen.routes:
        return pristine
    client = listeners.Client(kind=proxy.kind, dialect=proxy.dialect)
    return listeners.listeners(db, pristine, chosen.listeners, chosen.routes, client)


def _routes(db: Engine, proxy: Proxy, pristine: ResourceSet) -> ResourceSet:
    chosen = envoy_filters.select(db, proxy)
    if not chosen.routes:
        return pristine
    ports = served_ports(db, proxy) if proxy.kind == "router" else ()
    client = routes.Client(kind=proxy.kind, dialect=proxy.dialect, served_ports=ports, on_demand=proxy.on_demand)
    return routes.routes(db, pristine, chosen.routes, client)


_PATCHED: Mapping[str, Callable[[Engine, Proxy, ResourceSet], ResourceSet]] = {
    resource.CLUSTER: _clusters,
    resource.LISTENER: _listeners,
    resource.ROUTE: _routes,
}


def extension_configurations(db: Engine, proxy: Proxy, names: frozenset[str]) -> ResourceSet:
    """The extension configurations that the proxy asks for."""
    chosen = envoy_filters.select(db, proxy)
    return configurations.configurations(
        db, names, chosen.extensions, proxy_extensions(db, proxy), proxy.dialect, proxy.is_verified
    )


def proxy_extensions(db: Engine, proxy: Proxy) -> tuple[Extension, ...]:
    """The extensions that are for the proxy, in order."""
    labels = workloads.proxy_workload(db, proxy).labels
    return wasm.extensions(db, Audience(proxy.kind, proxy.namespace, labels))


@query
def inbound_hosts(db: Engine, proxy: Proxy) -> InboundHosts:
    """The hosts of the services behind each inbound cluster; a Sidecar's own ingress ports stand for the Sidecar."""
    found: dict[int, list[str]] = {}
    for target in targets.service_targets(db, proxy):
        found.setdefault(target.target_port, []).append(target.service.host)
    selected = scope.select_scope(db, proxy.namespace, workloads.proxy_workload(db, proxy).labels)
    sidecar = scope.sidecar(db, selected)
    for listener in sidecar.spec.ingress if sidecar is not None else ():
        if listener.port is not None and sidecar is not None:
            found.setdefault(listener.port.number, [f"{sidecar.metadata.name}.{sidecar.metadata.namespace}"])
    return tuple((port, tuple(hosts)) for port, hosts in sorted(found.items()))


@query
def served_ports(db: Engine, proxy: Proxy) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The port in the name of each of a gateway's route configurations, and the ports of the servers behind it."""
    found: dict[int, set[int]] = {}
    for server in gateways.gateway_servers(db, gateways.gateway_workload(db, proxy)):
        if server.route_name:
            found.setdefault(server.number if server.terminates_http else server.port, set()).add(server.number)
    return tuple((port, tuple(sorted(numbers))) for port, numbers in sorted(found.items()))
