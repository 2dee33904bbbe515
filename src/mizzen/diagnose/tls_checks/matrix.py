"""Every client against every port of every Service, and which of these pairs are alike.

In: a world. Out: `Check`s, and `Group`s of them for people: one for each Service port and way in which clients fare.
Clients that hold the same configuration are asked once: what a proxy holds depends on its namespace, its Sidecar and
the labels that DestinationRules select, and on what is captured.
"""

from collections.abc import Iterable, Iterator

import msgspec

from mizzen.api.networking.virtual_service import VirtualService
from mizzen.diagnose.tls_checks import checks, gateways, servers
from mizzen.diagnose.tls_checks.checks import Check
from mizzen.diagnose.trace.world import Workload, World
from mizzen.model import destination_rules, names, objects, scope, services, workloads

_VOLATILE = ("pod-template-hash", "controller-revision-hash", "statefulset.kubernetes.io/pod-name")
_THE_CLIENT = "the client"


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Clients that fare alike at one port."""

    clients: tuple[str, ...]
    first: Check


def check_all(world: World, to: Iterable[tuple[services.Service, services.Port]] | None = None) -> Iterator[Check]:
    """All pairs, by host and port; clients are pods, gateways for the Services that they know among them."""
    by_class: dict[tuple[object, ...], list[Workload]] = {}
    for pod in sorted(world.pods, key=lambda pod: (pod.namespace, pod.name)):
        by_class.setdefault(_class(world, pod), []).append(pod)
    for service, port in to if to is not None else all_ports(world):
        served = {server.pod for server in servers.find_servers(world, service, port)}
        for alike in by_class.values():
            if alike[0].proxy == "router" and not _leads_to(world, alike[0], service, port):
                continue
            yield from _check_alike(world, alike, service, port, served)


def _leads_to(world: World, gateway: Workload, service: services.Service, port: services.Port) -> bool:
    return gateways.has_cluster(world, gateway, names.subset_key(names.OUTBOUND, port.number, "", service.host))


def _check_alike(
    world: World, alike: list[Workload], service: services.Service, port: services.Port, served: set[str]
) -> Iterator[Check]:
    """The checks of clients that hold the same; those that are servers of the port themselves go their own way."""
    first: Check | None = None
    for pod in alike:
        if pod.reference in served:
            yield checks.check(world, pod, service, port)
            continue
        first = first or checks.check(world, pod, service, port)
        yield _for(first, pod)


def all_ports(world: World) -> list[tuple[services.Service, services.Port]]:
    """The ports of all Services and ServiceEntries; those for UDP have no TLS to agree about."""
    assert world.db is not None
    found = {
        (service.host, port.number): (service, port)
        for namespace in reversed(services.namespaces(world.db))
        for service in reversed(services.namespace_services(world.db, namespace))
        for port in service.ports
        if port.protocol.value != "UDP"
    }
    return [found[key] for key in sorted(found)]


def _class(world: World, pod: Workload) -> tuple[object, ...]:
    """What decides how a client's connections are made; two pods with the same are the same to TLS."""
    assert world.db is not None
    labels = workloads.freeze(pod.labels)
    if pod.proxy == "router":
        return (pod.namespace, pod.proxy, labels)
    if pod.proxy != "sidecar":
        return (pod.namespace,)
    return (
        pod.namespace,
        scope.select_scope(world.db, pod.namespace, labels),
        destination_rules.selector_labels(world.db, pod.namespace, labels),
        pod.capture,
        pod.dns_capture,
        _source_labels(world, pod),
    )


def _source_labels(world: World, pod: Workload) -> object:
    """Routes may lead clients by their labels to other subsets; where any does, labels tell clients apart."""
    if not world.once("routes by source labels", lambda: any(_matches_labels(world))):
        return ()
    return workloads.freeze({k: v for k, v in pod.labels.items() if k not in _VOLATILE})


def _matches_labels(world: World) -> Iterator[bool]:
    assert world.db is not None
    for key in objects.of_kind(world.db, "VirtualService"):
        found: VirtualService = world.db.input(key)
        spec = found.spec
        yield from (bool(match.source_labels) for route in spec.http for match in route.match)
        yield from (bool(match.source_labels) for route in spec.tls for match in route.match)
        yield from (bool(match.source_labels) for route in spec.tcp for match in route.match)


def _for(found: Check, pod: Workload) -> Check:
    """The same told of another client."""
    if found.client == pod.reference:
        return found
    reason = found.reason.replace(found.client, pod.reference)
    return msgspec.structs.replace(found, client=pod.reference, reason=reason)


def group(found: Iterable[Check]) -> list[Group]:
    """Checks that differ in nothing but the client, in the order in which they came."""
    groups: dict[tuple[object, ...], list[Check]] = {}
    for each in found:
        reason = each.reason.replace(each.client, _THE_CLIENT)
        key = (each.host, each.port, each.verdict, each.speaks, reason, each.cause, each.assumes)
        groups.setdefault(key, []).append(each)
    return [Group(clients=tuple(each.client for each in alike), first=alike[0]) for alike in groups.values()]
