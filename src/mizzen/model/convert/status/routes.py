"""Statuses of routes: for each parent reference whether the route attaches, and whether its rules could be converted.

In: attachments and the faults of conversions. Out: statuses as values. What one reference fits in several listeners is
told once: that it attaches if it does anywhere, else the most favourable reason.
Golden cases: gateway-api/allowed-routes, gateway-api/invalid-references, gateway-api/reference-grants.
"""

from collections.abc import Iterable, Iterator

from mizzen.api.gateway_api.references import ParentReference
from mizzen.api.gateway_api.statuses import Condition, RouteParentStatus, RouteStatus, StatusReference
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query
from mizzen.model.convert.faults import Fault
from mizzen.model.convert.gateways.classes import GATEWAY_CONTROLLER
from mizzen.model.convert.routes.heads import HTTP_KINDS
from mizzen.model.convert.routes.parents import MESH, Attachment, attachments
from mizzen.model.convert.routes.rules import convert_rules
from mizzen.model.convert.routes.streams import convert_streams
from mizzen.model.convert.status.conditions import ACCEPTED, RESOLVED_REFS, fails, holds, judge

_FAVOURABLE = ("NotAllowedByListeners", "NoMatchingListenerHostname", "NoMatchingParent")


@query
def route_status(db: Engine, key: Key) -> RouteStatus | None:
    """The status of a route of any kind."""
    if db.input(key) is None:
        return None
    return RouteStatus(parents=tuple(_parent_statuses(db, key)))


def _parent_statuses(db: Engine, key: Key) -> Iterator[RouteParentStatus]:
    for reference, fitted in _by_reference(attachments(db, key)):
        is_mesh = any(one.gateway == MESH for one in fitted)
        yield RouteParentStatus(
            parent_ref=status_reference(reference),
            controller_name=GATEWAY_CONTROLLER,
            conditions=(
                _accepted(fitted),
                judge(RESOLVED_REFS, route_fault(db, key, is_mesh), "All references resolved"),
            ),
        )


def _by_reference(listed: Iterable[Attachment]) -> Iterator[tuple[ParentReference, list[Attachment]]]:
    """The attachments of each distinct reference, in the order in which references come first."""
    groups: list[tuple[ParentReference, list[Attachment]]] = []
    for one in listed:
        group = next((members for reference, members in groups if reference == one.reference), None)
        if group is None:
            groups.append((one.reference, [one]))
        else:
            group.append(one)
    return iter(groups)


def status_reference(reference: ParentReference) -> StatusReference:
    """A parent as a status names it."""
    return StatusReference(
        group=reference.group,
        kind=reference.kind,
        name=reference.name,
        namespace=reference.namespace,
        section_name=reference.section_name,
        port=reference.port,
    )


def _accepted(fitted: list[Attachment]) -> Condition:
    attached = sum(one.is_accepted for one in fitted)
    if attached:
        bound = f", bound to {attached} parents" if attached > 1 else ""
        return holds(ACCEPTED, f"Route was valid{bound}")
    reason = next(wanted for wanted in _FAVOURABLE if any(one.reason == wanted for one in fitted))
    return fails(ACCEPTED, Fault(reason, "; ".join(one.message for one in fitted if one.reason == reason)))


def route_fault(db: Engine, key: Key, is_mesh: bool) -> Fault | None:
    """What is wrong with a route's rules."""
    if key.kind in HTTP_KINDS:
        return convert_rules(db, key, is_mesh).fault
    return convert_streams(db, key, is_mesh).fault
