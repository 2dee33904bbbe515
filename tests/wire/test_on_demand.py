"""A sidecar on demand on a real stream: what it is told when it asks, when the mesh changes, and when it comes back."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import meshes
import pytest
from ads_server import Serving, serve_generator
from adsclient import Answer, Client, node
from eventually import eventually

from mizzen import protos
from mizzen.api.decode import decode_object
from mizzen.compile import snapshot
from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, VIRTUAL_HOST
from mizzen.xds.generator import EngineGenerator

TYPES = (CLUSTER, ENDPOINT, LISTENER, ROUTE, VIRTUAL_HOST)
MESH = (meshes.service("cart"), meshes.service("shelf"), meshes.service("other"))
CART, SHELF = (f"outbound|80||{name}.web.svc.cluster.local" for name in ("cart", "shelf"))
ROUTED = """
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: web}
spec: {hosts: [cart], http: [{route: [{destination: {host: shelf}}]}]}
"""


def who(*, version: tuple[int, int] = (1, 40), **metadata: str) -> dict[str, Any]:
    asked = {"MIZZEN_DIALECT": "envoy", "MIZZEN_ON_DEMAND": "true", **metadata}
    build = {"version": {"majorNumber": version[0], "minorNumber": version[1]}}
    return {**node(namespace="web", **asked), "userAgentBuildVersion": build}


@contextlib.asynccontextmanager
async def serving(*texts: str) -> AsyncIterator[Serving]:
    db = meshes.mesh_of(*texts or MESH)
    async with serve_generator(db, EngineGenerator(db, snapshot.resources, TYPES)) as found:
        yield found


def change(found: Serving, text: str, *, gone: bool = False) -> None:
    for document in meshes.documents(text):
        decoded = decode_object(document)
        found.discovery.pusher.feed(decoded.key, None if gone else decoded.object)


async def start(client: Client) -> None:
    """As Envoy does, up to the first answer about virtual hosts."""
    for kind, names in ((CLUSTER, ()), (LISTENER, ()), (ROUTE, ("80",)), (VIRTUAL_HOST, ())):
        await client.subscribe(kind, *names)
        assert (await client.read_acked()).type_url == kind


async def ask(client: Client, *names: str) -> Answer:
    """Ask for virtual hosts, and take what comes before the answer as Envoy does: clusters once their endpoints came."""
    await client.subscribe(VIRTUAL_HOST, *names)
    waiting: list[Answer] = []
    while (answer := await client.read()).type_url != VIRTUAL_HOST:
        if answer.type_url == CLUSTER:
            waiting.append(answer)
            await client.subscribe(ENDPOINT, *answer.names)
        else:
            await client.ack(answer)
            for clusters in waiting:
                await client.ack(clusters)
            waiting.clear()
    await client.ack(answer)
    return answer


def cluster_of(client: Client, name: str) -> str:
    packed = protos.message_class("google.protobuf.Any").FromString(client.held[VIRTUAL_HOST][name])
    route = protos.unpack(packed).routes[0].route
    return str(route.cluster)


@pytest.mark.usefixtures("patient")
async def test_a_virtual_host_comes_after_its_cluster_and_the_endpoints_of_that() -> None:
    async with serving() as found, Client(found.target, node=who()) as client:
        await start(client)
        assert list(client.held[VIRTUAL_HOST]) == ["80/_"]
        assert CART not in client.held[CLUSTER]
        await client.subscribe(VIRTUAL_HOST, "80/cart")
        clusters = await client.read()
        assert (clusters.type_url, clusters.names) == (CLUSTER, [CART])
        await client.subscribe(ENDPOINT, CART)
        assert (await client.read_acked()).type_url == ENDPOINT
        await client.read_nothing()
        await client.ack(clusters)
        assert (await client.read_acked()).names == ["80/cart"]
        assert cluster_of(client, "80/cart") == CART
        assert SHELF not in client.held[CLUSTER]


async def test_the_answer_does_not_wait_for_ever_for_clusters_to_be_at_work() -> None:
    async with serving() as found, Client(found.target, node=who()) as client:
        await start(client)
        await client.subscribe(VIRTUAL_HOST, "80/cart")
        assert (await client.read()).type_url == CLUSTER
        assert (await client.read_acked()).names == ["80/cart"]


@pytest.mark.usefixtures("patient")
async def test_a_host_that_is_held_follows_the_mesh() -> None:
    async with serving() as found, Client(found.target, node=who()) as client:
        await start(client)
        await ask(client, "80/cart", "80/late")
        change(found, ROUTED)
        clusters = await client.read()
        assert (clusters.type_url, clusters.names) == (CLUSTER, [SHELF])
        await client.subscribe(ENDPOINT, SHELF)
        await client.read_acked()
        await client.ack(clusters)
        assert (await client.read_acked()).names == ["80/cart"]
        assert (await client.read_acked()).removed == (CART,)
        await client.subscribe(ENDPOINT, unsubscribe=[CART])
        assert cluster_of(client, "80/cart") == SHELF
        change(found, meshes.service("shelf"), gone=True)
        change(found, ROUTED, gone=True)
        change(found, meshes.service("cart"), gone=True)
        assert (await client.read_acked()).names == ["80/cart"]
        assert (await client.read_acked()).removed == (SHELF,)
        assert cluster_of(client, "80/cart") == cluster_of(client, "80/late") == "PassthroughCluster"


@pytest.mark.usefixtures("patient")
async def test_a_change_of_what_is_not_held_is_not_told() -> None:
    async with serving() as found, Client(found.target, node=who()) as client:
        await start(client)
        await ask(client, "80/shelf")
        change(found, ROUTED)
        change(found, meshes.service("new"))
        await eventually(lambda: found.discovery.pusher.history.latest)
        await client.read_nothing(0.5)


@pytest.mark.usefixtures("patient")
async def test_who_comes_back_has_lost_nothing_and_is_told_what_changed() -> None:
    async with serving() as found:
        async with Client(found.target, node=who()) as client:
            await start(client)
            await ask(client, "80/cart")
            await ask(client, "80/shelf")
            held, versions = client.held, client.versions
        change(found, ROUTED)
        async with Client(found.target, node=who(), held=held, versions=versions) as client:
            await client.resume(CLUSTER)
            await client.resume(ENDPOINT, CART, SHELF)
            await client.resume(LISTENER)
            await client.resume(ROUTE, "80")
            await client.resume(VIRTUAL_HOST, "*", "80/cart", "80/shelf")
            removed: set[str] = set()
            while CART not in removed:
                answer = await client.read_acked()
                if answer.type_url == CLUSTER:
                    removed |= set(answer.removed)
            assert cluster_of(client, "80/cart") == SHELF
            assert removed == {CART}
            assert set(client.held[VIRTUAL_HOST]) == {"80/_", "80/cart", "80/shelf"}
            await client.read_nothing()


@pytest.mark.parametrize(
    ("node_of", "delta"),
    [
        (who(version=(1, 39)), True),
        (who(MIZZEN_DIALECT="istio"), True),
        (who(MIZZEN_ON_DEMAND="false"), True),
        (who(), False),
    ],
    ids=["older", "istio", "opted-out", "state-of-the-world"],
)
async def test_others_are_told_everything(node_of: dict[str, Any], delta: bool) -> None:
    async with serving() as found, Client(found.target, node=node_of, delta=delta) as client:
        await client.subscribe(CLUSTER)
        assert {CART, SHELF} <= set((await client.read_acked()).names)
        await client.subscribe(ROUTE, "80")
        await client.read_acked()
        packed = protos.message_class("google.protobuf.Any").FromString(client.held[ROUTE]["80"])
        configuration = protos.unpack(packed)
        assert not configuration.HasField("vhds")
        assert {"*", "cart", "shelf"} <= {domain for host in configuration.virtual_hosts for domain in host.domains}
