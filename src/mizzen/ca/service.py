"""`istio.v1.auth.IstioCertificateService/CreateCertificate`, as pilot-agent calls it, with Istio's metrics.

In: a gRPC call with a certificate request, on any of the servers that the handler is added to. Out: the chain from
whoever signs, for the identities that the authenticator has found, or the status code that Istio would give.
A caller gets somebody else's certificate (`ImpersonatedIdentity`) only where the control plane knows a reason for that.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import grpc
import msgspec

from mizzen import observe, protos
from mizzen.ca import certificates
from mizzen.ca.authority import Authority, IssueError, State
from mizzen.ca.identity import Authenticator, Call, Caller
from mizzen.errors import AuthorityError
from mizzen.transport import read_chain

SERVICE = "istio.v1.auth.IstioCertificateService"

_log = observe.scope("ca")
_auth = protos.package("istio.v1.auth")

_CSRS = observe.Counter("citadel_server_csr_count", "Certificate requests received.")
_PARSING_ERRORS = observe.Counter("citadel_server_csr_parsing_err_count", "Requests that do not parse.")
_ID_ERRORS = observe.Counter("citadel_server_id_extraction_err_count", "Requests whose caller has no usable identity.")
_SIGN_ERRORS = observe.Counter(
    "citadel_server_csr_sign_err_count", "Requests that were not signed, by reason.", ("error",)
)
_ISSUED = observe.Counter("citadel_server_success_cert_issuance_count", "Certificates issued.")
_AUTHENTICATION_FAILURES = observe.Counter(
    "citadel_server_authentication_failure_count", "Callers that were not believed."
)
_ROOT_EXPIRY = observe.Gauge(
    "citadel_server_root_cert_expiry_timestamp", "When the root expires, in seconds since the epoch."
)
_ROOT_REMAINING = observe.Gauge("citadel_server_root_cert_expiry_seconds", "Seconds until the root expires.")
_CHAIN_EXPIRY = observe.Gauge(
    "citadel_server_cert_chain_expiry_timestamp", "When the signing chain expires, in seconds since the epoch."
)
_CHAIN_REMAINING = observe.Gauge("citadel_server_cert_chain_expiry_seconds", "Seconds until the signing chain expires.")

_IMPERSONATED = "ImpersonatedIdentity"
_CODES = {"CSR_ERROR": grpc.StatusCode.INVALID_ARGUMENT, "TTL_ERROR": grpc.StatusCode.INVALID_ARGUMENT}


def read_call(context: Any) -> Call:
    """What gRPC knows of the caller; certificate names are there only when TLS has verified the certificate."""
    metadata = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
    properties = context.auth_context()
    uris = tuple(value.decode(errors="replace") for value in properties.get("peer_uri", ()))
    return Call(metadata=metadata, certificate_uris=uris, certificates=read_chain(properties), peer=context.peer())


def watch_expiry(authority: Authority) -> None:
    """Keep the expiry metrics at the authority's state."""

    def show(state: State) -> None:
        root = certificates.expiry_of(state.current.roots[0])
        chain = state.current.expiry
        _ROOT_EXPIRY.set(root)
        _CHAIN_EXPIRY.set(chain)
        _ROOT_REMAINING.set_function(lambda: root - time.time())
        _CHAIN_REMAINING.set_function(lambda: chain - time.time())

    show(authority.state)
    authority.on_change(show)


Describe = Callable[[Caller, Call], Awaitable[str]]
"""Which workload a caller is, as a record for its certificate; empty where nobody knows."""


async def _describe_nobody(_: Caller, __: Call) -> str:
    return ""


Impersonate = Callable[[Caller, str], None]
"""Raises AuthorityError unless the caller may have the certificate of that identity."""


def _impersonate_nobody(_: Caller, __: str) -> None:
    raise AuthorityError("no account is trusted with certificates of others")


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate that is asked for, by somebody who has proved that it is theirs to have."""

    request: str
    identities: tuple[str, ...]
    seconds: float = 0.0
    """Of life; 0 leaves that to whoever signs."""
    record: str = ""
    signer: str = ""
    """The signer that the caller asks for, where there are several."""


class Issuer(Protocol):
    """Whoever signs."""

    async def issue(self, order: Order) -> tuple[str, ...]:
        """Leaf, each intermediate, and the bundle of roots as one text; raises IssueError."""
        ...


class OwnIssuer:
    """Signs by the authority itself."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    async def issue(self, order: Order) -> tuple[str, ...]:
        """The chain; there is but one signer, whichever is asked for."""
        return self._authority.issue(order.request, order.identities, order.seconds, order.record)


class CertificateService:
    """Answers certificate requests."""

    def __init__(
        self,
        issuer: Issuer,
        authenticator: Authenticator,
        describe: Describe = _describe_nobody,
        impersonate: Impersonate = _impersonate_nobody,
    ) -> None:
        self._issuer = issuer
        self._authenticator = authenticator
        self._describe = describe
        self._impersonate = impersonate

    def handler(self) -> grpc.GenericRpcHandler:
        """The handler to add to a grpc.aio server."""
        method = grpc.unary_unary_rpc_method_handler(
            self.create_certificate,
            request_deserializer=_auth.IstioCertificateRequest.FromString,
            response_serializer=protos.encode,
        )
        return grpc.method_handlers_generic_handler(SERVICE, {"CreateCertificate": method})

    async def create_certificate(self, request: Any, context: Any) -> Any:
        """The chain for the caller; aborts the call where there is none to give."""
        _CSRS.inc()
        call = read_call(context)
        try:
            caller = await self._authenticator.authenticate(call)
        except AuthorityError as error:
            _AUTHENTICATION_FAILURES.inc()
            _log.warning("certificate request from %s refused: %s", call.peer, error)
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "request authenticate failure")
        order = Order(
            request=request.csr,
            identities=caller.identities,
            seconds=request.validity_duration,
            signer=_text(request, "CertSigner"),
        )
        if _IMPERSONATED in request.metadata.fields:
            other = _text(request, _IMPERSONATED)
            await self._check_impersonation(caller, other, context)
            order = msgspec.structs.replace(order, identities=(other,))
        else:
            order = msgspec.structs.replace(order, record=await self._describe(caller, call))
        try:
            chain = await self._issuer.issue(order)
        except IssueError as error:
            await self._refuse(error, order.identities[0], context)
        _ISSUED.inc()
        _log.info("issued a certificate to %s", order.identities[0])
        return _auth.IstioCertificateResponse(cert_chain=chain)

    async def _check_impersonation(self, caller: Caller, other: str, context: Any) -> None:
        try:
            self._impersonate(caller, other)
        except AuthorityError as error:
            _ID_ERRORS.inc()
            _log.warning("%s asked for the certificate of %r: %s", caller.identities[0], other, error)
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "request impersonation authentication failure")

    async def _refuse(self, error: IssueError, identity: str, context: Any) -> None:
        if error.kind == "CSR_ERROR":
            _PARSING_ERRORS.inc()
        _SIGN_ERRORS.labels(error.kind).inc()
        _log.warning("no certificate for %s: %s", identity, error)
        code = _CODES.get(error.kind, grpc.StatusCode.INTERNAL)
        await context.abort(code, f"CSR signing error ({error})")


def _text(request: Any, name: str) -> str:
    """A text of the request's metadata; empty for anything else."""
    fields = request.metadata.fields
    return str(fields[name].string_value) if name in fields else ""
