"""GatewayClass, Gateway and ListenerSet: ports, host names and certificates, and which routes may attach."""

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from mizzen.api.gateway_api.references import (
    GATEWAY_GROUP,
    LocalObjectReference,
    ObjectReference,
    SecretObjectReference,
)
from mizzen.api.message import Message
from mizzen.api.meta import LabelSelector, Object
from mizzen.api.scalars import Int32

FromRoutes = Literal["All", "Selector", "Same"]
FromListeners = Literal["All", "Selector", "Same", "None"]
DefaultScope = Literal["All", "None"]
TLSMode = Literal["Terminate", "Passthrough"]
ValidationMode = Literal["AllowValidOnly", "AllowInsecureFallback"]


class GatewayClassSpec(Message, frozen=True, kw_only=True):
    """Who serves the Gateways of a class."""

    controller_name: str = ""
    parameters_ref: ObjectReference | None = None
    description: str = ""


class GatewayClass(Object, frozen=True, kw_only=True):
    """The kind GatewayClass."""

    spec: GatewayClassSpec = GatewayClassSpec()


class RouteGroupKind(Message, frozen=True, kw_only=True):
    """A kind of route."""

    group: str = GATEWAY_GROUP
    kind: str = ""


class RouteNamespaces(Message, frozen=True, kw_only=True):
    """The namespaces whose routes may attach."""

    from_: FromRoutes = field(name="from", default="Same")
    selector: LabelSelector | None = None


class AllowedRoutes(Message, frozen=True, kw_only=True):
    """The routes that may attach; without kinds, those that suit the protocol."""

    namespaces: RouteNamespaces = RouteNamespaces()
    kinds: tuple[RouteGroupKind, ...] = ()


class ListenerTLSConfig(Message, frozen=True, kw_only=True):
    """TLS of a listener."""

    mode: TLSMode = "Terminate"
    certificate_refs: tuple[SecretObjectReference, ...] = ()
    options: Mapping[str, str] = {}


class Listener(Message, frozen=True, kw_only=True):
    """A port with a protocol and a host name; of a Gateway or a ListenerSet."""

    name: str = ""
    hostname: str = ""
    port: Int32 = 0
    protocol: str = ""
    tls: ListenerTLSConfig | None = None
    allowed_routes: AllowedRoutes = AllowedRoutes()


class GatewayAddress(Message, frozen=True, kw_only=True):
    """An address that is asked for."""

    type: str = "IPAddress"
    value: str = ""


class ListenerNamespaces(Message, frozen=True, kw_only=True):
    """The namespaces whose ListenerSets may attach."""

    from_: FromListeners = field(name="from", default="None")
    selector: LabelSelector | None = None


class AllowedListeners(Message, frozen=True, kw_only=True):
    """The ListenerSets that may attach."""

    namespaces: ListenerNamespaces = ListenerNamespaces()


class GatewayInfrastructure(Message, frozen=True, kw_only=True):
    """What the Deployment and Service made for a Gateway carry."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    parameters_ref: LocalObjectReference | None = None


class FrontendTLSValidation(Message, frozen=True, kw_only=True):
    """How clients' certificates are checked."""

    ca_certificate_refs: tuple[ObjectReference, ...] = ()
    mode: ValidationMode = "AllowValidOnly"


class FrontendTLS(Message, frozen=True, kw_only=True):
    """TLS towards clients."""

    validation: FrontendTLSValidation | None = None


class PortTLS(Message, frozen=True, kw_only=True):
    """TLS towards the clients of one port."""

    port: Int32 = 0
    tls: FrontendTLS | None = None


class FrontendTLSConfig(Message, frozen=True, kw_only=True):
    """TLS towards clients, by port."""

    default: FrontendTLS | None = None
    per_port: tuple[PortTLS, ...] = ()


class GatewayBackendTLS(Message, frozen=True, kw_only=True):
    """The certificate that a Gateway shows to backends."""

    client_certificate_ref: SecretObjectReference | None = None


class GatewayTLSConfig(Message, frozen=True, kw_only=True):
    """TLS of a Gateway as a whole."""

    backend: GatewayBackendTLS | None = None
    frontend: FrontendTLSConfig | None = None


class GatewaySpec(Message, frozen=True, kw_only=True):
    """The listeners, and what runs them."""

    gateway_class_name: str = ""
    listeners: tuple[Listener, ...] = ()
    addresses: tuple[GatewayAddress, ...] = ()
    infrastructure: GatewayInfrastructure | None = None
    allowed_listeners: AllowedListeners | None = None
    tls: GatewayTLSConfig | None = None
    default_scope: DefaultScope | None = None


class Gateway(Object, frozen=True, kw_only=True):
    """The kind Gateway of the Gateway API; in a `Key` it is a KubernetesGateway."""

    spec: GatewaySpec = GatewaySpec()


class ParentGatewayReference(Message, frozen=True, kw_only=True):
    """The Gateway that listeners are added to."""

    group: str = GATEWAY_GROUP
    kind: str = "Gateway"
    name: str = ""
    namespace: str = ""


class ListenerSetSpec(Message, frozen=True, kw_only=True):
    """Further listeners of a Gateway."""

    parent_ref: ParentGatewayReference | None = None
    listeners: tuple[Listener, ...] = ()


class ListenerSet(Object, frozen=True, kw_only=True):
    """The kind ListenerSet."""

    spec: ListenerSetSpec = ListenerSetSpec()
