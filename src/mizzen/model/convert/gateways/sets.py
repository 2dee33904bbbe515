"""ListenerSets: which of them may add listeners to a Gateway.

In: ListenerSets, the Gateway each names, its class and its allowedListeners. Out: for a set, whether it is ours and
what keeps it out; for a Gateway, its sets, the oldest first. Golden case: gateway-api/listener-sets.
"""

import msgspec

from mizzen.api.gateway_api.listeners import Gateway, ListenerSet
from mizzen.api.gateway_api.references import GATEWAY_GROUP
from mizzen.api.meta import Key
from mizzen.incremental import Engine, Index, query
from mizzen.model.convert.faults import Fault
from mizzen.model.convert.gateways import namespaces
from mizzen.model.convert.gateways.classes import class_traits

_NOT_ALLOWED = "NotAllowed"


def _parent(key: tuple[str, ...], found: ListenerSet) -> Key | None:
    reference = found.spec.parent_ref
    if reference is None or (reference.group, reference.kind) != (GATEWAY_GROUP, "Gateway"):
        return None
    return Key("KubernetesGateway", reference.namespace or key[1], reference.name)


_by_gateway = Index("ListenerSet", "gateway", lambda key, s: () if _parent(key, s) is None else (_parent(key, s),))


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """A set as its Gateway sees it."""

    gateway: Key
    fault: Fault | None = None


@query
def admission(db: Engine, key: Key) -> Admission | None:
    """Whether a set may add to its Gateway; None where the Gateway is unknown or another controller's."""
    found: ListenerSet | None = db.input(key)
    parent = _parent(key, found) if found is not None else None
    gateway: Gateway | None = db.input(parent) if parent is not None else None
    if parent is None or gateway is None:
        return None
    traits = class_traits(db, gateway.spec.gateway_class_name)
    if traits is None:
        return None
    if not traits.takes_listener_sets:
        message = f'The "{gateway.spec.gateway_class_name}" GatewayClass does not support ListenerSet'
        return Admission(gateway=parent, fault=Fault(_NOT_ALLOWED, message))
    if not _admits(db, gateway, key.namespace):
        message = "The parent Gateway does not allow this reference; check the 'spec.allowedRoutes'"
        return Admission(gateway=parent, fault=Fault(_NOT_ALLOWED, message))
    return Admission(gateway=parent)


def _admits(db: Engine, gateway: Gateway, namespace: str) -> bool:
    allowed = gateway.spec.allowed_listeners
    if allowed is None:
        return False
    match allowed.namespaces.from_:
        case "All":
            return True
        case "Same":
            return namespace == gateway.metadata.namespace
        case "Selector":
            selector = allowed.namespaces.selector
            return selector is not None and namespaces.selects(db, selector, namespace)
    return False


@query
def admitted_sets(db: Engine, gateway: Key) -> tuple[Key, ...]:
    """The sets of a Gateway, the oldest first."""
    aged = []
    for found in (Key(*key) for key in db.lookup(_by_gateway, gateway)):
        admitted = admission(db, found)
        if admitted is not None and admitted.fault is None:
            aged.append((_age(db, found), found))
    return tuple(key for _, key in sorted(aged))


@query
def _age(db: Engine, key: Key) -> tuple[float, str, str]:
    found: ListenerSet = db.input(key)
    return (found.metadata.age_order[0], key.namespace, key.name)
