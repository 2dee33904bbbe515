"""The clusters that do not come from services: black hole, passthrough, dynamic DNS, external secrets.

Golden cases: golden base, networking/mesh-registry-only, networking/mesh-dynamic-dns, networking/mesh-connections.
"""

from typing import Any

from mizzen import protos
from mizzen.api.mesh.config import MeshConfig
from mizzen.compile.clusters.draft import Draft
from mizzen.compile.clusters.pools import apply_connection_pool
from mizzen.compile.context import ClientTraits, Families
from mizzen.compile.filters import peers
from mizzen.compile.resource import Resource, encode_resource
from mizzen.compile.values import duration, socket_address
from mizzen.model import names

_cluster_v3 = protos.package("envoy.config.cluster.v3")

_IDLE = {"seconds": 300}
LOOPBACK_SOURCE = {"IPv4": "127.0.0.6", "IPv6": "::6", "dual": "127.0.0.6"}
"""The address from which the sidecar reaches its own application, so that capture lets it pass."""


def black_hole(client: ClientTraits, mesh: MeshConfig) -> Resource:
    """Swallows what must go nowhere."""
    fields: dict[str, Any] = {}
    if client.dialect == "envoy":
        fields["metadata"] = {"filter_metadata": {peers.METADATA: protos.struct({"service": names.BLACK_HOLE})}}
    cluster = _cluster_v3.Cluster(
        name=names.BLACK_HOLE,
        type="STATIC",
        alt_stat_name=f"{names.BLACK_HOLE};",
        connect_timeout=_connect_timeout(mesh),
        **fields,
    )
    return encode_resource(names.BLACK_HOLE, cluster)


def passthrough(client: ClientTraits, mesh: MeshConfig) -> Resource:
    """Sends connections where they were going."""
    draft = _original_destination(names.PASSTHROUGH, names.PASSTHROUGH, client, mesh)
    filters = peers.build_network_filters(client.dialect)
    if filters:
        draft.fields["filters"] = [{"name": f.name, "typed_config": f.typed_config} for f in filters]
    return encode_resource(names.PASSTHROUGH, draft.message(client.dialect))


def inbound_passthrough(client: ClientTraits, mesh: MeshConfig) -> Resource:
    """Reaches the application on ports that nobody declared."""
    draft = _original_destination(names.INBOUND_PASSTHROUGH, names.PASSTHROUGH, client, mesh)
    bind: dict[str, Any] = {"source_address": _source(LOOPBACK_SOURCE[client.families])}
    if client.families == "dual":
        bind["extra_source_addresses"] = [{"address": _source(LOOPBACK_SOURCE["IPv6"])}]
    draft.fields["upstream_bind_config"] = bind
    return encode_resource(names.INBOUND_PASSTHROUGH, draft.message(client.dialect))


def _original_destination(name: str, stat_name: str, client: ClientTraits, mesh: MeshConfig) -> Draft:
    draft = Draft(name, stat_name=stat_name)
    draft.peer_metadata = {"service": name}
    draft.fields.update(type="ORIGINAL_DST", lb_policy="CLUSTER_PROVIDED")
    draft.set_default_thresholds()
    draft.upstream = "downstream"
    draft.preserve_header_case = client.preserve_header_case
    policy = mesh.default_traffic_policy
    apply_connection_pool(draft, policy.connection_pool if policy is not None else None, mesh)
    draft.http_common()["idle_timeout"] = _IDLE
    return draft


def _connect_timeout(mesh: MeshConfig) -> dict[str, int]:
    return duration(mesh.connect_timeout) if mesh.connect_timeout is not None else {}


def _source(address: str) -> dict[str, Any]:
    fields: dict[str, Any] = socket_address(address, 0)["socket_address"]
    return fields


def dns_lookup_family(families: Families, *, dual_stack: bool) -> str:
    """Which addresses DNS clusters ask for."""
    if families == "IPv6":
        return "V6_ONLY"
    return "ALL" if families == "dual" and dual_stack else "V4_ONLY"
