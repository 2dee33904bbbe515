"""Which objects of a cluster a control plane takes, by its revision's tags and by the mesh config."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
import pytest
import virtual_loop
from kube_store import Store

from mizzen import settings
from mizzen.api.kinds import KINDS
from mizzen.api.kube.data import ConfigMap
from mizzen.control.cluster import Cluster
from mizzen.control.mesh import MeshSettings, config_map_key
from mizzen.control.options import Options
from mizzen.control.webhooks.documents import MUTATING, VALIDATING
from mizzen.sources.batches import Batch
from mizzen.sources.kube.access import Access, Credentials
from mizzen.sources.kube.client import Refused
from mizzen.sources.origins import Origin

SYSTEM = "istio-system"
KNOWN = (*KINDS, MUTATING.kind, VALIDATING.kind)
MAP = "/api/v1/namespaces/istio-system/configmaps/istio-blue"
SELECTED = "discoverySelectors:\n- matchLabels: {mesh: 'on'}\n"
ACCESS = Access(server="https://nowhere", credentials=Credentials())


class Served(Store):
    """A store in the place of a client, an asynchronous context as it is."""

    async def __aenter__(self) -> "Served":
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class World:
    """A control plane's mesh config and its cluster, without all else."""

    def __init__(self, store: Served, revision: str = "blue", mesh_file: str = "") -> None:
        instance = settings.Instance(namespace=SYSTEM, revision=revision)
        config = msgspec.structs.replace(settings.Settings(), instance=instance)
        self.mesh = MeshSettings(mesh_file)
        self.cluster = Cluster(ACCESS, Options(), config, self.mesh, time.time)
        self.batches: list[Batch] = []
        self._map_key = config_map_key(SYSTEM, revision)
        for each in (self.cluster, self.cluster.source, *self.cluster.revisions._mirrors):
            setattr(each, "client" if each is self.cluster else "_client", store)

    def take(self, batch: Batch) -> None:
        self.batches.append(batch)
        key = self._map_key
        if key in batch.sets or key in batch.removes:
            found = batch.sets.get(key)
            self.mesh.follow(found if isinstance(found, ConfigMap) else None, Origin("kubernetes"))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.ensure_future(self.cluster.run(self.take))
        try:
            await self.cluster.source.listed.wait()
            await asyncio.sleep(1)
            yield
            assert not task.done()
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def names(self, kind: str) -> set[str]:
        return {f"{key.namespace}/{key.name}" for key in self.cluster.source.objects if key.kind == kind}


def a_store(mesh: str | None = SELECTED) -> Served:
    store = Served(KNOWN)
    for name, labels in {"shop": {"mesh": "on"}, "bank": {}, SYSTEM: {}}.items():
        store.put("Namespace", "", name, labels)
        store.put("Service", name, "s", spec={"ports": []})
        store.put("VirtualService", name, "plain", spec={})
        store.put("VirtualService", name, "tagged", {"istio.io/rev": "stable"}, spec={})
    write_mesh(store, mesh)
    store.put("ConfigMap", SYSTEM, "istio-sidecar-injector-blue", data={"values": "{}"})
    store.put("ConfigMap", SYSTEM, "others", data={})
    tag(store, "blue")
    return store


def write_mesh(store: Served, text: str | None) -> None:
    if text is None:
        store.remove("ConfigMap", SYSTEM, "istio-blue")
    else:
        store.put("ConfigMap", SYSTEM, "istio-blue", data={"mesh": text})


def tag(store: Served, revision: str) -> None:
    labels: Mapping[str, str] = {"istio.io/rev": revision, "istio.io/tag": "stable"}
    store.put(MUTATING.kind.name, "", "istio-revision-tag-stable", labels)


def run(test: Any) -> None:
    virtual_loop.run(test())


def test_the_first_list_is_of_the_selected_namespaces_and_the_tagged_objects():
    async def test() -> None:
        world = World(a_store())
        async with world.running():
            (first, *_) = world.batches
            assert {key.namespace for key in first.sets if key.kind == "Service"} == {"shop"}
            assert {key.name for key in first.sets if key.kind == "VirtualService"} == {"plain", "tagged"}
            assert world.names("ConfigMap") == {f"{SYSTEM}/istio-blue", f"{SYSTEM}/istio-sidecar-injector-blue"}
            assert len(world.batches) == 1

    run(test)


def test_a_mesh_config_that_selects_otherwise_is_followed_and_so_is_its_end():
    async def test() -> None:
        store = a_store("discoverySelectors:\n- matchLabels: {mesh: late}\n")
        world = World(store)
        async with world.running():
            assert world.names("Service") == set()
            for text, names in ((SELECTED, {"shop/s"}), (None, {"shop/s", "bank/s", f"{SYSTEM}/s"})):
                write_mesh(store, text)
                await asyncio.sleep(5)
                assert world.names("Service") == names

    run(test)


def test_a_tag_that_moves_away_takes_its_objects_with_it():
    async def test() -> None:
        store = a_store()
        world = World(store)
        async with world.running():
            tag(store, "green")
            await asyncio.sleep(5)
            assert world.names("VirtualService") == {"shop/plain"}
            tag(store, "blue")
            await asyncio.sleep(5)
            assert world.names("VirtualService") == {"shop/plain", "shop/tagged"}

    run(test)


def test_for_want_of_the_config_map_the_file_selects(tmp_path):
    async def test() -> None:
        file = tmp_path / "mesh.yaml"
        file.write_text(SELECTED)
        world = World(a_store(None), mesh_file=str(file))
        async with world.running():
            assert world.names("Service") == {"shop/s"}
            file.write_text("{}")
            world.mesh.reload()
            world.cluster.select_namespaces()
            await asyncio.sleep(5)
            assert world.names("Service") == {"shop/s", "bank/s", f"{SYSTEM}/s"}

    run(test)


def test_selectors_that_nobody_could_mean_leave_those_before_in_force(caplog):
    async def test() -> None:
        store = a_store()
        world = World(store)
        async with world.running():
            for connect_timeout in (1, 2):
                broken = "discoverySelectors:\n- matchExpressions: [{key: a, operator: Near}]\n"
                write_mesh(store, f"connectTimeout: {connect_timeout}s\n{broken}")
                await asyncio.sleep(5)
                assert world.names("Service") == {"shop/s"}

    run(test)
    assert caplog.text.count("'Near' is not a valid label selector operator; those before stay in force") == 1


def test_a_control_plane_of_no_revision_takes_the_objects_of_all():
    async def test() -> None:
        store = a_store()
        store.put("VirtualService", "shop", "other", {"istio.io/rev": "other"}, spec={})
        world = World(store, revision="")
        async with world.running():
            assert "shop/other" in world.names("VirtualService")

    run(test)


@pytest.mark.parametrize("status", [404, 403])
def test_a_mesh_config_that_is_not_there_or_not_to_be_read_selects_everything(status, monkeypatch):
    async def test() -> None:
        store = a_store(None)

        async def refuse(path: str, query: Mapping[str, str] | None = None) -> bytes:
            if path == MAP:
                raise Refused(status, "no")
            return await Served.get(store, path, query)

        monkeypatch.setattr(store, "get", refuse)
        world = World(store)
        async with world.running():
            assert world.names("Service") == {"shop/s", "bank/s", f"{SYSTEM}/s"}

    run(test)


def test_nothing_is_listed_while_the_mesh_config_cannot_be_asked_for(monkeypatch):
    async def test() -> None:
        store, is_up = a_store(), asyncio.Event()

        async def refuse(path: str, query: Mapping[str, str] | None = None) -> bytes:
            if path == MAP and not is_up.is_set():
                raise Refused(500, "not now")
            return await Served.get(store, path, query)

        monkeypatch.setattr(store, "get", refuse)
        world = World(store)
        task = asyncio.ensure_future(world.cluster.run(world.take))
        await asyncio.sleep(300)
        assert not any(path.endswith("/pods") for path, _ in store.asked)
        is_up.set()
        await world.cluster.source.listed.wait()
        assert world.names("Service") == {"shop/s"}
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    run(test)
