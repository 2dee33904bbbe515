"""The control plane's own certificate, renewed while it serves.

In: the authority, and the names under which clients know the control plane. Out: gRPC server credentials that take
the newest certificate and the newest bundle at every handshake, so that neither a renewal nor a rotation of the root
closes a port.
"""

from collections.abc import Callable, Sequence
from typing import Any

import grpc
from cryptography.hazmat.primitives.asymmetric import ec

from mizzen import observe
from mizzen.ca import certificates
from mizzen.ca.authority import Authority, State
from mizzen.errors import AuthorityError

LIFETIME = 24 * 3600.0
"""Seconds; renewed at half of it."""

_log = observe.scope("ca")


def control_plane_names(namespace: str, revision: str, custom_hosts: Sequence[str]) -> tuple[str, ...]:
    """The DNS names of the control plane, sorted, as in Istio."""
    names = {*custom_hosts, *(f"{name}.{namespace}.svc" for name in ("istiod", "istiod-remote", "istio-pilot"))}
    if revision and revision != "default":
        names.add(f"istiod-{revision}.{namespace}.svc")
    return tuple(sorted(names))


class ServingCertificate:
    """Holds key, chain and bundle of the servers; replaced as a whole, read by gRPC's own threads."""

    def __init__(self, authority: Authority, names: Sequence[str], clock: Callable[[], float]) -> None:
        self._authority = authority
        self._names = tuple(names)
        self._clock = clock
        self._renew_at = 0.0
        self._valid_from = 0.0
        self._key_pem = observe.Secret(b"")
        self._chain_pem = b""
        self._bundle = b""
        self._signer = authority.state.current
        self.renew()
        authority.on_change(self._follow)

    @property
    def chain_pem(self) -> bytes:
        """The chain in use, without roots."""
        return self._chain_pem

    @property
    def key_pem(self) -> observe.Secret:
        """The key in use."""
        return self._key_pem

    def renew_if_due(self) -> bool:
        """Renew when half of the life is over, or when a clock set back makes it one of the future; whether it was."""
        if self._valid_from <= self._clock() < self._renew_at:
            return False
        self.renew()
        return True

    def renew(self) -> None:
        """Take a new key and certificate from the authority's current signer."""
        key = ec.generate_private_key(ec.SECP256R1())
        chain = self._authority.issue_serving(key, self._names, LIFETIME)
        now = self._clock()
        self._valid_from = certificates.start_of(chain[0])
        self._renew_at = now + (certificates.expiry_of(chain[0]) - now) / 2
        self._key_pem = observe.Secret(certificates.encode_key(key))
        self._chain_pem = certificates.encode(*chain)
        self._bundle = self._authority.bundle

    def _follow(self, state: State) -> None:
        if state.current is self._signer and self._authority.bundle == self._bundle:
            return
        self._signer = state.current
        try:
            self.renew()
        except AuthorityError as error:
            _log.error("the control plane's certificate cannot be renewed: %s", error)

    def _configuration(self, mutual: bool) -> grpc.ServerCertificateConfiguration:
        pairs = [(self._key_pem.reveal(), self._chain_pem)]
        return grpc.ssl_server_certificate_configuration(pairs, self._bundle if mutual else None)

    def credentials(self, *, mutual: bool) -> grpc.ServerCredentials:
        """Server credentials; with `mutual` every client must show a certificate that leads to a trusted root."""
        used = self._chain_pem

        def newest() -> Any:
            """None means no change, which the stubs do not know."""
            nonlocal used
            if used == self._chain_pem:
                return None
            used = self._chain_pem
            return self._configuration(mutual)

        return grpc.dynamic_ssl_server_credentials(
            self._configuration(mutual), newest, require_client_authentication=mutual
        )
