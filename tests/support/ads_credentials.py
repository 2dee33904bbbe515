"""An authority and everybody's credentials, for discovery servers on TLS ports."""

import time

import grpc
from certificate_requests import make_request
from cryptography.hazmat.primitives.asymmetric import ec

from mizzen.ca import certificates, tokens
from mizzen.ca.authority import Authority, start_self_signed
from mizzen.ca.identity import CertificateAuthenticator, FirstAuthenticator, TokenAuthenticator
from mizzen.ca.revocations import Revocations
from mizzen.ca.serving import ServingCertificate
from mizzen.control.callers import StreamAuthenticator
from mizzen.model.spiffe import Identity, format_spiffe
from mizzen.settings import Authority as AuthoritySettings

DOMAIN = "cluster.local"
HOST = "istiod.istio-system.svc"


class Mesh:
    """One trust domain: its authority, its token issuer, and who believes them."""

    def __init__(self) -> None:
        config = AuthoritySettings()
        self.authority = Authority(
            start_self_signed(DOMAIN, config, time.time()), config, time.time, self_signed_for=DOMAIN, fresh=True
        )
        self.serving = ServingCertificate(self.authority, (HOST,), time.time)
        key = tokens.generate_key()
        self._issuer = tokens.TokenIssuer(key, time.time)
        verifier = tokens.KeyTokenVerifier((key.public_key(),), time.time)
        self.authenticator = StreamAuthenticator(
            FirstAuthenticator(
                (
                    CertificateAuthenticator(lambda: frozenset({DOMAIN}), Revocations(enabled=True)),
                    TokenAuthenticator(verifier, lambda: DOMAIN),
                )
            )
        )

    def token(self, namespace: str, service_account: str, lifetime: float = 3600) -> str:
        """A service account's token."""
        return self._issuer.issue(tokens.ServiceAccount(namespace=namespace, name=service_account), lifetime=lifetime)

    def channel_credentials(
        self, namespace: str = "", service_account: str = "", roots: bytes = b""
    ) -> grpc.ChannelCredentials:
        """What a client needs for TLS; with a service account it shows that account's certificate.

        `roots` are what it expects the server's certificate to come from, if not from this mesh.
        """
        if not namespace:
            return grpc.ssl_channel_credentials(self.authority.bundle)
        key = ec.generate_private_key(ec.SECP256R1())
        name = format_spiffe(Identity(DOMAIN, namespace, service_account))
        *chain, bundle = self.authority.issue(make_request(key), (name,))
        return grpc.ssl_channel_credentials(
            roots or bundle.encode(), certificates.encode_key(key), "".join(chain).encode()
        )
