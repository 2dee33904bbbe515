"""A resolver that answers as a cluster's would, for pods that do not ask their sidecar and for sidecars themselves.

In: a `Zone`, an immutable table of names that the mesh replaces as a whole. `answer` turns one query into one reply
and touches nothing; the server around it listens on UDP and TCP. A name below the cluster's domain that is not in the
zone does not exist; neither does any other, since a local mesh has no way out to the world's name servers.
"""

import asyncio
import contextlib
import random
import socket
import struct
from collections.abc import Callable, Mapping
from typing import cast

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import msgspec

TTL_SECONDS = 5
_MAX_ALIASES = 8
_UDP_BYTES = 1232
_TCP_IDLE_SECONDS = 30.0


class Service(msgspec.Struct, frozen=True):
    """One answer to an SRV question."""

    port: int
    target: str


class Records(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one name."""

    addresses: tuple[str, ...] = ()
    alias: str = ""
    """The name to ask instead; excludes the rest."""
    services: tuple[Service, ...] = ()


Zone = Mapping[str, Records]
"""Names in lower case, without the final dot."""


def answer(zone: Zone, query: dns.message.Message) -> dns.message.Message:
    """The reply to one query; addresses come in random order, so that callers spread."""
    reply = dns.message.make_response(query, recursion_available=True)
    if len(query.question) != 1:
        reply.set_rcode(dns.rcode.FORMERR)
        return reply
    question = query.question[0]
    name: dns.name.Name = question.name
    for _ in range(_MAX_ALIASES):
        records = zone.get(_key(name))
        if records is None:
            reply.set_rcode(dns.rcode.NXDOMAIN if not reply.answer else dns.rcode.NOERROR)
            return reply
        if not records.alias:
            _add_records(reply, name, question.rdtype, records)
            reply.flags |= dns.flags.AA
            return reply
        target = dns.name.from_text(records.alias)
        reply.answer.append(dns.rrset.from_text(name, TTL_SECONDS, "IN", "CNAME", str(target)))
        name = target
    reply.set_rcode(dns.rcode.SERVFAIL)
    return reply


def _key(name: dns.name.Name) -> str:
    return name.to_text(omit_final_dot=True).lower()


def _add_records(reply: dns.message.Message, name: dns.name.Name, kind: int, records: Records) -> None:
    texts: list[str] = []
    if kind in (dns.rdatatype.A, dns.rdatatype.AAAA):
        wants_v6 = kind == dns.rdatatype.AAAA
        texts = [address for address in records.addresses if (":" in address) is wants_v6]
        random.shuffle(texts)
    elif kind == dns.rdatatype.SRV:
        texts = [f"0 100 {service.port} {service.target}." for service in records.services]
    if texts:
        reply.answer.append(
            dns.rrset.from_text_list(
                name, TTL_SECONDS, "IN", dns.rdatatype.to_text(dns.rdatatype.RdataType.make(kind)), texts
            )
        )


class Resolver:
    """Serves a zone; `zone` is called for every query and gives the present table."""

    def __init__(self, zone: Callable[[], Zone]) -> None:
        self._zone = zone
        self._transports: list[asyncio.BaseTransport] = []
        self._servers: list[asyncio.Server] = []

    async def listen(self, address: str, port: int = 53) -> int:
        """Starts serving UDP and TCP on one address; returns the port, which may have been asked for as 0."""
        loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._serve_stream, address, port, family=socket.AF_INET)
        self._servers.append(server)
        bound: int = server.sockets[0].getsockname()[1]
        transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self), local_addr=(address, bound))
        self._transports.append(transport)
        return bound

    def close(self) -> None:
        for transport in self._transports:
            transport.close()
        for server in self._servers:
            server.close()

    def reply(self, wire: bytes, limit: int) -> bytes | None:
        """The reply to a query as received; None for what is no query at all."""
        try:
            query = dns.message.from_wire(wire)
        except (dns.exception.DNSException, ValueError, struct.error):
            return None
        if query.flags & dns.flags.QR:
            return None
        reply = answer(self._zone(), query)
        try:
            return reply.to_wire(max_size=max(limit, 512))
        except dns.exception.TooBig:
            reply = dns.message.make_response(query)
            reply.flags |= dns.flags.TC
            return reply.to_wire()

    async def _serve_stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            while True:
                async with asyncio.timeout(_TCP_IDLE_SECONDS):
                    (length,) = struct.unpack("!H", await reader.readexactly(2))
                    wire = await reader.readexactly(length)
                reply = self.reply(wire, 65535)
                if reply is None:
                    break
                writer.write(struct.pack("!H", len(reply)) + reply)
                await writer.drain()
        writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        reply = self._resolver.reply(data, _UDP_BYTES)
        if reply is not None:
            self._transport.sendto(reply, addr)
