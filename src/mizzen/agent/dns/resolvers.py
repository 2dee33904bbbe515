"""Upstream resolvers: what the DNS proxy asks about names that the mesh does not know.

In: an encoded query and the servers of resolv.conf. Out: an encoded response with the query's own id, or None when
no server gave one in time. Each question goes out from a socket of its own, so with a port that the kernel draws, and
under an id that is drawn anew; an answer with another id or another question is not believed.
"""

import asyncio
import ipaddress
import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from mizzen import observe
from mizzen.agent import metrics
from mizzen.agent.files import read_file

_PORT = 53
_LARGEST = 65535
_HEADER = 12
_OTHER_SERVER_CODES = frozenset({2, 4, 5})
"""SERVFAIL, NOTIMP and REFUSED: another server may know more."""

_log = observe.scope("dns")


class ResolverConfig(msgspec.Struct, frozen=True):
    """What resolv.conf says."""

    servers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()


def parse_resolver_config(text: str) -> ResolverConfig:
    """Name servers in order and search domains; as in the C library, the last search line counts."""
    servers: list[str] = []
    search: tuple[str, ...] = ()
    for line in text.splitlines():
        words = line.split("#")[0].split(";")[0].split()
        if len(words) < 2:
            continue
        if words[0] == "nameserver" and _is_address(words[1]):
            servers.append(words[1])
        elif words[0] in ("search", "domain"):
            search = tuple(words[1:])
    return ResolverConfig(tuple(servers), search)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def read_resolver_config(paths: Sequence[Path]) -> ResolverConfig:
    """The first of the files that exists, parsed."""
    for path in paths:
        content = read_file(path)
        if content is not None:
            return parse_resolver_config(content.decode(errors="replace"))
    return ResolverConfig()


class Resolvers:
    """Asks servers in turn, or all at once, within one deadline for the whole question."""

    def __init__(
        self,
        servers: Sequence[str],
        *,
        parallel: bool = False,
        timeout: float = 5.0,
        most: int = 512,
        mark: int = 0,
        port: int = _PORT,
    ) -> None:
        self._servers = tuple(servers)
        self._parallel = parallel
        self._timeout = timeout
        self._most = most
        self._mark = mark
        self._port = port
        self._active = 0

    async def ask(self, query: bytes, *, tcp: bool) -> bytes | None:
        """The response to an encoded query; None too when more questions are open than are allowed."""
        if not self._servers or self._active >= self._most:
            metrics.DNS_UPSTREAM_FAILURES.inc()
            return None
        self._active += 1
        began = time.monotonic()
        try:
            response = await (self._ask_all(query, tcp) if self._parallel else self._ask_in_turn(query, tcp))
        finally:
            self._active -= 1
        metrics.DNS_UPSTREAM_SECONDS.observe(time.monotonic() - began)
        if response is None:
            metrics.DNS_UPSTREAM_FAILURES.inc()
        return response

    async def _ask_in_turn(self, query: bytes, tcp: bool) -> bytes | None:
        """Each server has its share of the time that is left."""
        deadline = time.monotonic() + self._timeout
        unhelpful: bytes | None = None
        for left, server in zip(range(len(self._servers), 0, -1), self._servers, strict=True):
            response = await self._ask_one(server, query, tcp, (deadline - time.monotonic()) / left)
            if response is not None and response[3] & 0x0F not in _OTHER_SERVER_CODES:
                return response
            unhelpful = response or unhelpful
        return unhelpful

    async def _ask_all(self, query: bytes, tcp: bool) -> bytes | None:
        """The first helpful response of any server."""
        unhelpful: bytes | None = None
        waiting = [self._ask_one(server, query, tcp, self._timeout) for server in self._servers]
        for answer in asyncio.as_completed(waiting):
            response = await answer
            if response is not None and response[3] & 0x0F not in _OTHER_SERVER_CODES:
                return response
            unhelpful = response or unhelpful
        return unhelpful

    async def _ask_one(self, server: str, query: bytes, tcp: bool, seconds: float) -> bytes | None:
        metrics.DNS_UPSTREAM_REQUESTS.inc()
        sent = os.urandom(2) + query[2:]
        try:
            async with asyncio.timeout(seconds):
                response = await (self._exchange_tcp if tcp else self._exchange_udp)(server, sent)
        except (OSError, EOFError, TimeoutError) as failed:
            _log.debug("resolver %s: %s", server, str(failed) or type(failed).__name__)
            return None
        return query[:2] + response[2:]

    def _open(self, server: str, kind: socket.SocketKind) -> socket.socket:
        family = socket.AF_INET6 if ":" in server else socket.AF_INET
        opened = socket.socket(family, kind)
        opened.setblocking(False)
        if self._mark:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, self._mark)
        return opened

    async def _exchange_udp(self, server: str, query: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        with self._open(server, socket.SOCK_DGRAM) as opened:
            await loop.sock_connect(opened, (server, self._port))
            await loop.sock_sendall(opened, query)
            while True:
                response = await loop.sock_recv(opened, _LARGEST)
                if _answers(query, response):
                    return response

    async def _exchange_tcp(self, server: str, query: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        with self._open(server, socket.SOCK_STREAM) as opened:
            await loop.sock_connect(opened, (server, self._port))
            reader, writer = await asyncio.open_connection(sock=opened)
            try:
                writer.write(len(query).to_bytes(2, "big") + query)
                await writer.drain()
                response = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
            finally:
                writer.close()
        if not _answers(query, response):
            raise OSError("the answer is to another question")
        return response


def _answers(query: bytes, response: bytes) -> bool:
    """Whether the response carries the query's id and its question, in whatever case of letters."""
    if len(response) < _HEADER or response[:2] != query[:2] or not response[2] & 0x80:
        return False
    question = query[_HEADER : _end_of_question(query)]
    return response[_HEADER : _HEADER + len(question)].lower() == question.lower()


def _end_of_question(query: bytes) -> int:
    end = _HEADER
    while end < len(query) and query[end]:
        end += 1 + query[end]
    return end + 5
