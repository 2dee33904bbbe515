"""The cluster that resolves whatever host a request names (outbound policy ALLOW_ANY_DYNAMIC_DNS).

Golden case: networking/mesh-dynamic-dns.
"""

from typing import Any

from mizzen import protos
from mizzen.compile.clusters.draft import Draft
from mizzen.compile.clusters.pools import apply_connection_pool
from mizzen.compile.clusters.static import dns_lookup_family
from mizzen.compile.clusters.transport import MeshTls, Peer, apply_transport
from mizzen.compile.context import ClientTraits
from mizzen.compile.filters import peers
from mizzen.compile.resource import Resource, encode_resource
from mizzen.incremental import Engine
from mizzen.model import mesh, names

_forward_v3 = protos.package("envoy.extensions.clusters.dynamic_forward_proxy.v3")

CACHE = "allow_any_dfp_dns_cache"
MAX_HOSTS = 1024
_IDLE = {"seconds": 300}


def dynamic_dns(db: Engine, client: ClientTraits, tls: MeshTls) -> Resource:
    """The cluster; with TLS in the mesh's outbound policy it speaks TLS to every host."""
    config = mesh.mesh_config(db)
    family = dns_lookup_family(client.families, dual_stack=mesh.control_plane(db).dual_stack)
    policy = config.outbound_traffic_policy
    settings = policy.tls if policy is not None else None
    cluster: dict[str, Any] = {
        "dns_cache_config": {"name": CACHE, "dns_lookup_family": family, "max_hosts": {"value": MAX_HOSTS}}
    }
    if settings is None:
        cluster["allow_insecure_cluster_options"] = True
    draft = Draft(names.DYNAMIC_DNS)
    draft.fields.update(
        cluster_type={
            "name": "envoy.clusters.dynamic_forward_proxy",
            "typed_config": protos.pack(_forward_v3.ClusterConfig(**cluster)),
        },
        lb_policy="CLUSTER_PROVIDED",
    )
    draft.set_default_thresholds()
    draft.preserve_header_case = client.preserve_header_case
    apply_connection_pool(draft, None, config)
    filters = peers.build_network_filters(client.dialect)
    if filters:
        draft.fields["filters"] = [{"name": f.name, "typed_config": f.typed_config} for f in filters]
    if settings is None:
        draft.upstream = "downstream"
        draft.http_common()["idle_timeout"] = _IDLE
    else:
        apply_transport(draft, settings, Peer(port=0, subset="", host="", external=True), client, tls)
        draft.istio_metadata.clear()
    return encode_resource(names.DYNAMIC_DNS, draft.message(client.dialect))
