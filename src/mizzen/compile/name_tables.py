"""Name tables (NDS): the hosts that a proxy's agent resolves, with their addresses.

In: a scope, its services and the endpoints of headless ones. Out: one NameTable. Only proxies whose agents capture DNS
ask for it. Facts: the reference's NDS table; no golden case records one.
"""

from collections.abc import Iterator
from typing import Any

from mizzen import protos
from mizzen.compile import resource
from mizzen.compile.addresses import Network, service_bind
from mizzen.compile.resource import ResourceSet, encode_resource
from mizzen.incremental import Engine, attempt, query
from mizzen.model import endpoints, mesh, names, scope
from mizzen.model.scope import ScopeId
from mizzen.model.services import UNSPECIFIED, Service, ServiceId, service

_nds = protos.package("istio.networking.nds.v1")

NAME = "name-table"

Entry = tuple[str, tuple[str, ...], str, str, str]
"""Host, addresses, registry, short name, namespace."""


@query
def name_table(db: Engine, scope_id: ScopeId, network: Network) -> ResourceSet:
    """The name table of every proxy with this scope and network, as a set of one resource."""
    table: dict[str, Entry] = {}
    for found in scope.scope_services(db, scope_id):
        for entry in attempt(service_names, db, found.id, network) or ():
            _add(table, entry)
    message = _nds.NameTable(table={host: _info(table[host]) for host in sorted(table)})
    return ResourceSet(resource.NAME_TABLE, (encode_resource(NAME, message),))


def _add(table: dict[str, Entry], entry: Entry) -> None:
    """Kubernetes names replace others; entries outside it with the same host lend their addresses."""
    host, ips, registry, *_ = entry
    current = table.get(host)
    if current is None or (registry == "Kubernetes" and current[2] != "Kubernetes"):
        table[host] = entry
    elif registry != "Kubernetes":
        table[host] = (host, tuple(dict.fromkeys((*current[1], *ips))), *current[2:])


def _info(entry: Entry) -> dict[str, Any]:
    _, ips, registry, shortname, namespace = entry
    return {"ips": ips, "registry": registry, "shortname": shortname, "namespace": namespace}


@query
def service_names(db: Engine, service_id: ServiceId, network: Network) -> tuple[Entry, ...]:
    """The entries of one service: its own host, and of a headless one the hosts of its pods."""
    found = service(db, service_id)
    if found is None or found.resolution == "alias":
        return ()
    shortname, namespace = (found.name, found.namespace) if found.is_kubernetes else ("", "")
    if found.is_kubernetes and found.is_headless:
        return tuple(_headless_names(db, found))
    bind = service_bind(found, network)
    usable = tuple(a for a in (bind.address, *bind.extra) if a != UNSPECIFIED and names.is_ip(a))
    return ((found.host, usable, found.registry, shortname, namespace),) if usable else ()


def _headless_names(db: Engine, found: Service) -> Iterator[Entry]:
    ready = [e for e in endpoints.service_endpoints(db, found.id) if e.health == "HEALTHY" and e.is_ip]
    every = tuple(dict.fromkeys(e.address for e in ready))
    if every:
        yield found.host, every, found.registry, found.name, found.namespace
    domain = mesh.domain(db)
    by_pod: dict[str, dict[str, None]] = {}
    for endpoint in ready:
        workload = endpoint.workload
        if workload is not None and workload.hostname and workload.subdomain == found.name:
            by_pod.setdefault(workload.hostname, {})[endpoint.address] = None
    for hostname, ips in by_pod.items():
        host = f"{hostname}.{names.service_host(found.name, found.namespace, domain)}"
        yield host, tuple(ips), found.registry, f"{hostname}.{found.name}", found.namespace
