"""All clusters of a sidecar: outbound ones of its scope, its own ports, and the static ones.

In: a proxy's selection of scope, traits and service targets. Out: one ResourceSet shared by equal sidecars.
"""

from mizzen.compile import resource
from mizzen.compile.clusters import static
from mizzen.compile.clusters.inbound import inbound_clusters
from mizzen.compile.clusters.outbound import service_clusters
from mizzen.compile.context import ClientTraits
from mizzen.compile.resource import Resource, ResourceSet
from mizzen.incremental import Engine, query
from mizzen.model import destination_rules, mesh, scope
from mizzen.model.destination_rules import rule_id
from mizzen.model.proxy import Labels
from mizzen.model.scope import ScopeId
from mizzen.model.targets import ServiceTarget


@query
def clusters(
    db: Engine,
    client: ClientTraits,
    scope_id: ScopeId,
    rule_labels: Labels,
    targets: tuple[ServiceTarget, ...],
) -> ResourceSet:
    """The clusters of every sidecar with this scope, these traits and these targets."""
    config = mesh.mesh_config(db)
    sidecar = scope.sidecar(db, scope_id)
    pool = sidecar.spec.inbound_connection_pool if sidecar is not None else None
    return ResourceSet(
        resource.CLUSTER,
        (
            *outbound_clusters(db, client, scope_id, rule_labels),
            static.black_hole(config),
            static.passthrough(client, config),
            *inbound_clusters(db, client, scope_id.namespace, targets, pool),
            static.inbound_passthrough(client, config),
        ),
    )


@query
def outbound_clusters(db: Engine, client: ClientTraits, scope_id: ScopeId, rule_labels: Labels) -> tuple[Resource, ...]:
    """The clusters of the services in scope, each under the rule that this scope's clients apply."""
    found: list[Resource] = []
    for service in scope.scope_services(db, scope_id):
        rule = destination_rules.destination_rule(db, scope_id.namespace, service.host, service.namespace, rule_labels)
        ports = tuple(p.number for p in service.ports)
        found.extend(service_clusters(db, client, service.id, ports, rule_id(rule)))
    return tuple(found)
