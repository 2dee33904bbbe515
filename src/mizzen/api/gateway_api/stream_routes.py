"""TCPRoute, TLSRoute and UDPRoute: which connections or datagrams go to which backends."""

from mizzen.api.gateway_api.listeners import DefaultScope
from mizzen.api.gateway_api.references import BackendRef, ParentReference
from mizzen.api.message import Message
from mizzen.api.meta import Object


class StreamRule(Message, frozen=True, kw_only=True):
    """The backends of all that reaches the parent."""

    name: str = ""
    backend_refs: tuple[BackendRef, ...] = ()


class StreamRouteSpec(Message, frozen=True, kw_only=True):
    """The rules and the parents they attach to (TCPRoute, UDPRoute)."""

    parent_refs: tuple[ParentReference, ...] = ()
    use_default_gateways: DefaultScope | None = None
    rules: tuple[StreamRule, ...] = ()


class TLSRouteSpec(Message, frozen=True, kw_only=True):
    """The rules, the server names they are for and the parents they attach to."""

    parent_refs: tuple[ParentReference, ...] = ()
    use_default_gateways: DefaultScope | None = None
    hostnames: tuple[str, ...] = ()
    rules: tuple[StreamRule, ...] = ()


class TCPRoute(Object, frozen=True, kw_only=True):
    """The kind TCPRoute."""

    spec: StreamRouteSpec = StreamRouteSpec()


class UDPRoute(Object, frozen=True, kw_only=True):
    """The kind UDPRoute."""

    spec: StreamRouteSpec = StreamRouteSpec()


class TLSRoute(Object, frozen=True, kw_only=True):
    """The kind TLSRoute."""

    spec: TLSRouteSpec = TLSRouteSpec()
