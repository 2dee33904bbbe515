"""DNS discovery of a cluster in its two forms: fields of the cluster, and an extension with fields of its own.

In: a finished cluster. Out: the same cluster in the other form, changed in place. Istio's proxies get the fields, as
the reference writes them, and so do EnvoyFilters find them. Upstream Envoy warns of those fields and gets the
extension `envoy.cluster.dns`. Clusters that are not discovered by DNS stay as they are.
"""

from typing import Any

from mizzen import protos

_dns_v3 = protos.package("envoy.extensions.clusters.dns.v3")

EXTENSION = "envoy.cluster.dns"

_RATES = ("dns_refresh_rate", "dns_failure_refresh_rate", "dns_jitter", "typed_dns_resolver_config")
_TYPES = ("STRICT_DNS", "LOGICAL_DNS")
# Both enumerations have the same names in the same order; the extension's begins with one for "not said".
_UNSAID = 1


def to_extension(cluster: Any) -> None:
    """Move the fields into the extension."""
    kinds = type(cluster).DiscoveryType
    if cluster.WhichOneof("cluster_discovery_type") != "type" or kinds.Name(cluster.type) not in _TYPES:
        return
    config = _dns_v3.DnsCluster(
        all_addresses_in_single_endpoint=kinds.Name(cluster.type) == "LOGICAL_DNS",
        dns_lookup_family=cluster.dns_lookup_family + _UNSAID,
        respect_dns_ttl=cluster.respect_dns_ttl,
    )
    _move(cluster, config)
    cluster.ClearField("dns_lookup_family")
    cluster.ClearField("respect_dns_ttl")
    cluster.cluster_type.name = EXTENSION
    cluster.cluster_type.typed_config.CopyFrom(protos.pack(config))


def to_fields(cluster: Any) -> None:
    """Move what the extension says into the cluster's own fields."""
    if cluster.WhichOneof("cluster_discovery_type") != "cluster_type" or cluster.cluster_type.name != EXTENSION:
        return
    config: Any = protos.unpack(cluster.cluster_type.typed_config)
    kinds = type(cluster).DiscoveryType
    cluster.type = kinds.Value("LOGICAL_DNS" if config.all_addresses_in_single_endpoint else "STRICT_DNS")
    cluster.dns_lookup_family = max(config.dns_lookup_family - _UNSAID, 0)
    cluster.respect_dns_ttl = config.respect_dns_ttl
    _move(config, cluster)


def _move(source: Any, target: Any) -> None:
    for name in _RATES:
        if source.HasField(name):
            getattr(target, name).ParseFromString(getattr(source, name).SerializeToString(deterministic=True))
            getattr(target, name).SetInParent()
            source.ClearField(name)
