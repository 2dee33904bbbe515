"""Services and endpoints: registryz, endpointShardz.

In: the model. Out: istiod's documents, whose keys are partly the names of Go's fields. Fields that Mizzen has no notion
of are left out.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mizzen.control.debug.clients import format_time
from mizzen.control.debug.console import Page, Pages, Query, Write
from mizzen.incremental import Engine, attempt
from mizzen.model import endpoints, mesh, services, workloads
from mizzen.model.endpoints import Endpoint
from mizzen.model.protocols import Protocol
from mizzen.model.services import Port, Service

_RESOLUTIONS = ("client_side_lb", "dns", "passthrough", "dns_round_robin", "alias", "dynamic_dns")
"""In the order of istiod's numbers."""
_HEALTH = {None: 0, "HEALTHY": 1, "UNHEALTHY": 2, "DRAINING": 3, "TERMINATING": 4}


def pages(engine: Engine) -> Pages:
    """The pages about services."""

    def read_services(_: Query) -> Write:
        held = all_services(engine)
        cluster = mesh.control_plane(engine).cluster_id
        return lambda: [describe_service(service, cluster) for service in held]

    def read_endpoints(_: Query) -> Write:
        held = [_read_shard(engine, service) for service in all_services(engine)]
        cluster = mesh.control_plane(engine).cluster_id
        return lambda: describe_shards(held, cluster)

    shards = Page("The endpoints of each service.", read_endpoints)
    return {
        "endpointShardz": shards,
        "endpointz": shards._replace(help="The same, under an older name."),
        "registryz": Page("All services.", read_services),
    }


def all_services(engine: Engine) -> list[Service]:
    """Every service of the mesh, by host and namespace."""
    found = (s for namespace in services.namespaces(engine) for s in services.namespace_services(engine, namespace))
    return sorted(found, key=lambda s: (s.host, s.namespace, s.id))


# -- services ---------------------------------------------------------------------------------------------------------


def describe_service(service: Service, cluster: str) -> dict[str, Any]:
    """One service, as istiod's registry holds it."""
    attributes: dict[str, Any] = {
        "ServiceRegistry": service.registry,
        "Name": service.name,
        "Namespace": service.namespace,
        "Labels": dict(service.labels),
        "ExportTo": {name: {} for name in service.export_to},
        "LabelSelectors": dict(service.selector),
    }
    found: dict[str, Any] = {
        "Attributes": attributes,
        "ports": [describe_port(port) for port in service.ports],
        "serviceAccounts": list(service.accounts),
        "creationTime": format_time(0.0 if math.isinf(service.created) else service.created),
        "hostname": service.host,
        "clusterVIPs": {"Addresses": {cluster: list(service.addresses)} if service.addresses else None},
        "defaultAddress": service.address,
        "Resolution": _RESOLUTIONS.index(service.resolution),
        "MeshExternal": service.external,
    }
    for address in service.auto_addresses:
        found["autoAllocatedIPv6Address" if ":" in address else "autoAllocatedIPv4Address"] = address
    if service.alias_of:
        attributes["K8sAttributes"] = {"ExternalName": service.alias_of}
    return found


def describe_port(port: Port) -> dict[str, Any]:
    """One port of a service."""
    protocol = "UnsupportedProtocol" if port.protocol is Protocol.AUTO else port.protocol.value
    return {"name": port.name, "port": port.number, "protocol": protocol}


# -- endpoints --------------------------------------------------------------------------------------------------------


class Shard(NamedTuple):
    """What one object brings to its host."""

    service: Service
    endpoints: Sequence[Endpoint]
    accounts: Sequence[str]
    identities: Sequence[str]
    """The identity of each endpoint; empty where it has none."""


def _read_shard(engine: Engine, service: Service) -> Shard:
    found = attempt(endpoints.own_endpoints, engine, service.id) or ()
    accounts = attempt(endpoints.service_accounts, engine, service.id) or ()
    return Shard(service, found, accounts, [_identity(engine, endpoint) for endpoint in found])


def _identity(engine: Engine, endpoint: Endpoint) -> str:
    workload = endpoint.workload
    if workload is None or not workload.service_account:
        return ""
    return workloads.spiffe_id(engine, workload.namespace, workload.service_account)


def describe_shards(shards: Iterable[Shard], cluster: str) -> dict[str, Any]:
    """Endpoints by host, namespace and registry."""
    document: dict[str, Any] = {}
    for shard in shards:
        service = shard.service
        entry = document.setdefault(service.host, {}).setdefault(
            service.namespace, {"Shards": {}, "ServiceAccounts": []}
        )
        entry["ServiceAccounts"] = sorted({*entry["ServiceAccounts"], *shard.accounts})
        held = entry["Shards"].setdefault(f"{service.registry}/{cluster}", [])
        for endpoint, identity in zip(shard.endpoints, shard.identities, strict=True):
            held.append(_describe_endpoint(endpoint, identity, cluster))
    return document


def _describe_endpoint(endpoint: Endpoint, identity: str, cluster: str) -> dict[str, Any]:
    workload = endpoint.workload
    return {
        "Labels": dict(workload.labels) if workload is not None else None,
        "Addresses": [endpoint.address],
        "ServicePortName": endpoint.port_name,
        "ServiceAccount": identity,
        "Network": workload.network if workload is not None else "",
        "Locality": {"Label": str(endpoint.locality), "ClusterID": cluster},
        "EndpointPort": endpoint.port,
        "LbWeight": endpoint.weight,
        "TLSMode": endpoint.tls_mode,
        "Namespace": workload.namespace if workload is not None else "",
        "WorkloadName": workload.name if workload is not None else "",
        "HostName": endpoint.hostname,
        "SubDomain": workload.subdomain if workload is not None else "",
        "HealthStatus": _HEALTH[endpoint.health],
        "NodeName": workload.node_name if workload is not None else "",
    }
