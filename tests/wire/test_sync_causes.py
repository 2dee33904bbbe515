"""`proxy-status --explain` of a whole control plane, with clients that refuse, do not answer, and are away."""

import asyncio
import contextlib
import json
import pathlib
from collections.abc import AsyncIterator
from typing import Any

import adsclient
import cli_runs
from control_planes import Plane, control_plane
from eventually import eventually

from mizzen.compile.resource import CLUSTER, LISTENER

OBJECTS = """
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec: {host: cart, trafficPolicy: {connectionPool: {tcp: {maxConnections: 1}}}}
"""
REFUSED = "Error adding/updating cluster(s) outbound|80||cart.shop.svc.cluster.local: no such thing"


def client(plane: Plane, name: str) -> adsclient.Client:
    node = adsclient.node(name, "shop", CLUSTER_ID="c1", PROXY_CONFIG={"discoveryAddress": "here"})
    return adsclient.Client(plane.target("--grpcAddr"), node=node)


@contextlib.asynccontextmanager
async def plane_with(folder: pathlib.Path, *names: str) -> AsyncIterator[tuple[Plane, list[adsclient.Client]]]:
    """A control plane with clients that have subscribed to clusters and answered nothing."""
    (folder / "config").mkdir()
    (folder / "config" / "shop.yaml").write_text(OBJECTS)
    async with control_plane(folder) as plane, contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(client(plane, name)) for name in names]
        for each in clients:
            await each.subscribe(CLUSTER)
        yield plane, clients


async def explained(plane: Plane, *arguments: object) -> dict[str, Any]:
    address = ("--monitoring", plane.target("--monitoringAddr"))
    result = await asyncio.to_thread(cli_runs.run, "proxy-status", "--explain", "-o", "json", *address, *arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


async def until_states(plane: Plane, *states: str) -> None:
    """Until these, sorted, are the states of all types of all clients: an answer that is written may not be read yet."""
    connections = plane.control_plane.discovery.connections
    await eventually(lambda: sorted(each.state.name for one in connections for each in one.types()) == list(states))


async def test_a_refusal_names_the_object_behind_it(tmp_path: pathlib.Path) -> None:
    async with plane_with(tmp_path, "cart-0", "cart-1") as (plane, (good, bad)):
        await good.read_acked()
        await bad.nack(await bad.read(), REFUSED)

        async def told() -> list[dict[str, Any]]:
            document = await explained(plane)
            return [each for each in document["findings"] if each["objects"]]

        (finding,) = await eventually(told, every=0.05)
        assert (finding["type"], finding["state"], finding["culprit"]) == ("CDS", "ERROR", "configuration")
        assert finding["proxies"] == ["cart-1.shop"]
        assert finding["watching"] == 2
        assert finding["evidence"][0] == f"Envoy says: Internal:{REFUSED}"
        assert finding["objects"][0].startswith("DestinationRule shop/cart (")


async def test_one_that_does_not_answer_is_the_proxys_many_are_the_control_planes(tmp_path: pathlib.Path) -> None:
    async with plane_with(tmp_path, "cart-0", "cart-1", "cart-2") as (plane, clients):
        unread = [await each.read() for each in clients]
        (all_wait,) = (await explained(plane))["findings"]
        assert (all_wait["state"], all_wait["culprit"]) == ("STALE", "control plane")
        assert any(line.startswith("pilot_") for line in all_wait["evidence"])

        for each, answer in list(zip(clients, unread, strict=True))[:2]:
            await each.ack(answer)
        await until_states(plane, "STALE", "SYNCED", "SYNCED")
        (one_waits,) = (await explained(plane))["findings"]
        assert one_waits["proxies"] == ["cart-2.shop"]
        assert one_waits["culprit"] in ("nobody", "proxy"), "sent just now, or not answered for seconds"
        assert "never acknowledged on this connection by cart-2.shop" in one_waits["evidence"]


async def test_one_that_is_away_is_missed_in_a_mesh_that_has_it(tmp_path: pathlib.Path) -> None:
    async with plane_with(tmp_path, "cart-0") as (plane, (present,)):
        await present.read_acked()
        await present.subscribe(LISTENER)
        await present.read_acked()
        await until_states(plane, "SYNCED", "SYNCED")
        pods = [cli_runs.pod(name, "shop", tmp_path / "gone.sock") for name in ("cart-0", "cart-1")]
        mesh = cli_runs.write_mesh(tmp_path / "mesh", pods=pods, monitoring=plane.target("--monitoringAddr"))
        result = await asyncio.to_thread(cli_runs.run, "proxy-status", "--explain", "--mesh", mesh)

    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "NOT CONNECTED at 1 of 2: cart-1.shop"
    assert lines[1] == "  fault: connection"
    assert "  next:  `mizzen logs cart-1.shop -c istio-proxy`, and look for the stream's error" in lines


async def test_one_proxy_alone(tmp_path: pathlib.Path) -> None:
    async with plane_with(tmp_path, "cart-0", "cart-1") as (plane, (good, bad)):
        await good.read_acked()
        await bad.nack(await bad.read(), REFUSED)
        await until_states(plane, "ERROR", "SYNCED")
        assert [each["proxies"] for each in (await explained(plane, "cart-1.shop"))["findings"]] == [["cart-1.shop"]]
        assert (await explained(plane, "cart-0.shop"))["findings"] == []
        (away,) = (await explained(plane, "cart-9.shop"))["findings"]
        assert away["state"] == "NOT CONNECTED"


def test_explain_goes_alone() -> None:
    result = cli_runs.run("proxy-status", "--explain", "-v", "1", "--monitoring", "127.0.0.1:1")

    assert result.exit_code == 64
