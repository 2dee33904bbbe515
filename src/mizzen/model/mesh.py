"""The mesh's own configuration as inputs: MeshConfig, and what the control plane was started with.

In: the input `MESH` (a `MeshConfig` already merged over the defaults), the input `CONTROL_PLANE`, and the input
`AUTHORITY_ROOTS`, PEM of the roots that the authority trusts now.
Out: all of them as queries with their defaults, so that a mesh without any still compiles.
"""

import msgspec

from mizzen.api.mesh.config import MeshConfig
from mizzen.api.mesh.merge import default_mesh_config
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query

MESH = Key("MeshConfig", "", "default")
CONTROL_PLANE = Key("ControlPlane", "", "default")
AUTHORITY_ROOTS = Key("AuthorityRoots", "", "default")


def spiffe_bundle_key(url: str) -> Key:
    """The input that holds the roots which a trust domain publishes at a URL, as PEM."""
    return Key("SpiffeBundle", "", url)


class ControlPlane(msgspec.Struct, frozen=True, kw_only=True):
    """What start-up flags and feature variables decide about every answer."""

    domain: str = "cluster.local"
    """The DNS suffix of Kubernetes services."""
    cluster_id: str = "Kubernetes"
    dual_stack: bool = False
    http10: bool = False
    trace_sampling: float = 1.0
    """Percent of requests traced where nothing else says so."""


_DEFAULT = ControlPlane()


@query
def mesh_config(db: Engine) -> MeshConfig:
    """The effective mesh config."""
    found: MeshConfig | None = db.input(MESH)
    return found if found is not None else default_mesh_config()


@query
def control_plane(db: Engine) -> ControlPlane:
    """The control plane's own settings."""
    found: ControlPlane | None = db.input(CONTROL_PLANE)
    return found if found is not None else _DEFAULT


@query
def authority_roots(db: Engine) -> str:
    """The roots that the authority trusts now, as PEM; empty where there is no authority."""
    return db.input(AUTHORITY_ROOTS) or ""


@query
def further_roots(db: Engine) -> tuple[str, ...]:
    """PEM texts of the roots of other authorities that the mesh config trusts, in its order."""
    found: list[str] = []
    for data in mesh_config(db).ca_certificates:
        fetched: str | None = db.input(spiffe_bundle_key(data.spiffe_bundle_url)) if data.spiffe_bundle_url else None
        found += (text for text in (data.pem, fetched) if text)
    return tuple(found)


@query
def domain(db: Engine) -> str:
    """The DNS suffix of Kubernetes services."""
    return control_plane(db).domain


@query
def root_namespace(db: Engine) -> str:
    """The namespace whose policies apply to the whole mesh."""
    return mesh_config(db).root_namespace


@query
def trust_domain(db: Engine) -> str:
    """The trust domain of this mesh's identities."""
    return mesh_config(db).trust_domain
