"""EnvoyFilter: patches of what Envoy is told, in Envoy's own terms."""

from collections.abc import Mapping
from typing import Literal

from mizzen.api.message import FreeForm, ProtoMessage
from mizzen.api.meta import Object
from mizzen.api.networking.selectors import PolicyTargetReference, WorkloadSelector
from mizzen.api.scalars import Int32, UInt32

ApplyTo = Literal[
    "INVALID",
    "LISTENER",
    "FILTER_CHAIN",
    "NETWORK_FILTER",
    "HTTP_FILTER",
    "ROUTE_CONFIGURATION",
    "VIRTUAL_HOST",
    "HTTP_ROUTE",
    "CLUSTER",
    "EXTENSION_CONFIG",
    "BOOTSTRAP",
    "LISTENER_FILTER",
]
PatchContext = Literal["ANY", "SIDECAR_INBOUND", "SIDECAR_OUTBOUND", "GATEWAY", "WAYPOINT"]
PatchOperation = Literal[
    "INVALID",
    "MERGE",
    "ADD",
    "REMOVE",
    "INSERT_BEFORE",
    "INSERT_AFTER",
    "INSERT_FIRST",
    "REPLACE",
    "MERGE_AND_REPLACE_LIST",
]
FilterClass = Literal["UNSPECIFIED", "AUTHN", "AUTHZ", "STATS"]
RouteAction = Literal["ANY", "ROUTE", "REDIRECT", "DIRECT_RESPONSE"]


class ProxyMatch(ProtoMessage, frozen=True, kw_only=True):
    """The proxies that a patch is for, by version (RE2, unanchored) and node metadata."""

    proxy_version: str = ""
    metadata: Mapping[str, str] = {}


class SubFilterMatch(ProtoMessage, frozen=True, kw_only=True):
    """An HTTP filter in the connection manager."""

    name: str = ""


class FilterMatch(ProtoMessage, frozen=True, kw_only=True):
    """A network filter."""

    name: str = ""
    sub_filter: SubFilterMatch | None = None


class FilterChainMatch(ProtoMessage, frozen=True, kw_only=True):
    """A filter chain."""

    name: str = ""
    sni: str = ""
    transport_protocol: str = ""
    application_protocols: str = ""
    filter: FilterMatch | None = None
    destination_port: UInt32 = 0


class ListenerMatch(ProtoMessage, frozen=True, kw_only=True):
    """A listener or a part of it."""

    port_number: UInt32 = 0
    port_name: str = ""
    filter_chain: FilterChainMatch | None = None
    listener_filter: str = ""
    name: str = ""


class RouteMatch(ProtoMessage, frozen=True, kw_only=True):
    """A route of a virtual host."""

    name: str = ""
    action: RouteAction = "ANY"


class VirtualHostMatch(ProtoMessage, frozen=True, kw_only=True):
    """A virtual host of a route configuration."""

    name: str = ""
    domain_name: str = ""
    route: RouteMatch | None = None


class RouteConfigurationMatch(ProtoMessage, frozen=True, kw_only=True):
    """A route configuration or a part of it."""

    port_number: UInt32 = 0
    port_name: str = ""
    gateway: str = ""
    vhost: VirtualHostMatch | None = None
    name: str = ""


class ClusterMatch(ProtoMessage, frozen=True, kw_only=True):
    """A cluster by its name or the parts of it."""

    port_number: UInt32 = 0
    service: str = ""
    subset: str = ""
    name: str = ""


class WaypointFilterMatch(ProtoMessage, frozen=True, kw_only=True):
    """A filter of a waypoint."""

    name: str = ""
    sub_filter: SubFilterMatch | None = None


class WaypointRouteMatch(ProtoMessage, frozen=True, kw_only=True):
    """A route of a waypoint."""

    name: str = ""


class WaypointMatch(ProtoMessage, frozen=True, kw_only=True):
    """A part of a waypoint's configuration."""

    port_number: UInt32 = 0
    filter: WaypointFilterMatch | None = None
    route: WaypointRouteMatch | None = None


class EnvoyConfigObjectMatch(ProtoMessage, frozen=True, kw_only=True):
    """What a patch applies to: a context, proxies, and one of the last four."""

    context: PatchContext = "ANY"
    proxy: ProxyMatch | None = None
    listener: ListenerMatch | None = None
    route_configuration: RouteConfigurationMatch | None = None
    cluster: ClusterMatch | None = None
    waypoint: WaypointMatch | None = None


class Patch(ProtoMessage, frozen=True, kw_only=True):
    """The change, in Envoy's JSON."""

    operation: PatchOperation = "INVALID"
    value: FreeForm | None = None
    filter_class: FilterClass = "UNSPECIFIED"


class EnvoyConfigObjectPatch(ProtoMessage, frozen=True, kw_only=True):
    """One patch."""

    apply_to: ApplyTo = "INVALID"
    match: EnvoyConfigObjectMatch | None = None
    patch: Patch | None = None


class EnvoyFilterSpec(ProtoMessage, frozen=True, kw_only=True):
    """Patches in order, for the selected or targeted workloads; lower priority goes first."""

    workload_selector: WorkloadSelector | None = None
    target_refs: tuple[PolicyTargetReference, ...] = ()
    config_patches: tuple[EnvoyConfigObjectPatch, ...] = ()
    priority: Int32 = 0


class EnvoyFilter(Object, frozen=True, kw_only=True):
    """The kind EnvoyFilter of networking.istio.io."""

    spec: EnvoyFilterSpec = EnvoyFilterSpec()
