"""The ports of a control plane: opened by the flags that name them, or refused with the remedy.

In: addresses of the command line, applications and certificates. Out: servers that listen, and the number of each port,
which only the system knows for an address with port 0. An empty address opens nothing.
"""

import contextlib
import errno
import socket
import ssl

import grpc
from aiohttp import web

from mizzen import observe
from mizzen.control import http
from mizzen.control.options import Address
from mizzen.errors import MizzenError
from mizzen.xds.server import Server

_log = observe.scope()
_TAKEN = (errno.EADDRINUSE, errno.EACCES)


class Ports:
    """All that are open."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """By flag."""

    async def open_http(
        self,
        stack: contextlib.AsyncExitStack,
        flag: str,
        address: Address | None,
        application: web.Application,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """Serve HTTP until the stack is closed; with a context over TLS. Raises MizzenError for a port in use."""
        if address is None:
            return
        server = http.Server(application, flag, address, context)
        self._note(flag, address, await server.start())
        stack.push_async_callback(server.stop)

    def open_grpc(
        self, server: Server, flag: str, address: Address | None, credentials: grpc.ServerCredentials | None = None
    ) -> None:
        """Have a server that has not started listen. Raises MizzenError for a port in use."""
        if address is None:
            return
        _require_free(flag, address)
        try:
            port = server.listen(address.grpc, credentials)
        except MizzenError as error:
            raise http.port_refused(flag, address, "the address is in use or not of this machine") from error
        self._note(flag, address, port)

    def _note(self, flag: str, address: Address, port: int) -> None:
        self.numbers[flag] = port
        _log.info("%s listens on %s", flag, address._replace(port=port))


def _require_free(flag: str, address: Address) -> None:
    """Raise for a port in use before gRPC's library prints a page about it."""
    if not address.port:
        return
    family = socket.AF_INET6 if ":" in address.host or (not address.host and socket.has_ipv6) else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            probe.bind((address.host, address.port))
    except OSError as error:
        if not address.host and family == socket.AF_INET6 and error.errno not in _TAKEN:
            return  # No IPv6 here; gRPC falls back by itself.
        raise http.port_refused(flag, address, error.strerror or str(error)) from error
