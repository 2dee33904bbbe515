"""The calls of the truth table on the wire: raw HTTP/1.1 and HTTP/2, bare connections, mutual TLS.

Nothing between the test and Envoy makes a request prettier than it is, which clients would do with paths and headers.
"""

import asyncio
import contextlib
import pathlib
import ssl
import struct
from collections.abc import Sequence

import msgspec
import truth_worlds
from truth_requests import Call

_PING = b"ping\n"
_PATIENCE = 60.0
_HEADERS, _SETTINGS = 1, 4
_END_HEADERS, _END_STREAM, _PADDED, _PRIORITY = 4, 1, 8, 32
_STATUS_OTHER = 0x48
_STATIC_STATUS = {0x88: 200, 0x89: 204, 0x8A: 206, 0x8B: 304, 0x8C: 400, 0x8D: 404, 0x8E: 500}


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back."""

    status: int
    """Of HTTP; of a bare connection 200 if what was sent came back. 0 if the connection was closed instead."""
    remote: str
    local: str
    """The connection's ends as Envoy sees them."""


class Callers:
    """Makes calls with the certificates of all callers; `folder` is for these."""

    def __init__(self, folder: pathlib.Path, parallel: int = 16) -> None:
        self._folder = folder
        self._contexts: dict[tuple[str, str], ssl.SSLContext] = {}
        self._turns = asyncio.Semaphore(parallel)

    async def all(self, calls: Sequence[Call]) -> list[Answer]:
        """The answers, in order."""
        return await asyncio.gather(*(self._one(call) for call in calls))

    async def _one(self, call: Call) -> Answer:
        async with self._turns, asyncio.timeout(_PATIENCE):
            return await self._make(call)

    async def _make(self, call: Call) -> Answer:
        tls = {"ssl": self._context(call), "server_hostname": call.sni} if call.security == "mutual" else {}
        reader, writer = await asyncio.open_connection(call.address, call.port, local_addr=(call.source, 0), **tls)
        host, port = writer.get_extra_info("sockname")
        try:
            status = await _exchange(call, reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        return Answer(status=status, remote=f"{host}:{port}", local=f"{call.address}:{call.port}")

    def _context(self, call: Call) -> ssl.SSLContext:
        alpn = {"http1": "istio-http/1.1", "http2": "istio-h2", "tcp": "istio"}[call.protocol]
        key = (call.identity, alpn)
        if key not in self._contexts:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            file = self._folder / "caller.pem"
            file.write_text("".join(truth_worlds.certificate(call.identity)))
            context.load_cert_chain(file)
            context.set_alpn_protocols([alpn])
            self._contexts[key] = context
        return self._contexts[key]


async def _exchange(call: Call, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    if call.protocol == "tcp":
        sent = _client_hello(call.sni) if call.security == "through" else _PING
        writer.write(sent)
        with contextlib.suppress(ConnectionResetError, asyncio.IncompleteReadError):
            return 200 if await reader.readexactly(len(sent)) == sent else 0
        return 0
    if call.protocol == "http2":
        writer.write(_http2_request(call))
        with contextlib.suppress(asyncio.IncompleteReadError):
            return await _http2_status(reader)
        return 0
    lines = [f"{name}: {value}" for name, value in _fields(call)]
    head = "\r\n".join([f"{call.method} {call.path} HTTP/1.1", f"Host: {call.host}", *lines, "", ""])
    writer.write(head.encode())
    status = (await reader.readline()).split(b" ")
    assert len(status) > 1, f"no answer to {call}"
    return int(status[1])


def _fields(call: Call) -> list[tuple[str, str]]:
    token = truth_worlds.token(call.token)
    fields = [*call.headers, *([("Authorization", f"Bearer {token}")] if token else [])]
    return fields if call.method == "GET" else [*fields, ("Content-Length", "0")]


def _client_hello(sni: str) -> bytes:
    """The first flight of a TLS client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    session = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=sni or None)
    with contextlib.suppress(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


# -- HTTP/2 -----------------------------------------------------------------------------------------------------------


def _http2_request(call: Call) -> bytes:
    pseudo = [(":method", call.method), (":scheme", "http"), (":authority", call.host), (":path", call.path)]
    block = b"".join(b"\x10" + _literal(name.lower()) + _literal(value) for name, value in (*pseudo, *_fields(call)))
    frames = _frame(_SETTINGS, 0, 0, b"") + _frame(_HEADERS, _END_HEADERS | _END_STREAM, 1, block)
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frames


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _literal(text: str) -> bytes:
    """A string without Huffman coding."""
    data = text.encode()
    if len(data) < 127:
        return bytes((len(data),)) + data
    rest, length = len(data) - 127, b"\x7f"
    while rest > 127:
        length += bytes((rest % 128 + 128,))
        rest //= 128
    return length + bytes((rest,)) + data


async def _http2_status(reader: asyncio.StreamReader) -> int:
    while True:
        head = await reader.readexactly(9)
        payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
        kind, flags = head[3], head[4]
        assert kind != 7, f"the connection was refused: {payload!r}"
        assert kind != 3, f"the stream was refused: {payload!r}"
        if kind == _HEADERS:
            assert not flags & (_PADDED | _PRIORITY)
            return _status(payload)


def _status(block: bytes) -> int:
    """The status that a block of headers begins with, after changes of the table's size."""
    start = 0
    while block[start] & 0xE0 == 0x20:
        start += 1
    if block[start] in _STATIC_STATUS:
        return _STATIC_STATUS[block[start]]
    assert block[start] == _STATUS_OTHER, block
    length, data = block[start + 1] & 0x7F, block[start + 2 :]
    return int(_digits(data[:length]) if block[start + 1] & 0x80 else data[:length])


def _digits(data: bytes) -> str:
    """Three digits in Huffman coding: `0` to `2` are 5 bits long, the others 6."""
    bits, found = "".join(f"{byte:08b}" for byte in data), ""
    while len(found) < 3:
        size = 5 if bits[:5] < "00011" else 6
        code = int(bits[:size], 2)
        found, bits = found + str(code if size == 5 else code - 0b011001 + 3), bits[size:]
    return found
