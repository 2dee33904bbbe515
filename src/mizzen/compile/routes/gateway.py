"""Route configurations of a gateway: one for each plain port, and one for each server that terminates TLS.

In: the name asked for, the servers of that name, the VirtualServices bound to their Gateways. Out: one encoded
RouteConfiguration. Virtual hosts with the same routes become one; routes that take everything go last.
Golden cases: gateway/merge-one-port, gateway/http-host-forms, gateway/https-redirect, gateway/mesh-and-gateway.
"""

import msgspec

from mizzen.compile import resource
from mizzen.compile.resource import Resource, ResourceSet
from mizzen.compile.routes.destinations import Place, RouteClient
from mizzen.compile.routes.virtual_hosts import VirtualHost, encode_configuration
from mizzen.compile.routes.virtual_service import EncodedRoute, routes
from mizzen.incremental import Engine, attempt, query
from mizzen.model import gateways, names
from mizzen.model.gateways import GatewayServer, GatewayWorkload, narrower_host
from mizzen.model.virtual_services import visible_virtual_services


class GatewayClient(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A gateway as its route configurations depend on it."""

    routes: RouteClient
    workload: GatewayWorkload


@query
def configurations(db: Engine, client: GatewayClient, asked: frozenset[str]) -> ResourceSet:
    """The route configurations of these names; each is answered, if only with an empty one."""
    return ResourceSet(resource.ROUTE, (configuration(db, client, name) for name in sorted(asked)))


class _Draft:
    """A virtual host while servers and VirtualServices add to it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.routes: list[EncodedRoute] = []
        self.require_tls = False


@query
def configuration(db: Engine, client: GatewayClient, name: str) -> Resource:
    """The route configuration of one name."""
    servers = [s for s in gateways.gateway_servers(db, client.workload) if s.route_name == name]
    if not servers:
        return encode_configuration(name, (), known=False)
    drafts = _drafts(db, client, servers)
    if not drafts:
        return encode_configuration(name, (_black_hole(servers[0].number),))
    hosts = _collapse(drafts, client.routes.attempt_count)
    return encode_configuration(name, sorted(hosts, key=lambda h: h.name))


def _drafts(db: Engine, client: GatewayClient, servers: list[GatewayServer]) -> dict[str, _Draft]:
    drafts: dict[str, _Draft] = {}
    for server in servers:
        redirects = server.server.tls is not None and server.server.tls.https_redirect
        place = Place(port=server.number, gateway=server.qualified_gateway, is_tls=server.is_tls)
        for ref in visible_virtual_services(db, client.routes.namespace, server.qualified_gateway):
            common = dict.fromkeys(
                host
                for own in server.hosts
                for theirs in ref.hosts
                if (host := narrower_host(own, ref.namespace, theirs)) is not None
            )
            if not common:
                continue
            found = attempt(routes, db, client.routes, ref.key, place) or ()
            for host in common:
                draft = drafts.setdefault(host, _Draft(server.number))
                draft.require_tls = draft.require_tls or redirects
                draft.routes.extend(found)
        if redirects:
            for host in server.bare_hosts:
                drafts.setdefault(host, _Draft(server.number)).require_tls = True
    return drafts


def _black_hole(number: int) -> VirtualHost:
    return VirtualHost(name=f"blackhole:{number}", domains=("*",), routes=(), attempt_count=False)


def _collapse(drafts: dict[str, _Draft], attempt_count: bool) -> list[VirtualHost]:
    """Hosts with the same routes as one virtual host, named by the most specific of them."""
    groups: dict[tuple[tuple[EncodedRoute, ...], bool], list[str]] = {}
    for host, draft in drafts.items():
        ordered = sorted(draft.routes, key=lambda r: r.is_catch_all)
        groups.setdefault((tuple(ordered), draft.require_tls), []).append(host)
    collapsed = []
    for (found, require_tls), hosts in groups.items():
        hosts.sort(key=lambda h: (names.specificity(h), h), reverse=True)
        collapsed.append(
            VirtualHost(
                name=f"{names.bracketed(hosts[0]) if names.is_ip(hosts[0]) else hosts[0]}:{drafts[hosts[0]].number}",
                domains=tuple(hosts),
                routes=found,
                attempt_count=attempt_count,
                require_tls=require_tls,
            )
        )
    return collapsed
