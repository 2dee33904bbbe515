"""Service targets: which services, on which ports, a proxy's own workload serves.

In: a proxy, the services and ServiceEntries of its namespace. Out: `ServiceTarget` values, oldest service first; they
decide the inbound listener's chains and the inbound clusters. Golden cases: networking/shared-workloads,
networking/se-selectors, gateway/target-ports, gateway/topology.
"""

from collections.abc import Iterator

import msgspec

from mizzen.api.meta import Key
from mizzen.api.networking.workload_entry import WorkloadEntry
from mizzen.incremental import Engine, query
from mizzen.model import endpoints, workloads
from mizzen.model.proxy import Labels, Proxy
from mizzen.model.services import Port, Service, is_port, namespace_services

_UNTRANSLATED = "experimental.istio.io/disable-gateway-port-translation"


class ServiceTarget(msgspec.Struct, frozen=True):
    """A service that the proxy's workload serves, on one of its ports."""

    service: Service
    port: Port
    target_port: int


@query
def service_targets(db: Engine, proxy: Proxy) -> tuple[ServiceTarget, ...]:
    """What the proxy's workload serves; empty for gateways' own purposes too unless services select them."""
    found: list[ServiceTarget] = []
    own = _own_entry(db, proxy)
    if own is not None:
        entry, labels = own
        for service in selecting_services(db, proxy.namespace, labels):
            found.extend(_distinct(service, _entry_ports(service, entry)))
    else:
        found.extend(_kubernetes_targets(db, proxy))
    for service in _holding_services(db, proxy.namespace, proxy.ip_addresses, False):
        found.extend(_distinct(service, ((p, _held_port(db, service, p, proxy.ip_addresses)) for p in service.ports)))
    return tuple(sorted(found, key=lambda t: (t.service.created, t.service.host)))


def _own_entry(db: Engine, proxy: Proxy) -> tuple[WorkloadEntry, Labels] | None:
    """The WorkloadEntry with the proxy's address, where one stands for it."""
    for address in proxy.ip_addresses:
        for _, namespace, name in db.lookup(workloads.entries_by_ip, (proxy.namespace, address)):
            workload = workloads.entry_workload(db, namespace, name)
            entry: WorkloadEntry | None = db.input(Key("WorkloadEntry", namespace, name))
            if workload is not None and entry is not None:
                return entry, workload.labels
    return None


def _entry_ports(service: Service, entry: WorkloadEntry) -> Iterator[tuple[Port, int | None]]:
    for port in service.ports:
        number = entry.spec.ports.get(port.name)
        if number is None:
            number = port.number if port.target is None else port.target if isinstance(port.target, int) else None
        yield port, number


def _kubernetes_targets(db: Engine, proxy: Proxy) -> Iterator[ServiceTarget]:
    workload = workloads.workload_at(db, proxy.namespace, proxy.ip_addresses)
    if workload is None:
        named = {name: int(number) for name, number in proxy.pod_ports if number.isdigit()}
        for service in selecting_services(db, proxy.namespace, proxy.labels):
            yield from _distinct(service, ((p, _number(p, named)) for p in service.ports))
        return
    named = {name: number for name, number, _ in workload.ports}
    selecting = selecting_services(db, workload.namespace, workload.labels)
    for service in selecting:
        yield from _distinct(service, ((p, _number(p, named)) for p in service.ports))
    if not selecting:
        for service in _holding_services(db, workload.namespace, proxy.ip_addresses, True):
            yield from _distinct(service, ((p, _held_port(db, service, p, proxy.ip_addresses)) for p in service.ports))


def selecting_services(db: Engine, namespace: str, labels: Labels) -> tuple[Service, ...]:
    """The Kubernetes services of a namespace whose selector matches these labels."""
    return tuple(
        s
        for s in namespace_services(db, namespace)
        if s.is_kubernetes and s.resolution != "alias" and s.selector and workloads.selects(s.selector, labels)
    )


def _holding_services(db: Engine, namespace: str, addresses: tuple[str, ...], kubernetes: bool) -> tuple[Service, ...]:
    """The services without a Kubernetes selector that have one of the addresses as an endpoint."""
    return tuple(
        s
        for s in namespace_services(db, namespace)
        if s.is_kubernetes == kubernetes
        and not (kubernetes and s.selector)
        and s.resolution != "alias"
        and any(e.address in addresses for e in endpoints.service_endpoints(db, s.id))
    )


def _held_port(db: Engine, service: Service, port: Port, addresses: tuple[str, ...]) -> int | None:
    held = endpoints.port_endpoints(db, service.id, port.name)
    return next((e.port for e in held if e.address in addresses), None)


def _number(port: Port, named: dict[str, int]) -> int | None:
    if port.target is None:
        return port.number
    return named.get(port.target) if isinstance(port.target, str) else port.target or port.number


def _distinct(service: Service, ports: Iterator[tuple[Port, int | None]]) -> Iterator[ServiceTarget]:
    """One target for each target port and protocol; the first service port wins. Without a port to go to it is none."""
    seen = set()
    for port, number in ports:
        if number is not None and is_port(number) and (number, port.protocol) not in seen:
            seen.add((number, port.protocol))
            yield ServiceTarget(service, port, number)


def is_translated(target: ServiceTarget) -> bool:
    """Whether a gateway listens on the target port for the service's port; some services ask for their own numbers."""
    return (_UNTRANSLATED, "true") not in target.service.labels
