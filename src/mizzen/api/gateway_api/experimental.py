"""The experimental kinds of gateway.networking.x-k8s.io: XBackend, XBackendTrafficPolicy and XMesh."""

from typing import Literal

from mizzen.api.gateway_api.filters import SessionPersistence
from mizzen.api.gateway_api.policies import BackendTLSPolicyValidation
from mizzen.api.gateway_api.references import (
    LocalObjectReference,
    ObjectReference,
    SecretObjectReference,
)
from mizzen.api.message import Message
from mizzen.api.meta import Object
from mizzen.api.scalars import Duration, Int32

BackendType = Literal["ExternalHostname"]
BackendProtocol = Literal["TCP", "HTTP", "HTTP2", "HTTP11", "H2C", "MCP"]
BackendTLSMode = Literal["None", "ServerOnly", "ClientAndServer"]


class ExternalHostname(Message, frozen=True, kw_only=True):
    """A host outside the cluster."""

    hostname: str = ""


class BackendPort(Message, frozen=True, kw_only=True):
    """The port of a backend."""

    name: str = ""
    port: Int32 = 0


class BackendTLS(Message, frozen=True, kw_only=True):
    """TLS towards a backend."""

    mode: BackendTLSMode | None = None
    validation: BackendTLSPolicyValidation | None = None
    client_certificate_ref: SecretObjectReference | None = None


class XBackendSpec(Message, frozen=True, kw_only=True):
    """A backend that is no Service."""

    type: BackendType | None = None
    external_hostname: ExternalHostname | None = None
    port: BackendPort | None = None
    protocol: BackendProtocol | None = None
    tls: BackendTLS | None = None


class XBackend(Object, frozen=True, kw_only=True):
    """The kind XBackend."""

    spec: XBackendSpec = XBackendSpec()


class RetryBudget(Message, frozen=True, kw_only=True):
    """Retries as a share of requests in an interval."""

    percent: Int32 = 20
    interval: Duration = Duration.of(seconds=10)


class RequestRate(Message, frozen=True, kw_only=True):
    """A number of requests in an interval."""

    count: Int32 | None = None
    interval: Duration | None = None


class RetryConstraint(Message, frozen=True, kw_only=True):
    """How many retries are allowed; the rate is allowed in any case."""

    budget: RetryBudget = RetryBudget()
    min_retry_rate: RequestRate = RequestRate(count=10, interval=Duration.of(seconds=1))


class XBackendTrafficPolicySpec(Message, frozen=True, kw_only=True):
    """How the targets are called."""

    target_refs: tuple[LocalObjectReference, ...] = ()
    retry_constraint: RetryConstraint | None = None
    session_persistence: SessionPersistence | None = None


class XBackendTrafficPolicy(Object, frozen=True, kw_only=True):
    """The kind XBackendTrafficPolicy."""

    spec: XBackendTrafficPolicySpec = XBackendTrafficPolicySpec()


class XMeshSpec(Message, frozen=True, kw_only=True):
    """Who serves a mesh."""

    controller_name: str = ""
    parameters_ref: ObjectReference | None = None
    description: str = ""


class XMesh(Object, frozen=True, kw_only=True):
    """The kind XMesh."""

    spec: XMeshSpec = XMeshSpec()
