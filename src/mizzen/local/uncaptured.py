"""A mesh without capture: what stands in for redirected traffic where namespaces are forbidden.

All pods share the machine's network, each with an address of its own in the loopback network. Nothing is redirected, so
every sidecar is told by a generated Sidecar what to listen on: the ports of its pod at the pod's address, and an HTTP
proxy port for what the pod calls. Programs listen on another loopback address, which MIZZEN_LISTEN_ADDRESS names, and
are reached by their Envoy through a Unix socket; HTTP goes out through the proxy that their environment names.

In: Services, Gateways, ServiceEntries and the pods that run. Out: objects for the control plane that replace or join
the manifests' own. Limits, by nature: only HTTP goes out through the sidecar, and there is no resolver, so names of the
mesh within ServiceEntries are replaced by addresses, and a Gateway is served by its first pod alone.
"""

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network

import msgspec

from mizzen.api.kube.services import Service, ServicePort
from mizzen.api.meta import Object, ObjectMeta
from mizzen.api.networking.gateway import Gateway, Port
from mizzen.api.networking.selectors import WorkloadSelector
from mizzen.api.networking.service_entry import ServiceEntry
from mizzen.api.networking.sidecar import IstioEgressListener, IstioIngressListener, Sidecar, SidecarSpec
from mizzen.inject.workload import PROXY
from mizzen.local import publish
from mizzen.local.net import dns
from mizzen.local.publish import PresentPod

HTTP_PROXY_PORT = 15080
POD_LABEL = "mizzen.dev/pod"
LISTEN_ADDRESS = "MIZZEN_LISTEN_ADDRESS"

_PROGRAMS = IPv4Network("127.45.0.0/16")
_PROTOCOLS = ("HTTP", "HTTPS", "HTTP2", "GRPC", "TLS", "TCP", "MONGO")


def program_address(place: int) -> IPv4Address:
    """Where the programs of the pod in this place listen."""
    return _PROGRAMS.network_address + place


def build_program_environ(address: IPv4Address, place: int, *, sidecar: bool) -> Mapping[str, str]:
    """What tells a pod's programs where to listen and through whom to call; `address` is the pod's."""
    if not sidecar:
        return {LISTEN_ADDRESS: str(address)}
    proxy = f"http://{address}:{HTTP_PROXY_PORT}"
    return {LISTEN_ADDRESS: str(program_address(place)), "http_proxy": proxy, "HTTP_PROXY": proxy}


def build(
    services: Iterable[Service], objects: Iterable[Object], pods: Iterable[PresentPod], zone: dns.Zone
) -> tuple[Object, ...]:
    """A Sidecar for each pod with one, Gateways bound to their pod, ServiceEntries without names of the mesh.

    Of several objects of one name the last counts.
    """
    present = tuple(pods)
    known = tuple(services)
    built: list[Object] = [_sidecar(item, known) for item in present if _has_sidecar(item)]
    latest = {(type(item).__name__, item.metadata.namespace, item.metadata.name): item for item in objects}
    for _, item in sorted(latest.items()):
        if isinstance(item, Gateway):
            built += _bound_gateway(item, present)
        elif isinstance(item, ServiceEntry):
            built += _resolved_entry(item, zone)
    return tuple(built)


def _has_sidecar(item: PresentPod) -> bool:
    """Whether the pod has a program beside its proxy."""
    names = [container.name for container in item.pod.spec.containers]
    return PROXY in names and names != [PROXY]


def _sidecar(item: PresentPod, services: Iterable[Service]) -> Sidecar:
    metadata = item.pod.metadata
    ingress = tuple(
        IstioIngressListener(
            port=Port(number=number, protocol=protocol, name=f"{protocol.lower()}-{number}"),
            bind=item.address,
            capture_mode="NONE",
            default_endpoint=f"unix://./{inlet(number)}",
        )
        for number, protocol in sorted(served_ports(item, services).items())
    )
    egress = IstioEgressListener(
        port=Port(number=HTTP_PROXY_PORT, protocol="HTTP_PROXY", name="http-proxy"),
        bind=item.address,
        capture_mode="NONE",
        hosts=("*/*",),
    )
    selector = WorkloadSelector(labels={POD_LABEL: metadata.name})
    return Sidecar(
        metadata=ObjectMeta(name=f"pod-{metadata.name}", namespace=metadata.namespace),
        spec=SidecarSpec(workload_selector=selector, ingress=ingress, egress=(egress,)),
    )


def inlet(port: int) -> str:
    """The Unix socket in the pod's folder, in which Envoy runs, through which it reaches this port of its program."""
    return f"in-{port}.sock"


def served_ports(item: PresentPod, services: Iterable[Service]) -> dict[int, str]:
    """The pod's ports that Services lead to, with their protocols."""
    found: dict[int, str] = {}
    for service in services:
        if not publish.select_members(service, (item,)):
            continue
        by_name = {port.name: port for port in service.spec.ports}
        for resolved in publish.resolve_ports(service, item.pod):
            if resolved.port is not None and resolved.protocol == "TCP":
                found.setdefault(resolved.port, _protocol(by_name[resolved.name]))
    return found


def _protocol(port: ServicePort) -> str:
    """The protocol as Istio reads it from a port: its appProtocol, else the first part of its name."""
    word = (port.app_protocol or port.name.partition("-")[0]).upper()
    return word if word in _PROTOCOLS else "TCP"


def _bound_gateway(gateway: Gateway, pods: Iterable[PresentPod]) -> list[Object]:
    selector = gateway.spec.selector
    selected = [item for item in pods if selector and selector.items() <= item.pod.metadata.labels.items()]
    if not selected:
        return []
    servers = tuple(msgspec.structs.replace(server, bind=selected[0].address) for server in gateway.spec.servers)
    return [msgspec.structs.replace(gateway, spec=msgspec.structs.replace(gateway.spec, servers=servers))]


def _resolved_entry(entry: ServiceEntry, zone: dns.Zone) -> list[Object]:
    """The entry with addresses for names that only the mesh's own resolver would know; nothing if it has none."""
    endpoints = []
    changed = False
    for endpoint in entry.spec.endpoints:
        records = zone.get(endpoint.address.lower())
        if records is None or not records.addresses:
            endpoints.append(endpoint)
            continue
        changed = True
        endpoints += [msgspec.structs.replace(endpoint, address=address) for address in records.addresses]
    if not changed or entry.spec.resolution != "DNS":
        return []
    spec = msgspec.structs.replace(entry.spec, endpoints=tuple(endpoints), resolution="STATIC")
    return [msgspec.structs.replace(entry, spec=spec)]
