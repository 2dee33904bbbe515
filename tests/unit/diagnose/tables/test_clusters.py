"""Cluster names in their parts."""

import pytest

from mizzen.diagnose.tables.clusters import ClusterFilter, ClusterName


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("outbound|9080|v1|reviews.default", ClusterName("reviews.default", 9080, "v1", "outbound")),
        ("inbound|8080||", ClusterName("", 8080, "", "inbound")),
        ("PassthroughCluster", ClusterName("PassthroughCluster")),
        ("a|b|c", ClusterName("a|b|c")),
        ("outbound|x||h", ClusterName("h", 0, "", "outbound")),
    ],
)
def test_a_name_is_taken_apart(name: str, parts: ClusterName) -> None:
    assert ClusterName.parse(name) == parts


def test_filters_are_substrings_of_the_whole_name_and_all_must_hold() -> None:
    name = "outbound|9080|v1|reviews.default"

    assert ClusterFilter(fqdn="v1", direction="outbound", port=9080).keeps(name)
    assert not ClusterFilter(fqdn="v1", port=908).keeps(name)
    assert not ClusterFilter(fqdn="v1", subset="v2").keeps(name)
    assert ClusterFilter().keeps("anything")
