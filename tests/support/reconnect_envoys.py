"""Real Envoys of one node, each in a network of its own, behind a connection that can be cut.

In: a proxy's spec and a server, either reached from Envoy itself or by a real `mizzen agent`. Out: Envoys that tell their
configuration, in a form in which it can be compared, and what requests through them meet. Applications answer in each
network, under any address of 10.7.0.0/24, with the address that was reached.
"""

import asyncio
import contextlib
import json
import os
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import golden
import reconnect_mesh
from reconnect_cuts import Cut, Handlers, close, listening

from mizzen.agent.binaries import find_envoy
from mizzen.agent.bootstrap import document, node
from mizzen.agent.bootstrap.proxy_config import parse_proxy_config
from mizzen.local.net import namespaces

_ADMIN = 15000
_PLACES = {
    "clusters": ("ClustersConfigDump", "dynamic_active_clusters", "cluster", "name"),
    "endpoints": ("EndpointsConfigDump", "dynamic_endpoint_configs", "endpoint_config", "cluster_name"),
    "listeners": ("ListenersConfigDump", "dynamic_listeners", "active_state", "name"),
    "routes": ("RoutesConfigDump", "dynamic_route_configs", "route_config", "name"),
    "secrets": ("SecretsConfigDump", "dynamic_active_secrets", "secret", "name"),
}
_OWN = "default"
"""The secret that each agent has for itself."""
_UNFINISHED = ("dynamic_warming_clusters", "dynamic_warming_secrets")

_PREPARING = (
    "ip link set lo up",
    "ip route add local 10.7.0.0/24 dev lo",
    "ip route add local 10.8.0.0/24 dev lo",
    "iptables -t nat -A OUTPUT -p tcp -d 10.8.0.0/24 --dport 80 -j REDIRECT --to-ports 15001",
)
"""Applications are at addresses of the first range; requests to Services, in the second, go to a sidecar's Envoy."""

Held = Mapping[str, Mapping[str, Any]]
"""Kind → name → resource."""


class Secure(NamedTuple):
    """What an agent needs to know of a control plane."""

    name: str
    """In its certificate."""
    roots: bytes
    token: Callable[[str, str], str]
    """Of a namespace's service account."""


class Answer(NamedTuple):
    """What a request met."""

    status: int
    headers: Mapping[str, str]
    body: str


class Network:
    """A network of its own."""

    def __init__(self) -> None:
        self.descriptor = namespaces.create()
        with namespaces.inside(self.descriptor):
            for command in _PREPARING:
                subprocess.run(command.split(), check=True)

    @property
    def entering(self) -> tuple[str, ...]:
        """What a command begins with that runs in it, and ends with this process."""
        return ("setpriv", "--pdeathsig", "KILL", "nsenter", f"--net=/proc/{os.getpid()}/fd/{self.descriptor}")

    async def connect(self, port: int, **tls: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        opened = namespaces.open_socket(self.descriptor)
        try:
            await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", port))
        except OSError:
            opened.close()
            raise
        return await asyncio.open_connection(sock=opened, **tls)

    async def get(
        self, port: int, path: str, host: str = "localhost", address: str = "127.0.0.1", patience: float = 5.0
    ) -> Answer:
        """A request on a connection of its own; status 0 where nobody answers within so many seconds."""
        connector = aiohttp.TCPConnector(socket_factory=lambda _: namespaces.open_socket(self.descriptor))
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(patience)) as session,
                session.get(f"http://{address}:{port}{path}", headers={"host": host}) as answer,
            ):
                return Answer(answer.status, answer.headers, await answer.text())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return Answer(0, {}, str(error))

    async def certificate(self, name: str) -> str:
        """What a server shows for that name, as PEM; empty where it ends the handshake."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            _, writer = await self.connect(reconnect_mesh.HTTPS, ssl=context, server_hostname=name)
        except OSError:
            return ""
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        await close(writer)
        return ssl.DER_cert_to_PEM_cert(shown)

    @contextlib.asynccontextmanager
    async def applications(self) -> AsyncIterator[None]:
        """Answer until the block ends."""
        opened = namespaces.open_socket(self.descriptor)
        opened.bind(("0.0.0.0", reconnect_mesh.APP))
        handlers = Handlers(_answer)
        server = await asyncio.start_server(handlers.serve, sock=opened)
        try:
            yield
        finally:
            server.close()
            await handlers.end()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    body = writer.get_extra_info("sockname")[0].encode()
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()


class Envoy:
    """One of them."""

    def __init__(self, name: str, network: Network, cut: Cut, log: Path) -> None:
        self.name, self.network, self.cut = name, network, cut
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    async def held(self) -> Held:
        """What it has at work; empty while it does not tell, or something is on its way."""
        answer = await self.network.get(_ADMIN, "/config_dump?include_eds")
        if answer.status != 200:
            return {}
        dumps = {dump["@type"].rpartition(".")[2]: dump for dump in json.loads(answer.body)["configs"]}
        listeners = dumps.get("ListenersConfigDump", {}).get("dynamic_listeners", [])
        if any(dump.get(field) for dump in dumps.values() for field in _UNFINISHED) or any(
            "warming_state" in one for one in listeners
        ):
            return {}
        held = {kind: dict(sorted(_find(dumps, *place))) for kind, place in _PLACES.items()}
        held["secrets"].pop(_OWN, None)
        return held

    async def counters(self, pattern: str) -> dict[str, int]:
        """Its statistics whose names match."""
        answer = await self.network.get(_ADMIN, f"/stats?filter={pattern}")
        pairs = (line.rpartition(": ") for line in answer.body.splitlines())
        return {name: int(value) for name, _, value in pairs if value.isdecimal()}


def _find(dumps: Mapping[str, Any], dump: str, field: str, inner: str, key: str) -> list[tuple[str, Any]]:
    found = []
    for entry in dumps.get(dump, {}).get(field, ()):
        if inner not in entry:
            continue
        resource = entry[inner].get("listener", entry[inner])
        found.append((resource[key], resource))
    return found


@contextlib.asynccontextmanager
async def direct(folder: Path, spec: Mapping[str, Any], cut: Cut, sds_socket: Path) -> AsyncIterator[Envoy]:
    """An Envoy that reaches the server itself."""
    identity = golden.node_of(dict(spec))
    bootstrap = document.build_bootstrap(
        identity, parse_proxy_config(), document.Facts(xds_socket=str(folder / "xds"), sds_socket=str(sds_socket))
    )
    (folder / "bootstrap.json").write_text(json.dumps(bootstrap))
    network = Network()
    pod = node.Pod(name=spec["name"], namespace=spec["namespace"], domain="", addresses=())
    command = (
        *network.entering,
        *(str(find_envoy("", "")), "-c", str(folder / "bootstrap.json"), "--concurrency", "1"),
        *("--disable-hot-restart", "--drain-time-s", "1", "-l", "warning"),
    )
    environ = {"PATH": os.environ["PATH"], **node.build_identity_variables(pod, identity["metadata"])}
    async with listening(folder / "xds", cut), network.applications(), _process(command, folder, environ):
        yield Envoy(folder.name, network, cut, folder / "log")


@contextlib.asynccontextmanager
async def behind_agent(
    folder: Path, spec: Mapping[str, Any], cut: Cut, authority: Cut, secure: Secure
) -> AsyncIterator[Envoy]:
    """An Envoy whose agent reaches the server; the way to its authority is another one."""
    network = Network()
    for name, content in {
        "var/run/secrets/tokens/istio-token": secure.token(spec["namespace"], "default").encode(),
        "var/run/secrets/istio/root-cert.pem": secure.roots,
        "etc/istio/pod/labels": "".join(f'{name}="{value}"\n' for name, value in spec["labels"].items()).encode(),
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    config = {
        "discoveryAddress": f"unix://{folder}/xds",
        "binaryPath": str(find_envoy("", "")),
        "concurrency": 1,
        "drainDuration": "1s",
        "terminationDrainDuration": "0s",
    }
    environ = {
        "PATH": os.environ["PATH"],
        "POD_NAME": spec["name"],
        "POD_NAMESPACE": spec["namespace"],
        "SERVICE_ACCOUNT": "default",
        "INSTANCE_IP": spec["ip"],
        "PROXY_CONFIG": json.dumps(config),
        "CA_ADDR": f"unix://{folder}/ca",
        "ISTIOD_SAN": secure.name,
    }
    command = (*network.entering, sys.executable, "-m", "mizzen", "agent", "proxy", spec["kind"])
    async with (
        listening(folder / "xds", cut),
        listening(folder / "ca", authority),
        network.applications(),
        _process(command, folder, environ),
    ):
        yield Envoy(folder.name, network, cut, folder / "log")


@contextlib.asynccontextmanager
async def _process(command: tuple[str, ...], folder: Path, environ: Mapping[str, str]) -> AsyncIterator[None]:
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log, env=environ, cwd=folder)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
