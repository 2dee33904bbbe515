"""HTTP as an attacker writes it: bytes that no library would send, over HTTP/1 and HTTP/2, with or without TLS.

Runs inside pods, so only the standard library. In: an address, bytes or header pairs, TLS material. Out: plain data: the
answers, and as `error` how the other side ended what it did not answer: a TLS alert, a reset, a closed connection, a
frame that ends a stream.
"""

import contextlib
import select
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any, BinaryIO

import traffic_calls

Result = dict[str, Any]

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _GOAWAY = 0, 1, 3, 4, 7
_END_STREAM, _ACK = 0x1, 0x1
_STATIC_STATUSES = {8: 200, 9: 204, 10: 206, 11: 304, 12: 400, 13: 404, 14: 500}
_FIVE_BITS = {0: "0", 1: "1", 2: "2"}
"""The digits in HPACK's Huffman code; the others have six bits and begin at 0b011001."""


def call_raw(
    *, address: str, text: str, tls: dict[str, str] | None = None, answers: int = 1, timeout: float = 8.0
) -> Result:
    """Sends bytes (as latin-1) and reads so many HTTP/1 answers."""
    found: list[Result] = []

    def work(connection: socket.socket) -> str:
        connection.sendall(text.encode("latin-1"))
        with connection.makefile("rb") as stream:
            while len(found) < answers:
                found.append(read_answer(stream))
        return ""

    return {"answers": found, "error": _connected(work, address, tls, timeout)}


def call_unix(path: str) -> str:
    """Connects to a Unix socket: how that failed, or nothing."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
        except OSError as failed:
            return f"{type(failed).__name__}: {failed.strerror}"
    return ""


def _connected(work: Callable[[socket.socket], str], address: str, tls: dict[str, str] | None, timeout: float) -> str:
    """Works on a connection; what came of it, or how the connection failed, then or before."""
    host, _, port = address.rpartition(":")
    with contextlib.ExitStack() as stack:
        try:
            connection = stack.enter_context(socket.create_connection((host, int(port)), timeout))
            if tls is not None:
                connection = stack.enter_context(traffic_calls.open_tls(connection, "", tls))
                _settle(connection, float(tls.get("settle", "0")))
            return work(connection)
        except ssl.SSLError as failed:
            return f"TLS: {failed.reason or failed}"
        except EOFError:
            return "closed"
        except OSError as failed:
            return f"{type(failed).__name__}: {failed}"


def _settle(connection: ssl.SSLSocket, seconds: float) -> None:
    """Waits for the alert of a server that refuses: TLS 1.3 has the client's papers judged after the handshake.

    Whoever writes at once may find the connection gone and the alert with it.
    """
    if seconds and select.select([connection], [], [], seconds)[0]:
        connection.setblocking(False)
        with contextlib.suppress(ssl.SSLWantReadError):
            if not connection.recv(1):
                raise EOFError
        connection.settimeout(seconds)


def read_answer(stream: BinaryIO) -> Result:
    """One HTTP/1 answer; raises EOFError when the connection ends first."""
    head = _read_line(stream)
    status = int(head.split(" ")[1])
    headers = []
    while line := _read_line(stream):
        name, _, value = line.partition(":")
        headers.append([name.lower(), value.strip()])
    known = dict(map(tuple, headers))
    body = b"" if status < 200 or status in (204, 304) else _read_body(stream, known)
    return {"status": status, "headers": headers, "body": body.decode("utf-8", "replace")}


def _read_line(stream: BinaryIO) -> str:
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    return line.decode("latin-1").rstrip("\r\n")


def _read_body(stream: BinaryIO, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return stream.read(int(headers.get("content-length", "0")))
    parts = []
    while size := int(_read_line(stream).partition(";")[0], 16):
        parts.append(stream.read(size))
        _read_line(stream)
    while _read_line(stream):
        pass
    return b"".join(parts)


# -- HTTP/2 -----------------------------------------------------------------------------------------------------------


def call_h2(
    *, address: str, headers: list[list[str]], tls: dict[str, str] | None = None, timeout: float = 8.0
) -> Result:
    """One stream with exactly these headers, pseudo headers included, and no body."""
    answer: Result = {"status": 0, "headers": [], "body": ""}

    def work(connection: socket.socket) -> str:
        block = b"".join(encode_header(name, value) for name, value in headers)
        frames = [build_frame(_SETTINGS, 0, 0, b""), build_frame(_HEADERS, 0x4 | _END_STREAM, 1, block)]
        connection.sendall(_PREFACE + b"".join(frames))
        with connection.makefile("rb") as stream:
            return _read_stream(stream, connection, answer)

    error = _connected(work, address, tls, timeout)
    return {"answers": [answer] if answer["status"] else [], "error": error}


def _read_stream(stream: BinaryIO, connection: socket.socket, answer: Result) -> str:
    """Reads frames until the stream ends; how it ended if not well."""
    while True:
        kind, flags, number, content = _read_frame(stream)
        if kind == _SETTINGS and not flags & _ACK:
            connection.sendall(build_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _GOAWAY:
            return f"GOAWAY {struct.unpack('>I', content[4:8])[0]}"
        elif number != 1:
            continue
        elif kind == _RESET:
            return f"RST_STREAM {struct.unpack('>I', content)[0]}"
        elif kind == _HEADERS and not answer["status"]:
            answer["status"] = decode_status(content)
        elif kind == _DATA:
            answer["body"] += content.decode("utf-8", "replace")
        if number == 1 and kind in (_HEADERS, _DATA) and flags & _END_STREAM:
            return ""


def _read_frame(stream: BinaryIO) -> tuple[int, int, int, bytes]:
    head = stream.read(9)
    if len(head) < 9:
        raise EOFError
    size = int.from_bytes(head[:3], "big")
    kind, flags, number = head[3], head[4], int.from_bytes(head[5:9], "big") & 0x7FFFFFFF
    return kind, flags, number, stream.read(size)


def build_frame(kind: int, flags: int, number: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + number.to_bytes(4, "big") + content


def encode_header(name: str, value: str) -> bytes:
    """A literal that is never indexed, as it is."""
    parts = [part.encode("latin-1") for part in (name, value)]
    return b"\x10" + b"".join(_encode_length(len(part)) + part for part in parts)


def _encode_length(size: int) -> bytes:
    if size < 127:
        return bytes([size])
    rest, size = [], size - 127
    while size >= 128:
        rest.append(size % 128 | 128)
        size //= 128
    return bytes([127, *rest, size])


def decode_status(block: bytes) -> int:
    """The status at the start of a header block."""
    at = 0
    while block[at] & 0xE0 == 0x20:
        at += 1
    first = block[at]
    if first & 0x80:
        return _STATIC_STATUSES[first & 0x7F]
    size = block[at + 1]
    text = block[at + 2 : at + 2 + (size & 0x7F)]
    return int(_decode_digits(text) if size & 0x80 else text)


def _decode_digits(text: bytes) -> str:
    bits = "".join(f"{byte:08b}" for byte in text)
    digits, at = "", 0
    while len(digits) < 3:
        five = int(bits[at : at + 5], 2)
        if five in _FIVE_BITS:
            digits += _FIVE_BITS[five]
            at += 5
        else:
            digits += str(int(bits[at : at + 6], 2) - 0b011001 + 3)
            at += 6
    return digits
