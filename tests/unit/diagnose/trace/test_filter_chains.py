"""The search for a filter chain goes condition by condition, and never back."""

from mizzen.diagnose.trace import filter_chains
from mizzen.diagnose.trace.filter_chains import Seen


def chain(name: str, **match: object) -> dict[str, object]:
    return {"name": name, "filterChainMatch": match}


def found(listener: dict[str, object], **seen: object) -> str:
    given = {"address": "10.0.0.1", "port": 80, "source": "10.0.0.9", **seen}
    chosen = filter_chains.find(listener, Seen(**given)).chain
    return str(chosen["name"]) if chosen is not None else ""


def listener(*chains: dict[str, object], default: bool = False) -> dict[str, object]:
    return {"filterChains": list(chains), **({"defaultFilterChain": {"name": "default"}} if default else {})}


def test_a_port_of_its_own_ends_the_search_even_in_vain():
    mine = listener(chain("port", destinationPort=80, transportProtocol="tls"), chain("any"))
    assert found(mine, transport="tls") == "port"
    assert found(mine) == "", "Envoy does not go back to chains without a port"
    assert found(mine, port=81) == "any"


def test_what_ends_nowhere_meets_the_default():
    mine = listener(chain("port", destinationPort=80, transportProtocol="tls"), default=True)
    assert found(mine) == "default"
    assert filter_chains.find(mine, Seen(address="10.0.0.1", port=80)).failed == "no filter chain for plain text"


def test_the_longest_range_wins():
    wide = chain("wide", prefixRanges=[{"addressPrefix": "10.0.0.0", "prefixLen": 8}])
    near = chain("near", prefixRanges=[{"addressPrefix": "10.0.0.0", "prefixLen": 24}])
    mine = listener(wide, near, chain("any"))
    assert found(mine) == "near"
    assert found(mine, address="10.9.0.1") == "wide"
    assert found(mine, address="11.0.0.1") == "any"


def test_server_names_match_exactly_then_by_the_longest_wildcard():
    mine = listener(
        chain("exact", serverNames=["a.example.com"]),
        chain("near", serverNames=["*.b.example.com"]),
        chain("far", serverNames=["*.example.com"]),
    )
    assert found(mine, server_name="a.example.com") == "exact"
    assert found(mine, server_name="A.example.com") == "exact"
    assert found(mine, server_name="x.b.example.com") == "near"
    assert found(mine, server_name="x.example.com") == "far"
    assert found(mine, server_name="example.com") == ""
    assert found(mine) == ""


def test_protocols_are_tried_in_the_clients_order():
    mine = listener(
        chain("one", applicationProtocols=["istio"]),
        chain("two", applicationProtocols=["istio-http/1.1"]),
        chain("any"),
    )
    assert found(mine, protocols=("istio-http/1.1", "istio")) == "two"
    assert found(mine, protocols=("h2",)) == "any"


def test_the_source_decides_last():
    mine = listener(
        chain("own", sourceType="SAME_IP_OR_LOOPBACK"),
        chain("near", sourcePrefixRanges=[{"addressPrefix": "10.0.0.0", "prefixLen": 16}]),
    )
    assert found(mine) == "near"
    assert found(mine, source="10.0.0.1") == "own"
    assert found(mine, source="192.0.2.1") == ""
