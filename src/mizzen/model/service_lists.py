"""Lists of services as scopes make them: one of each host, of one port, and what aliases lead to.

In: services in the order in which a namespace sees them. Out: those that count, and pairs of hosts. Which services a
scope imports is `scope`'s business. Golden cases: networking/export-to, networking/sidecar-egress-listeners.
"""

import msgspec

from mizzen.model.services import Service


def only_port(service: Service, port: int) -> Service | None:
    """The service reduced to one of its ports; None where it lacks it."""
    kept = tuple(p for p in service.ports if p.number == port)
    if not kept:
        return None
    return service if len(service.ports) == 1 else msgspec.structs.replace(service, ports=kept)


def one_namespace_per_host(services: tuple[Service, ...], own: str) -> tuple[Service, ...]:
    """For a host in several namespaces, one survives: the client's own, else Kubernetes', else the oldest's."""
    chosen: dict[str, Service] = {}
    repeated = False
    for service in services:
        current = chosen.get(service.host)
        if current is None:
            chosen[service.host] = service
            continue
        repeated = True
        if current.namespace == own:
            continue
        if service.namespace == own or (service.is_kubernetes and not current.is_kubernetes):
            chosen[service.host] = service
    if not repeated:
        return services
    return tuple(s for s in services if s.namespace == chosen[s.host].namespace)


def find_aliases(seen: tuple[Service, ...], concrete: tuple[Service, ...] | None = None) -> tuple[tuple[str, str], ...]:
    """Alias hosts with the concrete host each leads to, directly or through other aliases; by namespace, then host."""
    every = concrete if concrete is not None else seen
    leads = {s.host: s.alias_of for s in every if s.resolution == "alias"}
    if not leads:
        return ()
    hosts = {s.host for s in every if s.resolution != "alias"}
    found = []
    for service in sorted((s for s in seen if s.resolution == "alias"), key=lambda s: (s.namespace, s.host)):
        passed = {service.host}
        target = service.alias_of
        while target in leads and target not in passed:
            passed.add(target)
            target = leads[target]
        if target in hosts:
            found.append((service.host, target))
    return tuple(found)


def unique_hosts(services: tuple[Service, ...]) -> tuple[Service, ...]:
    """One service of each host, by the rules of `keep`."""
    kept: dict[str, Service] = {}
    for service in services:
        keep(kept, service)
    return tuple(kept.values())


def keep(kept: dict[str, Service], service: Service) -> None:
    """The first of a host stays; Kubernetes replaces others; the same service seen by another port adds that port."""
    current = kept.get(service.host)
    if current is None:
        kept[service.host] = service
        return
    if service.is_kubernetes and not current.is_kubernetes:
        kept[service.host] = service
        return
    if current.is_kubernetes and not service.is_kubernetes:
        return
    if current.ports == service.ports:
        return
    alike = (
        current.namespace == service.namespace
        and current.resolution == service.resolution
        and current.registry == service.registry
        and current.labels == service.labels
        and current.selector == service.selector
        and current.export_to == service.export_to
    )
    if alike:
        numbers = {p.number for p in current.ports}
        extra = tuple(p for p in service.ports if p.number not in numbers)
        kept[service.host] = msgspec.structs.replace(current, ports=current.ports + extra)
