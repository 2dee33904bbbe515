"""The program in every pod of the attacks: that of the traffic tests, and an attacker's means on order.

    attack_app.py CONTROL [http=PORT] [echo=PORT]

Beside the calls of `traffic_calls` it takes the orders `raw` and `h2` (bytes of HTTP as written), `rpc` (one gRPC call in
bytes, with any credentials) and `unix` (a connection to a Unix socket). A file `jwks.json` beside it is handed out to whoever asks.
"""

import asyncio
import base64
import contextlib
import json
import signal
import sys
from typing import Any

import attack_wire
import traffic_app
import traffic_calls

traffic_app.SERVED = ("jwks.json",)
upgrade = traffic_app.serve_websocket
_TRIES = 10
_WRITTEN_TOO_LATE = "Internal error from Core"


async def perform(order: dict[str, Any]) -> Any:
    """Does what the order says."""
    kind = order["do"]
    if kind == "received":
        return traffic_app.memory.of(order["case"])
    if kind == "rpc":
        order.pop("do")
        return await call_patiently(order)
    if kind == "unix":
        return await asyncio.to_thread(attack_wire.call_unix, order["path"])
    if kind in ("raw", "h2"):
        order.pop("do")
        call = attack_wire.call_raw if kind == "raw" else attack_wire.call_h2
        return await asyncio.to_thread(call, **order)
    return await traffic_calls.perform(order)


async def call_patiently(order: dict[str, Any]) -> dict[str, Any]:
    """One call, again where the server had refused it before the client had written: then gRPC tells only that."""
    for _ in range(_TRIES):
        answer = await call_rpc(**order)
        if answer["code"] != "INTERNAL" or answer["details"] != _WRITTEN_TOO_LATE:
            break
    return answer


async def call_rpc(
    *,
    address: str,
    method: str,
    request: str,
    streams: bool = False,
    metadata: list[list[str]] | None = None,
    tls: dict[str, str] | None = None,
    seconds: float = 8.0,
) -> dict[str, Any]:
    """One call; of a stream only the first answer is read. Messages are base64."""
    import grpc

    options = (("grpc.use_local_subchannel_pool", 1),)
    if tls is None:
        channel = grpc.aio.insecure_channel(address, options=options)
    else:
        chain, key = (tls[name].encode() if name in tls else None for name in ("certificate", "key"))
        credentials = grpc.ssl_channel_credentials(tls["ca"].encode(), key, chain)
        named = (*options, ("grpc.ssl_target_name_override", tls["name"]))
        channel = grpc.aio.secure_channel(address, credentials, options=named)
    passed = tuple((name, value) for name, value in metadata or [])
    message = base64.b64decode(request)
    answer: Any = None
    async with channel:
        try:
            if not streams:
                answer = await channel.unary_unary(method)(message, metadata=passed, timeout=seconds)
            else:
                stream = channel.stream_stream(method)(metadata=passed, timeout=seconds)
                # Nothing is written before the server has let the stream in: gRPC would end one that it refuses
                # meanwhile with a code of its own.
                await stream.initial_metadata()
                # What ended the stream, its code says better.
                with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    await stream.write(message)
                    answer = await stream.read()
                if not isinstance(answer, bytes):
                    return {"code": (await stream.code()).name, "details": await stream.details(), "answer": ""}
                stream.cancel()
        except grpc.aio.AioRpcError as failed:
            return {"code": failed.code().name, "details": failed.details() or "", "answer": ""}
    return {"code": "OK", "details": "", "answer": base64.b64encode(answer).decode()}


async def serve_websocket(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    """As in the traffic tests; with `x-answer` the upgrade is refused, and the connection goes on with HTTP."""
    if "x-answer" not in headers:
        await upgrade(reader, writer, headers)
        return
    writer.write(f"HTTP/1.1 {headers['x-answer']} No\r\nContent-Length: 0\r\n\r\n".encode())
    await traffic_app.serve_http(reader, writer)


async def serve_control(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    order = json.loads(await reader.read())
    try:
        answer = {"value": await perform(order)}
    except Exception as failed:
        answer = {"error": f"{type(failed).__name__}: {failed}"}
    writer.write(json.dumps(answer).encode())
    with contextlib.suppress(ConnectionError):
        await writer.drain()
    writer.close()


async def main(control: str, ports: list[str]) -> None:
    traffic_app.serve_control = serve_control
    traffic_app.serve_websocket = serve_websocket
    await traffic_app.main(control, ports)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
