"""Sidecar: what a workload's proxy listens for and which services it knows."""

from typing import Literal

from mizzen.api.message import ProtoMessage
from mizzen.api.meta import Object
from mizzen.api.networking.destination import Destination
from mizzen.api.networking.gateway import Port, ServerTLSSettings
from mizzen.api.networking.selectors import WorkloadSelector
from mizzen.api.networking.traffic_policy import ConnectionPoolSettings

CaptureMode = Literal["DEFAULT", "IPTABLES", "NONE"]
SidecarOutboundMode = Literal["REGISTRY_ONLY", "ALLOW_ANY"]


class IstioIngressListener(ProtoMessage, frozen=True, kw_only=True):
    """A port on which the workload takes traffic."""

    port: Port | None = None
    bind: str = ""
    capture_mode: CaptureMode = "DEFAULT"
    default_endpoint: str = ""
    tls: ServerTLSSettings | None = None
    connection_pool: ConnectionPoolSettings | None = None


class IstioEgressListener(ProtoMessage, frozen=True, kw_only=True):
    """Hosts (`namespace/host`) the workload may call, on one port or on all."""

    port: Port | None = None
    bind: str = ""
    capture_mode: CaptureMode = "DEFAULT"
    hosts: tuple[str, ...] = ()


class SidecarOutboundTrafficPolicy(ProtoMessage, frozen=True, kw_only=True):
    """What happens to calls of unknown hosts."""

    mode: SidecarOutboundMode = "REGISTRY_ONLY"
    egress_proxy: Destination | None = None


class SidecarSpec(ProtoMessage, frozen=True, kw_only=True):
    """The scope of the selected workloads, or of a namespace without a selector."""

    workload_selector: WorkloadSelector | None = None
    ingress: tuple[IstioIngressListener, ...] = ()
    egress: tuple[IstioEgressListener, ...] = ()
    inbound_connection_pool: ConnectionPoolSettings | None = None
    outbound_traffic_policy: SidecarOutboundTrafficPolicy | None = None


class Sidecar(Object, frozen=True, kw_only=True):
    """The kind Sidecar of networking.istio.io."""

    spec: SidecarSpec = SidecarSpec()
