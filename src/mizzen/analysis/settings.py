"""What analysis is told beside the objects: namespaces, the revision, mesh networks, facts of a live cluster.

In: inputs of the engine under the keys here. Out: queries with defaults. The mesh config is `model.mesh`'s.
"""

from collections.abc import Mapping

import msgspec

from mizzen.api.mesh.networks import MeshNetworks
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query

SETTINGS = Key("AnalysisSettings", "", "default")
NETWORKS = Key("MeshNetworks", "istio-system", "meshnetworks")
FACTS = Key("ClusterFacts", "", "default")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says."""

    istio_namespace: str = "istio-system"
    """Where the control plane runs, and the mesh's secrets and ConfigMaps are."""
    revision: str = "default"
    """Which injector's configuration counts."""
    scopes_gateways: bool = False
    """Whether gateways serve Gateways of their own namespace only (`PILOT_SCOPE_GATEWAY_TO_NAMESPACE`)."""
    clusters: tuple[str, ...] = ()
    """Names of remote clusters, whose Services stand in the table `RemoteService`."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a live cluster beyond its objects; for `precheck`."""

    kubernetes_version: str = ""
    forbidden: Mapping[str, str] = {}
    """Kinds that may not be created, each with the reason."""
    from_version: str = ""
    """The release that is to be upgraded, as `1.20`."""
    listening: Mapping[str, tuple[str, ...]] = {}
    """Of pods by `namespace/name`, the addresses that their applications listen on, as `127.0.0.1:8080`."""


@query
def settings(db: Engine) -> Settings:
    """The settings in force."""
    found: Settings | None = db.input(SETTINGS)
    return found if found is not None else Settings()


@query
def facts(db: Engine) -> Facts:
    """The facts, if there are any."""
    found: Facts | None = db.input(FACTS)
    return found if found is not None else Facts()


@query
def networks(db: Engine) -> MeshNetworks:
    """The mesh's networks."""
    found: MeshNetworks | None = db.input(NETWORKS)
    return found if found is not None else MeshNetworks()
