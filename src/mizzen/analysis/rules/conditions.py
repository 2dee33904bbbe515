"""Conditions: what controllers said against objects in their status.

In: the conditions in objects' status; where an object of the Gateway API has none, those that Mizzen would write.
Out: IST0171.
"""

from collections.abc import Mapping

from mizzen.analysis import catalogue
from mizzen.analysis.cluster import Condition, conditions_key
from mizzen.analysis.findings import Finding, report
from mizzen.api.gateway_api.statuses import GatewayStatus, RouteStatus
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query
from mizzen.model.convert.status.objects import status

_WAYPOINT = frozenset({"istio.io/WaypointBound"})
_ATTACHED = frozenset({"Accepted", "Programmed", "ResolvedRefs"})
_TOLD: Mapping[str, frozenset[str]] = {
    "Service": _WAYPOINT,
    "ServiceEntry": _WAYPOINT,
    "WorkloadEntry": _WAYPOINT,
    "AuthorizationPolicy": frozenset({"ZtunnelAccepted", "WaypointAccepted"}),
    "KubernetesGateway": _ATTACHED,
    "HTTPRoute": _ATTACHED,
    "GRPCRoute": _ATTACHED,
}
KINDS = tuple(_TOLD)


@query
def check_conditions(db: Engine, key: Key) -> tuple[Finding, ...]:
    """The conditions of an object that are not met."""
    return tuple(
        report(catalogue.NEGATIVE_CONDITION_STATUS, key, each.type, each.reason, each.message, path="status")
        for each in _conditions(db, key)
        if each.type in _TOLD[key.kind] and _is_negative(each)
    )


def _conditions(db: Engine, key: Key) -> tuple[Condition, ...]:
    written: tuple[Condition, ...] | None = db.input(conditions_key(key))
    return written or _computed(db, key)


@query
def _computed(db: Engine, key: Key) -> tuple[Condition, ...]:
    """What Mizzen would write to an object of the Gateway API, of a route for all its parents."""
    found = status(db, key)
    if isinstance(found, RouteStatus):
        conditions = [each for parent in found.parents for each in parent.conditions]
    elif isinstance(found, GatewayStatus):
        conditions = list(found.conditions)
    else:
        return ()
    return tuple(Condition(type=c.type, status=c.status, reason=c.reason, message=c.message) for c in conditions)


def _is_negative(each: Condition) -> bool:
    return each.status == "False" or (each.type == "WaypointAccepted" and each.reason == "PartiallyInvalid")
