"""All clusters of a sidecar: outbound ones of its scope, its own ports, and the static ones.

In: a proxy's selection of scope, traits and service targets. Out: one ResourceSet shared by equal sidecars.
"""

import msgspec

from mizzen.compile import resource
from mizzen.compile.assignments import ClientPlace
from mizzen.compile.clusters import static
from mizzen.compile.clusters.dynamic_dns import dynamic_dns
from mizzen.compile.clusters.inbound import inbound_clusters
from mizzen.compile.clusters.ingress import Ingress, ingress_clusters
from mizzen.compile.clusters.outbound import DNS_RESOLUTIONS, mesh_tls, service_clusters
from mizzen.compile.context import ClientTraits
from mizzen.compile.resource import Resource, ResourceSet, shared_set
from mizzen.incremental import Engine, attempt, query
from mizzen.model import destination_rules, mesh, scope
from mizzen.model.destination_rules import rule_id
from mizzen.model.proxy import Labels
from mizzen.model.scope import ScopeId
from mizzen.model.targets import ServiceTarget


class Served(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """What a sidecar serves, and how traffic reaches it."""

    targets: tuple[ServiceTarget, ...]
    addresses: tuple[str, ...] = ()
    """Its own addresses, where its Sidecar has ingress listeners; else left empty, so that equal pods share."""
    captured: bool = True
    """False in interception mode NONE."""


@query
def clusters(
    db: Engine,
    client: ClientTraits,
    scope_id: ScopeId,
    rule_labels: Labels,
    place: ClientPlace,
    served: Served,
) -> ResourceSet:
    """The clusters of every sidecar of which these arguments are true."""
    config = mesh.mesh_config(db)
    dynamic = scope.outbound_policy(db, scope_id).mode == "ALLOW_ANY_DYNAMIC_DNS"
    own = (
        static.black_hole(client, config),
        static.passthrough(client, config),
        *((dynamic_dns(db, client, mesh_tls(db)),) if dynamic else ()),
        *_inbound(db, client, scope_id, served),
        static.inbound_passthrough(client, config),
    )
    outbound = outbound_clusters(db, client, scope_id, rule_labels, place)
    return ResourceSet.join(resource.CLUSTER, (outbound, ResourceSet(resource.CLUSTER, own)))


def _inbound(db: Engine, client: ClientTraits, scope_id: ScopeId, served: Served) -> tuple[Resource, ...]:
    sidecar = scope.sidecar(db, scope_id)
    if sidecar is not None and sidecar.spec.ingress:
        ingress = Ingress(scope=scope_id, addresses=served.addresses)
        return ingress_clusters(db, client, ingress, served.targets)
    if not served.captured:
        return ()
    pool = sidecar.spec.inbound_connection_pool if sidecar is not None else None
    return inbound_clusters(db, client, scope_id.namespace, served.targets, pool)


@query
def outbound_clusters(
    db: Engine,
    client: ClientTraits,
    scope_id: ScopeId,
    rule_labels: Labels,
    place: ClientPlace,
    sni_routed: bool = False,
) -> ResourceSet:
    """The clusters of the services in scope, each under the rule that this scope's clients apply."""
    groups = scope.service_groups(db, scope_id)
    return ResourceSet.join(
        resource.CLUSTER,
        (_group_clusters(db, client, scope_id, rule_labels, place, sni_routed, group) for group in groups),
    )


@query
def _group_clusters(
    db: Engine,
    client: ClientTraits,
    scope_id: ScopeId,
    rule_labels: Labels,
    place: ClientPlace,
    sni_routed: bool,
    group: str,
) -> ResourceSet:
    found: list[Resource] = []
    for service in scope.group_services(db, scope_id, group).values():
        if sni_routed and service.external:
            continue
        rule = destination_rules.destination_rule(db, scope_id.namespace, service.host, service.namespace, rule_labels)
        ports = tuple(p.number for p in service.ports)
        by_dns = place if service.resolution in DNS_RESOLUTIONS else ClientPlace()
        built = attempt(service_clusters, db, client, service.id, ports, rule_id(rule), by_dns, sni_routed)
        found.extend(built or ())
    return shared_set(ResourceSet(resource.CLUSTER, found))
