"""The two forms of a cluster that DNS discovers."""

import pytest

from mizzen import protos
from mizzen.compile import dns_discovery

_cluster_v3 = protos.package("envoy.config.cluster.v3")
_cares_v3 = protos.package("envoy.extensions.network.dns_resolver.cares.v3")

RESOLVER = {
    "name": "envoy.network.dns_resolver.cares",
    "typed_config": protos.pack(_cares_v3.CaresDnsResolverConfig(udp_max_queries={"value": 100})),
}


def build_cluster(**fields):
    return _cluster_v3.Cluster(name="outbound|80||x.example", connect_timeout={"seconds": 10}, **fields)


def moved(cluster):
    found = _cluster_v3.Cluster()
    found.CopyFrom(cluster)
    dns_discovery.to_extension(found)
    return found


def test_fields_move_into_the_extension() -> None:
    cluster = build_cluster(
        type="STRICT_DNS",
        dns_lookup_family="V4_ONLY",
        dns_refresh_rate={"seconds": 60},
        dns_jitter={"nanos": 100_000_000},
        dns_failure_refresh_rate={"base_interval": {"seconds": 1}, "max_interval": {"seconds": 2}},
        respect_dns_ttl=True,
        typed_dns_resolver_config=RESOLVER,
    )
    found = protos.to_json(moved(cluster))
    assert found.pop("clusterType") == {
        "name": "envoy.cluster.dns",
        "typedConfig": {
            "@type": protos.TYPE_PREFIX + "envoy.extensions.clusters.dns.v3.DnsCluster",
            "dnsLookupFamily": "V4_ONLY",
            "dnsRefreshRate": "60s",
            "dnsJitter": "0.100s",
            "dnsFailureRefreshRate": {"baseInterval": "1s", "maxInterval": "2s"},
            "respectDnsTtl": True,
            "typedDnsResolverConfig": protos.to_json(cluster)["typedDnsResolverConfig"],
        },
    }
    assert found == {"name": "outbound|80||x.example", "connectTimeout": "10s"}


@pytest.mark.parametrize("family", ["AUTO", "V4_ONLY", "V6_ONLY", "V4_PREFERRED", "ALL"])
@pytest.mark.parametrize("kind", ["STRICT_DNS", "LOGICAL_DNS"])
def test_there_and_back_is_the_same_cluster(kind: str, family: str) -> None:
    cluster = build_cluster(type=kind, dns_lookup_family=family, respect_dns_ttl=True, dns_refresh_rate={"seconds": 5})
    found = moved(cluster)
    assert found != cluster
    dns_discovery.to_fields(found)
    assert found == cluster


@pytest.mark.parametrize("kind", ["EDS", "STATIC", "ORIGINAL_DST"])
def test_other_clusters_stay(kind: str) -> None:
    cluster = build_cluster(type=kind)
    assert moved(cluster) == cluster
    dns_discovery.to_fields(cluster)
    assert cluster == build_cluster(type=kind)


def test_other_extensions_stay() -> None:
    cluster = build_cluster(cluster_type={"name": "envoy.clusters.dynamic_forward_proxy"})
    assert moved(cluster) == cluster
    dns_discovery.to_fields(cluster)
    assert cluster.cluster_type.name == "envoy.clusters.dynamic_forward_proxy"
