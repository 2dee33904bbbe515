"""Secrets for Envoy: the SDS server on a Unix socket.

In: secrets by name from `certificates` (`default`, `ROOTCA`), and files for the names `file-cert:CHAIN~KEY`,
`file-root:CA` and `file-root:system`. Out: one response for each change on every stream that asks for the name, in the
state of the world (`StreamSecrets`, which Envoy uses) and as differences (`DeltaSecrets`). A name whose secret is not
there yet is answered when it comes. Who may connect is decided by the socket: its owner is Envoy's user.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mizzen import observe, protos
from mizzen.agent import files, sockets
from mizzen.agent.control_plane import SYSTEM_ROOTS
from mizzen.agent.identity import keys
from mizzen.agent.metrics import FILE_SECRET_FAILURES
from mizzen.transport import Serve, Transport

SECRET = protos.TYPE_PREFIX + "envoy.extensions.transport_sockets.tls.v3.Secret"
SERVICE = "envoy.service.secret.v3.SecretDiscoveryService"

_discovery = protos.package("envoy.service.discovery.v3")
_tls = protos.package("envoy.extensions.transport_sockets.tls.v3")
_log = observe.scope("sds")


def build_certificate(name: str, chain_pem: bytes, key_pem: observe.Secret) -> Any:
    """The secret that proves this side: a chain and its key."""
    certificate = {
        "certificate_chain": {"inline_bytes": chain_pem},
        "private_key": {"inline_bytes": key_pem.reveal()},
    }
    return _tls.Secret(name=name, tls_certificate=certificate)


def build_roots(name: str, roots_pem: bytes, revocations_pem: bytes = b"") -> Any:
    """The secret that proves the other side: the roots to trust, and the revocation lists of who is not."""
    context: dict[str, Any] = {"trusted_ca": {"inline_bytes": roots_pem}}
    if revocations_pem:
        context["crl"] = {"inline_bytes": revocations_pem}
    return _tls.Secret(name=name, validation_context=context)


class Secrets:
    """The secrets by name, each encoded once, and whoever waits for a change of one."""

    def __init__(self) -> None:
        self._encoded: dict[str, tuple[str, bytes]] = {}
        self._wakers: set[Callable[[], None]] = set()

    def put(self, secret: Any) -> None:
        """Take the place of the secret of that name; waiting streams send it."""
        data = protos.encode(protos.pack(secret))
        version = hashlib.blake2b(data, digest_size=8).hexdigest()
        if self._encoded.get(secret.name, ("",))[0] == version:
            return
        self._encoded[secret.name] = (version, data)
        for wake in tuple(self._wakers):
            wake()

    def get(self, name: str) -> tuple[str, bytes] | None:
        """Version and encoded Any of the secret, if it is there."""
        return self._encoded.get(name)

    def on_change(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after every change, until the returned function is called."""
        self._wakers.add(wake)
        return lambda: self._wakers.discard(wake)


class Stream:
    """One SDS stream as a state machine: requests in, the next response out, no input or output of its own."""

    def __init__(self, secrets: Secrets, *, delta: bool) -> None:
        self.names: set[str] = set()
        self._secrets = secrets
        self._delta = delta
        self._sent: dict[str, str] = {}
        self._nonce = 0

    def receive(self, data: bytes) -> None:
        """Take up a request: names asked for, and whether the last response was refused.

        A refused secret is not sent again until it changes; Envoy keeps the one before.
        """
        if self._delta:
            request = _discovery.DeltaDiscoveryRequest.FromString(data)
            self._sent |= dict(request.initial_resource_versions)
            self.names |= set(request.resource_names_subscribe)
            for name in request.resource_names_subscribe:
                if request.response_nonce or name not in request.initial_resource_versions:
                    self._sent.pop(name, None)
            self._forget(request.resource_names_unsubscribe)
        else:
            request = _discovery.DiscoveryRequest.FromString(data)
            self._forget(self.names - set(request.resource_names))
            self.names = set(request.resource_names)
        if request.HasField("error_detail"):
            _log.warning("Envoy refused a secret: %s", request.error_detail.message)

    def _forget(self, names: Iterable[str]) -> None:
        for name in tuple(names):
            self.names.discard(name)
            self._sent.pop(name, None)

    def next_response(self) -> bytes | None:
        """What has changed since the last response, encoded; None when Envoy has it all."""
        changed = {}
        for name in sorted(self.names):
            found = self._secrets.get(name)
            if found is not None and self._sent.get(name) != found[0]:
                changed[name] = found
        if not changed:
            return None
        self._sent |= {name: version for name, (version, _) in changed.items()}
        self._nonce += 1
        return self._encode_delta(changed) if self._delta else self._encode_state()

    def _encode_delta(self, changed: dict[str, tuple[str, bytes]]) -> bytes:
        response = _discovery.DeltaDiscoveryResponse(type_url=SECRET, nonce=str(self._nonce))
        for name, (version, data) in changed.items():
            resource = response.resources.add(name=name, version=version)
            resource.resource.ParseFromString(data)
        return protos.encode(response)

    def _encode_state(self) -> bytes:
        """The state of the world: every secret that the stream asked for and that is there."""
        response = _discovery.DiscoveryResponse(type_url=SECRET, nonce=str(self._nonce))
        versions = []
        for name in sorted(self.names):
            found = self._secrets.get(name)
            if found is not None:
                versions.append(found[0])
                response.resources.add().ParseFromString(found[1])
        response.version_info = "-".join(versions)
        return protos.encode(response)


class Server:
    """The gRPC service; also follows the files that names of `file-` ask for."""

    def __init__(self, secrets: Secrets, *, file_interval: float = 1.0) -> None:
        self._secrets = secrets
        self._file_interval = file_interval
        self._followed: set[str] = set()
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self, path: Path, *, uid: int | None, ready: asyncio.Event) -> None:
        """Serve on the socket `path`, which only the user `uid` may use, until cancelled."""
        methods: dict[str, Serve] = {"StreamSecrets": self._state_of_the_world, "DeltaSecrets": self._differences}
        async with sockets.serve_grpc(SERVICE, methods, path, uid), asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            ready.set()
            try:
                await asyncio.Event().wait()
            finally:
                # Streams that are still open may ask for more while the group already ends.
                self._tasks = None

    async def _state_of_the_world(self, transport: Transport) -> None:
        await self._serve(transport, Stream(self._secrets, delta=False))

    async def _differences(self, transport: Transport) -> None:
        await self._serve(transport, Stream(self._secrets, delta=True))

    async def _serve(self, transport: Transport, stream: Stream) -> None:
        wake = asyncio.Event()
        stop = self._secrets.on_change(wake.set)
        try:
            async with asyncio.TaskGroup() as tasks:
                sender = tasks.create_task(self._send(stream, wake, transport))
                while (data := await transport.read()) is not None:
                    stream.receive(data)
                    self._follow_files(stream.names)
                    wake.set()
                sender.cancel()
        finally:
            stop()

    @staticmethod
    async def _send(stream: Stream, wake: asyncio.Event, transport: Transport) -> None:
        while True:
            await wake.wait()
            wake.clear()
            response = stream.next_response()
            if response is not None:
                await transport.write(response)

    def _follow_files(self, names: Iterable[str]) -> None:
        for name in names:
            paths = parse_file_name(name)
            if paths is not None and name not in self._followed and self._tasks is not None:
                self._followed.add(name)
                self._tasks.create_task(self._follow(name, paths), name=f"sds {name}")

    async def _follow(self, name: str, paths: tuple[Path, ...]) -> None:
        """Keep the secret `name` as its files are, for as long as the agent lives."""
        async for content in files.watch_files(paths, interval=self._file_interval):
            secret = _build_from_files(name, [content[path] for path in paths])
            if secret is None:
                FILE_SECRET_FAILURES.inc()
                _log.warning("no usable PEM for %s", name)
            else:
                self._secrets.put(secret)


def parse_file_name(name: str) -> tuple[Path, ...] | None:
    """The files that a secret's name stands for; None for a name that is no file's."""
    if name.startswith("file-cert:"):
        chain, separator, key = name.removeprefix("file-cert:").partition("~")
        return (Path(chain), Path(key)) if separator and chain and key else None
    if name == "file-root:system":
        return next(((path,) for path in SYSTEM_ROOTS if path.exists()), None)
    if name.startswith("file-root:"):
        return (Path(name.removeprefix("file-root:")),)
    return None


def _build_from_files(name: str, contents: list[bytes | None]) -> Any | None:
    """The secret in the files, where they hold certificates at all; nothing else is ever passed on."""
    if any(not content for content in contents) or not keys.parse_certificates(contents[0] or b""):
        return None
    if len(contents) == 2:
        return build_certificate(name, contents[0] or b"", observe.Secret(contents[1] or b""))
    return build_roots(name, contents[0] or b"")
