"""Ports of the host that lead into the mesh: gateways, the control plane, and the admin interfaces of sidecars.

In: what the manifests publish (Services of type LoadBalancer, node ports, wishes of the user). Out: listening sockets
of the host, obtained through the broker, with a forwarder behind each; and one Unix socket a sidecar, over which the
command line asks its Envoy. A port that the user asked for must be had; any other moves on to a free one and is told.
"""

import contextlib
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from mizzen.api.kube.services import Service, ServicePort
from mizzen.api.meta import Key
from mizzen.errors import LocalError
from mizzen.local import runtime
from mizzen.local.addresses import service_key
from mizzen.local.net import namespaces
from mizzen.local.net.broker import Client
from mizzen.local.net.forward import Forwarder, dial_tcp
from mizzen.local.options import PortRequest

HOST = "127.0.0.1"
_UNPRIVILEGED = 1024
_SHIFT = 8000
"""80 becomes 8080 and 443 becomes 8443."""

Address = tuple[str, int]


class Wish(msgspec.Struct, frozen=True, order=True):
    """A port of a Service that the host shall reach, on the first of these ports that is free."""

    service: Key
    port: int
    port_name: str
    ports: tuple[int, ...]
    required: bool = False


def select_wishes(services: Iterable[Service], requests: Iterable[PortRequest]) -> tuple[Wish, ...]:
    """All that is to be published: what a cluster would publish, and what the user asks for beside or instead."""
    wishes: dict[tuple[Key, int], Wish] = {}
    known = sorted(services, key=service_key)
    for service in known:
        for port in service.spec.ports:
            if service.spec.type in ("LoadBalancer", "NodePort") and port.protocol == "TCP":
                key = service_key(service)
                wishes[key, port.port] = Wish(key, port.port, port.name, _candidates(service, port))
    for request in requests:
        if found := _find(known, request):
            key, port = found
            wishes[key, port.port] = Wish(key, port.port, port.name, (request.host_port,), required=True)
    return tuple(sorted(wishes.values()))


def _candidates(service: Service, port: ServicePort) -> tuple[int, ...]:
    if service.spec.type == "NodePort" and port.node_port:
        return port.node_port, 0
    first = port.port if port.port >= _UNPRIVILEGED else port.port + _SHIFT
    return first, 0


def _find(services: Iterable[Service], request: PortRequest) -> tuple[Key, ServicePort] | None:
    for service in services:
        key = service_key(service)
        if key.name != request.service or request.namespace not in ("", key.namespace):
            continue
        for port in service.spec.ports:
            if request.port in (0, port.port):
                return key, port
    return None


class HostPorts:
    """The sockets that are open now."""

    def __init__(self, broker: Client, targets: Callable[[Key, str], Iterable[Address]], *, forward: bool) -> None:
        self._broker = broker
        self._targets = targets
        self._forward = forward
        """Whether the host cannot see the targets by itself."""
        self._open: dict[Wish, tuple[Forwarder | None, Address]] = {}
        self._turns: dict[Wish, int] = {}

    def describe(self) -> tuple[runtime.Published, ...]:
        """What is published, for the state file."""
        return tuple(
            runtime.Published(
                service=wish.service.name,
                namespace=wish.service.namespace,
                port=wish.port,
                address=f"{host}:{port}",
            )
            for wish, (_, (host, port)) in sorted(self._open.items())
        )

    async def apply(self, wishes: Iterable[Wish]) -> None:
        """Opens what is wished and closes what no longer is."""
        wanted = set(wishes)
        for wish in self._open.keys() - wanted:
            forwarder, _ = self._open.pop(wish)
            if forwarder:
                forwarder.close()
        for wish in sorted(wanted - self._open.keys()):
            if self._forward or wish.required:
                self._open[wish] = await self._publish(wish)
            elif target := self._choose(wish):
                self._open[wish] = None, target

    async def _publish(self, wish: Wish) -> tuple[Forwarder, Address]:
        listener = await self._broker.listen(HOST, wish.ports)
        forwarder = Forwarder(dial_tcp(lambda: self._choose(wish), lambda: namespaces.open_socket(None)))
        await forwarder.listen(listener)
        return forwarder, listener.getsockname()

    async def open_control_plane(self, listeners: Mapping[str, Address]) -> tuple[dict[str, str], list[Forwarder]]:
        """The control plane's listeners as the host sees them, on their own numbers where these are free."""
        addresses = {name: f"{host}:{port}" for name, (host, port) in listeners.items()}
        forwarders: list[Forwarder] = []
        for name, target in listeners.items() if self._forward else ():
            listener = await self._broker.listen(HOST, (target[1], 0))
            forwarder = Forwarder(dial_tcp(partial(_same, target), lambda: namespaces.open_socket(None)))
            await forwarder.listen(listener)
            forwarders.append(forwarder)
            host, port = listener.getsockname()
            addresses[name] = f"{host}:{port}"
        return addresses, forwarders

    def _choose(self, wish: Wish) -> Address | None:
        """The ready targets take turns."""
        targets = tuple(self._targets(wish.service, wish.port_name))
        if not targets:
            return None
        turn = self._turns[wish] = self._turns.get(wish, -1) + 1
        return targets[turn % len(targets)]

    def close(self) -> None:
        for forwarder, _ in self._open.values():
            if forwarder:
                forwarder.close()
        self._open.clear()


class UnixSockets:
    """Unix sockets that lead to ports inside pods: to Envoy's admin interface, without capture also to programs."""

    def __init__(self) -> None:
        self._open: dict[Path, Forwarder] = {}

    async def open(self, path: Path, namespace: int | None, address: Address) -> None:
        """Listens on `path` for connections to a port inside the pod; only the user of the mesh may connect."""
        if path in self._open:
            return
        listener = _listen_unix(path)
        forwarder = Forwarder(dial_tcp(partial(_same, address), lambda: namespaces.open_socket(namespace)))
        await forwarder.listen(listener)
        self._open[path] = forwarder

    def close(self, directory: Path) -> None:
        """Closes all that lie in this folder."""
        for path in [path for path in self._open if path.parent == directory]:
            self._open.pop(path).close()


def _listen_unix(path: Path) -> socket.socket:
    """A private listening socket; bound by a short name, as the path of a socket may have no more than 107 bytes."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    os.fchmod(listener.fileno(), 0o600)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{directory}/{path.name}")
    finally:
        os.close(directory)
    listener.listen(64)
    listener.setblocking(False)
    return listener


def _same(address: Address) -> Address:
    return address


def require_all(wishes: Iterable[Wish], requests: Iterable[PortRequest]) -> None:
    """A port that the user asked for and no Service has is a mistake worth stopping for."""
    kept = {wish.ports[0] for wish in wishes if wish.required}
    for request in requests:
        if request.host_port not in kept:
            where = f"{request.service}.{request.namespace}" if request.namespace else request.service
            raise LocalError(f"--port {request.host_port}: no Service {where} has such a port")
