"""Calls that a pod's program makes on order: HTTP, raw TCP, TLS, WebSocket, gRPC and names.

In: an order as JSON, `{"do": KIND, …}`. Out: plain data. A failure below the protocol is a value as well (`error`), as
to be refused is often what a test waits for. Only the standard library, but for gRPC.
"""

import asyncio
import base64
import http.client
import itertools
import os
import socket
import ssl
import tempfile
import time
import urllib.parse
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

Order = dict[str, Any]
Result = dict[str, Any]

_threads = ThreadPoolExecutor(64)


async def perform(order: Order) -> Any:
    """Does what the order says."""
    kind = order.pop("do")
    if kind in ("websocket", "grpc"):
        return await (call_websocket if kind == "websocket" else call_grpc)(**order)
    call = {"http": call_http, "tcp": call_tcp, "resolve": resolve, "ask_dns": ask_dns}[kind]
    return await asyncio.get_running_loop().run_in_executor(_threads, lambda: call(**order))


# -- HTTP -------------------------------------------------------------------------------------------------------------


def call_http(*, count: int = 1, workers: int = 1, until: str = "", **request: Any) -> list[Result]:
    """So many requests, shared among workers with one connection each; in the order in which they were answered.

    With `until` as many as it takes for that file to be there.
    """
    shares = [range(number, count, workers) for number in range(workers)]
    turns = [itertools.takewhile(lambda _: not os.path.exists(until), itertools.count()) for _ in shares]
    results: list[Result] = []
    with ThreadPoolExecutor(workers) as threads:
        for part in threads.map(lambda turn: _call_in_turn(turn, **request), turns if until else shares):
            results += part
    return sorted(results, key=lambda result: result["done"])


def _call_in_turn(
    turns: Iterable[int],
    *,
    url: str,
    method: str = "GET",
    headers: list[list[str]] | None = None,
    body: str = "",
    address: str = "",
    tls: dict[str, str] | None = None,
    timeout: float = 60.0,
    reuse: bool = True,
) -> list[Result]:
    parts = urllib.parse.urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    at = _split(address, port) if address else (parts.hostname or "", port)
    connection: http.client.HTTPConnection | None = None
    results = []
    for _ in turns:
        started = time.monotonic()
        try:
            if connection is None:
                connection = _connect(parts, at, tls, timeout)
            result = _send(connection, method, target, parts.netloc, headers or [], body)
        except (OSError, http.client.HTTPException) as failed:
            result = {"status": 0, "headers": [], "body": "", "error": f"{type(failed).__name__}: {failed}"}
        if connection is not None and (result["error"] or not reuse):
            connection.close()
            connection = None
        done = time.monotonic()
        results.append({**result, "seconds": done - started, "done": done})
    if connection is not None:
        connection.close()
    return results


def _connect(
    parts: urllib.parse.SplitResult, at: tuple[str, int], tls: dict[str, str] | None, timeout: float
) -> http.client.HTTPConnection:
    """A connection to `at`, whatever the URL's host; TLS by its scheme."""
    connection = http.client.HTTPConnection(*at, timeout=timeout)
    plain = socket.create_connection(at, timeout)
    try:
        connection.sock = open_tls(plain, parts.hostname or "", tls or {}) if parts.scheme == "https" else plain
    except BaseException:
        plain.close()
        raise
    return connection


def _send(
    connection: http.client.HTTPConnection,
    method: str,
    target: str,
    host: str,
    headers: list[list[str]],
    body: str,
) -> Result:
    stated = {name.lower() for name, _ in headers}
    connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
    if "host" not in stated:
        connection.putheader("Host", host)
    for name, value in headers:
        connection.putheader(name, value)
    if body:
        connection.putheader("Content-Length", str(len(body.encode())))
    connection.endheaders(body.encode() if body else None)
    answer = connection.getresponse()
    content = answer.read().decode("utf-8", "replace")
    if answer.will_close:
        connection.close()
    pairs = [[name.lower(), value] for name, value in answer.getheaders()]
    return {"status": answer.status, "headers": pairs, "body": content, "error": ""}


# -- TLS and TCP ------------------------------------------------------------------------------------------------------


def open_tls(plain: socket.socket, name: str, tls: dict[str, str]) -> ssl.SSLSocket:
    """TLS as a client; `ca`, `certificate` and `key` are PEM, without `ca` nobody is verified."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if "ca" in tls:
        context.load_verify_locations(cadata=tls["ca"])
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if "max" in tls:
        context.maximum_version = ssl.TLSVersion[tls["max"]]
    if "alpn" in tls:
        context.set_alpn_protocols(tls["alpn"].split(","))
    if "certificate" in tls:
        with _as_files(tls["certificate"], tls["key"]) as (certificate, key):
            context.load_cert_chain(certificate, key)
    return context.wrap_socket(plain, server_hostname=tls.get("sni", name))


@contextmanager
def _as_files(*texts: str) -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, str(number)) for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            with open(path, "w") as file:
                file.write(text)
        yield paths


def call_tcp(
    *,
    address: str,
    say: str = "",
    lines: int = 1,
    tls: dict[str, str] | None = None,
    timeout: float = 60.0,
    count: int = 1,
    held: bool = False,
    finish: bool = False,
) -> list[Result]:
    """So many connections: says something, then reads lines until enough came or the other side ends.

    `held` keeps every connection open until the last one is done; `finish` ends the own side before reading.
    """
    results, open_sockets = [], []
    for _ in range(count):
        result: Result = {"lines": [], "error": "", "peer": {}}
        started = time.monotonic()
        try:
            connection = socket.create_connection(_split(address, 0), timeout)
            open_sockets.append(connection)
            if tls is not None:
                connection = open_tls(connection, "", tls)
                open_sockets.append(connection)
                result["peer"] = dict(item[0] for item in (connection.getpeercert() or {}).get("subject", ()))
            if say:
                connection.sendall(say.encode())
            if finish:
                connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as stream:
                for _ in range(lines):
                    if not (line := stream.readline()):
                        result["error"] = "closed"
                        break
                    result["lines"].append(line.decode("utf-8", "replace").rstrip("\n"))
        except OSError as failed:
            result["error"] = f"{type(failed).__name__}: {failed}"
        if not held:
            while open_sockets:
                open_sockets.pop().close()
        results.append({**result, "seconds": time.monotonic() - started})
    for opened in open_sockets:
        opened.close()
    return results


def _split(address: str, port: int) -> tuple[str, int]:
    host, colon, stated = address.rpartition(":")
    return (host, int(stated)) if colon else (address, port)


# -- names ------------------------------------------------------------------------------------------------------------


def resolve(*, name: str) -> Result:
    """What the system's resolver says: sorted addresses, or the error."""
    try:
        found = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError as failed:
        return {"addresses": [], "error": f"{failed}"}
    return {"addresses": sorted({item[4][0] for item in found}), "error": ""}


def ask_dns(*, name: str, kind: str = "A") -> Result:
    """A question put on the wire, to see more of the answer than the system's resolver tells."""
    import dns.resolver

    try:
        answer = dns.resolver.resolve(name, kind, search=False, lifetime=60)
    except Exception as failed:
        return {"records": [], "aliases": [], "error": type(failed).__name__}
    chain = [str(item.target) for rrset in answer.response.answer for item in rrset if rrset.rdtype == 5]
    return {"records": sorted(str(item) for item in answer), "aliases": chain, "error": ""}


# -- WebSocket --------------------------------------------------------------------------------------------------------


async def call_websocket(
    *, address: str, host: str, path: str = "/", say: list[str], headers: list[list[str]] | None = None
) -> Result:
    """One connection that sends texts and reads an answer to each."""
    reader, writer = await asyncio.open_connection(*_split(address, 80))
    try:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade"]
        lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        lines += [f"{name}: {value}" for name, value in headers or []]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        async with asyncio.timeout(60):
            status = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ")[1]
            answers = []
            for text in say if status == "101" else ():
                writer.write(build_frame(text.encode(), mask=True))
                answers.append(await read_frame(reader))
        return {"status": int(status), "answers": answers}
    finally:
        writer.close()


def build_frame(content: bytes, *, mask: bool = False) -> bytes:
    """A text frame of up to 125 bytes."""
    key = os.urandom(4) if mask else b""
    masked = bytes(byte ^ key[place % 4] for place, byte in enumerate(content)) if mask else content
    return bytes([0x81, len(content) | (0x80 if mask else 0)]) + key + masked


async def read_frame(reader: asyncio.StreamReader) -> str:
    """The text of a short frame."""
    _, size = await reader.readexactly(2)
    key = await reader.readexactly(4) if size & 0x80 else b"\0\0\0\0"
    content = await reader.readexactly(size & 0x7F)
    return bytes(byte ^ key[place % 4] for place, byte in enumerate(content)).decode()


# -- gRPC -------------------------------------------------------------------------------------------------------------


async def call_grpc(
    *,
    address: str,
    method: str = "Once",
    say: list[str],
    metadata: list[list[str]] | None = None,
    authority: str = "",
    ca: str = "",
    seconds: float = 60.0,
    count: int = 1,
) -> list[Result]:
    """Calls of the echo service: one message and its answer, or a stream on which each message waits for its answer.

    With `ca` over TLS, to a server that must have a certificate for `authority`.
    """
    import grpc

    options: list[tuple[str, Any]] = [("grpc.use_local_subchannel_pool", 1)]
    if authority:
        options.append(("grpc.default_authority", authority))
    if ca:
        options.append(("grpc.ssl_target_name_override", authority))
        opened = grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(ca.encode()), options=options)
    else:
        opened = grpc.aio.insecure_channel(address, options=options)
    results = []
    async with opened as channel:
        for _ in range(count):
            passed = tuple((name, value) for name, value in metadata or [])
            answers: list[str] = []
            try:
                if method == "Once":
                    call = channel.unary_unary("/traffic.Echo/Once")
                    answers.append((await call(say[0].encode(), metadata=passed, timeout=seconds)).decode())
                else:
                    stream = channel.stream_stream("/traffic.Echo/Stream")(metadata=passed, timeout=seconds)
                    for text in say:
                        await stream.write(text.encode())
                        answers.append((await stream.read()).decode())
                    await stream.done_writing()
                    while (rest := await stream.read()) is not grpc.aio.EOF:
                        answers.append(rest.decode())
                results.append({"code": "OK", "details": "", "answers": answers})
            except grpc.aio.AioRpcError as failed:
                code = failed.code().name
                results.append({"code": code, "details": failed.details() or "", "answers": answers})
    return results
