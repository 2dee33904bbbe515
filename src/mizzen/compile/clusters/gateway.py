"""All clusters of a gateway: those of every visible service, and the black hole."""

from mizzen.compile import resource
from mizzen.compile.assignments import ClientPlace
from mizzen.compile.clusters import static
from mizzen.compile.clusters.sidecar import outbound_clusters
from mizzen.compile.context import ClientTraits
from mizzen.compile.resource import ResourceSet
from mizzen.incremental import Engine, query
from mizzen.model import mesh
from mizzen.model.proxy import Labels
from mizzen.model.scope import ScopeId


@query
def clusters(
    db: Engine,
    client: ClientTraits,
    scope_id: ScopeId,
    rule_labels: Labels,
    place: ClientPlace,
    passes_mesh_tls: bool,
) -> ResourceSet:
    """The clusters of every gateway of which these arguments are true.

    One with an AUTO_PASSTHROUGH server has a twin of each cluster, named by the SNI that reaches it.
    """
    return ResourceSet.join(
        resource.CLUSTER,
        (
            outbound_clusters(db, client, scope_id, rule_labels, place),
            ResourceSet(resource.CLUSTER, (static.black_hole(client, mesh.mesh_config(db)),)),
            *((outbound_clusters(db, client, scope_id, rule_labels, place, True),) if passes_mesh_tls else ()),
        ),
    )
