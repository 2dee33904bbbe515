"""VirtualServices of a host that its proxies do not follow, and why; istioctl says nothing of them.

In: the objects in an engine, a Service's port, and the VirtualServices that are in force there. Out: lines, one for
each other VirtualService that names the Service's host for the mesh.
"""

from collections.abc import Iterator, Sequence

from mizzen.api.kube.services import ServicePort
from mizzen.api.meta import Key
from mizzen.api.networking.virtual_service import VirtualService
from mizzen.diagnose.describe.subject import Subject
from mizzen.diagnose.describe.text import name_in
from mizzen.diagnose.describe.virtual_services import has_only_http, routes_of
from mizzen.incremental import Engine
from mizzen.model import objects, protocols, scope, virtual_services, workloads
from mizzen.model.virtual_services import MESH_GATEWAY, VirtualServiceRef


def describe_ignored(db: Engine, subject: Subject, port: ServicePort, followed: Sequence[Key]) -> Iterator[str]:
    """Why each of them has no effect on this port."""
    host = subject.host(db)
    for key in objects.of_kind(db, "VirtualService"):
        ref = virtual_services.virtual_service_ref(db, key)
        if ref is None or ref.key in followed or host not in ref.hosts or MESH_GATEWAY not in ref.gateways:
            continue
        virtual = virtual_services.virtual_service(db, ref.key)
        if virtual is not None and not _is_for_another_port(virtual, port):
            name = name_in(ref.key, subject.namespace)
            yield f"WARNING: VirtualService {name} names this host without effect: {_reason(db, subject, port, ref)}"


def _is_for_another_port(virtual: VirtualService, port: ServicePort) -> bool:
    """Whether all of its routes ask for other ports."""
    routes = routes_of(virtual)
    return all(route.match and all(match.port not in (0, port.port) for match in route.match) for route in routes)


def _reason(db: Engine, subject: Subject, port: ServicePort, ref: VirtualServiceRef) -> str:
    namespace = subject.namespace
    visible = virtual_services.visible_virtual_services(db, namespace, MESH_GATEWAY)
    if ref not in visible:
        return f"its exportTo leaves out namespace {namespace}"
    protocol = protocols.protocol_of(port)
    virtual = virtual_services.virtual_service(db, ref.key)
    if protocol.is_tcp and virtual is not None and has_only_http(virtual):
        return f"port {port.port} is {protocol.value}, and it has only HTTP routes"
    host = subject.host(db)
    first = next(each for each in visible if host in each.hosts)
    if first != ref:
        return f"{name_in(first.key, namespace)} goes before it"
    labels = workloads.freeze(subject.pods[0].metadata.labels) if subject.pods else ()
    chosen = scope.select_scope(db, namespace, labels)
    if (sidecar := scope.sidecar(db, chosen)) is not None:
        return f"Sidecar {sidecar.metadata.name} leaves it out, or the proxy has not got it yet"
    return "the proxy's configuration does not name it (yet)"
