"""A control plane over a real API server: what it serves, what an absent server costs, and what costs nothing."""

import asyncio
import contextlib
import json
import pathlib
import signal

import adsclient
import eventually as waiting
from control_planes import Plane, control_plane
from kube_accounts import installed
from kube_bed import Answer, Bed
from kube_objects import path_of, service
from kube_replicas import leases_of

from mizzen.api.meta import Key
from mizzen.compile.resource import CLUSTER
from mizzen.incremental import Engine
from mizzen.sources.kube.access import from_kubeconfig

CLIENTS = 200
ABSENT_SECONDS = 60.0


def cluster(namespace: str, name: str, port: int = 80) -> str:
    return f"outbound|{port}||{name}.{namespace}.svc.cluster.local"


async def apply(bed: Bed, document: dict, plural: str) -> None:
    await asyncio.to_thread(bed.apply, path_of(document, plural), document)


@contextlib.asynccontextmanager
async def serving(bed: Bed, folder: pathlib.Path):
    access = from_kubeconfig(await asyncio.to_thread(installed, bed))
    async with control_plane(folder, config=(), kubernetes=access) as plane:
        yield plane


@contextlib.asynccontextmanager
async def connected(plane: Plane, count: int):
    """So many sidecars that hold the clusters."""
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for number in range(count):
            node = adsclient.node(f"p-{number}", ip=f"10.1.{number // 250}.{number % 250 + 1}")
            client = adsclient.Client(plane.target("--grpcAddr"), node=node)
            clients.append(await stack.enter_async_context(client))
        await asyncio.gather(*(client.subscribe(CLUSTER) for client in clients))
        await asyncio.gather(*(client.read_acked(120) for client in clients))
        yield clients


async def read_until(client: adsclient.Client, name: str, *, without: str = "") -> int:
    """Bytes of the responses until the client holds the cluster, and another no longer."""
    size = 0
    while name not in client.held[CLUSTER] or without in client.held[CLUSTER]:
        size += (await client.read_acked(120)).size
    return size


async def test_a_minute_without_an_api_server_pushes_nothing_and_loses_nothing(bed, namespace, tmp_path):
    await apply(bed, service(namespace, "before"), "services")
    async with serving(bed, tmp_path) as plane, connected(plane, CLIENTS) as clients:
        assert all(cluster(namespace, "before") in client.held[CLUSTER] for client in clients)
        await asyncio.to_thread(bed.stop_server, signal.SIGKILL)
        try:
            await waiting.eventually(
                lambda: plane.control_plane.cluster.source.age() > ABSENT_SECONDS, 3 * ABSENT_SECONDS
            )
            async with connected(plane, 1) as newcomers:
                assert cluster(namespace, "before") in newcomers[0].held[CLUSTER]
            assert plane.control_plane.is_ready()
        finally:
            await asyncio.to_thread(bed.start_server)
        await waiting.eventually(lambda: plane.control_plane.cluster.source.age() == 0, 120)
        await asyncio.gather(*(client.read_nothing(1.0) for client in clients))
        await apply(bed, service(namespace, "after"), "services")
        await asyncio.gather(*(read_until(client, cluster(namespace, "after")) for client in clients))
        await asyncio.to_thread(change_unseen, bed, namespace)
        new, old = cluster(namespace, "after", 81), cluster(namespace, "before")
        await asyncio.gather(*(read_until(client, new, without=old) for client in clients))
        assert all(cluster(namespace, "after") not in client.held[CLUSTER] for client in clients)


def change_unseen(bed: Bed, namespace: str) -> None:
    """Change one object and remove another while nobody watches, and let the server forget that it ever happened."""
    bed.stop_server(signal.SIGKILL)
    bed.start_server()
    bed.call("DELETE", path_of(service(namespace, "before"), "services"))
    changed = service(namespace, "after", 81)
    bed.apply(path_of(changed, "services"), changed)
    bed.stop_server(signal.SIGKILL)
    bed.compact()
    bed.start_server()


async def settled_runs(engine: Engine) -> int:
    """Runs of queries once nobody asks any more: what is not in force is looked at a moment after a change."""
    while True:
        before = engine.runs
        await asyncio.sleep(1.0)
        if engine.runs == before:
            return before


async def test_a_status_that_is_written_costs_nothing(bed, namespace, tmp_path):
    document = service(namespace, "s")
    await apply(bed, document, "services")
    async with serving(bed, tmp_path) as plane, connected(plane, 1) as (client,):
        engine, kube = plane.control_plane.engine, plane.control_plane.cluster.source
        await waiting.eventually(
            lambda: plane.leads(*leases_of("")), 120, every=0.2
        )  # Who writes asks the engine, too.
        runs = await settled_runs(engine)
        condition = {"type": "Ready", "status": "True", "reason": "r", "message": ""}
        body = {"status": {"conditions": [condition | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
        path = f"{path_of(document, 'services')}/status"
        written = await asyncio.to_thread(bed.call, "PATCH", path, body, kind="application/merge-patch+json")
        key, version = Key("Service", namespace, "s"), written["metadata"]["resourceVersion"]
        await waiting.eventually(lambda: kube.resource_version(key) == version, 120)
        await client.read_nothing(0.5)
        assert await settled_runs(engine) == runs


async def test_the_mesh_config_is_the_config_map_of_the_cluster(bed, tmp_path):
    with contextlib.suppress(Answer):
        await asyncio.to_thread(bed.call, "POST", "/api/v1/namespaces", {"metadata": {"name": "istio-system"}})
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "istio", "namespace": "istio-system"},
        "data": {"mesh": "connectTimeout: 7s\n"},
    }
    await apply(bed, document, "configmaps")
    async with serving(bed, tmp_path) as plane:
        status, text = await plane.get("/debug/mesh")
        assert (status, json.loads(text)["connectTimeout"]) == (200, "7s")
    await asyncio.to_thread(bed.call, "DELETE", path_of(document, "configmaps"))
