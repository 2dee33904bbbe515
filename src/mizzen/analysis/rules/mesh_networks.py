"""Mesh networks: registries that no cluster has.

In: the mesh networks, and the secrets of remote clusters. Out: IST0126, on the networks.
"""

from mizzen.analysis import catalogue, objects
from mizzen.analysis import settings as analysis_settings
from mizzen.analysis.findings import Finding, report
from mizzen.api.kube.data import Secret
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query

_KNOWN = frozenset({"Mock", "Kubernetes", "External"})
_MULTI_CLUSTER = "istio/multiCluster"


@query
def _remote_clusters(db: Engine, key: Key) -> tuple[str, ...]:
    """The clusters that a secret gives access to."""
    secret: Secret | None = db.input(key)
    if secret is None or secret.metadata.labels.get(_MULTI_CLUSTER) != "true":
        return ()
    return tuple(sorted({*secret.data, *secret.string_data}))


@query
def check_networks(db: Engine) -> tuple[Finding, ...]:
    """The networks' registries that are unknown."""
    networks = analysis_settings.networks(db).networks
    if not networks:
        return ()
    known = _KNOWN.union(*(_remote_clusters(db, key) for key in objects.keys(db, "Secret")))
    return tuple(
        report(
            catalogue.UNKNOWN_MESH_NETWORKS_SERVICE_REGISTRY,
            analysis_settings.NETWORKS,
            endpoints.from_registry,
            name,
        )
        for name in sorted(networks)
        for endpoints in networks[name].endpoints
        if endpoints.from_registry is not None and endpoints.from_registry not in known
    )
