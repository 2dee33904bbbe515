"""VirtualServices: which of their routes lead to the pods in question, and which pass them by.

In: a VirtualService, the Service, and its subsets by whether the pods match. Out: lines. Whether a request that meets a
condition reaches the pods is not said: an earlier route may have taken it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from mizzen.api.meta import Key
from mizzen.api.networking.destination import Destination
from mizzen.api.networking.virtual_service import VirtualService
from mizzen.diagnose.describe.conditions import EVERYTHING, Route, describe_matches
from mizzen.diagnose.describe.destination_rules import Subsets
from mizzen.diagnose.describe.text import describe_source, indent, name_in, quote
from mizzen.model import names
from mizzen.model.convert.gateways.objects import PARENTS


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What routes may lead to."""

    host: str
    """The Service's host, complete."""
    domain: str
    namespace: str
    """That is described."""
    subsets: Subsets
    rules: tuple[Key, ...] = ()
    """The DestinationRules that define the subsets."""


class _Verdict(NamedTuple):
    """Of one route."""

    reaches: bool
    facts: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    """Of its destinations that are the host, but not these pods."""

    @property
    def passing(self) -> int:
        """How many destinations pass the pods by; a route that leads elsewhere altogether is one."""
        return len(self.misses) if self.reaches else 1


def describe_virtual_service(virtual: VirtualService, key: Key, target: Target) -> Iterator[str]:
    """The VirtualService and what it does for the target; one made from routes of the Gateway API by their names."""
    yield describe_source(virtual.metadata, "VirtualService", target.namespace)
    verdicts = [
        _judge(_destinations(route, shares=_is_generated(virtual)), route, key, target) for route in routes_of(virtual)
    ]
    facts = [fact for verdict in verdicts if verdict.reaches for fact in verdict.facts]
    misses = [miss for verdict in verdicts for miss in verdict.misses]
    passing = sum(verdict.passing for verdict in verdicts)
    yield from indent(facts)
    if not any(verdict.reaches for verdict in verdicts):
        if verdicts:
            yield from indent((f"WARNING: No destinations match pod subsets (checked {_count(virtual)}s)",))
    elif passing:
        yield from indent((f"{passing} additional destination(s) that will not reach this pod",))
    elif not facts:
        yield from indent((f"{_count(virtual)}(s)",))
    yield from indent(misses, 2)


def routes_of(virtual: VirtualService) -> tuple[Route, ...]:
    """All its routes, of every kind."""
    return (*virtual.spec.http, *virtual.spec.tls, *virtual.spec.tcp)


def _count(virtual: VirtualService) -> str:
    """`1 HTTP route`, `1 TLS and 2 TCP route`: the kinds that the VirtualService has."""
    spec = virtual.spec
    kinds = (("HTTP", spec.http), ("TLS", spec.tls), ("TCP", spec.tcp))
    return " and ".join(f"{len(routes)} {kind}" for kind, routes in kinds if routes) + " route"


def _judge(destinations: list[tuple[Destination, int]], route: Route, key: Key, target: Target) -> _Verdict:
    reaches = False
    facts, misses = [], []
    for destination, weight in destinations:
        miss = _miss(destination, route, key, target)
        if miss:
            misses.append(miss)
            continue
        reaches = reaches or miss is None
        if weight:
            facts.append(_describe_weight(destination, weight))
    condition = describe_matches(route)
    if reaches and condition != EVERYTHING:
        facts.append(f"Match: {condition}")
    return _Verdict(reaches, tuple(facts), tuple(misses))


def _destinations(route: Route, *, shares: bool) -> list[tuple[Destination, int]]:
    """Destinations with their weights: as written, as istioctl shows them, or as shares of their sum."""
    found = [(each.destination, each.weight) for each in route.route if each.destination is not None]
    total = sum(weight for _, weight in found)
    if not shares or not total:
        return found
    return [(destination, round(weight * 100 / total)) for destination, weight in found]


def _is_generated(virtual: VirtualService) -> bool:
    """Whether it was made from routes of the Gateway API, whose weights are no percentages."""
    return PARENTS in virtual.metadata.annotations


def _describe_weight(destination: Destination, weight: int) -> str:
    subset = f" subset {quote(destination.subset)}" if destination.subset else ""
    return f"Route to host {quote(destination.host)}{subset} with weight {weight}%"


def _miss(destination: Destination, route: Route, key: Key, target: Target) -> str | None:
    """Why it does not lead to the pods; None if it does, empty if it is another host."""
    if names.resolve_host(destination.host.lower(), key.namespace, target.domain) != target.host:
        return ""
    subset = destination.subset
    if not subset or subset in target.subsets.matching:
        return None
    if subset in target.subsets.others:
        return f"Route to non-matching subset {subset} for ({describe_matches(route)})"
    if not target.rules:
        return f"Warning: Route to subset {subset} but NO DESTINATION RULE defining subsets!"
    rules = ", ".join(name_in(rule, target.namespace) for rule in target.rules)
    return f"Warning: Route to UNKNOWN subset {subset}; check DestinationRule {rules}"


def has_only_http(virtual: VirtualService) -> bool:
    """Whether ports that do not speak HTTP find no route in it."""
    return bool(virtual.spec.http) and not virtual.spec.tls and not virtual.spec.tcp
