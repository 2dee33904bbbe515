"""One way to believe callers, for the certificate service, the discovery servers and the debug pages.

In: the trust domains of the mesh config, the rule of an outside issuer and the keys of the mesh's own. Out: an
authenticator for `ca`, and the same in the form that `xds` asks for.
"""

import pathlib
from collections.abc import Callable, Sequence

from mizzen import settings
from mizzen.api.mesh.config import MeshConfig
from mizzen.ca import issuers, tokens
from mizzen.ca.identity import (
    Authenticator,
    Call,
    CertificateAuthenticator,
    FirstAuthenticator,
    TokenAuthenticator,
    TokenVerifier,
)
from mizzen.ca.revocations import Revocations
from mizzen.control.issuer_keys import FetchedKeys
from mizzen.errors import AuthorityError
from mizzen.model.spiffe import Identity, parse_spiffe
from mizzen.xds import identity as xds_identity


def trusted_domains(mesh: MeshConfig) -> frozenset[str]:
    """The trust domains whose certificates are believed: the mesh's own, its former ones, those of further roots."""
    further = (domain for data in mesh.ca_certificates for domain in data.trust_domains)
    return frozenset((mesh.trust_domain, *mesh.trust_domain_aliases, *further))


def build_authenticator(
    mesh: Callable[[], MeshConfig], revocations: Revocations, *verifiers: TokenVerifier | None
) -> FirstAuthenticator:
    """Certificates first, then tokens, by each verifier that there is."""
    methods: list[Authenticator] = [CertificateAuthenticator(lambda: trusted_domains(mesh()), revocations)]
    methods += [
        TokenAuthenticator(verifier, lambda: mesh().trust_domain) for verifier in verifiers if verifier is not None
    ]
    return FirstAuthenticator(methods)


def load_issuer(config: settings.Settings, clock: Callable[[], float]) -> issuers.IssuerTokenVerifier | None:
    """A verifier of the tokens that `JWT_RULE` trusts; None without a rule. Raises AuthorityError for a bad one."""
    if not config.authority.jwt_rule:
        return None
    rule = issuers.parse_rule(config.authority.jwt_rule)
    keys: issuers.KeySource = (
        issuers.KnownKeys(issuers.decode_key_set(rule.jwks))
        if rule.jwks
        else FetchedKeys(rule.key_set_uri, config.key_sets)
    )
    return issuers.IssuerTokenVerifier(rule, keys, clock, config.authority.audiences)


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
                certificates=credentials.certificates,
                peer=credentials.address,
            )
        )
        parsed = (parse_spiffe(uri) for uri in caller.identities)
        found = tuple(identity for identity in parsed if identity is not None)
        if not found:
            raise AuthorityError("the credentials name no workload")
        return found
