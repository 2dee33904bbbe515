"""Destinations of VirtualServices: hosts, ports and subsets that do not exist.

In: VirtualServices, Services, ServiceEntries, DestinationRules. Out: IST0101 (host, mirror host, host:port,
host+subset in destinationrule, mirror+subset in destinationrule), IST0112, IST0140.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from mizzen.analysis import catalogue, hosts, objects
from mizzen.analysis.findings import Finding, report
from mizzen.api.meta import Key
from mizzen.api.networking.destination import Destination
from mizzen.api.networking.virtual_service import (
    HTTPRouteDestination,
    RouteDestination,
    VirtualService,
    VirtualServiceSpec,
)
from mizzen.incremental import Engine, Index, query

_NOT_FOUND = catalogue.REFERENCED_RESOURCE_NOT_FOUND


class Reference(NamedTuple):
    """A destination, and where it stands."""

    destination: Destination
    path: str
    is_mirror: bool = False


def destinations(spec: VirtualServiceSpec) -> Iterator[Reference]:
    """All destinations: of tcp, tls and http routes, then of mirrors."""
    for where, routes in _weighted(spec):
        for index, each in enumerate(routes):
            if each.destination is not None:
                yield Reference(each.destination, f"{where}.route[{index}].destination")
    for i, http in enumerate(spec.http):
        if http.mirror is not None:
            yield Reference(http.mirror, f"spec.http[{i}].mirror", True)
        for j, mirror in enumerate(http.mirrors):
            if mirror.destination is not None:
                yield Reference(mirror.destination, f"spec.http[{i}].mirrors[{j}].destination", True)


def _weighted(spec: VirtualServiceSpec) -> Iterator[tuple[str, Sequence[RouteDestination | HTTPRouteDestination]]]:
    for i, tcp in enumerate(spec.tcp):
        yield f"spec.tcp[{i}]", tcp.route
    for i, tls in enumerate(spec.tls):
        yield f"spec.tls[{i}]", tls.route
    for i, http in enumerate(spec.http):
        yield f"spec.http[{i}]", http.route


# -- hosts and ports ------------------------------------------------------------------------------------------------


@query
def check_hosts(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Destinations that mean no service, or not exactly one port of it."""
    found: VirtualService | None = db.input(key)
    if found is None or not (objects.exists(db, "Service") or objects.exists(db, "ServiceEntry")):
        return ()
    export_to = tuple(found.spec.export_to)
    checked = (_check_host(db, key, export_to, each) for each in destinations(found.spec))
    return (*(finding for finding in checked if finding is not None), *_subsets_without_effect(db, key, found))


def _check_host(db: Engine, key: Key, export_to: tuple[str, ...], each: Reference) -> Finding | None:
    destination = each.destination
    target = hosts.find_target(db, destination.host, key.namespace, export_to)
    path = f"{each.path}.host"
    if target is None:
        kind = "mirror host" if each.is_mirror else "host"
        return report(_NOT_FOUND, key, kind, destination.host, path=path)
    port = destination.port.number if destination.port is not None else 0
    if not port:
        if len(target.ports) <= 1:
            return None
        message = catalogue.VIRTUAL_SERVICE_DESTINATION_PORT_SELECTOR_REQUIRED
        return report(message, key, destination.host, target.ports, path=path)
    if port in target.ports:
        return None
    return report(_NOT_FOUND, key, "host:port", f"{destination.host}:{port}", path=f"{each.path}.port.number")


# -- subsets at gateways --------------------------------------------------------------------------------------------


def _http_destinations(spec: VirtualServiceSpec) -> Iterator[Destination]:
    return (each.destination for route in spec.http for each in route.route if each.destination is not None)


def _routed_by_subset(_key: tuple[str, ...], found: Any) -> Iterable[Hashable]:
    return {d.host for d in _http_destinations(found.spec) if d.subset and d.host in found.spec.hosts}


_subset_routers = Index("VirtualService", "own host routed by subset", _routed_by_subset)


def _subsets_without_effect(db: Engine, key: Key, found: VirtualService) -> Iterator[Finding]:
    """A gateway's route to a host whose own VirtualService chooses subsets, which gateways do not ask."""
    if not found.spec.gateways:
        return
    plain = dict.fromkeys(d.host for d in _http_destinations(found.spec) if not d.subset)
    for host in plain:
        for other in db.lookup(_subset_routers, host):
            yield report(catalogue.INGRESS_ROUTE_RULES_NOT_AFFECTED, key, other[2], key.name, path="spec.gateways")


# -- subsets --------------------------------------------------------------------------------------------------------


def _place(host: str, namespace: str) -> tuple[str, str]:
    """A host as subsets are looked up by: a Service's name and namespace, or what was written and by whom."""
    return hosts.short_name(host) or (host, namespace)


def _defined(key: tuple[str, ...], rule: Any) -> Iterable[Hashable]:
    place = _place(rule.spec.host, key[1])
    return {(*place, subset.name) for subset in rule.spec.subsets}


_subsets = Index("DestinationRule", "host and subset", _defined)


@query
def check_subsets(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Subsets that no DestinationRule defines."""
    found: VirtualService | None = db.input(key)
    if found is None:
        return ()
    findings = []
    for each in destinations(found.spec):
        destination = each.destination
        if not destination.subset:
            continue
        if not db.lookup(_subsets, (*_place(destination.host, key.namespace), destination.subset)):
            kind = f"{'mirror' if each.is_mirror else 'host'}+subset in destinationrule"
            text = f"{destination.host}+{destination.subset}"
            findings.append(report(_NOT_FOUND, key, kind, text, path=f"{each.path}.subset"))
    return tuple(findings)
