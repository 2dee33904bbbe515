"""Profiles: a proxy as its filters see it.

In: a proxy and its workload. Out: `Profile`, equal for all proxies whose filters are the same: the pods of a workload
in dialect `istio`, where traces name the workload; nearly all sidecars in dialect `envoy`, where the environment does.
"""

import msgspec

from mizzen.compile.filters.dialect import Dialect
from mizzen.incremental import Engine, query
from mizzen.model import mesh, workloads
from mizzen.model.proxy import Proxy

_CANONICAL_NAME = "service.istio.io/canonical-name"
_CANONICAL_REVISION = "service.istio.io/canonical-revision"


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


class _NodeMetadata(msgspec.Struct, frozen=True, rename="upper"):
    mesh_id: str = ""


@query
def profile(db: Engine, proxy: Proxy) -> Profile:
    """The profile of a proxy."""
    return Profile(
        dialect=proxy.dialect,
        router=proxy.kind == "router",
        identity=_identity(db, proxy) if proxy.dialect == "istio" else None,
        config=proxy.proxy_config,
        idle_timeout=proxy.idle_timeout,
        http10=proxy.http10 or mesh.control_plane(db).http10,
    )


def _identity(db: Engine, proxy: Proxy) -> Identity:
    labels = dict(workloads.proxy_workload(db, proxy).labels)
    return Identity(
        namespace=proxy.namespace or "default",
        canonical_service=labels.get(_CANONICAL_NAME) or "unknown",
        canonical_revision=labels.get(_CANONICAL_REVISION) or "latest",
        cluster_id=proxy.cluster_id or "unknown",
        mesh_id=msgspec.json.decode(proxy.metadata, type=_NodeMetadata).mesh_id or "unknown",
    )
