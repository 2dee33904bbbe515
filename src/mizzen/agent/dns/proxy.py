"""The DNS proxy of the pod: mesh names from the name table, all others from the pod's resolvers.

In: queries on UDP and TCP at the loopback port to which capture sends port 53, and name tables from the relay.
Out: authoritative answers with a short life, shuffled; a host that has no address of the asked kind gets an empty
answer, never another server's opinion. Before the first table nothing is known, so every query fails and is asked
again, instead of being answered without the mesh.
"""

import asyncio
import contextlib
import errno
import functools
import random
import socket
from collections.abc import AsyncIterator, Sequence

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdatatype
import dns.rrset

from mizzen import observe
from mizzen.agent import metrics
from mizzen.agent.dns import names
from mizzen.agent.dns.resolvers import Resolvers
from mizzen.errors import AgentError

_TTL = 30
_PLAIN_UDP = 512
_LARGEST_UDP = 4096
_LARGEST_TCP = 65535
_HEADER = 12
_IDLE_SECONDS = 10.0
_MOST_CONNECTIONS = 128
_NO_SUCH_ADDRESS = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})

_log = observe.scope("dns")


class Proxy:
    """Answers encoded queries; `update` takes the encoded name table."""

    def __init__(
        self, resolvers: Resolvers, *, domain: str, search: Sequence[str] = (), forward_early: bool = False
    ) -> None:
        self._resolvers = resolvers
        self._domain = domain
        self._search = search
        self._forward_early = forward_early
        self._names: names.Names | None = None

    @property
    def has_names(self) -> bool:
        """Whether a name table has come."""
        return self._names is not None

    def update(self, tables: Sequence[bytes]) -> None:
        """Use the name table; there is one a response."""
        for table in tables:
            self._names = names.decode_names(table, domain=self._domain, search=self._search)
            _log.debug("name table with %d hosts", len(self._names))

    async def answer(self, query: bytes, *, tcp: bool) -> bytes | None:
        """The encoded response; None for bytes that are no query at all."""
        metrics.DNS_REQUESTS.inc()
        if len(query) < _HEADER or query[2] & 0x80:
            return None
        try:
            message = dns.message.from_wire(query, ignore_trailing=True)
        except (dns.exception.DNSException, ValueError):
            return _refuse_unread(query)
        if message.opcode() != dns.opcode.QUERY or not message.question:
            return _refuse(message, dns.rcode.SERVFAIL)
        known = self._names.find(_plain(message.question[0].name)) if self._names is not None else None
        if known is not None:
            return _encode(_build_answer(message, known), message, tcp=tcp)
        if self._names is None and not self._forward_early:
            return _refuse(message, dns.rcode.SERVFAIL)
        response = await self._resolvers.ask(query, tcp=tcp)
        return response if response is not None else _refuse(message, dns.rcode.SERVFAIL)


def _plain(name: dns.name.Name) -> str:
    return name.to_text(omit_final_dot=True).lower()


def _build_answer(query: dns.message.Message, known: names.Answer) -> dns.message.Message:
    question = query.question[0]
    response = dns.message.make_response(query, recursion_available=True)
    response.flags |= dns.flags.AA
    owner = question.name
    if known.alias:
        owner = dns.name.from_text(known.alias)
        response.answer.append(dns.rrset.from_text(question.name, _TTL, "IN", "CNAME", owner.to_text()))
    kinds = {dns.rdatatype.A: known.host.ipv4, dns.rdatatype.AAAA: known.host.ipv6}
    addresses = kinds.get(question.rdtype, ())
    if addresses:
        shuffled = random.sample(addresses, len(addresses))
        response.answer.append(dns.rrset.from_text_list(owner, _TTL, "IN", question.rdtype, shuffled))
    return response


def _encode(response: dns.message.Message, query: dns.message.Message, *, tcp: bool) -> bytes:
    """Compressed bytes, cut to what the client takes, with the mark that tells it to ask by TCP."""
    if tcp:
        largest = _LARGEST_TCP
    else:
        largest = min(max(query.payload, _PLAIN_UDP), _LARGEST_UDP) if query.edns >= 0 else _PLAIN_UDP
    return response.to_wire(max_size=largest, prefer_truncation=True)


def _refuse(query: dns.message.Message, code: dns.rcode.Rcode) -> bytes:
    response = dns.message.make_response(query, recursion_available=True)
    response.set_rcode(code)
    return response.to_wire()


def _refuse_unread(query: bytes) -> bytes:
    """FORMERR with the id of a query that could not be read further."""
    flags = bytes([0x80 | query[2] & 0x79, 0x80 | dns.rcode.FORMERR])
    return query[:2] + flags + bytes(_HEADER - 4)


async def serve_dns(proxy: Proxy, address: str, *, ready: asyncio.Event, mark: int = 0) -> None:
    """Serve on `host:port`, by UDP and TCP, until cancelled; `localhost` means both loopback addresses.

    Where capture rules tell the proxy's traffic by a socket mark, answers must carry it: by it connection tracking
    puts them into the flow of the question.
    """
    host, _, port = address.rpartition(":")
    hosts = ["127.0.0.1", "::1"] if host in ("", "localhost") else [host.strip("[]")]
    async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        missing = 0
        for place in hosts:
            try:
                await stack.enter_async_context(_listen(proxy, place, int(port), tasks, mark))
            except OSError as failed:
                missing += 1
                if failed.errno not in _NO_SUCH_ADDRESS or missing == len(hosts):
                    raise AgentError(f"cannot serve DNS on {address}: {failed}") from failed
        ready.set()
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def _listen(proxy: Proxy, host: str, port: int, tasks: asyncio.TaskGroup, mark: int) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    protocol = functools.partial(_Datagrams, proxy, tasks)
    transport, _ = await loop.create_datagram_endpoint(protocol, local_addr=(host, port))
    try:
        if mark:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
        streams = _Streams(proxy)
        async with await asyncio.start_server(streams.serve, host, port):
            yield
    finally:
        transport.close()


class _Datagrams(asyncio.DatagramProtocol):
    """Queries by UDP; each is answered by a task of its own, unless it can be answered at once."""

    def __init__(self, proxy: Proxy, tasks: asyncio.TaskGroup) -> None:
        self._proxy = proxy
        self._tasks = tasks
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._tasks.create_task(self._reply(data, addr))

    async def _reply(self, data: bytes, addr: tuple[str, int]) -> None:
        try:
            response = await self._proxy.answer(data, tcp=False)
        except Exception:  # One query must not end the others'.
            _log.exception("a DNS query failed")
            return
        if response is not None and self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(response, addr)


class _Streams:
    """Queries by TCP, several one after the other on a connection; idle connections end."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            while self._open <= _MOST_CONNECTIONS:
                async with asyncio.timeout(_IDLE_SECONDS):
                    length = int.from_bytes(await reader.readexactly(2), "big")
                    query = await reader.readexactly(length)
                response = await self._proxy.answer(query, tcp=True)
                if response is None:
                    break
                writer.write(len(response).to_bytes(2, "big") + response)
                await writer.drain()
        except (OSError, EOFError, TimeoutError):
            pass  # The client has gone, or says nothing.
        finally:
            self._open -= 1
            writer.close()
