"""Statuses of Istio's own kinds in a real API server: written where somebody asked for them, and never for nothing."""

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import adsclient
import msgspec
import pytest
from control_planes import FAST, Plane, control_plane
from kube_accounts import installed
from kube_bed import Bed
from kube_objects import path_of, service

from mizzen import settings
from mizzen.compile.resource import CLUSTER, LISTENER, ROUTE
from mizzen.sources.kube.access import from_kubeconfig

PLURALS = {"VirtualService": "virtualservices", "Service": "services"}


pytestmark = pytest.mark.usefixtures("mesh_kinds")


@contextlib.asynccontextmanager
async def writing(bed: Bed, folder: pathlib.Path, **features: bool | float) -> AsyncIterator[Plane]:
    nothing = settings.Features(gateway_statuses=False, gateway_deployments=False, allocate_addresses=False)
    tuned = msgspec.structs.replace(FAST, features=msgspec.structs.replace(nothing, **features))
    access = from_kubeconfig(await asyncio.to_thread(installed, bed))
    async with control_plane(folder, tuned, config=(), kubernetes=access) as plane:
        yield plane


def route(namespace: str, destination: str, name: str = "cart", **spec: Any) -> dict[str, Any]:
    http = [{"route": [{"destination": {"host": destination}}]}]
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hosts": [name], "http": http, **spec},
    }


class Objects:
    """Objects, as the server has them."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed

    async def apply(self, *documents: dict[str, Any]) -> None:
        for document in documents:
            await asyncio.to_thread(self._bed.apply, path_of(document, PLURALS[document["kind"]]), document)

    async def get(self, document: dict[str, Any]) -> dict[str, Any]:
        path = path_of(document, PLURALS[document["kind"]])
        return await asyncio.to_thread(self._bed.call, "GET", path)

    async def until(self, document: dict[str, Any], holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """The status once it is so."""
        async with asyncio.timeout(120):
            while True:
                status: dict[str, Any] = (await self.get(document)).get("status") or {}
                if holds(status):
                    return status
                await asyncio.sleep(0.1)

    async def versions(self, *documents: dict[str, Any]) -> list[str]:
        return [(await self.get(each))["metadata"]["resourceVersion"] for each in documents]


def codes(status: dict[str, Any]) -> list[str]:
    return [each["type"]["code"] for each in status.get("validationMessages", ())]


async def are_settled(plane: Plane) -> None:
    """Wait until the writer has looked twice and had nothing to compare or write."""
    quiet = 0
    async with asyncio.timeout(120):
        while quiet < 8:
            await asyncio.sleep(0.3)
            _, text = await plane.get("/metrics")
            leads = 'mizzen_leader{lease="istio-analyze-leader-default"} 1' in text
            quiet = quiet + 1 if leads and "\nmizzen_verdicts_waiting 0" in text else 0


async def test_findings_come_and_go(bed: Bed, namespace: str, tmp_path: pathlib.Path) -> None:
    objects = Objects(bed)
    fine = route(namespace, "cart", "fine")
    await objects.apply(service(namespace, "cart"), route(namespace, "nobody"), fine)
    async with writing(bed, tmp_path, analysis=True) as plane:
        status = await objects.until(route(namespace, "cart"), codes)
        assert codes(status) == ["IST0101"]
        assert status["validationMessages"][0]["level"] == "ERROR"
        assert status["observedGeneration"] == 1
        await objects.apply(route(namespace, "cart"))
        status = await objects.until(route(namespace, "cart"), lambda status: not codes(status))
        assert status == {"observedGeneration": 2}
        await are_settled(plane)
        assert "status" not in await objects.get(fine), "of what is in order nothing is written"


async def test_an_analysis_comes_as_often_as_it_was_asked_for(bed: Bed, namespace: str, tmp_path: pathlib.Path) -> None:
    objects = Objects(bed)
    first, second = route(namespace, "nobody", "first"), route(namespace, "nobody", "second")
    await objects.apply(first)
    async with writing(bed, tmp_path, analysis=True, analysis_interval=20.0):
        await objects.until(first, codes)
        await objects.apply(second)
        await asyncio.sleep(5)
        assert "status" not in await objects.get(second)
        await objects.until(second, codes)


async def test_the_condition_follows_what_is_in_force(bed: Bed, namespace: str, tmp_path: pathlib.Path) -> None:
    objects = Objects(bed)
    broken = route(namespace, "cart", http=[{"match": [{"uri": {"regex": "("}}], "route": []}])
    await objects.apply(service(namespace, "cart"), broken)

    def has(wanted: str) -> Callable[[dict[str, Any]], bool]:
        return lambda status: any(
            (each["type"], each["status"]) == ("Reconciled", wanted) for each in status.get("conditions", ())
        )

    async with writing(bed, tmp_path, object_statuses=True) as plane:
        status = await objects.until(broken, has("False"))
        (condition,) = status["conditions"]
        assert condition["reason"] == "NotInForce"
        assert condition["message"]
        await objects.apply(route(namespace, "cart"))
        status = await objects.until(broken, has("True"))
        assert status["conditions"][0]["observedGeneration"] == status["observedGeneration"] == 2
        await are_settled(plane)
        before = await objects.versions(broken)
    async with writing(bed, tmp_path, object_statuses=True) as plane:
        await are_settled(plane)
        assert await objects.versions(broken) == before, "who comes after writes nothing that is there"


async def test_nothing_is_written_unless_it_was_asked_for(bed: Bed, namespace: str, tmp_path: pathlib.Path) -> None:
    objects = Objects(bed)
    await objects.apply(service(namespace, "cart"), route(namespace, "nobody"))
    async with writing(bed, tmp_path):
        await asyncio.sleep(3)
        assert "status" not in await objects.get(route(namespace, "nobody"))


async def test_a_status_that_is_written_compiles_and_pushes_nothing(
    bed: Bed, namespace: str, tmp_path: pathlib.Path
) -> None:
    """Clients of both variants hold what they hold, while a status comes, is overwritten and comes again."""
    objects = Objects(bed)
    wrong = route(namespace, "nobody")
    await objects.apply(service(namespace, "cart"), wrong)
    async with (
        writing(bed, tmp_path, analysis=True, object_statuses=True) as plane,
        adsclient.Client(plane.target("--grpcAddr"), delta=True, node=adsclient.node(namespace=namespace)) as one,
        adsclient.Client(plane.target("--grpcAddr"), delta=False, node=adsclient.node(namespace=namespace)) as other,
    ):
        for client in (one, other):
            for kind, names in ((CLUSTER, ()), (LISTENER, ()), (ROUTE, ("80",))):
                await client.subscribe(kind, *names)
                assert (await client.read_acked(60)).type_url == kind
        await objects.until(wrong, codes)
        await are_settled(plane)
        engine = plane.control_plane.engine
        runs, before = engine.runs, await objects.versions(wrong)
        path = path_of(wrong, "virtualservices") + "/status"
        taken = {"status": {"validationMessages": None, "conditions": None, "observedGeneration": 0}}
        await asyncio.to_thread(bed.call, "PATCH", path, taken, kind="application/merge-patch+json")
        status = await objects.until(wrong, lambda status: codes(status) and status.get("conditions"))
        assert status["observedGeneration"] == 1
        await are_settled(plane)
        assert await objects.versions(wrong) != before
        assert engine.runs == runs
        for client in (one, other):
            await client.read_nothing(0.5)
