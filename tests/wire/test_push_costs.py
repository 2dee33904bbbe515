"""What a change is charged with is what was written for it, byte by byte, and `mizzen top pushes` prints just that."""

import asyncio
import json
from typing import Any

import cli_runs
import pytest
from ads_server import Serving, serve
from adsclient import Answer, Client, node
from control_planes import Plane, control_plane
from eventually import eventually

from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE
from mizzen.diagnose.change.printing import amount
from mizzen.settings import Push
from mizzen.xds.costs import ProxyClass

MESH = [(CLUSTER, "a", "1"), (CLUSTER, "ns/bank/b", "1"), (ENDPOINT, "a", "1"), (ROUTE, "r", "1")]
SIDECARS, GATEWAYS, BANK = ProxyClass("sidecar", "shop"), ProxyClass("router", "shop"), ProxyClass("sidecar", "bank")


def charged(serving: Serving) -> dict[tuple[str, str], dict[ProxyClass, tuple[int, int]]]:
    """Name and change → class → pushes and bytes."""
    accounts = serving.discovery.pusher.history.costs.accounts()
    return {(each.object[2], each.how): {c: tuple(cost) for c, cost in each.proxies} for each in accounts}


def size(*answers: Answer) -> int:
    """Bytes as they went over the wire."""
    return sum(answer.size for answer in answers)


async def converse(client: Client) -> None:
    for type_url, names in ((CLUSTER, ()), (ENDPOINT, ("a",)), (ROUTE, ("r",))):
        await client.subscribe(type_url, *names)
        await client.read_acked()


@pytest.mark.parametrize("delta", [True, False], ids=["delta", "sotw"])
async def test_each_class_of_proxies_is_told_apart_with_the_bytes_that_it_was_sent(delta):
    def client(*who: str, **more: Any) -> Client:
        return Client(serving.target, delta=delta, node=node(*who, **more))

    async with (
        serve(MESH) as serving,
        client("one", "shop") as one,
        client("two", "shop") as two,
        client("edge", "shop", kind="router") as edge,
        client("three", "bank") as three,
    ):
        clients = (one, two, edge, three)
        for each in clients:
            await converse(each)
        assert charged(serving) == {}, "what a proxy is given when it connects is nobody's change"

        serving.set(ROUTE, "r", "2")
        answers = [await each.read_acked() for each in clients]
        first = {SIDECARS: (2, size(*answers[:2])), GATEWAYS: (1, size(answers[2])), BANK: (1, size(answers[3]))}
        await eventually(lambda: charged(serving) == {("r", "updated"): first})

        serving.set(CLUSTER, "ns/bank/b", "2")
        answer = await three.read_acked()
        only_bank = {BANK: (1, size(answer))}
        await eventually(lambda: charged(serving).get(("ns/bank/b", "updated")) == only_bank)
        assert charged(serving)["r", "updated"] == first
        assert serving.discovery.pusher.history.costs.total == (5, size(*answers, answer))


async def test_the_first_change_after_a_proxy_came_back_is_charged_whole():
    async with serve(MESH) as serving:
        async with Client(serving.target, node=node("one", "shop")) as client:
            await converse(client)
            held, versions = client.held, client.versions
        async with Client(serving.target, node=node("one", "shop"), held=held, versions=versions) as client:
            for type_url, names in ((CLUSTER, ()), (ENDPOINT, ("a",)), (ROUTE, ("r",))):
                await client.resume(type_url, *names)
            for _ in (ENDPOINT, ROUTE):
                await client.read_acked()
            await client.read_nothing()

            serving.set(CLUSTER, "a", "2")
            answers = [await client.read_acked() for _ in (CLUSTER, ENDPOINT)]
            expected = {("a", "updated"): {SIDECARS: (1, size(*answers))}}
            await eventually(lambda: charged(serving) == expected)


async def test_additions_and_removals_have_accounts_of_their_own():
    async with serve(MESH) as serving, Client(serving.target, node=node("one", "shop")) as client:
        await converse(client)
        serving.set(CLUSTER, "new", "1")
        added = await client.read_acked()
        await eventually(lambda: charged(serving) == {("new", "added"): {SIDECARS: (1, size(added))}})
        serving.remove(CLUSTER, "new")
        removed = await client.read_acked()
        assert removed.removed == ("new",)
        await eventually(
            lambda: (
                charged(serving)
                == {("new", "added"): {SIDECARS: (1, size(added))}, ("new", "removed"): {SIDECARS: (1, size(removed))}}
            )
        )


@pytest.mark.usefixtures("patient")
async def test_a_push_of_several_responses_is_one_push_also_where_part_of_it_waits():
    async with serve(MESH) as serving, Client(serving.target, node=node("one", "shop")) as client:
        await converse(client)
        serving.set(CLUSTER, "new", "1")
        serving.set(ROUTE, "r", "to new")
        clusters = await client.read()
        await client.read_nothing(0.2)
        assert charged(serving) == {}, "the push is not over before the routes are sent"
        await client.ack(clusters)
        whole = size(clusters, await client.read_acked())
        parts = {("r", "updated"): {SIDECARS: (1, whole - whole // 2)}, ("new", "added"): {SIDECARS: (1, whole // 2)}}
        await eventually(lambda: charged(serving) == parts)


@pytest.mark.usefixtures("patient")
async def test_what_a_client_asks_for_first_while_a_push_waits_is_nobodys_change():
    async with serve(MESH) as serving, Client(serving.target, node=node("one", "shop")) as client:
        await converse(client)
        serving.set(CLUSTER, "new", "1")
        serving.set(ROUTE, "r", "to new")
        clusters = await client.read()
        await client.subscribe(LISTENER)
        await client.ack(clusters)
        # Which of them comes first is up to what the stream was doing just then.
        answers = {answer.type_url: answer for answer in [await client.read_acked() for _ in (LISTENER, ROUTE)]}
        whole = size(clusters, answers[ROUTE])
        await eventually(lambda: serving.discovery.pusher.history.costs.total == (2, whole))


@pytest.mark.usefixtures("patient")
async def test_what_was_written_before_a_client_went_is_charged():
    async with serve(MESH) as serving:
        async with Client(serving.target, node=node("one", "shop")) as client:
            await converse(client)
            serving.set(CLUSTER, "new", "1")
            serving.set(ROUTE, "r", "to new")
            clusters = await client.read()
            (connection,) = serving.discovery.connections
            await eventually(lambda: connection.stream._spent)
        await eventually(lambda: serving.discovery.pusher.history.costs.total == (2, size(clusters)))


async def test_what_changes_no_resource_of_a_proxy_is_charged_nothing():
    async with serve(MESH) as serving, Client(serving.target, node=node("one", "shop")) as client:
        await converse(client)
        serving.set(CLUSTER, "ns/bank/b", "2")
        serving.set(ROUTE, "r", "1")
        await eventually(lambda: serving.discovery.pusher.history.latest)
        await client.read_nothing()
        serving.set(ROUTE, "r", "2")
        answer = await client.read_acked()
        await eventually(lambda: charged(serving) == {("r", "updated"): {SIDECARS: (1, size(answer))}})


async def test_changes_that_a_slow_client_gets_merged_share_what_it_is_sent():
    """One place, held by another client's stream that takes nothing, keeps the pushes waiting until they have merged."""
    push = Push(debounce_after=0, throttle=1)
    async with serve(MESH, push=push) as serving, Client(serving.target, node=node("one", "shop")) as client:
        await converse(client)
        (connection,) = serving.discovery.connections
        serving.discovery._throttle._patience = 600.0  # However long this takes here.
        told = serving.discovery.pusher.history.latest
        async with serving.discovery._throttle.place():
            for name, content in (("a", "2"), ("new", "1"), ("a", "3")):
                before = len(told)
                serving.set(CLUSTER, name, content)
                await eventually(lambda before=before: len(told) > before)
            await eventually(lambda: connection.stream._pending is not None)
        clusters = await client.read_acked()
        endpoints = await client.read_acked()
        assert (clusters.names, endpoints.type_url) == (["a", "new"], ENDPOINT)
        await eventually(lambda: serving.discovery.pusher.history.costs.total.bytes == size(clusters, endpoints))
        found = charged(serving)
        assert {key: cost[SIDECARS][0] for key, cost in found.items()} == {("a", "updated"): 2, ("new", "added"): 1}
        share = size(clusters, endpoints) / 3
        assert found["a", "updated"][SIDECARS][1] == pytest.approx(2 * share, abs=1)
        assert found["new", "added"][SIDECARS][1] == pytest.approx(share, abs=1)


SERVICE = """
apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: shop}}
spec: {{clusterIP: 10.0.0.9, selector: {{app: cart}}, ports: [{{name: {name}, port: 80}}]}}
"""
ROUTES = """
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: cart, namespace: shop}}
spec: {{hosts: [cart], http: [{{timeout: {timeout}s, route: [{{destination: {{host: cart}}}}]}}]}}
"""


async def top(plane: Plane, *arguments: str) -> str:
    command = ("top", "pushes", "--monitoring", plane.target("--monitoringAddr"), *arguments)
    result = await asyncio.to_thread(cli_runs.run, *command)
    assert result.exit_code == 0, result.stderr
    return result.stdout


async def test_a_virtual_services_edit_is_told_by_the_command_with_exact_counts_and_bytes(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "cart.yaml").write_text(SERVICE.format(name="http"))
    (tmp_path / "config" / "routes.yaml").write_text(ROUTES.format(timeout=1))

    async with control_plane(tmp_path) as plane:
        target = plane.target("--grpcAddr")
        sidecars = [Client(target, node=node(f"app-{n}", "shop", CLUSTER_ID="c1")) for n in range(2)]
        other = Client(target, node=node("teller", "bank", CLUSTER_ID="c1"))
        edge = Client(target, node=node("edge", "shop", kind="router", CLUSTER_ID="c1"))
        clients = [*sidecars, other, edge]
        async with sidecars[0], sidecars[1], other, edge:
            for client in clients:
                for type_url in (CLUSTER, LISTENER):
                    await client.subscribe(type_url)
                    await client.read_acked()
            for client in clients[:3]:
                await client.subscribe(ROUTE, "80")
                await client.read_acked()
            assert await top(plane) == "OBJECT   CHANGE   CHANGES   PUSHES   BYTES   PROXIES\n"

            (tmp_path / "config" / "routes.yaml").write_text(ROUTES.format(timeout=2))
            answers = [await client.read_acked() for client in clients[:3]]
            assert [answer.type_url for answer in answers] == [ROUTE] * 3
            for client in clients:
                await client.read_nothing()
            await eventually(lambda: plane.control_plane.discovery.pusher.history.costs.total.pushes == 3)
            found = json.loads(await top(plane, "-o", "json"))
            shop, bank = size(*answers[:2]), size(answers[2])
            (caused,) = found["objects"]
            assert caused.pop("last").endswith("Z")
            assert caused == {
                "kind": "VirtualService",
                "namespace": "shop",
                "name": "cart",
                "change": "updated",
                "changes": 1,
                "pushes": 3,
                "bytes": shop + bank,
                "proxies": [
                    {"type": "sidecar", "namespace": "shop", "pushes": 2, "bytes": shop},
                    {"type": "sidecar", "namespace": "bank", "pushes": 1, "bytes": bank},
                ],
            }
            assert found["total"] == {"pushes": 3, "bytes": shop + bank}
            _, row = (await top(plane, "--by", "namespace")).splitlines()
            cells = ["VirtualService shop/cart", "updated", "1", "3", amount(shop + bank)]
            assert [cell.strip() for cell in row.split("  ") if cell] == [
                *cells,
                f"shop 2 ({amount(shop)}), bank 1 ({amount(bank)})",
            ]
