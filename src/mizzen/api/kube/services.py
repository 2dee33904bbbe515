"""Service and the endpoints behind it: EndpointSlice, and the older Endpoints."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from msgspec import field

from mizzen.api.message import Message, names
from mizzen.api.meta import Object
from mizzen.api.scalars import Int32, IntOrString

Protocol = Literal["TCP", "UDP", "SCTP"]
ServiceType = Literal["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]


class ServicePort(Message, frozen=True, kw_only=True):
    """A port of a Service; `target_port` None means the same number."""

    name: str = ""
    port: Int32 = 0
    protocol: Protocol = "TCP"
    app_protocol: str = ""
    target_port: IntOrString | None = None
    node_port: Int32 = 0


class ClientIPConfig(Message, frozen=True, kw_only=True):
    """How long a client stays with its endpoint."""

    timeout_seconds: Int32 | None = None


class SessionAffinityConfig(Message, frozen=True, kw_only=True):
    """Settings of session affinity."""

    client_ip: ClientIPConfig | None = field(name="clientIP", default=None)


class ServiceSpec(Message, frozen=True, kw_only=True):
    """A name for some pods; `cluster_ip` "None" means headless."""

    type: ServiceType = "ClusterIP"
    cluster_ip: str = field(name="clusterIP", default="")
    cluster_ips: tuple[str, ...] = field(name="clusterIPs", default=())
    ip_families: tuple[str, ...] = ()
    ip_family_policy: str = ""
    external_ips: tuple[str, ...] = field(name="externalIPs", default=())
    external_name: str = ""
    ports: tuple[ServicePort, ...] = ()
    selector: Mapping[str, str] = {}
    publish_not_ready_addresses: bool = False
    session_affinity: str = ""
    session_affinity_config: SessionAffinityConfig | None = None
    internal_traffic_policy: str = ""
    external_traffic_policy: str = ""
    traffic_distribution: str = ""
    load_balancer_ip: str = field(name="loadBalancerIP", default="")
    load_balancer_class: str = ""
    health_check_node_port: Int32 = 0

    unread: ClassVar[frozenset[str]] = names("allocateLoadBalancerNodePorts loadBalancerSourceRanges")


class LoadBalancerIngress(Message, frozen=True, kw_only=True):
    """An address under which a load balancer is reached."""

    ip: str = ""
    hostname: str = ""

    unread: ClassVar[frozenset[str]] = names("ipMode ports")


class LoadBalancerStatus(Message, frozen=True, kw_only=True):
    """The addresses of a load balancer."""

    ingress: tuple[LoadBalancerIngress, ...] = ()


class ServiceStatus(Message, frozen=True, kw_only=True):
    """What a Service was given."""

    load_balancer: LoadBalancerStatus = LoadBalancerStatus()

    unread: ClassVar[frozenset[str]] = names("conditions")


class Service(Object, frozen=True, kw_only=True):
    """The kind Service."""

    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


class ObjectReference(Message, frozen=True, kw_only=True):
    """Another object, usually the Pod behind an address."""

    kind: str = ""
    namespace: str = ""
    name: str = ""

    unread: ClassVar[frozenset[str]] = names("apiVersion fieldPath resourceVersion uid")


class EndpointConditions(Message, frozen=True, kw_only=True):
    """None is unknown: read it as ready, as serving when ready, and as not terminating."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class Endpoint(Message, frozen=True, kw_only=True):
    """An endpoint; its addresses are interchangeable, the first is used."""

    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()
    hostname: str = ""
    node_name: str = ""
    zone: str = ""
    target_ref: ObjectReference | None = None

    unread: ClassVar[frozenset[str]] = names("deprecatedTopology hints")


class EndpointPort(Message, frozen=True, kw_only=True):
    """A port of all endpoints of a slice; None is every port."""

    name: str = ""
    port: Int32 | None = None
    protocol: Protocol = "TCP"
    app_protocol: str = ""


class EndpointSlice(Object, frozen=True, kw_only=True):
    """The kind EndpointSlice; its label `kubernetes.io/service-name` names the Service."""

    address_type: Literal["IPv4", "IPv6", "FQDN"] = "IPv4"
    endpoints: tuple[Endpoint, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


class EndpointAddress(Message, frozen=True, kw_only=True):
    """One address of an Endpoints object."""

    ip: str = ""
    hostname: str = ""
    node_name: str = ""
    target_ref: ObjectReference | None = None


class EndpointSubset(Message, frozen=True, kw_only=True):
    """Addresses that share their ports."""

    addresses: tuple[EndpointAddress, ...] = ()
    not_ready_addresses: tuple[EndpointAddress, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


class Endpoints(Object, frozen=True, kw_only=True):
    """The kind Endpoints, named like its Service."""

    subsets: tuple[EndpointSubset, ...] = ()
