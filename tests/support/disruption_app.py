"""The program in the pods of the disruption test: WebSockets that are kept open, and what became of them.

    disruption_app.py serve PORT…      answers the handshake on each port and sends every frame back
    disruption_app.py keep SOCKET      opens connections on order, and tells which are still there

Orders come through the Unix socket, one JSON document a connection: `{"open": NAME, "host": …, "port": …, "count": …}`
opens so many more, in TLS if `tls` is true, `{"check": NAME}` sends a frame over each and says how many came back and how many were cut, after
which the cut ones are forgotten; `{"close": NAME}` closes them all.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import ssl
import struct
import sys
from typing import Any

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
ANSWER_SECONDS = 20.0


def build_frame(text: bytes, mask: bytes = b"") -> bytes:
    """One text frame; clients mask theirs."""
    body = bytes(byte ^ mask[index % 4] for index, byte in enumerate(text)) if mask else text
    return struct.pack("!BB", 0x81, len(text) | (0x80 if mask else 0)) + mask + body


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(2)
    mask = await reader.readexactly(4) if head[1] & 0x80 else b""
    body = await reader.readexactly(head[1] & 0x7F)
    return bytes(byte ^ mask[index % 4] for index, byte in enumerate(body)) if mask else body


def accept(key: str) -> str:
    return base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()


async def read_head(reader: asyncio.StreamReader) -> dict[str, str]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines[1:] if line)
    return {"": lines[0], **{name.lower(): value.strip() for name, _, value in pairs}}


# -- the server -------------------------------------------------------------------------------------------------------


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, OSError, KeyError):
        headers = await read_head(reader)
        lines = ("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade")
        answer = "\r\n".join((*lines, f"Sec-WebSocket-Accept: {accept(headers['sec-websocket-key'])}", "", ""))
        writer.write(answer.encode())
        while True:
            writer.write(build_frame(await read_frame(reader)))
            await writer.drain()
    writer.close()


# -- the client -------------------------------------------------------------------------------------------------------


class Kept:
    """One open WebSocket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, host: str, port: int, authority: str, tls: bool) -> "Kept":
        context = ssl._create_unverified_context() if tls else None
        name = authority if tls else None
        reader, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=name)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = (f"GET /socket HTTP/1.1\r\nHost: {authority}\r\nConnection: Upgrade\r\nUpgrade: websocket",)
        more = (f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", "")
        writer.write("\r\n".join((*lines, *more)).encode())
        headers = await read_head(reader)
        if " 101 " not in headers[""] or headers.get("sec-websocket-accept") != accept(key):
            writer.close()
            raise OSError(f"{authority} refused the WebSocket: {headers['']}")
        return cls(reader, writer)

    async def lives(self, text: bytes) -> bool:
        """Whether a frame still comes back."""
        try:
            self.writer.write(build_frame(text, os.urandom(4)))
            await self.writer.drain()
            return await asyncio.wait_for(read_frame(self.reader), ANSWER_SECONDS) == text
        except (asyncio.IncompleteReadError, OSError):
            return False


class Keeper:
    """All that are kept, by flow."""

    def __init__(self) -> None:
        self._flows: dict[str, list[Kept]] = {}

    async def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        if "open" in order:
            count = order["count"]
            opened = await asyncio.gather(
                *(Kept.open(order["host"], order["port"], order["authority"], order["tls"]) for _ in range(count)),
                return_exceptions=True,
            )
            good = [one for one in opened if isinstance(one, Kept)]
            self._flows.setdefault(order["open"], []).extend(good)
            return {"opened": len(good), "errors": sorted({repr(e) for e in opened if not isinstance(e, Kept)})}
        flow = order.get("check") or order["close"]
        kept = self._flows.get(flow, [])
        if "close" in order:
            for one in kept:
                one.writer.close()
            self._flows[flow] = []
            return {}
        alive = await asyncio.gather(*(one.lives(b"%d" % index) for index, one in enumerate(kept)))
        for one, lives in zip(kept, alive, strict=True):
            if not lives:
                one.writer.close()
        self._flows[flow] = [one for one, lives in zip(kept, alive, strict=True) if lives]
        return {"alive": sum(alive), "cut": len(alive) - sum(alive)}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = await self.obey(json.loads(await reader.readline()))
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()
        writer.close()


async def main(role: str, *arguments: str) -> None:
    if role == "serve":
        servers = [await asyncio.start_server(serve, "0.0.0.0", int(port)) for port in arguments]
    else:
        servers = [await asyncio.start_unix_server(Keeper().answer, arguments[0])]
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
