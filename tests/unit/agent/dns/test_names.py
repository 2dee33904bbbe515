"""The name table: which spellings of a name are known to whom."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen import protos
from mizzen.agent.dns import names
from mizzen.errors import DecodeError

DOMAIN = "web.svc.cluster.local"
SEARCH = ("web.svc.cluster.local", "svc.cluster.local", "cluster.local")

_nds = protos.package("istio.networking.nds.v1")


def table(search=SEARCH, domain: str = DOMAIN, **extra) -> names.Names:
    kubernetes = {"registry": "Kubernetes"}
    hosts = {
        "front.web.svc.cluster.local": {"ips": ["10.96.1.1"], "shortname": "front", "namespace": "web", **kubernetes},
        "cart.shop.svc.cluster.local": {
            "ips": ["10.96.2.1", "fd00::21"],
            "shortname": "cart",
            "namespace": "shop",
            **kubernetes,
        },
        "ledger-0.ledger.web.svc.cluster.local": {
            "ips": ["10.1.3.20"],
            "shortname": "ledger-0.ledger",
            "namespace": "web",
            **kubernetes,
        },
        "far.web.svc.other.domain": {"ips": ["10.96.9.1"], "shortname": "far", "namespace": "web", **kubernetes},
        "www.example.com": {"ips": ["240.240.0.1"], "registry": "External"},
        "*.wild.example.com": {"ips": ["240.240.0.2"], "registry": "External"},
        "*.deep.wild.example.com": {"ips": ["240.240.0.3"], "registry": "External"},
        "ext.shop.svc.cluster.local": {"ips": ["240.240.0.4"], "registry": "External"},
        "empty.example.com": {"ips": [], "registry": "External"},
        "Mixed.Example.com": {"ips": ["240.240.0.5"], "registry": "External"},
    }
    return names.decode_names(protos.encode(_nds.NameTable(table=hosts | extra)), domain=domain, search=search)


@pytest.mark.parametrize(
    ("name", "address", "alias"),
    [
        ("front.web.svc.cluster.local", "10.96.1.1", ""),
        ("front.web.svc", "10.96.1.1", ""),
        ("front.web", "10.96.1.1", ""),
        ("front", "10.96.1.1", ""),
        ("cart.shop", "10.96.2.1", ""),
        ("cart.shop.svc", "10.96.2.1", ""),
        ("cart", None, ""),
        ("cart.web", None, ""),
        ("ledger-0.ledger", "10.1.3.20", ""),
        ("ledger-0.ledger.web", "10.1.3.20", ""),
        ("ledger-0", None, ""),
        ("far.web.svc.other.domain", "10.96.9.1", ""),
        ("far", None, ""),
        ("far.web", None, ""),
        ("www.example.com", "240.240.0.1", ""),
        ("example.com", None, ""),
        ("a.wild.example.com", "240.240.0.2", ""),
        ("a.b.wild.example.com", "240.240.0.2", ""),
        ("a.deep.wild.example.com", "240.240.0.3", ""),
        ("wild.example.com", None, ""),
        ("ext.shop.svc.cluster.local", "240.240.0.4", ""),
        ("ext.shop", None, ""),
        ("empty.example.com", None, ""),
        ("mixed.example.com", "240.240.0.5", ""),
        ("www.example.com.web.svc.cluster.local", "240.240.0.1", "www.example.com"),
        ("www.example.com.cluster.local", "240.240.0.1", "www.example.com"),
        ("cart.shop.svc.web.svc.cluster.local", "10.96.2.1", "cart.shop.svc"),
        ("www.example.com.elsewhere", None, ""),
    ],
)
def test_spellings_of_names(name: str, address: str | None, alias: str) -> None:
    found = table().find(name)
    if address is None:
        assert found is None
    else:
        assert found is not None
        assert (found.host.ipv4[0], found.alias) == (address, alias)


def test_addresses_are_kept_by_family_and_rubbish_is_left_out() -> None:
    extra = {"odd.example.com": {"ips": ["fd00::0001", "not an address", "10.0.0.1"]}}
    host = table(**extra).find("odd.example.com").host
    assert (host.ipv4, host.ipv6) == (("10.0.0.1",), ("fd00::1",))


def test_proxy_outside_a_cluster_has_no_short_names() -> None:
    found = table(domain="")
    assert found.find("front") is None
    assert found.find("front.web") is None
    assert found.find("front.web.svc.cluster.local") is not None


def test_broken_table_is_refused() -> None:
    with pytest.raises(DecodeError, match="broken name table"):
        names.decode_names(b"\xff\xff\xff", domain=DOMAIN, search=SEARCH)


@given(name=st.text(max_size=60))
def test_any_name_can_be_looked_up(name: str) -> None:
    table().find(name)
