"""The door: which reasoning fits an answer.

In: the world, the request, the answer and the steps of the walk. Out: `Found`. An answer says in `about` what its cause
is to be looked for by; the first word names the reasoning.
"""

from collections.abc import Callable

from mizzen.diagnose.trace.causes import filters, gateways, hosts, pods, security
from mizzen.diagnose.trace.causes.found import NOTHING, Case, Found
from mizzen.diagnose.trace.request import Request
from mizzen.diagnose.trace.verdict import Answer, Step
from mizzen.diagnose.trace.world import World

_BROKEN = ("failed", "denied", "limited", "aborted")


def find(world: World, request: Request, answer: Answer, steps: list[Step]) -> Found:
    """The cause of an answer; nothing for requests that fare as they should."""
    if answer.outcome not in _BROKEN or not answer.about:
        return NOTHING
    if world.db is None:
        return _from_metadata(answer, steps)
    case = Case(world=world, db=world.db, request=request, answer=answer, steps=tuple(steps))
    reason = _REASONINGS.get(answer.about[0])
    return reason(case) if reason is not None else NOTHING


def _from_metadata(answer: Answer, steps: list[Step]) -> Found:
    """Without objects: what the last resource that was made from one says."""
    last = next((step.object for step in reversed(steps) if step.object is not None), None)
    return Found(cause=last, reason=answer.reason)


def _of_route(fix: str) -> Callable[[Case], Found]:
    """The VirtualService whose route was taken did it."""

    def reason(case: Case) -> Found:
        return Found(cause=case.origin("route", "filter"), reason=case.answer.reason, fix=fix)

    return reason


_REASONINGS: dict[str, Callable[[Case], Found]] = {
    "cluster": hosts.missing_cluster_or_hosts,
    "unknown host": hosts.unknown_host,
    "name": hosts.unknown_name,
    "route": gateways.no_route,
    "no gateway": gateways.no_listener,
    "gateway port": gateways.no_listener,
    "sni": security.unmatched_chain,
    "service": pods.service_without_endpoints,
    "port": pods.nothing_listens,
    "no pods": pods.headless_without_pods,
    "strict": security.plain_text_to_strict,
    "tls": security.disagreement,
    "secret": security.missing_secret,
    "policy": security.denied,
    "jwt": security.refused_token,
    "authorizer": security.refused_by_authorizer,
    "rate limit": filters.rate_limited,
    "fault": _of_route("remove the fault from the route, or narrow what it matches"),
    "timeout": _of_route("raise the route's timeout, or make the program answer sooner"),
}
