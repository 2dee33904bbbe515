"""EnvoyFilters that change nothing.

In: EnvoyFilters, pods, services, Gateways. Out: MZ0113, one for the selector, or one for each patch that asks for what
no proxy has: a port, a service, a gateway, a proxy version.
"""

from collections.abc import Iterator

from mizzen.analysis import objects, own_codes
from mizzen.analysis.findings import Finding, format_labels, report
from mizzen.api.meta import Key
from mizzen.api.networking.envoy_filter import EnvoyConfigObjectMatch, EnvoyFilter
from mizzen.incremental import Engine, query
from mizzen.model import mesh, services
from mizzen.model.workloads import freeze

_FIXED_PORTS = frozenset({15001, 15006, 15021, 15090, 15008})


@query
def check_filter(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Whether a filter is for anybody, and its patches for anything."""
    found: EnvoyFilter | None = db.input(key)
    if found is None:
        return ()
    selector = freeze(found.spec.workload_selector.labels) if found.spec.workload_selector is not None else ()
    space = "" if key.namespace == mesh.root_namespace(db) else key.namespace
    if selector and objects.has_pods(db) and not objects.matching_pods(db, space, selector):
        text = f"no pod has the labels {format_labels(selector)}"
        return (report(own_codes.ENVOY_FILTER_WITHOUT_MATCH, key, text, path="spec.workloadSelector"),)
    return tuple(_check_patches(db, key, found))


def _check_patches(db: Engine, key: Key, found: EnvoyFilter) -> Iterator[Finding]:
    for index, patch in enumerate(found.spec.config_patches):
        reason = _missing(db, patch.match) if patch.match is not None else None
        if reason is not None:
            path = f"spec.configPatches[{index}].match"
            yield report(own_codes.ENVOY_FILTER_WITHOUT_MATCH, key, f"patch {index} asks for {reason}", path=path)


def _missing(db: Engine, match: EnvoyConfigObjectMatch) -> str | None:
    """What a patch asks for and no proxy has."""
    if match.cluster is not None and match.cluster.service:
        host = match.cluster.service.lower()
        if services.namespaces(db) and not services.services_of_host(db, host):
            return f"clusters of {host}, which is no service"
    if match.cluster is not None and match.cluster.port_number and not _is_used(db, match.cluster.port_number):
        return f"clusters of port {match.cluster.port_number}, which no service has"
    route = match.route_configuration
    if route is not None and route.gateway:
        namespace, slash, name = route.gateway.partition("/")
        kinds = ("Gateway", "KubernetesGateway")
        if slash and not any(db.input(Key(kind, namespace, name)) is not None for kind in kinds):
            return f"routes of Gateway {route.gateway}, which does not exist"
    port = match.listener.port_number if match.listener is not None else 0
    if port and match.context != "SIDECAR_INBOUND" and port not in _FIXED_PORTS and not _is_used(db, port):
        return f"listeners of port {port}, which no service or Gateway has"
    return None


@query
def _is_used(db: Engine, number: int) -> bool:
    return not services.namespaces(db) or number in _used_ports(db)


@query
def _used_ports(db: Engine) -> frozenset[int]:
    """Ports, and target ports, of all services, Gateways and listeners of Sidecars."""
    used: set[int] = set()
    for space in services.namespaces(db):
        for service in services.namespace_services(db, space):
            used |= {port.number for port in service.ports}
            used |= {port.target for port in service.ports if isinstance(port.target, int)}
    for _, gateway in objects.values(db, "Gateway"):
        used |= {server.port.number for server in gateway.spec.servers if server.port is not None}
    for _, gateway in objects.values(db, "KubernetesGateway"):
        used |= {listener.port for listener in gateway.spec.listeners}
    for _, sidecar in objects.values(db, "Sidecar"):
        listeners = (*sidecar.spec.ingress, *sidecar.spec.egress)
        used |= {listener.port.number for listener in listeners if listener.port is not None}
    return frozenset(used)
