"""ADS on the wire: changes of resources in, a real gRPC stream out, in both variants."""

import pytest
from ads_server import serve
from adsclient import Client

from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE

MESH = [
    (CLUSTER, "a", "1"),
    (CLUSTER, "b", "1"),
    (ENDPOINT, "a", "1"),
    (ENDPOINT, "b", "1"),
    (LISTENER, "l", "1"),
    (ROUTE, "r", "1"),
]


@pytest.mark.parametrize("delta", [True, False])
async def test_a_change_reaches_the_client(delta):
    async with serve(MESH) as serving, Client(serving.target, delta=delta) as client:
        await client.subscribe(CLUSTER)
        assert (await client.read_acked()).names == ["a", "b"]
        await client.subscribe(ENDPOINT, "a", "b")
        assert (await client.read_acked()).names == ["a", "b"]
        serving.set(ENDPOINT, "b", "2")
        assert (await client.read_acked()).names == ["b"]
        await client.read_nothing()
