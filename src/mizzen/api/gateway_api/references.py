"""How objects of the Gateway API name others: by group, kind and name, with defaults for the usual kind."""

from mizzen.api.message import Message
from mizzen.api.scalars import Int32

GATEWAY_GROUP = "gateway.networking.k8s.io"


class ParentReference(Message, frozen=True, kw_only=True):
    """What a route attaches to: a Gateway (or a listener of it), a ListenerSet or a Service."""

    group: str = GATEWAY_GROUP
    kind: str = "Gateway"
    namespace: str = ""
    name: str = ""
    section_name: str = ""
    port: Int32 | None = None


class BackendObjectReference(Message, frozen=True, kw_only=True):
    """Where requests go: usually a port of a Service."""

    group: str = ""
    kind: str = "Service"
    name: str = ""
    namespace: str = ""
    port: Int32 | None = None


class BackendRef(Message, frozen=True, kw_only=True):
    """A backend and its share."""

    group: str = ""
    kind: str = "Service"
    name: str = ""
    namespace: str = ""
    port: Int32 | None = None
    weight: Int32 = 1


class SecretObjectReference(Message, frozen=True, kw_only=True):
    """A certificate."""

    group: str = ""
    kind: str = "Secret"
    name: str = ""
    namespace: str = ""


class ObjectReference(Message, frozen=True, kw_only=True):
    """An object of any kind and namespace."""

    group: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""


class LocalObjectReference(Message, frozen=True, kw_only=True):
    """An object of the same namespace."""

    group: str = ""
    kind: str = ""
    name: str = ""


class LocalPolicyTargetReference(Message, frozen=True, kw_only=True):
    """The object of the same namespace that a policy is for, or a section (a port, say) of it."""

    group: str = ""
    kind: str = ""
    name: str = ""
    section_name: str = ""
