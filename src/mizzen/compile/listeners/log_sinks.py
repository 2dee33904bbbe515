"""Providers of access logs as sinks.

In: the name of a provider in the mesh config. Out: where its lines go, or None for a provider that is unknown, logs
nothing, or whose service is no service of the mesh: it yields nothing in its place. The older settings of the mesh
config are sinks too. Golden cases: telemetry/access-log-files, telemetry/access-log-services, base.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mizzen.api.mesh.config import MeshConfig
from mizzen.api.mesh.providers import (
    EnvoyFileAccessLogProvider,
    EnvoyHttpGrpcV3LogProvider,
    EnvoyOpenTelemetryLogProvider,
    EnvoyTcpGrpcV3LogProvider,
    ExtensionProvider,
    FileLogFormat,
)
from mizzen.compile.filters import access_logs
from mizzen.compile.filters.access_logs import AccessLog, FileLog, OpenTelemetryLog, ServiceLog
from mizzen.incremental import Engine, query
from mizzen.model import mesh, providers

ACCESS_LOG_SERVICE = "envoy_accesslog_service"
"""The cluster of the mesh's own access log service, which the bootstrap holds."""

BUILT_IN = "envoy"
"""The provider that every mesh has."""

Sink = FileLog | ServiceLog | OpenTelemetryLog


@query
def sink(db: Engine, name: str) -> Sink | None:
    """The sink of the provider of that name."""
    found = providers.provider_in_any_case(db, name)
    if found is None:
        return None
    if found.envoy_file_access_log is not None:
        return _file_sink(db, found) if found.envoy_file_access_log.path else None
    if found.envoy_http_als is not None:
        return _http_sink(db, found.envoy_http_als)
    if found.envoy_tcp_als is not None:
        return _tcp_sink(db, found.envoy_tcp_als)
    return _otel_sink(db, found.envoy_otel_als) if found.envoy_otel_als is not None else None


def _file_sink(db: Engine, provider: ExtensionProvider) -> FileLog:
    written = provider.envoy_file_access_log or EnvoyFileAccessLogProvider()
    text, json = _format(db, provider.name, written.log_format)
    return FileLog(path=written.path, text=text, json=json, omit_empty_values=written.omit_empty_values)


def _format(db: Engine, name: str, written: FileLogFormat | None) -> tuple[str, str]:
    """The format as text or as JSON; only the provider that every mesh has takes over the mesh's own format."""
    if written is None and name == BUILT_IN:
        return _mesh_format(mesh.mesh_config(db))
    if written is not None and written.labels is not None:
        return "", access_logs.json_format(dict(written.labels))
    return access_logs.text_format((written.text if written is not None else None) or ""), ""


def _http_sink(db: Engine, provider: EnvoyHttpGrpcV3LogProvider) -> ServiceLog | None:
    host = providers.service_host(db, provider.service)
    if host is None:
        return None
    return ServiceLog(
        protocol="http",
        log_name=provider.log_name or "http_envoy_accesslog",
        cluster=providers.cluster_name(host, provider.port),
        authority=host,
        filter_state_objects=provider.filter_state_objects_to_log or access_logs.PEER_OBJECTS,
        request_headers=provider.additional_request_headers_to_log,
        response_headers=provider.additional_response_headers_to_log,
        response_trailers=provider.additional_response_trailers_to_log,
    )


def _tcp_sink(db: Engine, provider: EnvoyTcpGrpcV3LogProvider) -> ServiceLog | None:
    host = providers.service_host(db, provider.service)
    if host is None:
        return None
    return ServiceLog(
        protocol="tcp",
        log_name=provider.log_name or "tcp_envoy_accesslog",
        cluster=providers.cluster_name(host, provider.port),
        authority=host,
        filter_state_objects=provider.filter_state_objects_to_log or access_logs.PEER_OBJECTS,
    )


def _otel_sink(db: Engine, provider: EnvoyOpenTelemetryLogProvider) -> OpenTelemetryLog | None:
    host = providers.service_host(db, provider.service)
    if host is None:
        return None
    written = provider.log_format
    labels: Mapping[str, Any] = written.labels if written is not None and written.labels is not None else {}
    return OpenTelemetryLog(
        log_name=provider.log_name or "otel_envoy_accesslog",
        cluster=providers.cluster_name(host, provider.port),
        authority=host,
        body=written.text if written is not None and written.text else access_logs.DEFAULT_TEXT,
        attributes=tuple(sorted((str(key), str(value)) for key, value in labels.items())),
    )


# -- the mesh config's older settings ---------------------------------------------------------------------------------


def mesh_logs(config: MeshConfig, *, listener: bool) -> Iterator[AccessLog]:
    """The logs of `accessLogFile` and `enableEnvoyAccessLogService`."""
    if config.access_log_file:
        text, json = _mesh_format(config)
        yield AccessLog(sink=FileLog(path=config.access_log_file, text=text, json=json))
    if config.enable_envoy_access_log_service:
        yield AccessLog(
            sink=ServiceLog(
                protocol="tcp" if listener else "http",
                log_name="listener_envoy_accesslog" if listener else "http_envoy_accesslog",
                cluster=ACCESS_LOG_SERVICE,
                filter_state_objects=access_logs.ALL_PEER_OBJECTS,
            )
        )


def _mesh_format(config: MeshConfig) -> tuple[str, str]:
    """The mesh's format as text or as JSON; text that is no JSON object falls back to the default fields."""
    if config.access_log_encoding != "JSON":
        return access_logs.text_format(config.access_log_format), ""
    try:
        labels = msgspec.json.decode(config.access_log_format, type=dict) if config.access_log_format else {}
    except msgspec.DecodeError:
        labels = {}
    return "", access_logs.json_format(labels)
