"""Clusters whose endpoints DNS finds: strict and logical DNS with their endpoints inside, and dynamic forward proxies.

Golden cases: networking/se-dns, networking/se-wildcards, networking/mesh-dynamic-dns.
"""

from typing import Any

import msgspec

from mizzen import protos
from mizzen.api.networking.destination_rule import Subset
from mizzen.compile import observed
from mizzen.compile.assignments import ClientPlace, apply_locality_setting, build_groups, build_localities
from mizzen.compile.clusters.draft import Draft
from mizzen.compile.clusters.static import dns_lookup_family
from mizzen.compile.context import ClientTraits
from mizzen.compile.peer_facts import telling
from mizzen.compile.values import duration
from mizzen.incremental import Engine
from mizzen.model import endpoints, mesh
from mizzen.model.endpoints import Endpoint
from mizzen.model.localities import LocalitySetting
from mizzen.model.protocols import Protocol
from mizzen.model.services import Port, Service

_cluster_v3 = protos.package("envoy.config.cluster.v3")
_endpoint_v3 = protos.package("envoy.config.endpoint.v3")
_cares_v3 = protos.package("envoy.extensions.network.dns_resolver.cares.v3")
_forward_v3 = protos.package("envoy.extensions.clusters.dynamic_forward_proxy.v3")

_JITTER = {"nanos": 100_000_000}
_MAX_UDP_QUERIES = {"value": 100}


class Members(msgspec.Struct, frozen=True, kw_only=True):
    """How a client orders the endpoints that its cluster carries."""

    place: ClientPlace
    setting: LocalitySetting | None
    has_detection: bool


def apply_dns(
    db: Engine,
    draft: Draft,
    client: ClientTraits,
    found: Service,
    port: Port,
    subset: Subset | None,
    order: Members,
) -> bool:
    """The DNS discovery of a service; False where no endpoint is known, so that there is no cluster."""
    family = dns_lookup_family(client.families, dual_stack=mesh.control_plane(db).dual_stack)
    if found.resolution == "dynamic_dns" and found.host.startswith("*"):
        return _apply_forward_proxy(draft, found, port, family)
    members = _members(db, found, port, subset)
    if not members:
        observed.observe(db, observed.NO_DNS_ENDPOINTS, draft.fields["name"])
        return False
    logical = found.resolution == "dns_round_robin" or found.race_first_connect
    if found.resolution == "dns_round_robin":
        members = members[:1]
    groups = build_groups(((e, e.tls_mode == "istio") for e in members), telling(db, client.dialect))
    setting = order.setting
    if subset is None or setting is None or not setting.failover_priority:
        groups = apply_locality_setting(groups, setting, order.place, has_detection=order.has_detection)
    config = mesh.mesh_config(db)
    refresh = config.dns_refresh_rate
    draft.fields.update(
        type="LOGICAL_DNS" if logical else "STRICT_DNS",
        lb_policy="LEAST_REQUEST",
        dns_lookup_family="ALL" if found.race_first_connect else family,
        dns_jitter=_JITTER,
        respect_dns_ttl=True,
        typed_dns_resolver_config={
            "name": "envoy.network.dns_resolver.cares",
            "typed_config": protos.pack(_cares_v3.CaresDnsResolverConfig(udp_max_queries=_MAX_UDP_QUERIES)),
        },
        load_assignment=_endpoint_v3.ClusterLoadAssignment(
            cluster_name=draft.fields["name"], endpoints=build_localities(groups)
        ),
    )
    if refresh is not None:
        draft.fields["dns_refresh_rate"] = duration(refresh)
    return True


def _members(db: Engine, found: Service, port: Port, subset: Subset | None) -> list[Endpoint]:
    wanted = set(subset.labels.items()) if subset is not None else set()
    return [
        e
        for e in endpoints.port_endpoints(db, found.id, port.name)
        if wanted <= set(e.workload.labels if e.workload is not None else ())
    ]


def _apply_forward_proxy(draft: Draft, found: Service, port: Port, family: str) -> bool:
    if not (port.protocol.is_http or port.protocol is Protocol.TLS or port.protocol is Protocol.HTTPS):
        return False
    config: dict[str, Any] = {"dns_cache_config": {"name": f"{found.host}_dfp_dns_cache", "dns_lookup_family": family}}
    draft.fields.update(
        cluster_type={
            "name": "envoy.clusters.dynamic_forward_proxy",
            "typed_config": protos.pack(_forward_v3.ClusterConfig(**config)),
        },
        lb_policy="CLUSTER_PROVIDED",
    )
    return True
