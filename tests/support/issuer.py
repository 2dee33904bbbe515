"""A token issuer on a loopback port: a real HTTP server whose documents a test changes as it goes."""

import asyncio
import contextlib
import datetime
import ipaddress
import json
import pathlib
import ssl
import time
from collections.abc import AsyncIterator

from aiohttp import web
from claims import own_port
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from key_set_cases import RSA


def key_set(name: str) -> str:
    """A key set that is told from others by its key's id."""
    return json.dumps({"keys": [{**RSA, "kid": name}]})


class Issuer:
    """Answers by path; a path that is not known answers 404."""

    def __init__(self) -> None:
        self.documents: dict[str, str | bytes] = {}
        self.redirects: dict[str, str] = {}
        self.headers: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        self.asked_at: list[float] = []
        """By the clock that only goes on."""
        self.hang = False
        """Whether answers trickle and never end."""
        self.port = own_port()
        """Its own also while it is away."""
        self.scheme = "http"

    def url(self, path: str = "/jwks") -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        self.asked_at.append(time.monotonic())
        if self.hang:
            return await self._trickle(request)
        if request.path in self.redirects:
            return web.Response(status=302, headers={"Location": self.redirects[request.path]})
        body = self.documents.get(request.path)
        if body is None:
            return web.Response(status=404)
        body = body.encode() if isinstance(body, str) else body
        return web.Response(body=body, headers=self.headers.get(request.path, {}))

    async def _trickle(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while self.hang:
                await response.write(b" ")
                await asyncio.sleep(0.02)
        return response

    @contextlib.asynccontextmanager
    async def running(self, context: ssl.SSLContext | None = None) -> AsyncIterator["Issuer"]:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port, ssl_context=context)
        await site.start()
        self.scheme = "https" if context is not None else "http"
        try:
            yield self
        finally:
            self.hang = False
            await runner.cleanup()


def make_server_context(folder: pathlib.Path) -> tuple[ssl.SSLContext, pathlib.Path]:
    """A TLS server for 127.0.0.1 that signed its own certificate, and the file of that certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain, private = folder / "issuer.pem", folder / "issuer.key"
    chain.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, private)
    return context, chain
