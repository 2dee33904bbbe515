"""The documents of servers: routes on the Gateway, or a VirtualService on an Istio Gateway.

In: servers, the ways in. Out: documents in an order in which they can be applied.
"""

from collections.abc import Iterator, Mapping, Sequence

from mizzen.api.meta import Key, Object
from mizzen.migrate.findings import Notes
from mizzen.migrate.rules import Path, Rule, build_rules, fold_redirects, is_native
from mizzen.migrate.servers import Location, Server
from mizzen.migrate.settings import Redirect
from mizzen.migrate.writing.authorization import authorization_policies
from mizzen.migrate.writing.destination_rules import destination_rules
from mizzen.migrate.writing.documents import (
    GATEWAY_API,
    Document,
    Target,
    document,
    host_name,
    istio_name,
    reference_grant,
)
from mizzen.migrate.writing.gateways import Certificate, Ways, istio_gateway
from mizzen.migrate.writing.http_routes import http_routes
from mizzen.migrate.writing.secrets import Copies
from mizzen.migrate.writing.virtual_services import virtual_service
from mizzen.model import names

_MOVED_HOST = 308


class Writer:
    """Writes all servers of a migration."""

    def __init__(self, target: Target, servers: Sequence[Server], objects: Mapping[Key, Object], notes: Notes) -> None:
        self._target, self._servers, self._notes = target, servers, notes
        self._copies = Copies(target, objects, notes)
        self._ways = Ways(
            target=target,
            https={host: own for server in servers for host, own in _listeners(server)},
            passthrough=[server.host for server in servers if server.is_passthrough],
            opens_https=any(server.certificate is not None for server in servers),
        )

    def write(self) -> tuple[Document, ...]:
        """All documents."""
        routed = [one for server in self._servers for one in self._routes(server)]
        locations = [one for server in self._servers if not server.is_passthrough for one in server.locations]
        return (
            *self._ways.documents(),
            *self._route_grants(),
            *self._copies.documents,
            *routed,
            *destination_rules(locations, self._target, self._notes),
            *authorization_policies(self._servers, self._target, self._notes),
        )

    # -- routes -------------------------------------------------------------------------------------------------------

    def _routes(self, server: Server) -> Iterator[Document]:
        if server.is_passthrough:
            yield from self._tls_route(server)
            return
        http = build_rules(server, "http", self._notes)
        https = build_rules(server, "https", self._notes) if server.certificate is not None else None
        if _stands_in_routes(server):
            own = _certificate(server)
            if own is not None:
                self._copies.authority(own, own.namespace, own.secret, server.locations[0].ingress)
            yield from self._http_routes(server, http, https)
        else:
            yield from self._virtual_services(server, http, https)
        if server.redirected_host:
            yield self._host_redirect(server)

    def _http_routes(
        self, server: Server, http: tuple[Rule, ...], https: tuple[Rule, ...] | None
    ) -> Iterator[Document]:
        name = host_name(server.host)
        if http == https:
            yield from self._by_namespace(name, server, http, http=True, https=True)
            return
        yield from self._by_namespace(name, server, fold_redirects(http), http=True, https=False)
        if https is not None:
            yield from self._by_namespace(f"{name}-https", server, https, http=False, https=True)

    def _by_namespace(
        self, name: str, server: Server, rules: tuple[Rule, ...], *, http: bool, https: bool
    ) -> Iterator[Document]:
        parents = self._ways.parents(server.names, http=http, https=https)
        for namespace in dict.fromkeys(rule.namespace for rule in rules):
            own = [rule for rule in rules if rule.namespace == namespace]
            yield from http_routes(name, namespace, server.names, parents, own)

    def _host_redirect(self, server: Server) -> Document:
        """From the host with (or without) `www.` to the other one."""
        host, namespace = server.redirected_host, server.locations[0].ingress.namespace
        moved = Redirect(code=_MOVED_HOST, host=server.host)
        rule = Rule(namespace=namespace, path=Path(kind="elements", text="/"), redirect=moved)
        parents = self._ways.parents([host], http=True, https=True)
        (written,) = http_routes(host_name(host), namespace, [host], parents, [rule])
        return written

    def _tls_route(self, server: Server) -> Iterator[Document]:
        backend = next((one.backend for one in server.locations if one.backend is not None), None)
        if backend is None:
            return
        spec = {
            "parentRefs": [self._ways.passthrough_parent(server.host)],
            "hostnames": [server.host],
            "rules": [{"backendRefs": [{"name": backend.service, "port": backend.port}]}],
        }
        yield document(GATEWAY_API, "TLSRoute", backend.namespace, host_name(server.host), spec)

    def _virtual_services(
        self, server: Server, http: tuple[Rule, ...], https: tuple[Rule, ...] | None
    ) -> Iterator[Document]:
        base = istio_name(self._target, server.host)
        certificate = _certificate(server)
        credential = ""
        if certificate is not None:
            ingress = server.locations[0].ingress
            credential = self._copies.beside_proxies(certificate, ingress)
            self._copies.authority(certificate, self._target.namespace, credential, ingress)
        if https is None or http == https:
            yield istio_gateway(
                base, self._target, server.names, http=True, certificate=certificate, credential=credential
            )
            yield virtual_service(base, self._target, server.names, base, http)
            return
        for name, rules, own in ((base, http, None), (names.label_value(f"{base}-https"), https, certificate)):
            yield istio_gateway(
                name, self._target, server.names, http=own is None, certificate=own, credential=credential
            )
            yield virtual_service(name, self._target, server.names, name, rules)

    # -- grants -------------------------------------------------------------------------------------------------------

    def _route_grants(self) -> Iterator[Document]:
        """For backends of canaries and mirrors in other namespaces than the Ingress's."""
        wanted: dict[tuple[str, str], dict[str, None]] = {}
        for server in self._servers:
            for location in server.locations if _stands_in_routes(server) else ():
                for namespace, service in _foreign(location):
                    wanted.setdefault((location.ingress.namespace, namespace), {})[service] = None
        for (origin, namespace), services in sorted(wanted.items()):
            yield reference_grant(
                f"{self._target.name}-routes-of-{origin}",
                of=("HTTPRoute", origin),
                to="Service",
                referents=services,
                referents_namespace=namespace,
            )


def _stands_in_routes(server: Server) -> bool:
    return not server.is_passthrough and is_native(server)


def _certificate(server: Server) -> Certificate | None:
    if server.certificate is None or server.is_passthrough:
        return None
    namespace, secret = server.certificate
    return Certificate(namespace=namespace, secret=secret, client_tls=server.client_tls)


def _listeners(server: Server) -> Iterator[tuple[str, Certificate]]:
    """The hosts that need a listener of the Gateway to show a certificate."""
    own = _certificate(server)
    if own is None:
        return
    if _stands_in_routes(server):
        yield from ((name, own) for name in server.names)
    if server.redirected_host:
        yield server.redirected_host, own


def _foreign(location: Location) -> Iterator[tuple[str, str]]:
    if location.canary is not None and location.canary[1].namespace != location.ingress.namespace:
        yield location.canary[1].namespace, location.canary[1].service
    mirror = location.settings.mirror
    if mirror is not None and mirror[0] != location.ingress.namespace:
        yield mirror[0], mirror[1]
