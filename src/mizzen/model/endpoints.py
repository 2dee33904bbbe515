"""Endpoints: where the instances of a service listen, with the health, identity and locality that Envoy is told.

In: EndpointSlices and the pods behind them, WorkloadEntries, the endpoints and selectors of ServiceEntries.
Out: `Endpoint` values of a service in a stable order, and the identities of all of them. Nothing is left out here for
a single client's sake; `compile` filters. Golden cases: networking/endpoint-states, networking/se-selectors.
"""

import ipaddress
from collections.abc import Iterator
from typing import Literal

import msgspec

from mizzen.api.kube.services import Endpoint as SliceEndpoint
from mizzen.api.kube.services import EndpointPort, EndpointSlice
from mizzen.api.meta import Key
from mizzen.api.networking.service_entry import ServiceEntry
from mizzen.api.networking.service_entry import ServicePort as EntryPort
from mizzen.api.networking.workload_entry import WorkloadEntry, WorkloadEntrySpec
from mizzen.incremental import Engine, Index, query
from mizzen.model import objects, workloads
from mizzen.model.proxy import Locality
from mizzen.model.services import Service, ServiceId, is_port, service, services_of_host
from mizzen.model.workloads import TLS_MODE, Workload

Health = Literal["HEALTHY", "UNHEALTHY", "DRAINING", "TERMINATING"]
"""TERMINATING is an endpoint that is not ready and does not say whether it is going: nobody balances to it, but the
listeners of a headless service still know its address (golden case networking/headless-services)."""

_SERVICE_NAME = "kubernetes.io/service-name"
PERSISTENT_SESSION = "istio.io/persistent-session"
_DRAINING = "istio.io/draining"

_slices_by_service = Index(
    "EndpointSlice", "service", lambda key, s: ((key[1], s.metadata.labels.get(_SERVICE_NAME, "")),)
)


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One address and port of a service."""

    address: str
    """An IP; a host name where DNS resolves it; the path of a Unix socket where the port is 0."""
    port: int
    port_name: str
    """The service port it belongs to."""
    health: Health | None = None
    """None where nobody reports health: endpoints of ServiceEntries."""
    workload: Workload | None = None
    """None for an address that belongs to no known workload."""
    weight: int = 0
    """0 means unset."""
    tls_mode: str = "disabled"
    hostname: str = ""
    """The name within a headless service."""

    @property
    def locality(self) -> Locality:
        """Where it runs; empty when unknown."""
        return self.workload.locality if self.workload is not None else Locality()

    @property
    def is_ip(self) -> bool:
        """Whether the address is an IP."""
        try:
            ipaddress.ip_address(self.address)
        except ValueError:
            return False
        return True


@query
def service_endpoints(db: Engine, service_id: ServiceId) -> tuple[Endpoint, ...]:
    """Every endpoint of a service, of all its ports, that is known and not terminating.

    Objects of one namespace that share a host share their endpoints (golden case networking/se-overlap); each of
    several addresses of a ServiceEntry brings them once more, as the reference does.
    """
    found = service(db, service_id)
    if found is None:
        return ()
    alike = [s for s in services_of_host(db, found.host) if s.namespace == found.namespace]
    return tuple(e for s in alike for e in own_endpoints(db, s.id))


@query
def own_endpoints(db: Engine, service_id: ServiceId) -> tuple[Endpoint, ...]:
    """The endpoints that one object alone brings."""
    found = service(db, service_id)
    if found is None:
        return ()
    if found.is_kubernetes:
        return (*_slice_endpoints(db, found), *_entry_endpoints_of_kube(db, found))
    return tuple(_service_entry_endpoints(db, found))


@query
def port_endpoints(db: Engine, service_id: ServiceId, port_name: str) -> tuple[Endpoint, ...]:
    """The endpoints of one port; ports are matched by name."""
    return tuple(e for e in service_endpoints(db, service_id) if e.port_name == port_name)


@query
def service_accounts(db: Engine, service_id: ServiceId) -> tuple[str, ...]:
    """The identities that a client accepts from the service: those declared on it, then its workloads', sorted."""
    found = service(db, service_id)
    if found is None:
        return ()
    accounts = {
        workloads.spiffe_id(db, w.namespace, w.service_account)
        for e in service_endpoints(db, service_id)
        if (w := e.workload) is not None and w.service_account
    }
    return tuple(sorted({*found.accounts, *accounts}))


# -- Kubernetes ---------------------------------------------------------------------------------------------------


def _slice_endpoints(db: Engine, found: Service) -> Iterator[Endpoint]:
    session = any(name == PERSISTENT_SESSION for name, _ in found.labels)
    for key in db.lookup(_slices_by_service, (found.namespace, found.name)):
        piece: EndpointSlice = db.input(key)
        if piece.address_type == "FQDN":
            continue
        for endpoint in piece.endpoints:
            yield from _of_slice(db, found, piece.ports, endpoint, session)


def _of_slice(
    db: Engine, found: Service, ports: tuple[EndpointPort, ...], endpoint: SliceEndpoint, session: bool
) -> Iterator[Endpoint]:
    health = _slice_health(endpoint, session, found.publish_not_ready)
    if health is None or not endpoint.addresses:
        return
    reference = endpoint.target_ref
    workload = None
    if reference is not None and reference.kind == "Pod":
        workload = workloads.pod_workload(db, reference.namespace or found.namespace, reference.name)
        if workload is None:
            return  # The pod is expected; until it appears its identity is unknown.
        if health == "HEALTHY" and any(name == _DRAINING for name, _ in workload.labels):
            health = "DRAINING"
    for address in endpoint.addresses:
        for port in ports:
            if port.port is None or not is_port(port.port):
                continue
            yield Endpoint(
                address=address,
                port=port.port,
                port_name=port.name,
                health=health,
                workload=workload,
                tls_mode=workload.tls_mode if workload is not None else "disabled",
                hostname=endpoint.hostname,
            )


def _slice_health(endpoint: SliceEndpoint, session: bool, publish_not_ready: bool) -> Health | None:
    """The health that conditions say; None for an endpoint that says it is terminating, which nobody is told."""
    conditions = endpoint.conditions
    if conditions.ready is not False or publish_not_ready:
        return "HEALTHY"
    if session and conditions.serving is not False and conditions.terminating is not False:
        return "DRAINING"
    if conditions.terminating is None:
        return "TERMINATING"
    return None if conditions.terminating else "UNHEALTHY"


def _entry_endpoints_of_kube(db: Engine, found: Service) -> Iterator[Endpoint]:
    """A Kubernetes service with a selector selects the WorkloadEntries of its namespace too."""
    if not found.selector:
        return
    for _, namespace, name in objects.in_namespace(db, "WorkloadEntry", found.namespace):
        workload = workloads.entry_workload(db, namespace, name)
        entry: WorkloadEntry = db.input(Key("WorkloadEntry", namespace, name))
        if workload is None or not workloads.selects(found.selector, workload.labels) or not _is_healthy(entry):
            continue
        for port in found.ports:
            number = entry.spec.ports.get(port.name)
            if number is None and isinstance(port.target, str):
                number = entry.spec.ports.get(port.target)
                if number is None:
                    continue
            if number is None:
                number = port.target if isinstance(port.target, int) else port.number
            if not is_port(number):
                continue
            yield _entry_endpoint(entry.spec, port.name, number, workload)


def _is_healthy(entry: WorkloadEntry) -> bool:
    """An entry under health checks serves only while its condition says so."""
    if entry.metadata.annotations.get("proxy.istio.io/health-checks-enabled") != "true":
        return True
    conditions = entry.status.conditions if entry.status is not None else ()
    return any(c.type == "Healthy" and c.status == "True" for c in conditions)


# -- ServiceEntries -----------------------------------------------------------------------------------------------


def _service_entry_endpoints(db: Engine, found: Service) -> Iterator[Endpoint]:
    entry: ServiceEntry | None = db.input(found.id.source)
    if entry is None:
        return
    for port in entry.spec.ports:
        if not is_port(port.number):
            continue
        if entry.spec.workload_selector is not None:
            yield from _selected_endpoints(db, found, port)
        elif entry.spec.endpoints:
            for i, spec in enumerate(entry.spec.endpoints):
                yield _inline_endpoint(entry, i, spec, port)
        elif found.resolution in ("dns", "dns_round_robin") or (
            found.resolution == "dynamic_dns" and not found.host.startswith("*")
        ):
            own = Workload(name=entry.metadata.name, namespace=found.namespace)
            number = port.target_port or port.number
            yield Endpoint(address=found.host, port=number, port_name=port.name, workload=own)


def _selected_endpoints(db: Engine, found: Service, port: EntryPort) -> Iterator[Endpoint]:
    number = port.target_port or port.number
    for _, namespace, name in objects.in_namespace(db, "Pod", found.namespace):
        pod = workloads.pod_workload(db, namespace, name)
        if pod is None or not workloads.selects(found.selector, pod.labels):
            continue
        for address in workloads.ready_addresses(db, namespace, name)[:1]:
            yield Endpoint(
                address=address,
                port=number,
                port_name=port.name,
                health="HEALTHY",
                workload=pod,
                tls_mode=pod.tls_mode,
            )
    for _, namespace, name in objects.in_namespace(db, "WorkloadEntry", found.namespace):
        workload = workloads.entry_workload(db, namespace, name)
        entry: WorkloadEntry = db.input(Key("WorkloadEntry", namespace, name))
        if workload is not None and workloads.selects(found.selector, workload.labels) and _is_healthy(entry):
            yield _entry_endpoint(entry.spec, port.name, entry.spec.ports.get(port.name) or number, workload)


def _inline_endpoint(entry: ServiceEntry, index: int, spec: WorkloadEntrySpec, port: EntryPort) -> Endpoint:
    workload = Workload(
        name=f"{entry.metadata.name}-{index}",
        namespace=entry.metadata.namespace,
        labels=workloads.freeze(spec.labels),
        locality=workloads.label_locality(spec.labels) or workloads.parse_locality(spec.locality),
        network=spec.network or spec.labels.get(workloads.NETWORK, ""),
        service_account=spec.service_account,
        tls_mode=spec.labels.get(TLS_MODE) or ("istio" if spec.service_account else "disabled"),
    )
    return _entry_endpoint(spec, port.name, spec.ports.get(port.name) or port.target_port or port.number, workload)


def _entry_endpoint(spec: WorkloadEntrySpec, port_name: str, number: int, workload: Workload) -> Endpoint:
    unix = spec.address.startswith("unix://")
    return Endpoint(
        address=spec.address.removeprefix("unix://") if unix else spec.address,
        port=0 if unix else number,
        port_name=port_name,
        workload=workload,
        weight=spec.weight,
        tls_mode=workload.tls_mode,
    )
