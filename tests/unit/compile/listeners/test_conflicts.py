"""Several services on one address and port: the table of who stays."""

import pytest

from mizzen.compile.addresses import Bind
from mizzen.compile.filters.network import to_cluster
from mizzen.compile.listeners.conflicts import Entry, merge_entries
from mizzen.compile.listeners.plans import HttpChain, Match, TcpChain
from mizzen.model.protocols import Protocol

PROTOCOLS = {"http": Protocol.HTTP, "tcp": Protocol.TCP, "auto": Protocol.AUTO}
SNIFFED = Match(transport="raw_buffer", alpn=("http/1.1", "h2c"))


def tcp(name, **match):
    return TcpChain(route=to_cluster(name), match=Match(**match))


def http(name):
    return HttpChain(route_name=name, match=SNIFFED)


def entry(kind, *chains, protocol=None, **fields):
    protocol = protocol or PROTOCOLS[kind]
    return Entry(bind=Bind("0.0.0.0"), port=80, kind=kind, protocol=protocol, chains=chains, **fields)


def names(merged):
    return [c.route_name if isinstance(c, HttpChain) else c.route.cluster for c in merged.chains]


@pytest.mark.parametrize(
    ("current", "incoming", "kind", "kept"),
    [
        (entry("http", http("a")), entry("http", http("b")), "http", ["a"]),
        (entry("http", http("a")), entry("tcp", tcp("b")), "auto", ["a", "b"]),
        (entry("http", http("a")), entry("auto", tcp("b"), http("c")), "auto", ["b", "c"]),
        (entry("tcp", tcp("a")), entry("http", http("b")), "auto", ["a", "b"]),
        (entry("tcp", tcp("a")), entry("tcp", tcp("b", server_names=("x",))), "tcp", ["a", "b"]),
        (entry("tcp", tcp("a", server_names=("x",))), entry("auto", tcp("b"), http("c")), "auto", ["a", "b", "c"]),
        (entry("auto", http("a")), entry("http", http("b")), "auto", ["a"]),
        (entry("auto", http("a")), entry("tcp", tcp("b")), "auto", ["a", "b"]),
        (entry("auto", tcp("a"), http("b")), entry("auto", tcp("c"), http("d")), "auto", ["a", "b"]),
    ],
)
def test_table(current, incoming, kind, kept):
    merged = merge_entries(current, incoming)
    assert (merged.kind, names(merged)) == (kind, kept)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"server_names": ("a", "b")}, {"server_names": ("b", "a")}, True),
        ({"server_names": ("a", "*")}, {"server_names": ("a",)}, True),
        ({"server_names": ("a",)}, {"server_names": ("b",)}, False),
        ({"prefixes": ("10.0.0.1/8",)}, {"prefixes": ("10.0.0.0/8",)}, True),
        ({"prefixes": ("0.0.0.0",)}, {}, True),
        ({"transport": "tls"}, {}, False),
        ({"alpn": ("a", "b")}, {"alpn": ("b", "a")}, False),
    ],
)
def test_chains_with_the_same_match_are_the_older_services(one, other, same):
    merged = merge_entries(entry("tcp", tcp("old", **one)), entry("tcp", tcp("new", **other)))
    assert names(merged) == (["old"] if same else ["old", "new"])


def test_protocols_whose_server_speaks_first_share_with_nobody():
    mongo = entry("tcp", tcp("mongo"), protocol=Protocol.MONGO)
    other = entry("tcp", tcp("other", server_names=("x",)))
    assert names(merge_entries(mongo, other)) == ["mongo"]
    assert names(merge_entries(other, mongo)) == ["other"]


def test_an_http_proxy_takes_the_place():
    proxy = entry("http", http("proxy"), protocol=Protocol.HTTP_PROXY, overwrites=True)
    assert names(merge_entries(entry("tcp", tcp("a")), proxy)) == ["proxy"]
