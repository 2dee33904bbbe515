"""One listener with all that is known of it: who may attach, what it serves, and what is wrong with it.

In: the listener, its Gateway and class, conflicts, TLS. Out: `Facts`, from which Istio Gateways, the attachment of
routes and statuses all follow.
Golden cases: gateway-api/allowed-routes, gateway-api/tls-tcp-routes, gateway-api/tls-listeners.
"""

import msgspec

from mizzen.api.gateway_api.listeners import Gateway, Listener, ListenerSet
from mizzen.api.gateway_api.references import GATEWAY_GROUP
from mizzen.api.meta import Key
from mizzen.api.networking.gateway import ServerTLSSettings
from mizzen.incremental import Engine, query
from mizzen.model.convert.faults import Fault
from mizzen.model.convert.gateways import conflicts, namespaces, tls
from mizzen.model.convert.gateways.classes import Traits, class_traits
from mizzen.model.convert.gateways.conflicts import ListenerId
from mizzen.model.convert.gateways.sets import admission, admitted_sets

ANY_NAMESPACE = "*"
_HBONE, _HBONE_PORT = "HBONE", 15008
_SUPPORTED = ("HTTP", "HTTPS", "TLS", "TCP")
_UNSUPPORTED_PROTOCOL = "UnsupportedProtocol"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a listener."""

    id: ListenerId
    gateway: Key
    """The Gateway that serves it, whoever wrote it."""
    name: str
    port: int
    protocol: str
    hostname: str
    """As written; empty for any host."""
    namespaces: tuple[str, ...]
    """Whose routes may attach; `*` for all."""
    kinds: tuple[str, ...]
    """Of which kinds."""
    has_unknown_kinds: bool = False
    """Whether a kind is allowed that the protocol cannot have."""
    tls: ServerTLSSettings | None = None
    tls_fault: Fault | None = None
    protocol_fault: Fault | None = None
    conflict: str = ""
    """Why it gives way to another listener of its port; empty where it does not."""
    is_converted: bool = True
    """Whether it becomes a server; a waypoint's does not."""

    @property
    def is_valid(self) -> bool:
        """Whether nothing is wrong with it that it would not be served for."""
        return self.tls_fault is None and self.protocol_fault is None and not self.conflict

    @property
    def is_served(self) -> bool:
        """Whether there is a server for it."""
        lacks_tls = self.protocol in ("HTTPS", "TLS") and self.tls is None
        return self.is_valid and self.is_converted and not lacks_tls


def gateway_traits(db: Engine, key: Key) -> Traits | None:
    """What the class of a Gateway means; None where the Gateway is unknown or another controller's."""
    gateway: Gateway | None = db.input(key)
    return class_traits(db, gateway.spec.gateway_class_name) if gateway is not None else None


@query
def owned_listeners(db: Engine, owner: Key) -> tuple[ListenerId, ...]:
    """The listeners that a Gateway or a ListenerSet has itself, where it is ours and may have them."""
    if owner.kind == "ListenerSet":
        admitted = admission(db, owner)
        if admitted is None or admitted.fault is not None:
            return ()
    else:
        traits = gateway_traits(db, owner)
        if traits is None or traits.is_remote:
            return ()
    return tuple(ListenerId(owner, index) for index in range(len(conflicts.slots(db, owner))))


@query
def gateway_listeners(db: Engine, gateway: Key) -> tuple[ListenerId, ...]:
    """The listeners that a Gateway serves: its own, then those of its ListenerSets."""
    owners = (gateway, *admitted_sets(db, gateway))
    return tuple(listener for owner in owners for listener in owned_listeners(db, owner))


@query
def facts(db: Engine, listener_id: ListenerId) -> Facts | None:
    """What is known of a listener; None once it is gone."""
    owner: Gateway | ListenerSet | None = db.input(listener_id.owner)
    key = _gateway_of(db, listener_id.owner)
    gateway: Gateway | None = db.input(key) if key is not None else None
    if owner is None or key is None or gateway is None or listener_id.nth >= len(owner.spec.listeners):
        return None
    listener = owner.spec.listeners[listener_id.nth]
    traits = class_traits(db, gateway.spec.gateway_class_name) or Traits(controller="")
    port = conflicts.listener_port(listener)
    settings = tls.listener_tls(db, gateway, listener_id.owner, listener, port)
    kinds, has_unknown = supported_kinds(listener)
    return Facts(
        id=listener_id,
        gateway=key,
        name=listener.name,
        port=port,
        protocol=listener.protocol,
        hostname=listener.hostname.lower(),
        namespaces=_allowed_namespaces(db, listener, listener_id.owner.namespace),
        kinds=kinds,
        has_unknown_kinds=has_unknown,
        tls=settings.tls,
        tls_fault=settings.fault,
        protocol_fault=_protocol_fault(listener, port, traits),
        conflict=conflicts.conflict(db, key, listener_id),
        is_converted=not traits.is_waypoint,
    )


def _gateway_of(db: Engine, owner: Key) -> Key | None:
    if owner.kind == "KubernetesGateway":
        return owner
    admitted = admission(db, owner)
    return admitted.gateway if admitted is not None else None


def supported_kinds(listener: Listener) -> tuple[tuple[str, ...], bool]:
    """The kinds of routes that may attach, and whether the listener allows others that it cannot have."""
    match listener.protocol:
        case "HTTP" | "HTTPS":
            kinds: tuple[str, ...] = ("HTTPRoute", "GRPCRoute")
        case "TCP":
            kinds = ("TCPRoute",)
        case "TLS":
            terminates = listener.tls is not None and listener.tls.mode == "Terminate"
            kinds = ("TLSRoute", "TCPRoute") if terminates else ("TLSRoute",)
        case _:
            kinds = ()
    wanted = listener.allowed_routes.kinds
    if not wanted:
        return kinds, False
    allowed = tuple(k for k in kinds if any((w.group, w.kind) == (GATEWAY_GROUP, k) for w in wanted))
    return allowed, len(allowed) != len(wanted)


def _allowed_namespaces(db: Engine, listener: Listener, own: str) -> tuple[str, ...]:
    allowed = listener.allowed_routes.namespaces
    match allowed.from_:
        case "All":
            return (ANY_NAMESPACE,)
        case "Same":
            return (own,)
    return namespaces.matching(db, allowed.selector) if allowed.selector is not None else (ANY_NAMESPACE,)


def _protocol_fault(listener: Listener, port: int, traits: Traits) -> Fault | None:
    protocol = listener.protocol
    if traits.is_waypoint:
        if (port, protocol) == (_HBONE_PORT, _HBONE):
            return None
        message = f'Expected a single listener on port {_HBONE_PORT} with protocol "{_HBONE}"'
        return Fault(_UNSUPPORTED_PROTOCOL, message)
    if protocol == _HBONE:
        return Fault(_UNSUPPORTED_PROTOCOL, f'protocol "{protocol}" is only supported for waypoint proxies')
    if protocol not in _SUPPORTED:
        hint = f'. hint: "{protocol.upper()}" (uppercase) may be supported' if protocol.upper() in _SUPPORTED else ""
        return Fault(_UNSUPPORTED_PROTOCOL, f'protocol "{protocol}" is unsupported{hint}')
    if not port:
        return Fault(_UNSUPPORTED_PROTOCOL, f"protocol {protocol} requires a port to be set")
    return None
