"""TLS of the webhooks: the control plane's certificate, taken anew at every handshake.

In: the `ServingCertificate` that the gRPC servers show, too. Out: a context for a listening port. Neither a renewal nor
a rotation of the root closes the port or a connection.
"""

import ssl

from mizzen.ca.serving import ServingCertificate
from mizzen.sources.kube.access import load_pair


def make_context(certificate: ServingCertificate) -> ssl.SSLContext:
    """A context that hands each new connection over to one with the newest certificate."""
    newest = _Newest(certificate)
    context = newest.take()
    context.sni_callback = newest.choose
    return context


class _Newest:
    """The context of the certificate that is in use."""

    def __init__(self, certificate: ServingCertificate) -> None:
        self._certificate = certificate
        self._chain = b""
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def take(self) -> ssl.SSLContext:
        """The context, made again if the certificate is another one than before."""
        if self._certificate.chain_pem != self._chain:
            chain, key = self._certificate.chain_pem, self._certificate.key_pem.reveal()
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            load_pair(context, chain, key)
            self._context, self._chain = context, chain
        return self._context

    def choose(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        """OpenSSL calls this in every handshake, whether the client names a server or not."""
        del name
        connection.context = self.take()
