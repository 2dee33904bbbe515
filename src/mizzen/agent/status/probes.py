"""Probes of the application on the kubelet's behalf: the kubelet asks the agent, the agent asks the application.

In: the original probes, which the injector saved (`ISTIO_KUBE_APP_PROBERS`) by the path that replaced them. Out: the
status to answer with. Probes come from 127.0.0.6, which capture leaves alone, so they reach the application without
passing through Envoy and need no mutual TLS.
"""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import grpc
import grpc.aio
import msgspec

from mizzen import protos
from mizzen.errors import DecodeError

_SOURCES = {False: "127.0.0.6", True: "::6"}
_HEALTH = "/grpc.health.v1.Health/Check"
_SERVING = 1
_SENSELESS = (ValueError, OverflowError)
"""What hosts, ports and headers that are none are answered with, by whoever looks at them first."""
_DROPPED = frozenset({"accept-encoding", "connection", "host", "content-length"})


class Header(msgspec.Struct, frozen=True):
    """A header of an HTTP probe."""

    name: str
    value: str = ""


class HttpGet(msgspec.Struct, frozen=True, rename="camel"):
    """Any status from 200 to 399 is success."""

    port: int
    path: str = "/"
    host: str = ""
    scheme: str = "HTTP"
    http_headers: tuple[Header, ...] = ()


class TcpSocket(msgspec.Struct, frozen=True):
    """A connection is success."""

    port: int
    host: str = ""


class GrpcCheck(msgspec.Struct, frozen=True):
    """Success is what the standard health service calls SERVING."""

    port: int
    service: str | None = None


class Probe(msgspec.Struct, frozen=True, rename="camel"):
    """One original probe, of one kind."""

    http_get: HttpGet | None = None
    tcp_socket: TcpSocket | None = None
    grpc: GrpcCheck | None = None
    timeout_seconds: float = 1.0


def parse_probes(text: str) -> dict[str, Probe]:
    """The original probes by path; `text` is the injector's JSON."""
    if not text:
        return {}
    try:
        return msgspec.convert(json.loads(text), dict[str, Probe], strict=False)
    except (ValueError, msgspec.ValidationError) as bad:
        raise DecodeError(str(bad), "ISTIO_KUBE_APP_PROBERS") from bad


class Prober:
    """Probes the application at the pod's address."""

    def __init__(self, probes: Mapping[str, Probe], *, address: str) -> None:
        self._probes = probes
        self._address = address
        self._source = None if address in ("127.0.0.1", "::1") else (_SOURCES[":" in address], 0)

    async def check(self, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
        """The status and text for the kubelet; 404 for a path that replaced no probe."""
        probe = self._probes.get(path)
        if probe is None:
            return 404, "no probe of this name"
        try:
            async with asyncio.timeout(probe.timeout_seconds or 1.0):
                return await self._run(probe, headers)
        except (OSError, TimeoutError, aiohttp.ClientError, grpc.aio.AioRpcError, *_SENSELESS) as failed:
            return 503, f"probe failed: {str(failed) or type(failed).__name__}"

    async def _run(self, probe: Probe, headers: Mapping[str, str]) -> tuple[int, str]:
        if probe.http_get is not None:
            return await self._get(probe.http_get, headers)
        if probe.tcp_socket is not None:
            _, writer = await asyncio.open_connection(
                probe.tcp_socket.host or self._address, probe.tcp_socket.port, local_addr=self._source
            )
            writer.close()
            return 200, "connected"
        if probe.grpc is not None:
            return await self._check_health(probe.grpc)
        return 404, "a probe of no kind that can be asked from outside"

    async def _get(self, probe: HttpGet, headers: Mapping[str, str]) -> tuple[int, str]:
        """The application's status as it is. A redirect is not followed: it is the application's answer."""
        host = probe.host or self._address
        authority = f"[{host}]:{probe.port}" if ":" in host else f"{host}:{probe.port}"
        url = f"{probe.scheme.lower()}://{authority}/{probe.path.lstrip('/')}"
        sent = {name: value for name, value in headers.items() if name.lower() not in _DROPPED}
        sent |= {header.name: header.value for header in probe.http_headers}
        connector = aiohttp.TCPConnector(ssl=_unverified(), local_addr=self._source, force_close=True)
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.get(url, headers=sent, allow_redirects=False) as response,
        ):
            return response.status, "" if response.status < 400 else response.reason or ""

    async def _check_health(self, probe: GrpcCheck) -> tuple[int, str]:
        # The health service's messages hold one field each, and encode like the well-known wrappers of those fields.
        request = protos.package("google.protobuf").StringValue(value=probe.service or "")
        async with (
            _tunnel(self._address, probe.port, self._source) as target,
            grpc.aio.insecure_channel(target) as channel,
        ):
            method: Any = channel.unary_unary(_HEALTH)
            answer = await method(protos.encode(request), timeout=None)
        status = protos.package("google.protobuf").Int32Value.FromString(answer).value
        return (200, "serving") if status == _SERVING else (503, f"health status {status}")


def _unverified() -> ssl.SSLContext:
    """Probes do not verify certificates, as the kubelet's do not."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@contextlib.asynccontextmanager
async def _tunnel(host: str, port: int, source: tuple[str, int] | None) -> AsyncIterator[str]:
    """A loopback port whose connections go on to `host:port` from the address `source`, which gRPC cannot choose."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            onward_reader, onward_writer = await asyncio.open_connection(host, port, local_addr=source)
        except OSError:
            writer.close()
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_copy(reader, onward_writer))
            tasks.create_task(_copy(onward_reader, writer))

    async with await asyncio.start_server(carry, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
