"""Parents: what each parent reference of a route fits, or why it does not.

In: a route's head and the facts of the listeners it names; of the mesh, whether the service exists. Out: `Attachment`
values, one for each reference and listener. The routes of a listener follow from them.
Golden cases: gateway-api/allowed-routes, gateway-api/listener-sets, gateway-api/mesh-routes.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from mizzen.api.gateway_api.references import ParentReference
from mizzen.api.meta import Key
from mizzen.incremental import Engine, attempt, query
from mizzen.model import names
from mizzen.model.convert.gateways.conflicts import ListenerId
from mizzen.model.convert.gateways.listeners import ANY_NAMESPACE, Facts, facts, owned_listeners
from mizzen.model.convert.names import gateway_name
from mizzen.model.convert.routes.heads import (
    RouteHead,
    is_mesh_parent,
    parent_key,
    route_head,
    routes_of_parent,
)

MESH = "mesh"

Reason = Literal["", "NotAllowedByListeners", "NoMatchingListenerHostname", "NoMatchingParent"]


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """One parent reference of a route on one listener, or on the mesh."""

    reference: ParentReference
    parent: Key
    gateway: str
    """The generated Gateway as `namespace/name`, or `mesh`."""
    listener: ListenerId | None = None
    """None on the mesh."""
    hostname: str = ""
    """The listener's."""
    reason: Reason = ""
    """Why the route does not attach; empty where it does."""
    message: str = ""
    rivals: tuple[str, ...] = ()
    """The host names of the owner's other listeners that requests or connections may be for."""

    @property
    def is_accepted(self) -> bool:
        """Whether the route attaches."""
        return not self.reason

    def admits(self, host: str) -> bool:
        """Whether requests for a host of the route are this listener's, not a more specific one's."""
        if self.hostname and not self.hostname.startswith("*"):
            return True
        if self.hostname and not names.overlap(self.hostname, host):
            return False
        return not any(len(r) >= len(self.hostname) and names.matches(r, host) for r in self.rivals if r)


@query
def attachments(db: Engine, key: Key) -> tuple[Attachment, ...]:
    """Everything that a route's parent references fit, and do not fit; ordered by reference, then by listener.

    A parent that is unknown, another controller's or not admitted gives nothing at all.
    """
    head = route_head(db, key)
    if head is None:
        return ()
    found: list[Attachment] = []
    for reference in head.parents:
        parent = parent_key(reference, key.namespace)
        if parent is None:
            continue
        if is_mesh_parent(parent):
            found.append(_mesh_attachment(db, reference, parent))
        else:
            found.extend(_listener_attachments(db, head, reference, parent))
    return tuple(sorted(found, key=lambda a: _reference_order(a.reference, key.namespace)))


def _reference_order(reference: ParentReference, own: str) -> tuple[str, str, str, str, int, str]:
    r = reference
    return (r.group, r.kind, r.name, r.section_name, r.port or 0, r.namespace or own)


def _mesh_attachment(db: Engine, reference: ParentReference, parent: Key) -> Attachment:
    if db.input(parent) is None:
        what = "parent service" if parent.kind == "Service" else "parent service entry"
        message = f'{what}: "{parent.name}" not found'
        return Attachment(reference=reference, parent=parent, gateway=MESH, reason="NoMatchingParent", message=message)
    return Attachment(reference=reference, parent=parent, gateway=MESH)


def _listener_attachments(db: Engine, head: RouteHead, reference: ParentReference, parent: Key) -> Iterator[Attachment]:
    candidates = [one for one in _candidates(db, parent) if not one.conflict and one.is_converted]
    for one in candidates:
        reason, message = _refusal(head, reference, one)
        yield Attachment(
            reference=reference,
            parent=parent,
            gateway=f"{parent.namespace}/{gateway_name(parent.name, one.name)}",
            listener=one.id,
            hostname=one.hostname,
            reason=reason,
            message=message,
            rivals=tuple(
                other.hostname
                for other in candidates
                if other.port == one.port
                and other.hostname != one.hostname
                and (other.protocol == one.protocol or (head.key.kind == "TLSRoute" and other.protocol == "HTTPS"))
            ),
        )


def _candidates(db: Engine, parent: Key) -> Iterable[Facts]:
    found = (attempt(facts, db, listener) for listener in owned_listeners(db, parent))
    return (one for one in found if one is not None)


def _refusal(head: RouteHead, reference: ParentReference, one: Facts) -> tuple[Reason, str]:
    """Why a route does not attach to a listener: section and port, then hosts and namespace, then kind."""
    if reference.port and reference.port != one.port:
        return "NoMatchingParent", f"port {reference.port} not found"
    if reference.section_name and reference.section_name != one.name:
        return "NoMatchingParent", f'sectionName "{reference.section_name}" not found'
    if not any(names.overlap(one.hostname or "*", host) for host in head.hostnames or ("*",)):
        return "NoMatchingListenerHostname", f'no hostnames matched parent hostname "{one.hostname}"'
    if ANY_NAMESPACE not in one.namespaces and head.key.namespace not in one.namespaces:
        message = (
            f'hostnames matched parent hostname "{one.hostname}", '
            f'but namespace "{head.key.namespace}" is not allowed by the parent'
        )
        return "NotAllowedByListeners", message
    if head.key.kind not in one.kinds:
        return "NotAllowedByListeners", f"kind gateway.networking.k8s.io/v1/{head.key.kind} is not allowed"
    return "", ""


@query
def accepted(db: Engine, key: Key) -> tuple[Attachment, ...]:
    """The attachments of a route that hold, by the generated Gateway's name."""
    return tuple(sorted((a for a in attachments(db, key) if a.is_accepted), key=lambda a: a.gateway))


@query
def _routes_by_listener(db: Engine, owner: Key) -> dict[ListenerId, tuple[Key, ...]]:
    """The routes that attach to each listener of a Gateway or ListenerSet: one pass over all that name it."""
    found: dict[ListenerId, dict[Key, None]] = {}
    for key in routes_of_parent(db, owner):
        for attachment in attempt(accepted, db, key) or ():
            if attachment.listener is not None and attachment.listener.owner == owner:
                found.setdefault(attachment.listener, {})[key] = None
    return {listener: tuple(keys) for listener, keys in found.items()}


@query
def listener_routes(db: Engine, listener: ListenerId) -> tuple[Key, ...]:
    """The routes that attach to a listener, by kind, namespace and name."""
    return _routes_by_listener(db, listener.owner).get(listener, ())
