"""Profiles: a proxy as its filters see it.

In: a proxy and its workload. Out: `Profile`, equal for all proxies whose filters are the same: the pods of a workload
in dialect `istio`, where traces name the workload; nearly all sidecars in dialect `envoy`, where the environment does.
"""

from collections.abc import Mapping

import msgspec

from mizzen.api.mesh.providers import ExtensionProvider
from mizzen.compile.filters.dialect import Dialect
from mizzen.incremental import Engine, query
from mizzen.model import mesh, providers, scope, telemetry, workloads
from mizzen.model.attachments import Audience
from mizzen.model.proxy import Labels, Proxy
from mizzen.model.scope import ScopeId
from mizzen.model.telemetry import Keys, Mode

_CANONICAL_NAME = "service.istio.io/canonical-name"
_CANONICAL_REVISION = "service.istio.io/canonical-revision"
_SERVICE_ANNOTATION = "resource.opentelemetry.io/service.name"
_SERVICE_LABELS = ("app.kubernetes.io/instance", "app.kubernetes.io/name")


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What the spans of a proxy say about it."""

    namespace: str
    canonical_service: str
    canonical_revision: str
    cluster_id: str
    mesh_id: str


class Profile(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A proxy as its filters see it."""

    dialect: Dialect
    router: bool = False
    identity: Identity | None = None
    """None where the proxy's environment says who it is."""
    config: str | None = None
    """Its own ProxyConfig as JSON; None means the mesh's default."""
    idle_timeout: str = ""
    http10: bool = False
    telemetries: Keys = ()
    """The Telemetries that hold for it, from the mesh to its own."""
    version: tuple[int, int] = (0, 0)
    """Major and minor version of Istio whose configuration it reads."""
    service: str = ""
    """The service that it names to tracers which are told one; empty where none is."""
    conventional_service: str = ""
    """The same by OpenTelemetry's conventions."""
    unreached: tuple[str, ...] = ()
    """Providers of tracers whose cluster the proxy does not get; Envoy would refuse every listener that names it."""


class _NodeMetadata(msgspec.Struct, frozen=True, rename="upper"):
    mesh_id: str = ""
    annotations: Mapping[str, str] | None = None


@query
def profile(db: Engine, proxy: Proxy) -> Profile:
    """The profile of a proxy."""
    labels = workloads.proxy_workload(db, proxy).labels
    found = telemetry.telemetries(db, Audience(proxy.kind, proxy.namespace, labels))
    tracers = _tracers(db, found)
    told = any(t.datadog is not None or t.opentelemetry is not None for t in tracers)
    return Profile(
        dialect=proxy.dialect,
        router=proxy.kind == "router",
        identity=_identity(proxy, labels) if proxy.dialect == "istio" else None,
        config=proxy.proxy_config,
        idle_timeout=proxy.idle_timeout,
        http10=proxy.http10 or mesh.control_plane(db).http10,
        telemetries=found,
        version=proxy.istio_version[:2],
        service=proxy.service_cluster if told else "",
        conventional_service=_conventional_service(proxy, labels) if told else "",
        unreached=tuple(t.name for t in tracers if not _reaches(db, proxy, labels, t)),
    )


def _identity(proxy: Proxy, labels: Labels) -> Identity:
    known = dict(labels)
    return Identity(
        namespace=proxy.namespace or "default",
        canonical_service=known.get(_CANONICAL_NAME) or "unknown",
        canonical_revision=known.get(_CANONICAL_REVISION) or "latest",
        cluster_id=proxy.cluster_id or "unknown",
        mesh_id=_metadata(proxy).mesh_id or "unknown",
    )


@query
def _tracers(db: Engine, telemetries: Keys) -> tuple[ExtensionProvider, ...]:
    """The providers of tracers in effect."""
    modes: tuple[Mode, ...] = ("CLIENT", "SERVER")
    choices = (telemetry.traces(db, telemetries, mode) for mode in modes)
    names = dict.fromkeys(choice.provider for choice in choices if choice is not None and choice.provider)
    found = (providers.provider_in_any_case(db, name) for name in names)
    return tuple(provider for provider in found if provider is not None)


def _reaches(db: Engine, proxy: Proxy, labels: Labels, tracer: ExtensionProvider) -> bool:
    """Whether the proxy's scope holds the tracer's service with its port, as far as Envoy asks."""
    collector = tracer.zipkin or tracer.datadog
    host = providers.service_host(db, collector.service) if collector is not None else None
    if collector is None or host is None:
        return True  # It needs no cluster to be accepted, or there is no tracer anyway.
    if proxy.kind == "sidecar":
        selected = scope.select_scope(db, proxy.namespace, labels)
    else:
        selected = ScopeId(proxy.namespace)
    service = scope.scoped_service(db, selected, host)
    return service is not None and any(port.number == collector.port for port in service.ports)


def _conventional_service(proxy: Proxy, labels: Labels) -> str:
    annotated = (_metadata(proxy).annotations or {}).get(_SERVICE_ANNOTATION)
    return annotated or workloads.first_label(labels, _SERVICE_LABELS) or proxy.workload_name or proxy.name


def _metadata(proxy: Proxy) -> _NodeMetadata:
    return msgspec.json.decode(proxy.metadata, type=_NodeMetadata, strict=False)
