"""The program in every pod of the traffic tests: it answers, remembers what it was asked, and calls others on order.

    traffic_app.py CONTROL [http=PORT] [greet=PORT] [echo=PORT] [tls=PORT] [grpc=PORT]

`http` answers with what it received, `greet` is a TCP server that speaks first, `echo` one that waits for its client,
`tls` is HTTPS with a certificate of its own, `grpc` echoes messages; CONNECT makes `http` an `echo` that greets. Tests
give orders through the Unix socket CONTROL, one JSON document a connection: `received` asks what arrived, `release`
ends a wait, any other is a call that `traffic_calls` makes from inside the pod, captured like any program's. Headers
say how a request is answered:

    x-answer: 503            with this status         x-break: POD-PREFIX   with 503, but only at these pods
    x-delay: 1.5             after so many seconds    x-flaky: 2            with 503 to the first two of a case
    x-set: NAME=VALUE        with this header         x-hold: yes           when a test says `release` for the case
    x-close: yes             not at all: the connection is closed
    x-case: ID               names the case in the memory
"""

import asyncio
import base64
import collections
import contextlib
import hashlib
import json
import os
import signal
import ssl
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import traffic_calls

WEBSOCKET_KEY = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
SERVED = ("module.wasm",)
"""Files that `http` hands out to whoever asks for a path that ends with their name."""
REMEMBERED = 20_000
POD = os.environ.get("POD_NAME", "unknown")
VERSION = os.environ.get("VERSION", "")

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Entry = dict[str, Any]


class Memory:
    """What arrived, the latest last."""

    def __init__(self) -> None:
        self._entries: collections.deque[Entry] = collections.deque(maxlen=REMEMBERED)
        self._counts: collections.Counter[str] = collections.Counter()

    def add(self, kind: str, case: str, writer: asyncio.StreamWriter | None, **more: Any) -> Entry:
        peer = writer.get_extra_info("peername")[0] if writer is not None else ""
        own = writer.get_extra_info("sockname") if writer is not None else ("", 0)
        entry = {"kind": kind, "case": case, "pod": POD, "version": VERSION, "peer": peer, "address": own[0]}
        entry |= {"port": own[1], **more}
        self._entries.append(entry)
        self._counts[case] += 1
        return entry

    def of(self, case: str) -> list[Entry]:
        return [entry for entry in self._entries if entry["case"] == case]

    def count(self, case: str) -> int:
        return self._counts[case]


memory = Memory()
released: collections.defaultdict[str, asyncio.Event] = collections.defaultdict(asyncio.Event)


# -- HTTP -------------------------------------------------------------------------------------------------------------


async def read_head(reader: asyncio.StreamReader) -> tuple[str, str, list[tuple[str, str]]] | None:
    """Method, target and headers; None when the client has gone."""
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    method, target, _ = lines[0].split(" ", 2)
    pairs = (line.partition(":") for line in lines[1:] if line)
    return method, target, [(name.lower(), value.strip()) for name, _, value in pairs]


async def read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    parts = []
    while size := int((await reader.readline()).partition(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readline()
    while (await reader.readline()).strip():
        pass
    return b"".join(parts)


def choose_status(headers: dict[str, str], case: str) -> int:
    if "x-break" in headers and POD.startswith(headers["x-break"]):
        return 503
    if memory.count(case) <= int(headers.get("x-flaky", "0")):
        return 503
    return int(headers.get("x-answer", "200"))


async def serve_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while head := await read_head(reader):
        method, target, pairs = head
        headers = dict(pairs)
        case = headers.get("x-case", "")
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n" + f"TUNNEL {POD} {target}\n".encode())
            await serve_lines(reader, writer)
            return
        if headers.get("upgrade", "").lower() == "websocket":
            await serve_websocket(reader, writer, headers)
            return
        if os.path.basename(target) in SERVED:
            write_file(writer, os.path.basename(target))
            continue
        body = await read_body(reader, headers)
        secured = writer.get_extra_info("ssl_object")
        entry = memory.add(
            "https" if secured else "http",
            case,
            writer,
            method=method,
            target=target,
            headers=pairs,
            body=body.decode("utf-8", "replace"),
            sni=getattr(secured, "asked_name", None),
            alpn=secured.selected_alpn_protocol() if secured else None,
            certificate=describe_client(secured),
        )
        await asyncio.sleep(float(headers.get("x-delay", "0")))
        if "x-hold" in headers:
            await released[case].wait()
        if "x-close" in headers:
            return
        write_answer(writer, choose_status(headers, case), entry, headers, method)
        await writer.drain()


def write_file(writer: asyncio.StreamWriter, name: str) -> None:
    """A file that lies beside this program."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "rb") as file:
        content = file.read()
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)


def describe_client(secured: Any) -> str:
    """The common name in the client's certificate; empty without one."""
    certificate = secured.getpeercert() if secured else None
    return dict(item[0] for item in (certificate or {}).get("subject", ())).get("commonName", "")


def write_answer(writer: asyncio.StreamWriter, status: int, entry: Entry, headers: dict[str, str], method: str) -> None:
    content = json.dumps(entry).encode()
    lines = [f"HTTP/1.1 {status} Answer", "Content-Type: application/json", f"Content-Length: {len(content)}"]
    if "x-set" in headers:
        lines.append(headers["x-set"].replace("=", ": ", 1))
    writer.write("\r\n".join([*lines, "", ""]).encode() + (b"" if method == "HEAD" else content))


async def serve_websocket(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    """The handshake, and then every text frame comes back with the pod's name in front."""
    memory.add("websocket", headers.get("x-case", ""), writer)
    digest = hashlib.sha1((headers["sec-websocket-key"] + WEBSOCKET_KEY).encode()).digest()
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    lines.append(f"Sec-WebSocket-Accept: {base64.b64encode(digest).decode()}")
    writer.write("\r\n".join([*lines, "", ""]).encode())
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            text = await traffic_calls.read_frame(reader)
            writer.write(traffic_calls.build_frame(f"{POD} {text}".encode()))
            await writer.drain()


# -- below HTTP -------------------------------------------------------------------------------------------------------


async def serve_greeting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speaks first, then answers line by line."""
    writer.write(f"HELLO {POD} {VERSION}\n".encode())
    await serve_lines(reader, writer)


async def serve_echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers line by line, and says so when the client has ended."""
    await serve_lines(reader, writer)
    with contextlib.suppress(ConnectionError):
        writer.write(f"END {POD}\n".encode())
        await writer.drain()


async def serve_lines(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while line := await reader.readline():
            memory.add("line", line.decode("utf-8", "replace").strip(), writer)
            writer.write(f"{POD} {VERSION} ".encode() + line)
            await writer.drain()


def build_tls() -> ssl.SSLContext:
    """The server's certificate, and the name that the client asked for kept on its connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["TLS_CERTIFICATE"], os.environ["TLS_KEY"])
    # The words of the mesh would be chosen if anybody said them to a server outside.
    context.set_alpn_protocols(["istio-http/1.1", "istio", "istio-peer-exchange", "http/1.1"])
    if ca := os.environ.get("TLS_CLIENT_CA"):
        context.load_verify_locations(ca)
        context.verify_mode = ssl.CERT_OPTIONAL

    def keep(connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
        connection.asked_name = name  # type: ignore[attr-defined]

    context.sni_callback = keep  # type: ignore[assignment]
    return context


async def start_grpc(port: int) -> None:
    """`/traffic.Echo/Once` and `/traffic.Echo/Stream` send back what they get, with the pod's name in front."""
    import grpc

    async def once(message: bytes, context: Any) -> bytes:
        metadata = dict(context.invocation_metadata() or ())
        memory.add("grpc", str(metadata.get("x-case", "")), None, metadata=describe(metadata))
        if "x-code" in metadata:
            await context.abort(getattr(grpc.StatusCode, str(metadata["x-code"])), "as asked")
        return f"{POD} ".encode() + message

    async def stream(messages: Any, context: Any) -> Any:
        metadata = dict(context.invocation_metadata() or ())
        memory.add("grpc", str(metadata.get("x-case", "")), None, metadata=describe(metadata))
        async for message in messages:
            yield f"{POD} ".encode() + message

    server = grpc.aio.server()
    methods = {
        "Once": grpc.unary_unary_rpc_method_handler(once),
        "Stream": grpc.stream_stream_rpc_method_handler(stream),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("traffic.Echo", methods),))
    server.add_insecure_port(f"0.0.0.0:{port}")
    await server.start()
    servers.append(server)


def describe(metadata: dict[str, Any]) -> dict[str, str]:
    return {name: value if isinstance(value, str) else repr(value) for name, value in metadata.items()}


# -- control ----------------------------------------------------------------------------------------------------------


async def serve_control(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    order = json.loads(await reader.read())
    try:
        if order["do"] == "received":
            value: Any = memory.of(order["case"])
        elif order["do"] == "release":
            value = released[order["case"]].set()
        else:
            value = await traffic_calls.perform(order)
        answer = {"value": value}
    except Exception as failed:
        answer = {"error": f"{type(failed).__name__}: {failed}"}
    writer.write(json.dumps(answer).encode())
    with contextlib.suppress(ConnectionError):
        await writer.drain()
    writer.close()


servers: list[Any] = []


async def start(kind: str, port: int) -> None:
    if kind == "grpc":
        await start_grpc(port)
        return
    serve: Serve = {"greet": serve_greeting, "echo": serve_echo}.get(kind, serve_http)

    async def serve_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    context = build_tls() if kind == "tls" else None
    servers.append(await asyncio.start_server(serve_and_close, "0.0.0.0", port, ssl=context, backlog=256))


async def main(control: str, ports: list[str]) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(control)
    for part in ports:
        kind, _, port = part.partition("=")
        await start(kind, int(port))
    servers.append(await asyncio.start_unix_server(serve_control, control, limit=1 << 22))
    os.chmod(control, 0o777)
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    print(f"{POD} serves {' '.join(ports)}", flush=True)
    await over.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
