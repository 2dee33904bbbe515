"""Asks a container whether it works, as the kubelet would: from outside the pod, by its address.

In: a probe of the injected pod, so an HTTP probe usually goes to the sidecar's agent, which asks the application in the
probe's stead. `check` makes one attempt; `Verdict` counts attempts into an answer by the probe's thresholds and knows
no clock. HTTP by hand, because a kubelet's request is one line and an answer's first line is all that counts.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from mizzen.api.kube.pods import Container, GRPCAction, HTTPGetAction, Probe
from mizzen.api.scalars import IntOrString

Execute = Callable[[tuple[str, ...]], Awaitable[int]]
"""Runs a command in the container and returns its exit code."""

_USER_AGENT = "kube-probe/1.30"
_STATUS_LINE_BYTES = 1024
_GRPC_SERVING = b"\x08\x01"
_OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1),)


class Verdict(msgspec.Struct, kw_only=True):
    """The state of one probe: None until a threshold is reached for the first time."""

    success_threshold: int = 1
    failure_threshold: int = 3
    passing: bool | None = None
    _successes: int = 0
    _failures: int = 0

    @classmethod
    def of(cls, probe: Probe) -> "Verdict":
        return cls(success_threshold=probe.success_threshold or 1, failure_threshold=probe.failure_threshold or 3)

    def record(self, success: bool) -> bool:
        """Counts one attempt; says whether the state has changed by it."""
        self._successes = self._successes + 1 if success else 0
        self._failures = 0 if success else self._failures + 1
        before = self.passing
        if self._successes >= self.success_threshold:
            self.passing = True
        elif self._failures >= self.failure_threshold:
            self.passing = False
        return self.passing is not before


def interval(probe: Probe) -> float:
    """Seconds between two attempts."""
    return float(probe.period_seconds or 10)


async def check(probe: Probe, container: Container, address: str, execute: Execute) -> bool:
    """One attempt; whatever goes wrong, or takes too long, is a failure."""
    try:
        async with asyncio.timeout(probe.timeout_seconds or 1):
            if probe.http_get:
                return await _http(probe.http_get, container, address)
            if probe.tcp_socket:
                host = probe.tcp_socket.host or address
                _, writer = await asyncio.open_connection(host, resolve_port(probe.tcp_socket.port, container))
                writer.close()
                return True
            if probe.exec:
                return await execute(probe.exec.command) == 0
            return await _grpc(probe.grpc, address) if probe.grpc else True
    except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return False


async def _http(action: HTTPGetAction, container: Container, address: str) -> bool:
    host, port = action.host or address, resolve_port(action.port, container)
    context: ssl.SSLContext | None = None
    if action.scheme.upper() == "HTTPS":
        # As the kubelet does: a probe asks whether it works, not who it is.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(host, port, ssl=context, limit=_STATUS_LINE_BYTES)
    try:
        headers = {"Host": f"{host}:{port}", "User-Agent": _USER_AGENT, "Accept": "*/*", "Connection": "close"}
        headers |= {header.name: header.value for header in action.http_headers}
        path = action.path if action.path.startswith("/") else f"/{action.path}"
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode())
        status = (await reader.readuntil(b"\r\n")).split()
        return status[0].startswith(b"HTTP/") and 200 <= int(status[1]) < 400
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _grpc(action: GRPCAction, address: str) -> bool:
    """One call of the health service, on a connection of its own; its two messages are small enough to be spelt out."""
    import grpc.aio

    name = action.service.encode()
    async with grpc.aio.insecure_channel(f"{address}:{action.port}", options=_OWN_CONNECTION) as channel:
        call: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            reply: bytes = await call(bytes((0x0A, len(name))) + name if name else b"")
        except grpc.aio.AioRpcError:
            return False
    return reply == _GRPC_SERVING


def resolve_port(port: IntOrString, container: Container) -> int:
    """A port by number, by its number in a string, or by its name in the container; ValueError if there is none."""
    if isinstance(port, int):
        return port
    for declared in container.ports:
        if declared.name == port:
            return declared.container_port
    return int(port)
