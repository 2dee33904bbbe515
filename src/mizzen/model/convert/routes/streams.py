"""Routes of connections: TCPRoute and TLSRoute as VirtualServices, one for each parent and host.

In: a route's rules and what it attaches to. Out: VirtualServices, numbered in the order of the generated Gateways'
names, and the fault to report. A TLSRoute's server names are those that route and listener have in common.
Golden cases: gateway-api/tls-tcp-routes, gateway-api/mesh-routes, gateway-api/reference-grants.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from mizzen.api.gateway_api.references import BackendRef
from mizzen.api.gateway_api.stream_routes import TCPRoute, TLSRoute
from mizzen.api.meta import Key
from mizzen.api.networking.virtual_service import (
    L4MatchAttributes,
    RouteDestination,
    TLSMatchAttributes,
    VirtualServiceSpec,
)
from mizzen.api.networking.virtual_service import TCPRoute as TcpRule
from mizzen.api.networking.virtual_service import TLSRoute as TlsRule
from mizzen.incremental import Engine, query
from mizzen.model import names
from mizzen.model.convert.faults import Fault
from mizzen.model.convert.routes import backends
from mizzen.model.convert.routes.backends import HardFault, Route, resolve_backend
from mizzen.model.convert.routes.heads import route_head
from mizzen.model.convert.routes.parents import MESH, Attachment, accepted
from mizzen.model.convert.routes.services import is_private, parent_hosts

Destinations = tuple[RouteDestination, ...]


class Streams(msgspec.Struct, frozen=True, kw_only=True):
    """The destinations of a route's rules."""

    rules: tuple[Destinations, ...] = ()
    fault: Fault | None = None


class Placed(NamedTuple):
    """One VirtualService of a route, without its rules."""

    gateway: str
    host: str
    server_names: tuple[str, ...] = ()
    """Of a TLSRoute; not empty."""
    port: int = 0
    is_private: bool = False
    """Whether only clients of the route's namespace see it."""


@query
def convert_streams(db: Engine, key: Key, is_mesh: bool) -> Streams:
    """The destinations of a route's rules, in order."""
    found: TCPRoute | TLSRoute | None = db.input(key)
    if found is None:
        return Streams()
    rules: list[Destinations] = []
    fault: Fault | None = None
    try:
        for rule in found.spec.rules:
            destinations, soft = _destinations(db, rule.backend_refs, Route(key, is_mesh))
            rules.append(destinations)
            fault = soft or fault
    except HardFault as hard:
        return Streams(fault=hard.fault)
    return Streams(rules=tuple(rules), fault=fault)


def _destinations(db: Engine, references: Sequence[BackendRef], route: Route) -> tuple[Destinations, Fault | None]:
    if not sum(reference.weight for reference in references):
        return (RouteDestination(destination=backends.NOWHERE),), None
    found: list[RouteDestination] = []
    fault: Fault | None = None
    for reference, weight in backends.effective(references):
        resolved = resolve_backend(db, reference, route)
        fault = resolved.fault or fault
        found.append(RouteDestination(destination=resolved.destination, weight=weight))
    return tuple(found), fault


@query
def has_destinations(db: Engine, key: Key, is_mesh: bool) -> bool:
    """Whether anything is left of a route's rules."""
    return bool(convert_streams(db, key, is_mesh).rules)


@query
def places(db: Engine, key: Key) -> tuple[Placed, ...]:
    """Where a route's VirtualServices stand; their number is their place in this list.

    A route whose rules cannot be converted has none.
    """
    head = route_head(db, key)
    if head is None:
        return ()
    return tuple(
        place
        for attachment in accepted(db, key)
        if has_destinations(db, key, attachment.gateway == MESH)
        for place in _places(db, attachment, key, head.hostnames, is_tls=key.kind == "TLSRoute")
    )


def _places(
    db: Engine, attachment: Attachment, key: Key, hostnames: tuple[str, ...], *, is_tls: bool
) -> Iterator[Placed]:
    if attachment.gateway == MESH:
        hosts = parent_hosts(db, attachment.parent)
        for host in hosts:
            own = tuple(h for h in hostnames if names.overlap(host, h)) if len(hostnames) > 1 else hostnames
            yield Placed(
                gateway=MESH,
                host=host,
                server_names=(own or hosts) if is_tls else (),
                port=attachment.reference.port or 0,
                is_private=is_private(attachment.parent, key.namespace),
            )
    elif not is_tls:
        yield Placed(attachment.gateway, "*")
    else:
        written = hostnames or ("*",)
        common = tuple(dict.fromkeys(h for w in written if (h := _server_name(attachment, w)) is not None))
        for host in written if common else ():
            yield Placed(attachment.gateway, host, common)


def _server_name(attachment: Attachment, host: str) -> str | None:
    """What a listener's host and a route's have in common; nothing where it is a more specific listener's."""
    listener = attachment.hostname or "*"
    if not attachment.admits(host):
        return None
    if names.matches(listener, host):
        return host
    return listener if names.matches(host, listener) else None


def stream_spec(db: Engine, key: Key, nth: int) -> VirtualServiceSpec | None:
    """The nth VirtualService of a route; None where there is none."""
    listed = places(db, key)
    if nth >= len(listed):
        return None
    place = listed[nth]
    rules = convert_streams(db, key, place.gateway == MESH).rules
    base = VirtualServiceSpec(
        hosts=(place.host,), gateways=(place.gateway,), export_to=(".",) if place.is_private else ()
    )
    if key.kind == "TLSRoute":
        match = TLSMatchAttributes(sni_hosts=tuple(sorted(place.server_names)), port=place.port)
        tls = tuple(TlsRule(match=(match,), route=route) for route in rules)
        return msgspec.structs.replace(base, tls=tls)
    on_port = (L4MatchAttributes(port=place.port),) if place.port else ()
    return msgspec.structs.replace(base, tcp=tuple(TcpRule(match=on_port, route=route) for route in rules))
