"""Ingress and IngressClass: HTTP from outside by host and path, and who serves it."""

from typing import ClassVar, Literal

from mizzen.api.message import Message, names
from mizzen.api.meta import Object
from mizzen.api.scalars import Int32

PathType = Literal["Exact", "Prefix", "ImplementationSpecific"]


class ServiceBackendPort(Message, frozen=True, kw_only=True):
    """A port of a Service, by name or number."""

    name: str = ""
    number: Int32 = 0


class IngressServiceBackend(Message, frozen=True, kw_only=True):
    """A Service of the Ingress's namespace."""

    name: str = ""
    port: ServiceBackendPort = ServiceBackendPort()


class ResourceReference(Message, frozen=True, kw_only=True):
    """An object of the Ingress's namespace that is no Service."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class IngressBackend(Message, frozen=True, kw_only=True):
    """Where requests go: a Service, or something else."""

    service: IngressServiceBackend | None = None
    resource: ResourceReference | None = None


class HTTPIngressPath(Message, frozen=True, kw_only=True):
    """A path and its backend."""

    path: str = ""
    path_type: PathType | None = None
    backend: IngressBackend = IngressBackend()


class HTTPIngressRuleValue(Message, frozen=True, kw_only=True):
    """The paths of a host."""

    paths: tuple[HTTPIngressPath, ...] = ()


class IngressRule(Message, frozen=True, kw_only=True):
    """A host, or every host, and its paths."""

    host: str = ""
    http: HTTPIngressRuleValue | None = None


class IngressTLS(Message, frozen=True, kw_only=True):
    """The certificate of some hosts, in a Secret."""

    hosts: tuple[str, ...] = ()
    secret_name: str = ""


class IngressSpec(Message, frozen=True, kw_only=True):
    """The rules, the certificates and what takes all that no rule takes."""

    ingress_class_name: str | None = None
    default_backend: IngressBackend | None = None
    tls: tuple[IngressTLS, ...] = ()
    rules: tuple[IngressRule, ...] = ()


class Ingress(Object, frozen=True, kw_only=True):
    """The kind Ingress."""

    spec: IngressSpec = IngressSpec()


class IngressClassSpec(Message, frozen=True, kw_only=True):
    """Who serves the Ingresses of a class."""

    controller: str = ""

    unread: ClassVar[frozenset[str]] = names("parameters")


class IngressClass(Object, frozen=True, kw_only=True):
    """The kind IngressClass."""

    spec: IngressClassSpec = IngressClassSpec()
