"""The recorded corpus over real streams: both variants of ADS leave a client with the same resources."""

from typing import Any

import golden
import pytest
from ads_server import serve_generator
from adsclient import Client

from mizzen.compile import snapshot
from mizzen.compile.resource import CLUSTER, ENDPOINT, EXTENSION, LISTENER, NAME_TABLE, ROUTE, SECRET
from mizzen.xds.generator import EngineGenerator

TYPES = (CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, EXTENSION, NAME_TABLE)


@pytest.mark.parametrize("name", ["base", *golden.case_names()])
async def test_state_of_the_world_and_delta_agree(name: str) -> None:
    case = golden.load_case(name)
    db = golden.engine_of(case)
    async with serve_generator(db, EngineGenerator(db, snapshot.resources, TYPES)) as serving:
        for who in case.look_from:
            node = golden.node_of(case.proxies[who])
            told = snapshot.everything(db, golden.proxy_of(case, who))
            delta, world = [await _held(serving.target, node, told, delta=delta) for delta in (True, False)]
            assert delta == world
            for type_url, kind in ((CLUSTER, "clusters"), (LISTENER, "listeners")):
                assert sorted(delta[type_url]) == list(told[kind].names)


async def _held(target: str, node: dict[str, Any], told: dict[str, Any], *, delta: bool) -> dict[str, Any]:
    """What a client holds once it has asked for everything as an Envoy does."""
    async with Client(target, delta=delta, node=node) as client:
        asked = (
            (CLUSTER, ()),
            (ENDPOINT, told["endpoints"].names),
            (LISTENER, ()),
            (ROUTE, told["routes"].names),
        )
        for type_url, names in asked:
            if names or type_url in (CLUSTER, LISTENER):
                await client.subscribe(type_url, *names)
                await client.read_acked()
        return {type_url: dict(held) for type_url, held in client.held.items()}
