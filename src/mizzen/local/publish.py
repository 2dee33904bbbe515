"""What a cluster would know of the running mesh, as objects for the control plane.

In: the manifests' Services, ServiceEntries, Nodes and Namespaces, the pods that run, and the addresses that were given.
Out: the objects that in a cluster the API server, the kubelet and controllers would add: Pods with their status,
EndpointSlices, Services and ServiceEntries with an address, the Node, the control plane's own Service. `build` and
`build_entries` are pure; `write` lays the objects as one JSON file each into a directory that the control plane watches
after the manifests, so that they replace the manifests' own by key. A file whose content is unchanged is not touched.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from mizzen.api.kube.cluster import Namespace, Node
from mizzen.api.kube.data import ConfigMap
from mizzen.api.kube.pods import Pod
from mizzen.api.kube.services import (
    Endpoint,
    EndpointConditions,
    EndpointPort,
    EndpointSlice,
    LoadBalancerIngress,
    LoadBalancerStatus,
    ObjectReference,
    Service,
    ServicePort,
    ServiceSpec,
    ServiceStatus,
)
from mizzen.api.meta import Key, Object, ObjectMeta
from mizzen.api.networking.service_entry import AllocatedAddress, ServiceEntry
from mizzen.api.scalars import encode_scalar
from mizzen.local.addresses import HEADLESS, EntryHost, entry_key, service_key

SERVICE_NAME = "kubernetes.io/service-name"
SYSTEM_NAMESPACE = "istio-system"
NODE_NAME = "mizzen"

_NETWORKING = "networking.istio.io/v1"
_API_VERSIONS = {
    "EndpointSlice": "discovery.k8s.io/v1",
    "Gateway": _NETWORKING,
    "ServiceEntry": _NETWORKING,
    "Sidecar": _NETWORKING,
}
_CONTROL_PLANE_PORTS = (
    ServicePort(name="grpc-xds", port=15010),
    ServicePort(name="https-dns", port=15012),
    ServicePort(name="http-monitoring", port=15014),
)


class PresentPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that has an address, as the world sees it."""

    pod: Pod
    """As injected, with its status."""
    ready: bool
    terminating: bool = False

    @property
    def address(self) -> str:
        return self.pod.status.pod_ip if self.pod.status else ""


def build(
    services: Iterable[Service], pods: Iterable[PresentPod], cluster_ips: Mapping[Key, str]
) -> tuple[Object, ...]:
    """Pods, addressed Services and their EndpointSlices, by key."""
    present = sorted(pods, key=lambda item: (item.pod.metadata.namespace, item.pod.metadata.name))
    objects: list[Object] = [item.pod for item in present]
    for service in sorted(services, key=service_key):
        members = select_members(service, present)
        objects.append(address_service(service, cluster_ips.get(service_key(service), ""), members))
        if service.spec.selector and service.spec.type != "ExternalName":
            objects += build_slices(service, members)
    return tuple(objects)


def build_entries(entries: Iterable[ServiceEntry], given: Mapping[EntryHost, str]) -> tuple[ServiceEntry, ...]:
    """The ServiceEntries whose hosts were given addresses, with these in their status."""
    addressed = []
    for entry in sorted(entries, key=entry_key):
        key = entry_key(entry)
        addresses = tuple(
            AllocatedAddress(host=host, value=given[key, host]) for host in entry.spec.hosts if (key, host) in given
        )
        if addresses:
            metadata = msgspec.structs.replace(entry.metadata, namespace=key.namespace)
            status = msgspec.structs.replace(entry.status, addresses=addresses)
            addressed.append(msgspec.structs.replace(entry, metadata=metadata, status=status))
    return tuple(addressed)


def select_members(service: Service, pods: Iterable[PresentPod]) -> tuple[PresentPod, ...]:
    """The pods that the Service's selector takes; none without a selector."""
    namespace, selector = service.metadata.namespace or "default", service.spec.selector
    return tuple(
        item
        for item in pods
        if selector
        and item.pod.metadata.namespace == namespace
        and selector.items() <= item.pod.metadata.labels.items()
    )


def address_service(service: Service, cluster_ip: str, members: tuple[PresentPod, ...]) -> Service:
    """The Service with its address; a load balancer is reached at its pods, since no other address is there."""
    spec = service.spec
    if cluster_ip:
        spec = msgspec.structs.replace(spec, cluster_ip=cluster_ip, cluster_ips=(cluster_ip,))
    metadata = msgspec.structs.replace(service.metadata, namespace=service.metadata.namespace or "default")
    status = service.status
    if spec.type == "LoadBalancer" and members and not status.load_balancer.ingress:
        ingress = tuple(LoadBalancerIngress(ip=item.address) for item in members if item.ready)
        status = ServiceStatus(load_balancer=LoadBalancerStatus(ingress=ingress))
    return msgspec.structs.replace(service, metadata=metadata, spec=spec, status=status)


def build_slices(service: Service, members: Iterable[PresentPod]) -> list[EndpointSlice]:
    """One slice for all pods that resolve the Service's ports to the same numbers."""
    by_ports: dict[tuple[EndpointPort, ...], list[PresentPod]] = {}
    for item in members:
        by_ports.setdefault(resolve_ports(service, item.pod), []).append(item)
    if not by_ports:
        by_ports[()] = []
    slices = []
    ordered = sorted(by_ports.items(), key=lambda entry: [(port.name, port.port or 0) for port in entry[0]])
    for number, (ports, items) in enumerate(ordered):
        name = service.metadata.name if number == 0 else f"{service.metadata.name}-{number}"
        metadata = ObjectMeta(
            name=name,
            namespace=service.metadata.namespace or "default",
            labels={SERVICE_NAME: service.metadata.name, **_headless_label(service)},
        )
        endpoints = tuple(_endpoint(service, item) for item in items)
        slices.append(EndpointSlice(metadata=metadata, endpoints=endpoints, ports=ports))
    return slices


def _headless_label(service: Service) -> dict[str, str]:
    return {"service.kubernetes.io/headless": ""} if service.spec.cluster_ip == HEADLESS else {}


def resolve_ports(service: Service, pod: Pod) -> tuple[EndpointPort, ...]:
    """The Service's ports as numbers of this pod; a name that the pod does not have is left out."""
    declared = {
        port.name: port.container_port for container in pod.spec.containers for port in container.ports if port.name
    }
    ports = []
    for port in service.spec.ports:
        target = port.port if port.target_port is None or port.target_port == "" else port.target_port
        number = declared.get(target) if isinstance(target, str) else target
        if isinstance(target, str) and number is None and target.isdecimal():
            number = int(target)
        if number is not None:
            ports.append(
                EndpointPort(name=port.name, port=number, protocol=port.protocol, app_protocol=port.app_protocol)
            )
    return tuple(ports)


def _endpoint(service: Service, item: PresentPod) -> Endpoint:
    pod = item.pod
    ready = (item.ready and not item.terminating) or service.spec.publish_not_ready_addresses
    conditions = EndpointConditions(ready=ready, serving=item.ready, terminating=item.terminating)
    named = pod.spec.hostname if pod.spec.subdomain == service.metadata.name else ""
    return Endpoint(
        addresses=(item.address,),
        conditions=conditions,
        hostname=named,
        node_name=pod.spec.node_name,
        target_ref=ObjectReference(kind="Pod", namespace=pod.metadata.namespace, name=pod.metadata.name),
    )


def build_control_plane(address: str, cluster_ip: str) -> tuple[Object, ...]:
    """The Namespace, the Service and the endpoint under which agents find the control plane."""
    metadata = ObjectMeta(name="istiod", namespace=SYSTEM_NAMESPACE, labels={"app": "istiod"})
    service = Service(
        metadata=metadata,
        spec=ServiceSpec(cluster_ip=cluster_ip, cluster_ips=(cluster_ip,), ports=_CONTROL_PLANE_PORTS),
    )
    endpoint = Endpoint(addresses=(address,), conditions=EndpointConditions(ready=True, serving=True))
    ports = tuple(EndpointPort(name=port.name, port=port.port) for port in _CONTROL_PLANE_PORTS)
    slices = EndpointSlice(
        metadata=msgspec.structs.replace(metadata, labels={SERVICE_NAME: "istiod"}),
        endpoints=(endpoint,),
        ports=ports,
    )
    return Namespace(metadata=ObjectMeta(name=SYSTEM_NAMESPACE)), service, slices


def build_mesh_config(text: str) -> ConfigMap:
    """The mesh configuration under which sidecars of a local mesh run unless the manifests bring their own."""
    return ConfigMap(metadata=ObjectMeta(name="istio", namespace=SYSTEM_NAMESPACE), data={"mesh": text})


def build_node(address: str) -> Node:
    """The machine as the only Node, for manifests that have none."""
    labels = {"kubernetes.io/hostname": NODE_NAME}
    return msgspec.convert(
        {
            "metadata": {"name": NODE_NAME, "labels": labels},
            "status": {"addresses": [{"type": "InternalIP", "address": address}]},
        },
        Node,
    )


def encode(item: Object) -> bytes:
    """The object as JSON, as a manifest would have it."""
    kind = type(item).__name__
    fields = msgspec.to_builtins(item, enc_hook=encode_scalar)
    return msgspec.json.encode({"apiVersion": _API_VERSIONS.get(kind, "v1"), "kind": kind, **fields}, order="sorted")


def write(objects: Iterable[Object], directory: Path) -> tuple[str, ...]:
    """Makes the directory hold exactly these objects; returns the names of the files that changed."""
    wanted = dict(_files(objects))
    present = {path.name for path in directory.iterdir()}
    changed = []
    for name, content in wanted.items():
        path = directory / name
        if name in present and path.read_bytes() == content:
            continue
        # Sources skip hidden files, so a watcher never reads half an object.
        partial = directory / f".{name}.partial"
        partial.write_bytes(content)
        partial.rename(path)
        changed.append(name)
    for name in sorted(present - wanted.keys()):
        with contextlib.suppress(FileNotFoundError):
            (directory / name).unlink()
        changed.append(name)
    return tuple(changed)


def _files(objects: Iterable[Object]) -> Iterator[tuple[str, bytes]]:
    for item in objects:
        parts = (type(item).__name__.lower(), item.metadata.namespace, item.metadata.name)
        yield "_".join(part for part in parts if part) + ".json", encode(item)
