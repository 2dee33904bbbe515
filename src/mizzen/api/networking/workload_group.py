"""WorkloadGroup: a template of WorkloadEntries and how their health is probed."""

from collections.abc import Mapping

from mizzen.api.message import ProtoMessage
from mizzen.api.meta import Object
from mizzen.api.networking.workload_entry import WorkloadEntrySpec
from mizzen.api.scalars import Int32, UInt32


class HTTPHeader(ProtoMessage, frozen=True, kw_only=True):
    """A header of a probe."""

    name: str = ""
    value: str = ""


class HTTPHealthCheckConfig(ProtoMessage, frozen=True, kw_only=True):
    """A probe by an HTTP request."""

    path: str = ""
    port: UInt32 = 0
    host: str = ""
    scheme: str = ""
    http_headers: tuple[HTTPHeader, ...] = ()


class TCPHealthCheckConfig(ProtoMessage, frozen=True, kw_only=True):
    """A probe by a connection."""

    host: str = ""
    port: UInt32 = 0


class ExecHealthCheckConfig(ProtoMessage, frozen=True, kw_only=True):
    """A probe by a command."""

    command: tuple[str, ...] = ()


class GrpcHealthCheckConfig(ProtoMessage, frozen=True, kw_only=True):
    """A probe by gRPC's health service."""

    port: UInt32 = 0
    service: str = ""


class ReadinessProbe(ProtoMessage, frozen=True, kw_only=True):
    """When a workload is ready: one of the last four (WorkloadGroup, ProxyConfig of the mesh)."""

    initial_delay_seconds: Int32 = 0
    timeout_seconds: Int32 = 0
    period_seconds: Int32 = 0
    success_threshold: Int32 = 0
    failure_threshold: Int32 = 0
    http_get: HTTPHealthCheckConfig | None = None
    tcp_socket: TCPHealthCheckConfig | None = None
    exec: ExecHealthCheckConfig | None = None
    grpc: GrpcHealthCheckConfig | None = None


class TemplateMeta(ProtoMessage, frozen=True, kw_only=True):
    """Labels and annotations of the WorkloadEntries that are made."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class WorkloadGroupSpec(ProtoMessage, frozen=True, kw_only=True):
    """The template."""

    metadata: TemplateMeta | None = None
    template: WorkloadEntrySpec | None = None
    probe: ReadinessProbe | None = None


class WorkloadGroup(Object, frozen=True, kw_only=True):
    """The kind WorkloadGroup of networking.istio.io."""

    spec: WorkloadGroupSpec = WorkloadGroupSpec()
