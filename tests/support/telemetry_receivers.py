"""Receivers of telemetry as a program for a pod: collectors that only write down what reaches them.

    telemetry_receivers.py FILE

9411 takes Zipkin's spans (JSON over HTTP), 4318 OpenTelemetry's over HTTP, 8126 Datadog's (msgpack); 4317 is gRPC:
OpenTelemetry's spans and logs, and Envoy's access log service. FILE gets one JSON document a line for each message
with what the protocol says besides, so a test reads them while the program runs.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TextIO

import grpc
import msgspec
from aiohttp import web
from google.protobuf import json_format

from mizzen import protos

_traces = protos.package("opentelemetry.proto.collector.trace.v1")
_logs = protos.package("opentelemetry.proto.collector.logs.v1")
_als = protos.package("envoy.service.accesslog.v3")

ZIPKIN, OTLP_GRPC, OTLP_HTTP, DATADOG = 9411, 4317, 4318, 8126


class Book:
    """The file of everything that came."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, kind: str, **entry: Any) -> None:
        self._file.write(json.dumps({"kind": kind, **entry}) + "\n")
        self._file.flush()


def _json(message: Any) -> dict[str, Any]:
    return dict(json_format.MessageToDict(message))


# -- HTTP -------------------------------------------------------------------------------------------------------------


def _read_zipkin(body: bytes) -> Any:
    return json.loads(body)


def _read_otlp(body: bytes) -> Any:
    return _json(_traces.ExportTraceServiceRequest.FromString(body))


def _read_datadog(body: bytes) -> Any:
    # Span ids are 64-bit numbers, which JSON keeps as they are.
    return msgspec.msgpack.decode(body)


async def _serve_http(port: int, path: str, kind: str, read: Callable[[bytes], Any], book: Book) -> None:
    """Takes `path`; whatever else is asked there does not exist, and is written down all the same."""

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        known = request.path == path
        entry = {"path": request.path, "headers": dict(request.headers), "body": read(body) if known else None}
        book.write(kind if known else f"{kind}?", **entry)
        return web.json_response({}, status=200 if known else 404)

    application = web.Application(client_max_size=16 * 1024 * 1024)
    application.router.add_route("*", "/{path:.*}", take)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "0.0.0.0", port).start()


# -- gRPC -------------------------------------------------------------------------------------------------------------


def _metadata(context: Any) -> Mapping[str, str]:
    return {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}


def _exports(kind: str, request: Any, response: Any, book: Book) -> Any:
    async def export(message: Any, context: Any) -> Any:
        book.write(kind, headers=_metadata(context), body=_json(message))
        return response()

    return grpc.unary_unary_rpc_method_handler(
        export, request_deserializer=request.FromString, response_serializer=protos.encode
    )


def _streams_logs(book: Book) -> Any:
    async def take(messages: AsyncIterator[Any], context: Any) -> Any:
        identifier: dict[str, Any] = {}
        async for message in messages:
            if message.HasField("identifier"):
                identifier = {"log": message.identifier.log_name, "node": message.identifier.node.id}
            book.write("als", headers=_metadata(context), body=_json(message), **identifier)
        return _als.StreamAccessLogsResponse()

    return grpc.stream_unary_rpc_method_handler(
        take, request_deserializer=_als.StreamAccessLogsMessage.FromString, response_serializer=protos.encode
    )


def _handlers(book: Book) -> list[grpc.GenericRpcHandler]:
    spans = _exports("otlp-grpc", _traces.ExportTraceServiceRequest, _traces.ExportTraceServiceResponse, book)
    logs = _exports("otlp-logs", _logs.ExportLogsServiceRequest, _logs.ExportLogsServiceResponse, book)
    served = {
        "opentelemetry.proto.collector.trace.v1.TraceService": {"Export": spans},
        "opentelemetry.proto.collector.logs.v1.LogsService": {"Export": logs},
        "envoy.service.accesslog.v3.AccessLogService": {"StreamAccessLogs": _streams_logs(book)},
    }
    return [grpc.method_handlers_generic_handler(name, methods) for name, methods in served.items()]


async def serve(book: Book) -> None:
    """Receive until the process ends."""
    await _serve_http(ZIPKIN, "/api/v2/spans", "zipkin", _read_zipkin, book)
    await _serve_http(OTLP_HTTP, "/v1/traces", "otlp-http", _read_otlp, book)
    await _serve_http(DATADOG, "/v0.4/traces", "datadog", _read_datadog, book)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(_handlers(book))
    server.add_insecure_port(f"0.0.0.0:{OTLP_GRPC}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    with open(sys.argv[1], "a", encoding="utf-8") as file:
        asyncio.run(serve(Book(file)))
