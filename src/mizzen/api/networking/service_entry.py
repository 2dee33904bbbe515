"""ServiceEntry: a service that Kubernetes does not know, with its addresses, ports and endpoints."""

from typing import ClassVar, Literal

from mizzen.api.message import Message, ProtoMessage, names
from mizzen.api.meta import Object
from mizzen.api.networking.selectors import WorkloadSelector
from mizzen.api.networking.workload_entry import WorkloadEntrySpec
from mizzen.api.scalars import UInt32

Location = Literal["MESH_EXTERNAL", "MESH_INTERNAL"]
Resolution = Literal["NONE", "STATIC", "DNS", "DNS_ROUND_ROBIN", "DYNAMIC_DNS"]


class ServicePort(ProtoMessage, frozen=True, kw_only=True):
    """A port of the service; `target_port` 0 means the same number."""

    number: UInt32 = 0
    protocol: str = ""
    name: str = ""
    target_port: UInt32 = 0


class ServiceEntrySpec(ProtoMessage, frozen=True, kw_only=True):
    """The hosts and how their endpoints are found: written here, selected, or resolved by DNS."""

    hosts: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    ports: tuple[ServicePort, ...] = ()
    location: Location = "MESH_EXTERNAL"
    resolution: Resolution = "NONE"
    endpoints: tuple[WorkloadEntrySpec, ...] = ()
    workload_selector: WorkloadSelector | None = None
    export_to: tuple[str, ...] = ()
    subject_alt_names: tuple[str, ...] = ()


class AllocatedAddress(Message, frozen=True, kw_only=True):
    """A virtual address that the control plane gave to a host."""

    value: str = ""
    host: str = ""


class ServiceEntryStatus(Message, frozen=True, kw_only=True):
    """The virtual addresses given to hosts without any."""

    addresses: tuple[AllocatedAddress, ...] = ()

    unread: ClassVar[frozenset[str]] = names("conditions observedGeneration validationMessages")


class ServiceEntry(Object, frozen=True, kw_only=True):
    """The kind ServiceEntry of networking.istio.io."""

    spec: ServiceEntrySpec = ServiceEntrySpec()
    status: ServiceEntryStatus = ServiceEntryStatus()
