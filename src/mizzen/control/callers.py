"""One way to believe callers, for the certificate service, the discovery servers and the debug pages.

In: the trust domains of the mesh config and the keys of the token issuer. Out: an authenticator for `ca`, and the same
in the form that `xds` asks for.
"""

import pathlib
from collections.abc import Callable, Sequence

from mizzen.api.mesh.config import MeshConfig
from mizzen.ca import tokens
from mizzen.ca.identity import (
    Authenticator,
    Call,
    CertificateAuthenticator,
    FirstAuthenticator,
    TokenAuthenticator,
)
from mizzen.errors import AuthorityError
from mizzen.model.spiffe import Identity, parse_spiffe
from mizzen.xds import identity as xds_identity


def trusted_domains(mesh: MeshConfig) -> frozenset[str]:
    """The trust domains whose certificates are believed: the mesh's own, its former ones, those of further roots."""
    further = (domain for data in mesh.ca_certificates for domain in data.trust_domains)
    return frozenset((mesh.trust_domain, *mesh.trust_domain_aliases, *further))


def build_authenticator(mesh: Callable[[], MeshConfig], verifier: tokens.KeyTokenVerifier | None) -> FirstAuthenticator:
    """Certificates first, then tokens where there is a key to verify them."""
    methods: list[Authenticator] = [CertificateAuthenticator(lambda: trusted_domains(mesh()))]
    if verifier is not None:
        methods.append(TokenAuthenticator(verifier, lambda: mesh().trust_domain))
    return FirstAuthenticator(methods)


def load_verifier(
    files: Sequence[str], issuer: str, audiences: Sequence[str], clock: Callable[[], float]
) -> tokens.KeyTokenVerifier | None:
    """A verifier with the keys of all files; None without files."""
    if not files:
        return None
    keys: list[tokens.PublicKey] = []
    for name in files:
        try:
            keys += tokens.decode_public_keys(pathlib.Path(name).read_bytes())
        except OSError as error:
            raise AuthorityError(f"cannot read the token key {name}: {error.strerror}") from error
        except AuthorityError as error:
            raise AuthorityError(f"{name}: {error}") from error
    return tokens.KeyTokenVerifier(keys, clock, audiences, issuer or tokens.ISSUER)


class StreamAuthenticator:
    """The authenticator as discovery streams ask it."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def authenticate(self, credentials: xds_identity.Credentials) -> Sequence[Identity]:
        """The workload identities that the credentials prove."""
        caller = await self._authenticator.authenticate(
            Call(
                metadata=credentials.metadata,
                certificate_uris=credentials.certificate_uris,
                peer=credentials.address,
            )
        )
        parsed = (parse_spiffe(uri) for uri in caller.identities)
        found = tuple(identity for identity in parsed if identity is not None)
        if not found:
            raise AuthorityError("the credentials name no workload")
        return found
