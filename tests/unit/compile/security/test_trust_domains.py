"""Principals for every trust domain of the mesh."""

import pytest

from mizzen.compile.security.trust_domains import expand_principals, expand_trust_domains

DOMAINS = ("shop.example", "legacy", "old.shop.example")


def test_a_known_domain_becomes_all():
    assert expand_principals(["legacy/ns/web/sa/a"], DOMAINS) == (
        "shop.example/ns/web/sa/a",
        "legacy/ns/web/sa/a",
        "old.shop.example/ns/web/sa/a",
    )


def test_cluster_local_always_means_the_mesh():
    assert expand_principals(["cluster.local/ns/web/sa/a"], ("td",)) == ("td/ns/web/sa/a",)


@pytest.mark.parametrize("value", ["other/ns/web/sa/a", "*", "*/ns/web/sa/a", "*/sa/a", "legacy/ns/web/*"])
def test_strangers_and_values_without_a_domain_stay(value):
    assert expand_principals([value], DOMAINS) == (value,)


def test_a_leading_star_stays_for_the_domain_that_it_covers():
    assert expand_principals(["*.shop.example/ns/web/sa/a"], DOMAINS) == (
        "shop.example/ns/web/sa/a",
        "legacy/ns/web/sa/a",
        "*.shop.example/ns/web/sa/a",
    )


def test_trust_domains_expand_literally():
    assert expand_trust_domains(["legacy", "x"], DOMAINS) == (*DOMAINS, "x")
    assert expand_trust_domains(["cluster.local"], DOMAINS) == ("cluster.local",)
