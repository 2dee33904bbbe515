"""What a connection passes: chains of listeners and programs, one way for each choice that makes a difference."""

import pathlib

from mizzen.cli import trace_worlds
from mizzen.diagnose.trace import request, verdict, walk
from mizzen.diagnose.trace.verdict import Passage

SHOP = pathlib.Path(__file__).resolve().parents[4] / "samples" / "shop"


def ways(source: str, url: str) -> list[list[tuple[str, str]]]:
    world = trace_worlds.of_manifests((str(SHOP),), "", "envoy")
    scheme, host, port, path = request.parse_target(url)
    found = walk.trace(world, request.Request(source=source, scheme=scheme, host=host, port=port, path=path or "/"))
    assert "ways" not in verdict.to_json(found)
    return [[(short(passage.side), passage.listener) for passage in way] for way in found.ways]


def short(side: str) -> str:
    return side.partition("-")[0] if "ingress" not in side else "gateway"


def test_both_proxies_and_the_program() -> None:
    assert ways("front.shop", "http://catalog:8080/") == [
        [("front", "0.0.0.0_8080"), ("catalog", "virtualInbound"), ("catalog", "")]
    ]


def test_a_way_for_each_kind_of_endpoint() -> None:
    found = ways("front.shop", "http://cart:8080/")

    # v1, of whose two pods one stands for both, and v2.
    assert found == [[("front", "0.0.0.0_8080"), ("cart", "virtualInbound"), ("cart", "")]] * 2


def test_from_outside_the_gateway_comes_first() -> None:
    found = ways("outside", "http://shop.example/")

    assert [way[0][0] for way in found] == ["gateway"]
    assert [way[-1] for way in found] == [("front", "")]


def test_a_passage_knows_its_chain() -> None:
    world = trace_worlds.of_manifests((str(SHOP),), "", "envoy")
    found = walk.trace(world, request.Request(source="front.shop", host="catalog", port=8080))

    (way,) = found.ways
    inbound: Passage = way[1]
    assert inbound.chain["filterChainMatch"]["destinationPort"] == 8080
    assert inbound.chain in world.holdings(world.find("catalog.shop")).listeners["virtualInbound"]["filterChains"]
    assert way[-1].chain is None
