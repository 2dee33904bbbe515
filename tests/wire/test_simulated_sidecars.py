"""The benchmark's simulated sidecars at a real control plane: they hold what an Envoy would, and say so."""

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from control_planes import Plane, control_plane
from eventually import eventually

from bench import changes, meshes
from bench.clients import TYPES, Reader, Sidecar, encode_node
from bench.serving import PLAIN
from bench.subjects import Folder
from mizzen.compile import snapshot
from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE
from mizzen.model.proxy import parse_node

NAMESPACES = 2
DOCUMENTS = list(meshes.documents(6, 1, NAMESPACES))
NODES = list(meshes.nodes(DOCUMENTS))


@pytest.fixture
async def plane(tmp_path: pathlib.Path) -> AsyncIterator[Plane]:
    Folder(tmp_path / "config").write(DOCUMENTS)
    async with control_plane(tmp_path) as plane:
        yield plane


class Pair:
    """A sidecar, and the node that it says it is."""

    def __init__(self, plane: Plane, node: dict[str, Any], reader: Reader) -> None:
        self.node = node
        self.sidecar = Sidecar(plane.target(PLAIN), encode_node(node), reader)
        self._plane = plane

    def held(self) -> dict[str, dict[str, str]]:
        return {type_url: self.sidecar.held[type_url].versions for type_url in TYPES}

    def due(self) -> dict[str, dict[str, str]]:
        """What the control plane's engine has for it, of what it would ask for."""
        told = {**self.node["metadata"], "ISTIO_VERSION": "1.32.0", "INTERCEPTION_MODE": "REDIRECT"}
        db, proxy = self._plane.control_plane.engine, parse_node({**self.node, "metadata": told})
        found = {each: db.root(snapshot.resources, proxy, each, None).value() for each in (CLUSTER, LISTENER)}
        asked = {ENDPOINT: snapshot.endpoint_names(found[CLUSTER]), ROUTE: snapshot.route_names(found[LISTENER])}
        for each, names in asked.items():
            found[each] = db.root(snapshot.resources, proxy, each, names).value()
        return {type_url: {each.name: each.version for each in resources} for type_url, resources in found.items()}

    async def reached(self) -> None:
        """Told what it watches for."""
        await eventually(lambda: self.sidecar.reached_at if self.sidecar.marker else self.sidecar.told_at)

    async def settled(self) -> None:
        """Holds what it should."""
        await eventually(lambda: self.held() == self.due())


@contextlib.asynccontextmanager
async def sidecars(plane: Plane) -> AsyncIterator[list[Pair]]:
    """One for each pod, ready."""
    reader = Reader()
    every = [Pair(plane, node, reader) for node in NODES]
    tasks = [asyncio.ensure_future(each.sidecar.run()) for each in every]
    try:
        for each in every:
            await asyncio.wait_for(each.sidecar.ready.wait(), 60)
        yield every
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_sidecars_hold_what_the_control_plane_has_for_them_through_changes(plane):
    folder = Folder(plane.config)
    async with sidecars(plane) as every:
        for each in every:
            await each.settled()
        for kind in changes.KINDS.values():
            change = kind.make(0, NAMESPACES, 1)
            for each in every:
                each.sidecar.watch(change.marker.encode())
            folder.write(change.documents)
            for each in every:
                if kind.concerns(each.node, 0, NAMESPACES):
                    await each.reached()
            for each in every:
                await each.settled()
            folder.remove(change.added)
            folder.write(change.before)
        assert [each.sidecar.failures for each in every] == [0] * len(every)


async def test_who_comes_back_with_versions_is_told_what_changed_and_who_forgot_is_told_all(plane):
    folder = Folder(plane.config)
    async with sidecars(plane) as (one, other, *_):
        for each, forget in ((one, False), (other, True)):
            each.sidecar.watch()
            each.sidecar.reconnect(forget=forget)
        await other.sidecar.ready.wait()
        await eventually(lambda: one.sidecar.streams == 2 and one.sidecar.bytes[ROUTE])
        assert one.sidecar.bytes[CLUSTER] == one.sidecar.bytes[LISTENER] == 0
        assert min(other.sidecar.bytes[type_url] for type_url in TYPES) > 0
        change = changes.KINDS["dr"].make(0, NAMESPACES, 1)
        one.sidecar.watch(change.marker.encode())
        folder.write(change.documents)
        await one.reached()
        await one.settled()
        await other.settled()


async def test_what_is_rejected_is_not_held_and_the_control_plane_knows(plane):
    async with sidecars(plane) as (one, *_):
        before = one.held()
        one.sidecar.rejects.add(ROUTE)
        change = changes.KINDS["vs"].make(0, NAMESPACES, 1)
        one.sidecar.watch(change.marker.encode())
        Folder(plane.config).write(change.documents)
        await one.reached()
        assert one.held() == before != one.due()
        connections = plane.control_plane.discovery.connections
        await eventually(lambda: any(status.error for each in connections for status in each.types()))


async def test_who_does_not_read_hears_it_later(plane):
    folder = Folder(plane.config)
    async with sidecars(plane) as (slow, quick, *_):
        slow.sidecar.reading.clear()
        # The read that waits already takes one response.
        for turn in (1, 2):
            change = changes.KINDS["vs"].make(0, NAMESPACES, turn)
            for each in (slow, quick):
                each.sidecar.watch(change.marker.encode())
            folder.write(change.documents)
            await quick.reached()
        assert not slow.sidecar.reached_at
        slow.sidecar.reading.set()
        await slow.reached()
        await slow.settled()
