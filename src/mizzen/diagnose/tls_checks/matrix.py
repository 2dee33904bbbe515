"""Every client against every port of every Service, and which of these pairs are alike.

In: a world. Out: `Group`s of `Check`s, of which `group` makes those for people: one for each Service port and way in
which clients fare.
Clients that hold the same configuration are asked once: what a proxy holds depends on its namespace, its Sidecar and
the labels that DestinationRules select, and on what is captured.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from mizzen.api.networking.virtual_service import VirtualService
from mizzen.diagnose.tls_checks import gateways, reuse, servers
from mizzen.diagnose.tls_checks.checks import Check
from mizzen.diagnose.trace.world import Workload, World
from mizzen.model import destination_rules, names, objects, scope, services, workloads

_VOLATILE = ("pod-template-hash", "controller-revision-hash", "statefulset.kubernetes.io/pod-name")
_THE_CLIENT = "the client"


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Clients that fare alike at one port."""

    clients: tuple[str, ...]
    first: Check
    """That of the first of them."""

    def checks(self) -> Iterator[Check]:
        """One for each client."""
        return (_for(self.first, client) for client in self.clients)


class _Alike:
    """Clients that hold the same."""

    def __init__(self, pods: Sequence[Workload]) -> None:
        self.pods = pods
        self.references = tuple(pod.reference for pod in pods)
        self._places = {reference: place for place, reference in enumerate(self.references)}

    def runs(self, apart: Iterable[str]) -> Iterator[tuple[int, int]]:
        """All in their order, as slices: each of those that are to stand apart by itself."""
        start = 0
        for place in sorted(self._places[each] for each in apart if each in self._places):
            if start < place:
                yield start, place
            yield place, place + 1
            start = place + 1
        if start < len(self.pods):
            yield start, len(self.pods)


def check_all(world: World, to: Iterable[tuple[services.Service, services.Port]] | None = None) -> Iterator[Group]:
    """All pairs, by host and port, of clients that stand side by side and fare alike together.

    Clients are pods, gateways for the Services that they know among them.
    """
    by_class: dict[tuple[object, ...], list[Workload]] = {}
    for pod in sorted(world.pods, key=lambda pod: (pod.namespace, pod.name)):
        by_class.setdefault(_class(world, pod), []).append(pod)
    classes = [_Alike(pods) for pods in by_class.values()]
    for service, port in to if to is not None else all_ports(world):
        asked = reuse.PortChecks(world, service, port, servers.find_servers(world, service, port))
        for alike in classes:
            client = alike.pods[0]
            if client.proxy == "router" and not _leads_to(world, client, service, port):
                continue
            yield from _check_alike(alike, asked)


def _leads_to(world: World, gateway: Workload, service: services.Service, port: services.Port) -> bool:
    return gateways.has_cluster(world, gateway, names.subset_key(names.OUTBOUND, port.number, "", service.host))


def _check_alike(alike: _Alike, asked: reuse.PortChecks) -> Iterator[Group]:
    """The checks of clients that hold the same; those that are servers of the port themselves go their own way."""
    served = {server.pod for server in asked.servers}
    shared: Check | None = None
    for start, end in alike.runs(served):
        pod = alike.pods[start]
        if pod.reference in served:
            own = asked.alone(pod)
        else:
            own = shared = shared or asked.check(pod)
        yield Group(clients=alike.references[start:end], first=_for(own, pod.reference))


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


def _for(found: Check, client: str) -> Check:
    """The same told of another client."""
    if found.client == client:
        return found
    reason = found.reason.replace(found.client, client)
    return msgspec.structs.replace(found, client=client, reason=reason)


def group(found: Iterable[Group]) -> list[Group]:
    """Groups of checks that differ in nothing but the client, in the order in which they came."""
    firsts: dict[tuple[object, ...], Check] = {}
    clients: dict[tuple[object, ...], list[str]] = {}
    for each in found:
        first = each.first
        reason = first.reason.replace(first.client, _THE_CLIENT)
        key = (first.host, first.port, first.verdict, first.speaks, reason, first.cause, first.assumes)
        firsts.setdefault(key, first)
        clients.setdefault(key, []).extend(each.clients)
    return [Group(clients=tuple(clients[key]), first=first) for key, first in firsts.items()]
