"""Which virtual host takes a Host header."""

import pytest

from mizzen.diagnose.trace import virtual_hosts


def configuration(**more: object) -> dict[str, object]:
    domains = (["a.example.com"], ["*.example.com"], ["*.b.example.com"], ["a.*"], ["*"])
    hosts = [{"name": " ".join(listed), "domains": listed} for listed in domains]
    return {"virtualHosts": hosts, "ignorePortInHostMatching": True, **more}


def choose(known: dict[str, object], authority: str) -> virtual_hosts.Chosen | None:
    return virtual_hosts.choose(known, virtual_hosts.by_domain(known), authority)


@pytest.mark.parametrize(
    ("authority", "domain"),
    [
        ("a.example.com", "a.example.com"),
        ("A.Example.com:8080", "a.example.com"),
        ("c.example.com", "*.example.com"),
        ("c.b.example.com", "*.b.example.com"),
        ("a.other", "a.*"),
        ("example.com", "*"),
        (".example.com", "*"),
        ("a.", "*"),
        ("[2001:db8::1]:80", "*"),
    ],
)
def test_the_most_specific_domain_wins(authority, domain):
    chosen = choose(configuration(), authority)
    assert chosen is not None
    assert chosen.domain == domain


def test_ports_count_where_they_are_not_ignored():
    chosen = choose(configuration(ignorePortInHostMatching=False), "a.example.com:8080")
    assert chosen is not None
    assert chosen.domain == "a.*"


def test_no_domain_is_no_virtual_host():
    assert choose({"virtualHosts": [{"name": "a", "domains": ["a"]}]}, "b") is None


@pytest.mark.parametrize(
    ("authority", "bare"),
    [("a:80", "a"), ("a", "a"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]"), ("a:b", "a:b"), ("::1", "::1")],
)
def test_a_port_is_stripped_from_hosts_only(authority, bare):
    assert virtual_hosts.strip_port(authority) == bare
