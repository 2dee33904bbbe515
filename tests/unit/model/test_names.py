"""Names and their parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.model import names

labels = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=8).filter(lambda s: s.strip("-") == s)
hosts = st.lists(labels, min_size=1, max_size=5).map(".".join)
ports = st.integers(1, 65535)


@given(st.sampled_from(["inbound", "outbound"]), ports, st.just("") | labels, st.just("") | hosts)
def test_cluster_names_come_apart_as_they_were_put_together(direction: str, port: int, subset: str, host: str) -> None:
    assert names.parse_subset_key(names.subset_key(direction, port, subset, host)) == (direction, port, subset, host)


@given(ports, st.just("") | labels, hosts)
def test_sni_names_come_apart_too(port: int, subset: str, host: str) -> None:
    assert names.parse_subset_key(names.sni_key(port, subset, host)) == ("outbound", port, subset, host)


@pytest.mark.parametrize("name", ["BlackHoleCluster", "a|b|c|d", "outbound|x||h", "", "outbound_.x_._.h"])
def test_other_names_have_no_parts(name: str) -> None:
    assert names.parse_subset_key(name) is None


@pytest.mark.parametrize(
    ("pattern", "host", "expected"),
    [
        ("a.b", "a.b", True),
        ("*.b", "a.b", True),
        ("*.b", "x.a.b", True),
        ("*.b", "b", False),
        ("*.b", "*.a.b", True),
        ("*.a.b", "*.b", False),
        ("*", "anything", True),
        ("*", "*.b", True),
        ("a.b", "*.b", False),
    ],
)
def test_a_pattern_stands_for_hosts_below_it(pattern: str, host: str, expected: bool) -> None:
    assert names.matches(pattern, host) is expected


@given(hosts, hosts)
def test_overlap_is_symmetric(a: str, b: str) -> None:
    for left, right in ((a, b), (f"*.{a}", b), (f"*.{a}", f"*.{b}")):
        assert names.overlap(left, right) == names.overlap(right, left)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("cart", "cart.shop.svc.cluster.local"),
        ("cart.shop", "cart.shop"),
        ("*", "*"),
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "::1"),
        ("", ""),
    ],
)
def test_only_short_names_are_completed(host: str, expected: str) -> None:
    assert names.resolve_host(host, "shop", "cluster.local") == expected
