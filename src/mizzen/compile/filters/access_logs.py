"""Access loggers: where a line goes and how it is written.

In: `AccessLog` values, selected from the mesh config or a Telemetry elsewhere. Out: `AccessLog` messages for HTTP
connection managers, TCP proxies and listeners; a listener's own log only records connections that no chain took.
Golden cases: base, telemetry/access-log-files, telemetry/access-log-filters, telemetry/access-log-services.
"""

from typing import Any, Literal

import msgspec

from mizzen import protos
from mizzen.compile.filters import expressions, formats
from mizzen.compile.filters.dialect import Dialect

_accesslog_v3 = protos.package("envoy.config.accesslog.v3")
_file_v3 = protos.package("envoy.extensions.access_loggers.file.v3")
_stream_v3 = protos.package("envoy.extensions.access_loggers.stream.v3")
_grpc_v3 = protos.package("envoy.extensions.access_loggers.grpc.v3")
_otel_v3 = protos.package("envoy.extensions.access_loggers.open_telemetry.v3")
_cel_v3 = protos.package("envoy.extensions.access_loggers.filters.cel.v3")
_formatter_v3 = protos.package("envoy.extensions.formatter.req_without_query.v3")

_CEL_FUNCTIONS = dict.fromkeys(("enable_string_conversion", "enable_string_concat", "enable_string_functions"), True)
"""What Istio's proxies can do without being told."""

DEFAULT_TEXT = (
    '[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% '
    '%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%" %BYTES_RECEIVED% '
    '%BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" '
    '"%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%" %UPSTREAM_CLUSTER_RAW% %UPSTREAM_LOCAL_ADDRESS% '
    "%DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%\n"
)

DEFAULT_JSON = {
    "start_time": "%START_TIME%",
    "route_name": "%ROUTE_NAME%",
    "method": "%REQ(:METHOD)%",
    "path": "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
    "protocol": "%PROTOCOL%",
    "response_code": "%RESPONSE_CODE%",
    "response_flags": "%RESPONSE_FLAGS%",
    "response_code_details": "%RESPONSE_CODE_DETAILS%",
    "connection_termination_details": "%CONNECTION_TERMINATION_DETAILS%",
    "bytes_received": "%BYTES_RECEIVED%",
    "bytes_sent": "%BYTES_SENT%",
    "duration": "%DURATION%",
    "upstream_service_time": "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%",
    "x_forwarded_for": "%REQ(X-FORWARDED-FOR)%",
    "user_agent": "%REQ(USER-AGENT)%",
    "request_id": "%REQ(X-REQUEST-ID)%",
    "authority": "%REQ(:AUTHORITY)%",
    "upstream_host": "%UPSTREAM_HOST%",
    "upstream_cluster": "%UPSTREAM_CLUSTER_RAW%",
    "upstream_local_address": "%UPSTREAM_LOCAL_ADDRESS%",
    "downstream_local_address": "%DOWNSTREAM_LOCAL_ADDRESS%",
    "downstream_remote_address": "%DOWNSTREAM_REMOTE_ADDRESS%",
    "requested_server_name": "%REQUESTED_SERVER_NAME%",
    "upstream_transport_failure_reason": "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
}

PEER_OBJECTS = ("upstream_peer", "downstream_peer")
ALL_PEER_OBJECTS = (
    *PEER_OBJECTS,
    "wasm.upstream_peer",
    "wasm.upstream_peer_id",
    "wasm.downstream_peer",
    "wasm.downstream_peer_id",
)

_STREAMS = {
    "/dev/stdout": ("envoy.access_loggers.stdout", "StdoutAccessLog"),
    "/dev/stderr": ("envoy.access_loggers.stderr", "StderrAccessLog"),
}
_WITHOUT_QUERY = "%REQ_WITHOUT_QUERY"


class FileLog(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A log written to a file of the proxy; `text` or `json` (an object as JSON text) is its format."""

    path: str
    text: str = ""
    json: str = ""
    omit_empty_values: bool = False


class ServiceLog(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A log sent to a service of Envoy's own access log protocol."""

    protocol: Literal["http", "tcp"]
    log_name: str
    cluster: str
    authority: str = ""
    filter_state_objects: tuple[str, ...] = PEER_OBJECTS
    request_headers: tuple[str, ...] = ()
    response_headers: tuple[str, ...] = ()
    response_trailers: tuple[str, ...] = ()


class OpenTelemetryLog(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A log sent to an OpenTelemetry collector."""

    log_name: str
    cluster: str
    authority: str = ""
    body: str = DEFAULT_TEXT
    attributes: tuple[tuple[str, str], ...] = ()
    """Sorted by key."""
    filter_state_objects: tuple[str, ...] = ALL_PEER_OBJECTS


class AccessLog(msgspec.Struct, frozen=True, kw_only=True):
    """One logger and the CEL expression that a request must fulfil to be logged; empty means every request."""

    sink: FileLog | ServiceLog | OpenTelemetryLog
    expression: str = ""


def text_format(text: str) -> str:
    """A text format as Envoy is told it: the default where none is given, and ending a line."""
    if not text:
        return DEFAULT_TEXT
    return text if text.endswith("\n") else text + "\n"


def json_format(labels: dict[str, Any]) -> str:
    """A JSON format as `FileLog.json` holds it; no labels mean the default ones."""
    return msgspec.json.encode(labels or DEFAULT_JSON, order="deterministic").decode()


def build_access_log(log: AccessLog, dialect: Dialect) -> Any:
    """The logger of a connection manager or TCP proxy."""
    return _build(log, dialect, _cel_filter(log.expression, dialect))


def build_end_log(log: AccessLog, dialect: Dialect) -> Any:
    """The logger of a TCP proxy that tells its loggers of connections' beginnings as well: it records the ends only."""
    ends = {"log_type_filter": {"types": ["TcpConnectionEnd"]}}
    return _build(log, dialect, _both(ends, _cel_filter(log.expression, dialect)))


def build_listener_log(log: AccessLog, dialect: Dialect) -> Any:
    """The logger of a listener, which records only connections for which no filter chain was found."""
    no_chain = {"response_flag_filter": {"flags": ["NR"]}}
    return _build(log, dialect, _both(no_chain, _cel_filter(log.expression, dialect)))


def _both(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {"and_filter": {"filters": [first, second]}} if second else first


def _cel_filter(expression: str, dialect: Dialect) -> dict[str, Any]:
    if not expression:
        return {}
    config = _cel_v3.ExpressionFilter(expression=expression)
    if dialect == "envoy":
        # What cannot be read is fulfilled by nothing.
        text = expressions.translate(expression, "filter") or "false"
        config = _cel_v3.ExpressionFilter(expression=text, cel_config=_CEL_FUNCTIONS)
    return {
        "extension_filter": {
            "name": "envoy.access_loggers.extension_filters.cel",
            "typed_config": protos.pack(config),
        }
    }


def _build(log: AccessLog, dialect: Dialect, only: dict[str, Any]) -> Any:
    match log.sink:
        case FileLog():
            name, config = _file_logger(log.sink, dialect)
        case ServiceLog():
            name, config = _service_logger(log.sink)
        case OpenTelemetryLog():
            name, config = _otel_logger(log.sink, dialect)
    fields: dict[str, Any] = {"filter": only} if only else {}
    return _accesslog_v3.AccessLog(name=name, typed_config=protos.pack(config), **fields)


def _file_logger(sink: FileLog, dialect: Dialect) -> tuple[str, Any]:
    log_format = _log_format(_readable(sink) if dialect == "envoy" else sink)
    if dialect == "envoy" and sink.path in _STREAMS:
        # Envoy under uid 1337 may not open the pipe behind /dev/stdout; its own descriptor it may write.
        name, message = _STREAMS[sink.path]
        return name, getattr(_stream_v3, message)(log_format=log_format)
    return "envoy.access_loggers.file", _file_v3.FileAccessLog(path=sink.path, log_format=log_format)


def _readable(sink: FileLog) -> FileLog:
    """The sink with a format that upstream Envoy reads: without the fields that it does not, or else the default."""
    if sink.json:
        return msgspec.structs.replace(sink, json=json_format(formats.readable_part(msgspec.json.decode(sink.json))))
    return sink if formats.is_readable(sink.text) else msgspec.structs.replace(sink, text=DEFAULT_TEXT)


def _log_format(sink: FileLog) -> dict[str, Any]:
    log_format: dict[str, Any]
    if sink.json:
        log_format = {
            "json_format": protos.struct(msgspec.json.decode(sink.json)),
            "json_format_options": {"sort_properties": False},
        }
    else:
        log_format = {"text_format_source": {"inline_string": sink.text or DEFAULT_TEXT}}
    if sink.omit_empty_values:
        log_format["omit_empty_values"] = True
    if formatters := _formatters(sink.json or sink.text):
        log_format["formatters"] = formatters
    return log_format


def _formatters(text: str) -> list[dict[str, Any]]:
    if _WITHOUT_QUERY not in text:
        return []
    config = protos.pack(_formatter_v3.ReqWithoutQuery())
    return [{"name": "envoy.formatter.req_without_query", "typed_config": config}]


def _common(sink: ServiceLog | OpenTelemetryLog) -> dict[str, Any]:
    service = {"cluster_name": sink.cluster}
    if sink.authority:
        service["authority"] = sink.authority
    return {
        "log_name": sink.log_name,
        "grpc_service": {"envoy_grpc": service},
        "transport_api_version": "V3",
        "filter_state_objects_to_log": sink.filter_state_objects,
    }


def _service_logger(sink: ServiceLog) -> tuple[str, Any]:
    if sink.protocol == "tcp":
        return "envoy.tcp_grpc_access_log", _grpc_v3.TcpGrpcAccessLogConfig(common_config=_common(sink))
    return "envoy.access_loggers.http_grpc", _grpc_v3.HttpGrpcAccessLogConfig(
        common_config=_common(sink),
        additional_request_headers_to_log=sink.request_headers,
        additional_response_headers_to_log=sink.response_headers,
        additional_response_trailers_to_log=sink.response_trailers,
    )


def _otel_logger(sink: OpenTelemetryLog, dialect: Dialect) -> tuple[str, Any]:
    fields: dict[str, Any] = {"common_config": _common(sink)}
    if dialect == "envoy":  # the same without the field that it deprecates
        fields = _common(sink)
        del fields["transport_api_version"]
        sink = msgspec.structs.replace(
            sink,
            body=sink.body if formats.is_readable(sink.body) else DEFAULT_TEXT,
            attributes=tuple((key, value) for key, value in sink.attributes if formats.is_readable(value)),
        )
    if sink.attributes:
        values = [{"key": key, "value": {"string_value": value}} for key, value in sink.attributes]
        fields["attributes"] = {"values": values}
    if formatters := _formatters(sink.body):
        fields["formatters"] = formatters
    return "envoy.access_loggers.open_telemetry", _otel_v3.OpenTelemetryAccessLogConfig(
        disable_builtin_labels=True,
        body={"string_value": sink.body},
        **fields,
    )
