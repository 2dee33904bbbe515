"""Protobuf descriptors that the installed xds-protos lacks, as tables of facts.

Two kinds: fields that newer Envoys know in messages that xds-protos already has (`_FIELDS`; numbers read from the
descriptors inside the Envoy binary), and whole files of Istio's own messages that our JSON must show or our gRPC
services must speak (`FILES`; names and numbers are Istio's wire format). `mizzen.protos` merges both into its pool.
A row is `(name, number, type)`; a type is a scalar's name, `.full.name` of a message, `enum .full.name`, or one of
these after `repeated `; `map KEY VALUE` makes a map field.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from google.protobuf import descriptor_pb2

Row = tuple[str, int, str]

_PROTO = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bool": _PROTO.TYPE_BOOL,
    "bytes": _PROTO.TYPE_BYTES,
    "double": _PROTO.TYPE_DOUBLE,
    "int64": _PROTO.TYPE_INT64,
    "string": _PROTO.TYPE_STRING,
    "uint32": _PROTO.TYPE_UINT32,
    "uint64": _PROTO.TYPE_UINT64,
}

_FIELDS: Mapping[str, Mapping[str, Sequence[Row]]] = {
    "envoy/config/cluster/v3/circuit_breaker.proto": {
        "CircuitBreakers.Thresholds.RetryBudget": [("budget_interval", 3, ".google.protobuf.Duration")],
    },
    "envoy/config/cluster/v3/outlier_detection.proto": {
        "OutlierDetection": [("detect_degraded_hosts", 26, ".google.protobuf.BoolValue")],
    },
    "envoy/config/core/v3/protocol.proto": {
        "HttpProtocolOptions": [("max_connection_duration_jitter", 8, ".envoy.type.v3.Percent")],
    },
    "envoy/config/metrics/v3/stats.proto": {
        "StatsConfig": [("allow_default_tag_overrides", 5, ".google.protobuf.BoolValue")],
    },
    "envoy/config/trace/v3/zipkin.proto": {
        "ZipkinConfig": [("timestamp_trace_ids", 10, "bool")],
    },
    "envoy/extensions/access_loggers/open_telemetry/v3/logs_service.proto": {
        "OpenTelemetryAccessLogConfig": [
            ("grpc_service", 9, ".envoy.config.core.v3.GrpcService"),
            ("log_name", 10, "string"),
            ("filter_state_objects_to_log", 13, "repeated string"),
        ],
    },
    "envoy/extensions/access_loggers/stats/v3/stats.proto": {
        "Config": [("stats_scope", 6, ".envoy.type.v3.Scope")],
    },
    "envoy/extensions/filters/http/ext_authz/v3/ext_authz.proto": {
        "ExtAuthz": [("shadow_mode", 32, "bool")],
    },
    "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto": {
        "HttpConnectionManager.Tracing": [("no_context_propagation", 13, "bool")],
    },
}

# Files that a field above needs and that the message's file does not import yet.
_IMPORTS: Mapping[str, Sequence[str]] = {
    "envoy/config/cluster/v3/circuit_breaker.proto": ["google/protobuf/duration.proto"],
    "envoy/config/core/v3/protocol.proto": ["envoy/type/v3/percent.proto"],
    "envoy/extensions/access_loggers/open_telemetry/v3/logs_service.proto": ["envoy/config/core/v3/grpc_service.proto"],
    "envoy/extensions/access_loggers/stats/v3/stats.proto": ["envoy/type/v3/scope.proto"],
}

_DURATION = "google/protobuf/duration.proto"
_STRUCT = "google/protobuf/struct.proto"
_WRAPPERS = "google/protobuf/wrappers.proto"

# path → (package, imports, {message: rows}, {enum: names by number})
_MESSAGES: Mapping[str, tuple[str, Sequence[str], Mapping[str, Sequence[Row]], Mapping[str, Sequence[str]]]] = {
    "envoy/type/v3/scope.proto": (
        "envoy.type.v3",
        [_WRAPPERS],
        {
            "Scope": [
                ("max_counters", 1, ".google.protobuf.UInt32Value"),
                ("max_gauges", 2, ".google.protobuf.UInt32Value"),
                ("max_histograms", 3, ".google.protobuf.UInt32Value"),
                ("enable_eviction", 4, "bool"),
                ("prefix", 5, "string"),
                ("sharing_name", 6, "string"),
            ]
        },
        {},
    ),
    "istio/stats.proto": (
        "stats",
        [_DURATION],
        {
            "MetricConfig": [
                ("dimensions", 1, "map string string"),
                ("name", 2, "string"),
                ("tags_to_remove", 3, "repeated string"),
                ("match", 4, "string"),
                ("drop", 5, "bool"),
            ],
            "MetricDefinition": [
                ("name", 1, "string"),
                ("value", 2, "string"),
                ("type", 3, "enum .stats.MetricType"),
            ],
            "PluginConfig": [
                ("disable_host_header_fallback", 6, "bool"),
                ("tcp_reporting_duration", 7, ".google.protobuf.Duration"),
                ("metrics", 8, "repeated .stats.MetricConfig"),
                ("definitions", 9, "repeated .stats.MetricDefinition"),
                ("reporter", 10, "enum .stats.Reporter"),
                ("rotation_interval", 11, ".google.protobuf.Duration"),
                ("graceful_deletion_interval", 12, ".google.protobuf.Duration"),
            ],
        },
        {"MetricType": ["COUNTER", "GAUGE", "HISTOGRAM"], "Reporter": ["UNSPECIFIED", "SERVER_GATEWAY"]},
    ),
    "istio/alpn.proto": (
        "istio.envoy.config.filter.http.alpn.v2alpha1",
        [],
        {
            "AlpnOverride": [
                ("upstream_protocol", 1, "enum .istio.envoy.config.filter.http.alpn.v2alpha1.Protocol"),
                ("alpn_override", 2, "repeated string"),
            ],
            "FilterConfig": [
                ("alpn_override", 1, "repeated .istio.envoy.config.filter.http.alpn.v2alpha1.AlpnOverride")
            ],
        },
        {"Protocol": ["HTTP10", "HTTP11", "HTTP2"]},
    ),
    "istio/nds.proto": (
        "istio.networking.nds.v1",
        [],
        {
            "NameInfo": [
                ("ips", 1, "repeated string"),
                ("registry", 2, "string"),
                ("shortname", 3, "string"),
                ("namespace", 4, "string"),
                ("alt_hosts", 5, "repeated string"),
            ],
            "NameTable": [
                ("table", 1, "map string .istio.networking.nds.v1.NameInfo"),
                ("name_info", 2, ".istio.networking.nds.v1.NameInfo"),
            ],
        },
        {},
    ),
    "istio/mesh.proto": (
        "istio.mesh.v1alpha1",
        [],
        {"ProxyConfig": [("ca_certificates_pem", 34, "repeated string")]},
        {},
    ),
    "istio/ca.proto": (
        "istio.v1.auth",
        [_STRUCT],
        {
            "IstioCertificateRequest": [
                ("csr", 1, "string"),
                ("validity_duration", 3, "int64"),
                ("metadata", 4, ".google.protobuf.Struct"),
            ],
            "IstioCertificateResponse": [("cert_chain", 1, "repeated string")],
        },
        {},
    ),
}


def add_missing_fields(file: descriptor_pb2.FileDescriptorProto) -> None:
    """Add to `file` the fields that newer Envoys know and it lacks."""
    for path, rows in _FIELDS.get(file.name, {}).items():
        message = _find(file, path)
        known = {field.number for field in message.field}
        for row in rows:
            if row[1] not in known:
                _add_field(message, file.package, row)
    file.dependency.extend(name for name in _IMPORTS.get(file.name, ()) if name not in file.dependency)


def _find(file: descriptor_pb2.FileDescriptorProto, path: str) -> descriptor_pb2.DescriptorProto:
    first, *rest = path.split(".")
    message = next(m for m in file.message_type if m.name == first)
    for name in rest:
        message = next(m for m in message.nested_type if m.name == name)
    return message


def _add_field(message: descriptor_pb2.DescriptorProto, scope: str, row: Row) -> None:
    name, number, kind = row
    field = message.field.add(name=name, number=number)
    if kind.startswith("map "):
        _, key, value = kind.split(" ")
        entry = message.nested_type.add(name="".join(w.capitalize() for w in name.split("_")) + "Entry")
        entry.options.map_entry = True
        _add_field(entry, scope, ("key", 1, key))
        _add_field(entry, scope, ("value", 2, value))
        field.label = _PROTO.LABEL_REPEATED
        field.type = _PROTO.TYPE_MESSAGE
        field.type_name = f".{scope}.{message.name}.{entry.name}"
        return
    field.label = _PROTO.LABEL_REPEATED if kind.startswith("repeated ") else _PROTO.LABEL_OPTIONAL
    kind = kind.removeprefix("repeated ")
    if kind.startswith("enum "):
        field.type, field.type_name = _PROTO.TYPE_ENUM, kind.removeprefix("enum ")
    elif kind.startswith("."):
        field.type, field.type_name = _PROTO.TYPE_MESSAGE, kind
    else:
        field.type = _SCALARS[kind]


def _build_file(path: str) -> descriptor_pb2.FileDescriptorProto:
    scope, imports, messages, enums = _MESSAGES[path]
    file = descriptor_pb2.FileDescriptorProto(name=path, package=scope, syntax="proto3", dependency=imports)
    for name, values in enums.items():
        enum = file.enum_type.add(name=name)
        for number, value in enumerate(values):
            enum.value.add(name=value, number=number)
    for name, rows in messages.items():
        message = file.message_type.add(name=name)
        for row in rows:
            _add_field(message, scope, row)
    return file


FILES: Mapping[str, Callable[[], descriptor_pb2.FileDescriptorProto]] = {
    path: partial(_build_file, path) for path in _MESSAGES
}
"""Files by path that no installed package defines, each built when asked for."""

SYMBOLS: Mapping[str, frozenset[str]] = {
    path: frozenset(f"{scope}.{name}" for name in (*messages, *enums))
    for path, (scope, _, messages, enums) in _MESSAGES.items()
}
"""What each of `FILES` defines, by full name."""
