"""A verdict in the words of an expectation.

In: a world and a `Trace`. Out: `Seen`. The destination is that of the last cluster on the way that leads out of a
proxy; the workloads are all that its endpoints belong to, since any of them may be chosen.
"""

from collections.abc import Iterator, Mapping

import msgspec

from mizzen.diagnose.policy_rules import parse_rule
from mizzen.diagnose.trace import actions, endpoints
from mizzen.diagnose.trace.request import Message, Request
from mizzen.diagnose.trace.verdict import Trace, Visit
from mizzen.diagnose.trace.world import World
from mizzen.model import names

_OWN = ("x-forwarded-for", "x-forwarded-proto", "x-envoy-", "x-request-id", "x-b3-", "traceparent", "tracestate")
"""What proxies add of their own accord; nobody configured it by a route."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, as users name it."""

    service: str
    subset: str = ""

    def __str__(self) -> str:
        return f"{self.service}/{self.subset}" if self.subset else self.service

    def answers_to(self, name: str) -> bool:
        """Whether that name means this one: the subset, the Service, or both."""
        return name in (str(self), self.service) or (bool(self.subset) and name == self.subset)


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a request meets."""

    trace: Trace
    target: Target | None = None
    workloads: tuple[str, ...] = ()
    """Pods that may be reached, `NAME.NAMESPACE`."""
    shares: tuple[tuple[Target, int], ...] = ()
    message: Message | None = None
    """As it arrives; None where it does not, or is no HTTP."""
    sent: Message | None = None
    response: Mapping[str, str | None] = {}
    """Headers that proxies set, or (None) remove."""
    location: str = ""
    policy: str = ""
    """`NAMESPACE/NAME[RULE]`; `none` where a request is denied as no rule allows it."""
    timeout: str = ""
    retries: int = 0

    @property
    def changes(self) -> dict[str, str | None]:
        """Headers that routes change between the client and the program."""
        if self.message is None or self.sent is None:
            return {}
        told = {name for name, _ in (*self.message.headers, *self.sent.headers) if not name.startswith(_OWN)}
        found = {name: self.message.header(name) for name in sorted(told)}
        return {name: value for name, value in found.items() if value != self.sent.header(name)}


def look(world: World, request: Request, trace: Trace) -> Seen:
    """What the verdict comes to."""
    clusters = [visit for visit in trace.visits if visit.kind == "cluster"]
    last = next((visit for visit in reversed(clusters) if target_of(visit.name) is not None), None)
    routes = [visit for visit in trace.visits if visit.kind == "route"]
    facts = dict(actions.facts(routes[0].resource)) if routes else {}
    is_delivered = trace.outcome == "delivered"
    return Seen(
        trace=trace,
        target=target_of(last.name) if last is not None else None,
        workloads=_workloads(world, last, trace) if is_delivered else (),
        shares=tuple((target_of(name) or Target(service=name), weight) for name, weight in trace.shares),
        message=trace.message if is_delivered else None,
        sent=request.message() if request.is_http else None,
        response=dict(trace.response),
        location=trace.destination if trace.outcome == "redirected" else "",
        policy=policy_of(trace),
        timeout=facts.get("timeout", ""),
        retries=int(facts.get("retries", "0").partition(" ")[0]),
    )


def policy_of(trace: Trace) -> str:
    """The rule that decided, as `NAMESPACE/NAME[RULE]`; `none` where it is denied as none allows it."""
    rule = parse_rule(trace.policy)
    if rule is not None and not (trace.outcome == "denied" and trace.details.endswith("[none]")):
        return f"{rule.namespace}/{rule.name}[{rule.rule}]"
    return "none" if trace.outcome == "denied" and trace.link == "policy" else ""


def target_of(cluster: str) -> Target | None:
    """What a cluster that leads out of a proxy is for."""
    key = names.parse_subset_key(cluster)
    if key is None or key.direction != "outbound":
        return None
    name, _, rest = key.host.partition(".")
    namespace, _, suffix = rest.partition(".")
    in_cluster = suffix.startswith("svc.")
    return Target(service=f"{name}.{namespace}" if in_cluster else key.host, subset=key.subset)


def _workloads(world: World, last: Visit | None, trace: Trace) -> tuple[str, ...]:
    return tuple(dict.fromkeys((trace.destination, *_endpoints(world, last)) if last else (trace.destination,)))


def _endpoints(world: World, visit: Visit) -> Iterator[str]:
    held = world.holdings(world.find(visit.side))
    cluster = held.clusters.get(visit.name, {})
    for host in endpoints.choose(cluster, held.assignment(cluster)).hosts:
        pod = world.at(host.address)
        yield pod.reference if pod is not None else str(host)
