"""Gateways that nobody routes through.

In: Gateways of both kinds, VirtualServices, routes of the Gateway API. Out: MZ0111. A gateway that passes TLS of the
mesh through by SNI needs no routes.
"""

from collections.abc import Hashable, Iterable
from typing import Any

from mizzen.analysis import objects, own_codes
from mizzen.analysis.findings import Finding, report
from mizzen.api.gateway_api.statuses import GatewayStatus
from mizzen.api.meta import Key
from mizzen.api.networking.gateway import Gateway
from mizzen.incremental import Engine, Index, query
from mizzen.model.convert.status.objects import status

_ROUTES = ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute")


def _named(key: tuple[str, ...], found: Any) -> Iterable[Hashable]:
    inner = [g for route in found.spec.http for match in route.match for g in match.gateways]
    for gateway in (*found.spec.gateways, *inner):
        namespace, slash, name = gateway.partition("/")
        yield (namespace, name) if slash else (key[1], gateway)


_by_gateway = Index("VirtualService", "gateway named", _named)


@query
def check_gateway(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A Gateway that no VirtualService names, in a mesh that has VirtualServices."""
    found: Gateway | None = db.input(key)
    if found is None or not objects.exists(db, "VirtualService") or db.lookup(_by_gateway, (key.namespace, key.name)):
        return ()
    if all(server.tls is not None and server.tls.mode == "AUTO_PASSTHROUGH" for server in found.spec.servers):
        return ()
    if all(server.tls is not None and server.tls.https_redirect for server in found.spec.servers):
        return ()
    return (report(own_codes.GATEWAY_WITHOUT_ROUTES, key),)


@query
def check_kubernetes_gateway(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A Gateway to none of whose listeners a route is attached, in a mesh that has routes."""
    if not any(objects.exists(db, kind) for kind in _ROUTES) or db.lookup(_by_gateway, (key.namespace, key.name)):
        return ()
    found = status(db, key)
    if not isinstance(found, GatewayStatus) or not found.listeners or found.attached_listener_sets:
        return ()
    if any(listener.attached_routes for listener in found.listeners):
        return ()
    return (report(own_codes.GATEWAY_WITHOUT_ROUTES, key),)
