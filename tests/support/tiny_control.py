"""A small control plane for tests of the agent: real gRPC over TLS, real certificates, resources set by hand.

Serves `IstioCertificateService/CreateCertificate` and delta ADS on one port, as port 15012 does. It may be stopped and
started again on the same port. What it was asked is kept for assertions.
"""

import asyncio
import datetime
import ipaddress

import grpc
import grpc.aio
from claims import own_port
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mizzen import protos, transport

ADS = "envoy.service.discovery.v3.AggregatedDiscoveryService"
CA = "istio.v1.auth.IstioCertificateService"
TOKEN = "token-of-a-pod"
SERVER_NAME = "istiod.istio-system.svc"

_discovery = protos.package("envoy.service.discovery.v3")
_auth = protos.package("istio.v1.auth")
_WILDCARD = (
    "envoy.config.cluster.v3.Cluster",
    "envoy.config.listener.v3.Listener",
    "istio.networking.nds.v1.NameTable",
    "istio.mesh.v1alpha1.ProxyConfig",
)


def pem(thing) -> bytes:
    """A certificate or a key as PEM."""
    if isinstance(thing, x509.Certificate):
        return thing.public_bytes(serialization.Encoding.PEM)
    return thing.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


class Root:
    """A self-signed root and what it signs."""

    def __init__(self, name: str = "root") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, name)])
        self.certificate = self._build(self._name, self.key.public_key(), 3600, authority=True)

    @property
    def pem(self) -> bytes:
        return pem(self.certificate)

    def issue(self, public_key, names: list[x509.GeneralName], seconds: float) -> x509.Certificate:
        """A leaf for these names that lives so long from now."""
        return self._build(x509.Name([]), public_key, seconds, names=names)

    def _build(self, subject, public_key, seconds, *, names=None, authority=False) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(seconds=60))
            .not_valid_after(now + datetime.timedelta(seconds=seconds))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=True)
        return builder.sign(self.key, hashes.SHA256())


class TinyControl:
    """The control plane; `set` and `remove` push at once."""

    def __init__(self, root: Root | None = None) -> None:
        self.root = root or Root()
        self.roots_in_answer = [self.root]
        self.life = 3600.0
        self.port = own_port()
        """Its own also while it is away."""
        self.resources: dict[str, dict[str, object]] = {}
        self.requests: list[object] = []
        self.tokens: list[str] = []
        self.issued: list[x509.Certificate] = []
        self.refuse_streams = False
        self.refused = 0
        """Streams that were refused so."""
        self.silent = False
        self._changed = asyncio.Condition()
        self._server: grpc.aio.Server | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Listen, always on the same port."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [
            x509.DNSName(SERVER_NAME),
            x509.DNSName("localhost"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        ]
        certificate = self.root.issue(key.public_key(), names, 3600)
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers(
            [
                grpc.method_handlers_generic_handler(
                    CA, {"CreateCertificate": grpc.unary_unary_rpc_method_handler(self._create_certificate)}
                ),
                grpc.method_handlers_generic_handler(ADS, {"DeltaAggregatedResources": transport.method(self._stream)}),
            ]
        )
        credentials = grpc.ssl_server_credentials([(pem(key), pem(certificate))])
        self._server.add_secure_port(self.address, credentials)
        await self._server.start()

    async def stop(self) -> None:
        """Go away without a word."""
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def set(self, message, name: str | None = None) -> None:
        """Add or replace a resource; its name is the message's own unless given."""
        known = self.resources.setdefault(protos.type_url(message), {})
        known[name or getattr(message, "name", "") or message.cluster_name] = message
        await self._announce()

    async def remove(self, type_name: str, name: str) -> None:
        del self.resources[protos.TYPE_PREFIX + type_name][name]
        await self._announce()

    async def _announce(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def requests_of(self, type_name: str) -> list[object]:
        return [request for request in self.requests if request.type_url == protos.TYPE_PREFIX + type_name]

    async def _create_certificate(self, data: bytes, context) -> bytes:
        self.tokens.append(dict(context.invocation_metadata()).get("authorization", ""))
        if self.tokens[-1] != f"Bearer {TOKEN}":
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "request authenticate failure")
        request = _auth.IstioCertificateRequest.FromString(data)
        signing = x509.load_pem_x509_csr(request.csr.encode())
        names = signing.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        life = min(self.life, request.validity_duration)
        leaf = self.root.issue(signing.public_key(), list(names), life)
        self.issued.append(leaf)
        roots = b"".join(root.pem for root in self.roots_in_answer)
        return protos.encode(_auth.IstioCertificateResponse(cert_chain=[pem(leaf).decode(), roots.decode()]))

    async def _stream(self, client: transport.Transport) -> None:
        if self.refuse_streams:
            self.refused += 1
            await client.abort(grpc.StatusCode.UNAVAILABLE, "not ready")
        if dict(client.context.invocation_metadata()).get("authorization", "") != f"Bearer {TOKEN}":
            await client.abort(grpc.StatusCode.UNAUTHENTICATED, "no token")
        stream = _Stream(self)
        async with asyncio.TaskGroup() as tasks:
            sender = tasks.create_task(self._send(stream, client))
            while (data := await client.read()) is not None:
                request = _discovery.DeltaDiscoveryRequest.FromString(data)
                self.requests.append(request)
                stream.receive(request)
                await self._announce()
            sender.cancel()

    async def _send(self, stream: "_Stream", client: transport.Transport) -> None:
        while True:
            async with self._changed:
                await self._changed.wait_for(stream.is_behind)
            for response in stream.responses():
                await client.write(response)


class _Stream:
    """What one stream asked for and has."""

    def __init__(self, control: TinyControl) -> None:
        self._control = control
        self._names: dict[str, set[str] | None] = {}
        self._have: dict[str, dict[str, str]] = {}
        self._owed: set[str] = set()
        self._nonce = 0

    def receive(self, request) -> None:
        url = request.type_url
        if url not in self._names:
            wildcard = url.removeprefix(protos.TYPE_PREFIX) in _WILDCARD
            self._names[url] = None if wildcard else set()
            self._have[url] = dict(request.initial_resource_versions)
            if not request.initial_resource_versions:
                self._owed.add(url)
        names = self._names[url]
        if names is not None:
            names |= set(request.resource_names_subscribe)
            names -= set(request.resource_names_unsubscribe)

    def is_behind(self) -> bool:
        return not self._control.silent and any(True for _ in self._differences())

    def _differences(self):
        for url, names in self._names.items():
            known = self._control.resources.get(url, {})
            wanted = known if names is None else {name: known[name] for name in names if name in known}
            versions = {name: _version(message) for name, message in wanted.items()}
            have = self._have[url]
            changed = [name for name in versions if have.get(name) != versions[name]]
            gone = [name for name in have if name not in versions]
            if changed or gone or url in self._owed:
                yield url, changed, gone, versions

    def responses(self):
        for url, changed, gone, versions in list(self._differences()):
            self._owed.discard(url)
            self._nonce += 1
            response = _discovery.DeltaDiscoveryResponse(type_url=url, nonce=str(self._nonce), removed_resources=gone)
            for name in changed:
                message = self._control.resources[url][name]
                response.resources.add(name=name, version=versions[name], resource=protos.pack(message))
            self._have[url] = versions
            yield protos.encode(response)


def _version(message) -> str:
    return str(hash(protos.encode(message)) & 0xFFFFFFFF)
