"""GRPCRoute: which gRPC calls go to which backends."""

from mizzen.api.gateway_api.filters import GRPCRouteFilter, SessionPersistence
from mizzen.api.gateway_api.http_route import ValueMatchType
from mizzen.api.gateway_api.listeners import DefaultScope
from mizzen.api.gateway_api.references import ParentReference
from mizzen.api.message import Message
from mizzen.api.meta import Object
from mizzen.api.scalars import Int32


class GRPCMethodMatch(Message, frozen=True, kw_only=True):
    """A condition on the service and method; what is absent matches all."""

    type: ValueMatchType = "Exact"
    service: str = ""
    method: str = ""


class GRPCHeaderMatch(Message, frozen=True, kw_only=True):
    """A condition on a header."""

    type: ValueMatchType = "Exact"
    name: str = ""
    value: str = ""


class GRPCRouteMatch(Message, frozen=True, kw_only=True):
    """Conditions that must all hold."""

    method: GRPCMethodMatch | None = None
    headers: tuple[GRPCHeaderMatch, ...] = ()


class GRPCBackendRef(Message, frozen=True, kw_only=True):
    """A backend, its share and what is done to its calls alone."""

    group: str = ""
    kind: str = "Service"
    name: str = ""
    namespace: str = ""
    port: Int32 | None = None
    weight: Int32 = 1
    filters: tuple[GRPCRouteFilter, ...] = ()


class GRPCRouteRule(Message, frozen=True, kw_only=True):
    """A rule: it applies if any match does, or if there is none."""

    name: str = ""
    matches: tuple[GRPCRouteMatch, ...] = ()
    filters: tuple[GRPCRouteFilter, ...] = ()
    backend_refs: tuple[GRPCBackendRef, ...] = ()
    session_persistence: SessionPersistence | None = None


class GRPCRouteSpec(Message, frozen=True, kw_only=True):
    """The rules, the host names they are for and the parents they attach to."""

    parent_refs: tuple[ParentReference, ...] = ()
    use_default_gateways: DefaultScope | None = None
    hostnames: tuple[str, ...] = ()
    rules: tuple[GRPCRouteRule, ...] = ()


class GRPCRoute(Object, frozen=True, kw_only=True):
    """The kind GRPCRoute."""

    spec: GRPCRouteSpec = GRPCRouteSpec()
