"""Conflicts: which of the listeners on one port give way.

In: the ports, protocols and host names of a Gateway's listeners and of its sets' listeners. Out: the reason for each
listener that an earlier one displaces: the Gateway's own come first, in their order, then the sets' by age.
Golden case: gateway-api/listener-sets.
"""

from typing import NamedTuple

from mizzen.api.gateway_api.listeners import Gateway, Listener, ListenerSet
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query
from mizzen.model.convert.gateways.sets import admitted_sets

_IN_TLS = ("HTTPS", "TLS")
_OVER_TCP = ("TCP", "HTTP", *_IN_TLS)
_DEFAULT_PORTS = {"HTTP": 80, "HTTPS": 443}


class ListenerId(NamedTuple):
    """Names a listener: the Gateway or ListenerSet that has it, and its place there."""

    owner: Key
    nth: int


class Slot(NamedTuple):
    """What a listener takes of a port."""

    port: int
    protocol: str
    host: str


def listener_port(listener: Listener) -> int:
    """The port of a listener; one that names none has its protocol's, or 0."""
    return listener.port or _DEFAULT_PORTS.get(listener.protocol, 0)


@query
def slots(db: Engine, owner: Key) -> tuple[Slot, ...]:
    """What the listeners of a Gateway or ListenerSet take, in their order."""
    found: Gateway | ListenerSet | None = db.input(owner)
    if found is None:
        return ()
    return tuple(Slot(listener_port(one), one.protocol, one.hostname or "*") for one in found.spec.listeners)


@query
def conflicts(db: Engine, gateway: Key) -> dict[ListenerId, str]:
    """The reason for each listener of a Gateway and its sets that gives way."""
    displaced: dict[ListenerId, str] = {}
    winners: dict[int, list[Slot]] = {}
    for owner in (gateway, *admitted_sets(db, gateway)):
        for index, slot in enumerate(slots(db, owner)):
            there = winners.setdefault(slot.port, [])
            earlier = next((other for other in there if _collide(slot, other)), None)
            if earlier is None:
                there.append(slot)
            else:
                displaced[ListenerId(owner, index)] = _reason(slot, earlier)
    return displaced


def _collide(a: Slot, b: Slot) -> bool:
    """Whether two listeners of one port cannot both be served: only TLS, or HTTP alone, tells them apart by host."""
    by_host = a.protocol == b.protocol == "HTTP" or (a.protocol in _IN_TLS and b.protocol in _IN_TLS)
    if by_host:
        return a.host == b.host
    return a.protocol == b.protocol or (a.protocol in _OVER_TCP and b.protocol in _OVER_TCP)


def _reason(a: Slot, b: Slot) -> str:
    by_host = a.protocol == b.protocol and a.protocol not in ("TCP", "UDP")
    return "HostnameConflict" if by_host else "ProtocolConflict"


@query
def conflict(db: Engine, gateway: Key, listener: ListenerId) -> str:
    """The reason why one listener gives way; empty where it does not."""
    return conflicts(db, gateway).get(listener, "")
