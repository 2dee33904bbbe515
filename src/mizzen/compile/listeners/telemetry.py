"""Telemetry: which logs, metrics and traces hold for one side of a proxy.

In: the mesh config and the proxy's profile. Out: `Signals`, shared by all proxies of that profile. The legacy settings
of the mesh config hold where no default provider says otherwise.
Golden cases: base, networking/mesh-http-settings, telemetry/tracing-legacy.
"""

from collections.abc import Iterator

import msgspec

from mizzen.api.mesh.config import DefaultProviders, MeshConfig
from mizzen.api.mesh.proxy import CustomTag
from mizzen.api.mesh.proxy import Tracing as ProxyTracing
from mizzen.compile.filters import access_logs, peers
from mizzen.compile.filters.access_logs import AccessLog, FileLog, ServiceLog
from mizzen.compile.filters.metrics import Metrics
from mizzen.compile.filters.tracing import Tag, Tracing
from mizzen.compile.listeners.profiles import Identity, Profile
from mizzen.incremental import Engine, query
from mizzen.model import mesh
from mizzen.model.proxy_configs import proxy_config

ACCESS_LOG_SERVICE = "envoy_accesslog_service"
_FULL_SAMPLING = 100.0


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """What one side of a proxy reports."""

    access_logs: tuple[AccessLog, ...] = ()
    listener_logs: tuple[AccessLog, ...] = ()
    """Those of listeners, for connections that no chain takes."""
    metrics: Metrics | None = None
    tracing: Tracing | None = None
    sample_by_request_id: bool = True


@query
def signals(db: Engine, own: Profile) -> Signals:
    """What the proxies of a profile report."""
    config = mesh.mesh_config(db)
    logs = tuple(_mesh_logs(config, listener=False))
    return Signals(
        access_logs=logs,
        listener_logs=() if config.disable_envoy_listener_log else tuple(_mesh_logs(config, listener=True)),
        metrics=_default_metrics(config),
        tracing=_mesh_tracing(db, own) if config.enable_tracing else None,
    )


def _mesh_logs(config: MeshConfig, *, listener: bool) -> Iterator[AccessLog]:
    if config.access_log_file:
        as_json = config.access_log_encoding == "JSON"
        yield AccessLog(
            sink=FileLog(
                path=config.access_log_file,
                text="" if as_json else access_logs.text_format(config.access_log_format),
                json=_json_format(config.access_log_format) if as_json else "",
            )
        )
    if config.enable_envoy_access_log_service:
        yield AccessLog(
            sink=ServiceLog(
                protocol="tcp" if listener else "http",
                log_name="listener_envoy_accesslog" if listener else "http_envoy_accesslog",
                cluster=ACCESS_LOG_SERVICE,
                filter_state_objects=access_logs.ALL_PEER_OBJECTS,
            )
        )


def _json_format(text: str) -> str:
    """The format as JSON; text that is none falls back to the default fields."""
    try:
        labels = msgspec.json.decode(text, type=dict) if text else {}
    except msgspec.DecodeError:
        labels = {}
    return access_logs.json_format(labels)


def _default_metrics(config: MeshConfig) -> Metrics | None:
    """The standard metrics, where the mesh's default provider is Prometheus."""
    wanted = (config.default_providers or DefaultProviders()).metrics
    kinds = {provider.name.lower(): provider for provider in config.extension_providers}
    providers = [kinds.get(name.lower()) for name in wanted]
    return Metrics() if any(p is not None and p.prometheus is not None for p in providers) else None


# -- traces -----------------------------------------------------------------------------------------------------------


def _mesh_tracing(db: Engine, own: Profile) -> Tracing:
    settings = proxy_config(db, own.config).tracing or ProxyTracing()
    sampling = settings.sampling or mesh.control_plane(db).trace_sampling
    istio_tags = settings.enable_istio_tags is not False
    return Tracing(
        sampling=sampling if sampling <= _FULL_SAMPLING else 1.0,
        tags=(*(_identity_tags(own.identity) if istio_tags else ()), *_custom_tags(settings)),
        dry_run_tags=istio_tags,
        max_path_tag_length=settings.max_path_tag_length,
    )


def _identity_tags(identity: Identity | None) -> Iterator[Tag]:
    if identity is None:
        for name, variable, default in _ENVIRONMENT_TAGS:
            yield Tag(name=f"istio.{name}", kind="environment", value=variable, default=default)
        return
    for name in ("canonical_revision", "canonical_service", "cluster_id", "mesh_id", "namespace"):
        yield Tag(name=f"istio.{name}", kind="literal", value=getattr(identity, name))


_VARIABLES = {fact.key: fact.variable for fact in peers.FACTS}
_ENVIRONMENT_TAGS = (
    ("canonical_revision", _VARIABLES["canonical_revision"], "latest"),
    ("canonical_service", _VARIABLES["canonical_service"], "unknown"),
    ("cluster_id", _VARIABLES["cluster"], "unknown"),
    ("mesh_id", peers.MESH_VARIABLE, "unknown"),
    ("namespace", _VARIABLES["namespace"], "default"),
)


def _custom_tags(settings: ProxyTracing) -> Iterator[Tag]:
    for name, tag in sorted(settings.custom_tags.items()):
        found = _custom_tag(name, tag)
        if found is not None:
            yield found


def _custom_tag(name: str, tag: CustomTag) -> Tag | None:
    if tag.literal is not None:
        return Tag(name=name, kind="literal", value=tag.literal.value)
    if tag.environment is not None:
        source = tag.environment
        return Tag(name=name, kind="environment", value=source.name, default=source.default_value)
    if tag.header is not None:
        return Tag(name=name, kind="header", value=tag.header.name, default=tag.header.default_value)
    return None
