"""Several services on one address and port: the table of who stays."""

import pytest

from mizzen.compile.addresses import Bind
from mizzen.compile.filters.network import to_cluster
from mizzen.compile.listeners.conflicts import Entry, Standing
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


def merged_of(current, *others):
    standing = Standing(current)
    for other in others:
        standing.add(other)
    return standing


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
    merged = merged_of(current, incoming)
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
    merged = merged_of(entry("tcp", tcp("old", **one)), entry("tcp", tcp("new", **other)))
    assert names(merged) == (["old"] if same else ["old", "new"])


def test_protocols_whose_server_speaks_first_share_with_nobody():
    mongo = entry("tcp", tcp("mongo"), protocol=Protocol.MONGO)
    other = entry("tcp", tcp("other", server_names=("x",)))
    assert names(merged_of(mongo, other)) == ["mongo"]
    assert names(merged_of(other, mongo)) == ["other"]


def test_an_http_proxy_takes_the_place():
    proxy = entry("http", http("proxy"), protocol=Protocol.HTTP_PROXY, overwrites=True)
    assert names(merged_of(entry("tcp", tcp("a")), proxy)) == ["proxy"]


def test_who_gives_way_is_told():
    standing = Standing(entry("tcp", tcp("a", server_names=("x",))))
    assert not standing.add(entry("tcp", tcp("b", server_names=("y",))))
    assert standing.add(entry("tcp", tcp("c", server_names=("y",))))
    assert standing.add(entry("auto", tcp("d", server_names=("x",)), http("e")))
    assert not standing.add(entry("http", http("f")))
    assert names(standing) == ["a", "b", "e"]


def test_nobody_gives_way_to_http_nor_to_whom_takes_the_place():
    standing = Standing(entry("http", http("a")))
    assert not standing.add(entry("tcp", tcp("b")))
    assert not standing.add(entry("http", http("proxy"), protocol=Protocol.HTTP_PROXY, overwrites=True))
    assert names(standing) == ["proxy"]
