"""Protocols that contradict each other: a port's name and its appProtocol, and routes that the port cannot have.

In: Services, VirtualServices. Out: MZ0103. A route of HTTP to a port that is declared to be TCP never sees a request,
and the other way round.
"""

from collections.abc import Iterator

from mizzen.analysis import own_codes
from mizzen.analysis.findings import Finding, report
from mizzen.api.kube.services import Service as KubeService
from mizzen.api.meta import Key
from mizzen.api.networking.destination import Destination
from mizzen.api.networking.virtual_service import VirtualService
from mizzen.incremental import Engine, query
from mizzen.model import mesh, names, services
from mizzen.model.protocols import Protocol, parse_port
from mizzen.model.services import Port

_WELL_KNOWN = {5432: "PostgreSQL", 3306: "MySQL", 6379: "Redis", 27017: "MongoDB", 9042: "Cassandra", 5672: "AMQP"}


@query
def check_ports(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Ports of which two things are said, or which are said to be HTTP on a number that never is."""
    found: KubeService | None = db.input(key)
    findings = []
    for index, port in enumerate(found.spec.ports if found is not None else ()):
        by_name = parse_port(number=0, name=port.name, transport="TCP", app_protocol=None)
        by_app = parse_port(number=0, name="", transport="TCP", app_protocol=port.app_protocol or None)
        said = by_app if port.app_protocol else by_name
        if port.protocol == "UDP" and not by_name.is_auto and by_name is not Protocol.UDP:
            text = f"the name {port.name} says {by_name.value}, but its transport is UDP"
        elif port.app_protocol and not by_name.is_auto and not by_app.is_auto and not _agree(by_name, by_app):
            text = f"the name {port.name} says {by_name.value}, but appProtocol, which counts, says {by_app.value}"
        elif said.is_http and port.port in _WELL_KNOWN:
            text = f"it is declared as {said.value}, but {_WELL_KNOWN[port.port]} has that number"
        else:
            continue
        name = f"{key.namespace}/{key.name}"
        findings.append(report(own_codes.PROTOCOL_MISMATCH, key, port.port, name, text, path=f"spec.ports[{index}]"))
    return tuple(findings)


def _agree(one: Protocol, other: Protocol) -> bool:
    return one is other or (one.is_http and other.is_http) or {one, other} <= {Protocol.HTTPS, Protocol.TLS}


@query
def check_routes(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Routes of a VirtualService by protocols that its own host does not speak."""
    found: VirtualService | None = db.input(key)
    if found is None or (found.spec.gateways and "mesh" not in found.spec.gateways):
        return ()
    return tuple(_check_routes(db, key, found))


def _check_routes(db: Engine, key: Key, found: VirtualService) -> Iterator[Finding]:
    kinds = {"http": bool(found.spec.http), "tcp or tls": bool(found.spec.tcp or found.spec.tls)}
    only = [kind for kind, has in kinds.items() if has]
    if len(only) != 1:
        return
    for index, host in enumerate(found.spec.hosts):
        ports = _ports(db, Destination(host=host), key.namespace)
        if not ports or any(port.protocol.is_auto or port.protocol.is_http == (only[0] == "http") for port in ports):
            continue
        spoken = ", ".join(sorted({port.protocol.value for port in ports}))
        text = f"it is declared as {spoken}, and the VirtualService has {only[0]} routes only, which never apply"
        yield report(own_codes.PROTOCOL_MISMATCH, key, ports[0].number, host, text, path=f"spec.hosts[{index}]")


def _ports(db: Engine, destination: Destination, namespace: str) -> tuple[Port, ...]:
    host = names.resolve_host(destination.host, namespace, mesh.domain(db)).lower()
    service = services.visible_service(db, host, namespace)
    return service.ports if service is not None else ()
