"""Whether the caller on a stream is the proxy that its node says.

In: credentials as a transport knows them, the identities that an `Authenticator` made of them, and the node's claims.
Out: the identity that fits, or `Refused` with the gRPC code and text that the client gets. How tokens and certificates
are believed is `ca`'s knowledge, brought here by the composition root.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from mizzen.errors import SessionError
from mizzen.model.proxy import Proxy
from mizzen.model.spiffe import Identity

Code = Literal[
    "INVALID_ARGUMENT",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
    "FAILED_PRECONDITION",
    "RESOURCE_EXHAUSTED",
    "UNAVAILABLE",
]


class Refused(SessionError):
    """The stream is closed with this gRPC status."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code: Code = code


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """What the transport knows of a caller before anybody is believed."""

    metadata: Mapping[str, str]
    """Request headers, names in lower case."""
    certificates: tuple[bytes, ...] = ()
    """The client's certificate and what came along of its chain as PEM, verified by TLS; empty without one."""
    certificate_uris: tuple[str, ...] = ()
    """URI names of the leaf."""
    address: str = ""
    """The peer's address, for messages."""

    def __repr__(self) -> str:
        return f"Credentials(of {self.address}, metadata={sorted(self.metadata)}, uris={self.certificate_uris})"


class Authenticator(Protocol):
    """Turns credentials into identities."""

    async def authenticate(self, credentials: Credentials) -> Sequence[Identity]:
        """All identities that the credentials prove; raises AuthorityError where they prove none."""
        ...


def check_claims(proxy: Proxy, identities: Sequence[Identity]) -> Identity:
    """The first identity that the proxy may have; the trust domain is not compared, as in the reference."""
    for identity in identities:
        namespace_fits = not proxy.namespace or identity.namespace == proxy.namespace
        account_fits = not proxy.service_account or identity.service_account == proxy.service_account
        if namespace_fits and account_fits:
            return identity
    known = " ".join(map(str, identities))
    claim = f"{proxy.namespace}/{proxy.service_account}"
    raise Refused("PERMISSION_DENIED", f"authorization failed: no identities ([{known}]) matched {claim}")
