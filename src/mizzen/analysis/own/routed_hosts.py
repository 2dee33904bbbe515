"""Hosts that a VirtualService gives routes for and that no proxy will ever route.

In: VirtualServices, the services of the mesh, Gateways and the pods that they select. Out: MZ0101. A sidecar routes a
host of no service on port 80 only, and only if some service has HTTP there, as Istio does.
"""

from collections.abc import Iterable, Iterator

from mizzen.analysis import objects, own_codes
from mizzen.analysis.findings import Finding, report
from mizzen.api.meta import Key
from mizzen.api.networking.gateway import Gateway
from mizzen.api.networking.virtual_service import VirtualService
from mizzen.incremental import Engine, Index, query
from mizzen.model import mesh, names, services
from mizzen.model.workloads import freeze

_MESH = "mesh"
_HTTP_PORT = 80


def _delegates(key: tuple[str, ...], found: VirtualService) -> Iterable[tuple[str, str]]:
    for route in found.spec.http:
        if route.delegate is not None:
            yield (route.delegate.namespace or key[1], route.delegate.name)


_roots = Index("VirtualService", "delegate", _delegates)


@query
def check_hosts(db: Engine, key: Key) -> tuple[Finding, ...]:
    """The hosts, each by itself; a delegate as a whole."""
    found: VirtualService | None = db.input(key)
    if found is None:
        return ()
    if not found.spec.hosts:
        return () if db.lookup(_roots, (key.namespace, key.name)) else (_unused_delegate(key),)
    return tuple(_check(db, key, found))


def _unused_delegate(key: Key) -> Finding:
    return report(own_codes.HOST_NEVER_ROUTED, key, "(none)", "it is a delegate that no VirtualService names")


def _check(db: Engine, key: Key, found: VirtualService) -> Iterator[Finding]:
    at_gateways = [gateway for gateway in found.spec.gateways if gateway != _MESH]
    if any(_runs(db, key, gateway) for gateway in at_gateways):
        return  # which hosts a gateway has is IST0132's to say
    if found.spec.gateways and _MESH not in found.spec.gateways:
        if objects.has_pods(db):
            why = "none of its gateways is run by any pod"
            for index, host in enumerate(found.spec.hosts):
                yield report(own_codes.HOST_NEVER_ROUTED, key, host, why, path=f"spec.hosts[{index}]")
        return
    if not _known_hosts(db):
        return
    if found.spec.tls and any(_is_service(db, _full(db, key, host)) for host in found.spec.hosts):
        return  # the other hosts are there for the SNI of that service's connections
    for index, host in enumerate(found.spec.hosts):
        if _is_service(db, _full(db, key, host)) or (found.spec.http and _has_http_port(db)):
            continue
        why = "it is no service" if not found.spec.http else "it is no service, and none has HTTP on port 80"
        yield report(own_codes.HOST_NEVER_ROUTED, key, host, why, path=f"spec.hosts[{index}]")


def _full(db: Engine, key: Key, host: str) -> str:
    return names.resolve_host(host, key.namespace, mesh.domain(db)).lower()


def _runs(db: Engine, key: Key, gateway: str) -> bool:
    """Whether some pod runs a gateway; what is not known here is taken to be run."""
    namespace, slash, name = gateway.partition("/")
    place = (namespace, name) if slash else (key.namespace, gateway)
    found: Gateway | None = db.input(Key("Gateway", *place))
    if found is None:
        return True
    return bool(objects.matching_pods(db, "", freeze(found.spec.selector)))


@query
def _known_hosts(db: Engine) -> frozenset[str]:
    return frozenset(s.host for space in services.namespaces(db) for s in services.namespace_services(db, space))


@query
def _is_service(db: Engine, host: str) -> bool:
    known = _known_hosts(db)
    if host in known:
        return True
    wild = (other for other in known if host.startswith("*") or other.startswith("*"))
    return any(names.overlap(host, other) for other in wild)


@query
def _has_http_port(db: Engine) -> bool:
    """Whether sidecars have a route configuration for port 80."""
    found = (s for space in services.namespaces(db) for s in services.namespace_services(db, space))
    protocols = (port.protocol for service in found for port in service.ports if port.number == _HTTP_PORT)
    return any(protocol.is_http or protocol.is_auto for protocol in protocols)
