"""Who calls: the way from credentials to identities.

In: what a transport knows of a caller (`Call`: its metadata, its verified client certificate). Out: a
`Caller` with the identities it has proved, or `AuthorityError`. The certificate service and the discovery servers share
one `Authenticator`, so both believe the same. Whether a proved identity fits the node that it claims to be is decided
by `xds`; how a certificate's chain is verified, by TLS.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from mizzen.ca.certificates import decode
from mizzen.ca.revocations import Revocations
from mizzen.ca.tokens import ServiceAccount
from mizzen.errors import AuthorityError
from mizzen.model.spiffe import Identity, format_spiffe, parse_spiffe


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What a transport knows of one call before anybody is believed."""

    metadata: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Request headers, names in lower case."""
    certificate_uris: tuple[str, ...] = ()
    """URI names of the client certificate that TLS has verified; empty without one."""
    certificates: tuple[bytes, ...] = ()
    """That certificate and what came along of its chain, as PEM; empty without one."""
    peer: str = ""
    """Address of the peer, for messages."""

    def __repr__(self) -> str:
        return f"Call(from {self.peer}, metadata={sorted(self.metadata)}, certificate_uris={self.certificate_uris})"


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who a caller has proved to be."""

    identities: tuple[str, ...]
    """SPIFFE URIs, at least one."""
    method: str
    """`certificate` or `token`."""
    pod: str = ""
    """The pod that its token is bound to; empty where nothing proves one."""
    pod_uid: str = ""
    node: str = ""
    """Where that pod runs, if the token says so."""


class Authenticator(Protocol):
    """Turns the credentials of a call into a caller."""

    async def authenticate(self, call: Call) -> Caller:
        """The caller; raises AuthorityError, whose text names no secret, when the credentials prove nothing."""
        ...


class TokenVerifier(Protocol):
    """Checks a bearer token."""

    async def verify(self, token: str) -> ServiceAccount:
        """Whom a good token speaks for; raises AuthorityError for any other."""
        ...


class CertificateAuthenticator:
    """Believes the one URI of a verified client certificate, within the trusted domains, unless it is revoked."""

    def __init__(self, trust_domains: Callable[[], frozenset[str]], revocations: Revocations) -> None:
        self._trust_domains, self._revocations = trust_domains, revocations

    async def authenticate(self, call: Call) -> Caller:
        """The certificate's identity; a certificate with several URIs or of a foreign domain proves nothing."""
        if not call.certificate_uris:
            raise AuthorityError("no client certificate")
        # TLS here knows no lists; whoever holds what is revoked must not renew it.
        chain = (each for pem in call.certificates for each in decode(pem, "the client certificate"))
        if self._revocations.find_revoked(chain) is not None:
            raise AuthorityError("the client certificate is revoked")
        if len(call.certificate_uris) > 1:
            raise AuthorityError("the client certificate has more than one URI name")
        identity = parse_spiffe(call.certificate_uris[0])
        if identity is None:
            raise AuthorityError("the client certificate's URI name is no SPIFFE id of a workload")
        if identity.trust_domain not in self._trust_domains():
            raise AuthorityError(f"trust domain {identity.trust_domain!r} is not trusted")
        return Caller(identities=call.certificate_uris, method="certificate")


class TokenAuthenticator:
    """Believes a verified bearer token; the identity is of the mesh's own trust domain."""

    def __init__(self, verifier: TokenVerifier, trust_domain: Callable[[], str]) -> None:
        self._verifier = verifier
        self._trust_domain = trust_domain

    async def authenticate(self, call: Call) -> Caller:
        """The token's service account."""
        token = bearer_token(call.metadata)
        if token is None:
            raise AuthorityError("no bearer token")
        account = await self._verifier.verify(token)
        identity = Identity(self._trust_domain(), account.namespace, account.name)
        return Caller(
            identities=(format_spiffe(identity),),
            method="token",
            pod=account.pod,
            pod_uid=account.pod_uid,
            node=account.node,
        )


class FirstAuthenticator:
    """The first of several authenticators that believes the caller; when none does, all their reasons."""

    def __init__(self, authenticators: Sequence[Authenticator]) -> None:
        self._authenticators = tuple(authenticators)

    async def authenticate(self, call: Call) -> Caller:
        """The caller by the first method that works."""
        reasons: list[str] = []
        for authenticator in self._authenticators:
            try:
                return await authenticator.authenticate(call)
            except AuthorityError as error:
                reasons.append(str(error))
        raise AuthorityError("; ".join(reasons) or "no way to authenticate is set up")


def bearer_token(metadata: Mapping[str, str]) -> str | None:
    """The token of an `authorization: Bearer …` header (or `Istio …`, as istioctl may send)."""
    scheme, _, token = metadata.get("authorization", "").partition(" ")
    if scheme.lower() in ("bearer", "istio") and token.strip():
        return token.strip()
    return None
