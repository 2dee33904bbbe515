"""The statuses of the Gateway API's kinds, as Mizzen computes them for their objects.

They are written, never read: no Struct of an object holds one. Times and generations are left to whoever writes a
status back, so that equal findings are equal values.
"""

from typing import Literal

from mizzen.api.message import Message
from mizzen.api.scalars import Int32

ConditionStatus = Literal["True", "False", "Unknown"]


class Condition(Message, frozen=True, kw_only=True):
    """One finding about an object; `reason` is a stable word, `message` is for people."""

    type: str
    status: ConditionStatus
    reason: str
    message: str


class StatusReference(Message, frozen=True, kw_only=True):
    """An object as a status names it: group and kind always stand there."""

    group: str
    kind: str
    name: str
    namespace: str = ""
    section_name: str = ""
    port: Int32 | None = None


class StatusAddress(Message, frozen=True, kw_only=True):
    """An address under which a Gateway is reached."""

    type: str
    value: str


class SupportedKind(Message, frozen=True, kw_only=True):
    """A kind of route that a listener takes."""

    group: str
    kind: str


class ListenerStatus(Message, frozen=True, kw_only=True):
    """The findings about one listener."""

    name: str
    supported_kinds: tuple[SupportedKind, ...]
    attached_routes: Int32
    conditions: tuple[Condition, ...]


class GatewayClassStatus(Message, frozen=True, kw_only=True):
    """The findings about a GatewayClass."""

    conditions: tuple[Condition, ...]


class GatewayStatus(Message, frozen=True, kw_only=True):
    """The findings about a Gateway, and where it is reached."""

    addresses: tuple[StatusAddress, ...] = ()
    conditions: tuple[Condition, ...]
    listeners: tuple[ListenerStatus, ...] = ()
    attached_listener_sets: Int32 | None = None
    """None where the Gateway lets none attach."""


class ListenerSetStatus(Message, frozen=True, kw_only=True):
    """The findings about a ListenerSet."""

    conditions: tuple[Condition, ...]
    listeners: tuple[ListenerStatus, ...] = ()


class RouteParentStatus(Message, frozen=True, kw_only=True):
    """The findings about a route for one of its parents."""

    parent_ref: StatusReference
    controller_name: str
    conditions: tuple[Condition, ...]


class RouteStatus(Message, frozen=True, kw_only=True):
    """The findings about a route; parents that are another controller's have none."""

    parents: tuple[RouteParentStatus, ...]


class PolicyAncestorStatus(Message, frozen=True, kw_only=True):
    """The findings about a policy where it takes effect."""

    ancestor_ref: StatusReference
    controller_name: str
    conditions: tuple[Condition, ...]


class PolicyStatus(Message, frozen=True, kw_only=True):
    """The findings about a policy."""

    ancestors: tuple[PolicyAncestorStatus, ...]


Status = GatewayClassStatus | GatewayStatus | ListenerSetStatus | RouteStatus | PolicyStatus
"""What `status` an object of the Gateway API gets."""
