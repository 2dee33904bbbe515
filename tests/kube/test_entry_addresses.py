"""Virtual addresses of ServiceEntries in a real API server: given once, kept, and known to a leader that comes later."""

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from control_planes import FAST, Plane, control_plane
from eventually import eventually
from kube_accounts import installed
from kube_bed import Bed
from kube_objects import path_of

from mizzen.sources.kube.access import from_kubeconfig

pytestmark = pytest.mark.usefixtures("mesh_kinds")


@contextlib.asynccontextmanager
async def allocating(bed: Bed, folder: pathlib.Path) -> AsyncIterator[Plane]:
    access = from_kubeconfig(await asyncio.to_thread(installed, bed))
    async with control_plane(folder, FAST, config=(), kubernetes=access) as plane:
        yield plane


def entry(namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    ports = [{"number": 5432, "name": "tcp", "protocol": "TCP"}]
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "ServiceEntry",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hosts": [f"{name}.{namespace}.example"], "ports": ports, "resolution": "DNS", **spec},
    }


async def apply(bed: Bed, document: dict[str, Any]) -> dict[str, Any]:
    return await asyncio.to_thread(bed.apply, path_of(document, "serviceentries"), document)


async def until(bed: Bed, document: dict[str, Any], holds: Callable[[list[str]], Any]) -> dict[str, Any]:
    """The entry once its addresses are so."""

    def look() -> dict[str, Any]:
        found = bed.call("GET", path_of(document, "serviceentries"))
        return found if holds(addresses(found)) else {}

    return await eventually(lambda: asyncio.to_thread(look), 120, 0.1)


def addresses(found: dict[str, Any]) -> list[str]:
    return [each["value"] for each in found.get("status", {}).get("addresses", ())]


async def test_addresses_are_given_once_and_kept_by_the_next_leader(bed, namespace, tmp_path):
    one, two = entry(namespace, "one"), entry(namespace, "two")
    await apply(bed, one)
    async with allocating(bed, tmp_path) as plane:
        first = await until(bed, one, bool)
        v4, v6 = addresses(first)
        assert v4.startswith("240.240.")
        assert v6.startswith("2001:2::")
        assert {each["host"] for each in first["status"]["addresses"]} == {f"one.{namespace}.example"}
        services = plane.control_plane.engine.keys("ServiceEntry")
        assert ("ServiceEntry", namespace, "one") in list(services)
    async with allocating(bed, tmp_path):
        await apply(bed, two)
        second = await until(bed, two, bool)
        assert not set(addresses(second)) & {v4, v6}
        again = await until(bed, one, bool)
        assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_who_states_addresses_is_given_none_and_takes_them_from_others(bed, namespace, tmp_path):
    one = entry(namespace, "one")
    await apply(bed, one)
    async with allocating(bed, tmp_path):
        before = addresses(await until(bed, one, bool))
        stated = entry(namespace, "stated", addresses=[before[0]])
        unresolved = entry(namespace, "unresolved", resolution="NONE")
        for document in (unresolved, stated):  # What the second one causes shows that the first one was seen.
            await apply(bed, document)
        found = await until(bed, one, lambda now: now and before[0] not in now)
        assert addresses(found)[1] == before[1]
        for document in (stated, unresolved):
            assert addresses(await until(bed, document, lambda _: True)) == []


async def test_entries_of_other_revisions_have_addresses_of_their_own_too(bed, namespace, tmp_path):
    ours, theirs = entry(namespace, "ours"), entry(namespace, "theirs")
    theirs["metadata"]["labels"] = {"istio.io/rev": "another"}
    await apply(bed, theirs)
    async with allocating(bed, tmp_path) as plane:
        given = addresses(await until(bed, theirs, bool))
        await apply(bed, ours)
        assert not set(addresses(await until(bed, ours, bool))) & set(given)

        def served() -> set[str]:
            return {key[2] for key in plane.control_plane.engine.keys("ServiceEntry") if key[1] == namespace}

        await eventually(served)  # Whoever gives addresses hears of entries by itself.
        assert served() == {"ours"}
