"""Whose objects are whose: by their labels, those of their namespaces, tags and the default revision."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import virtual_loop
from kube_store import Store

from mizzen.api.gateway_api.listeners import Gateway, GatewayClass
from mizzen.api.kinds import kind_named
from mizzen.api.kube.cluster import Namespace
from mizzen.api.meta import Key, Object, ObjectMeta
from mizzen.control.revisions import DEFAULT_VALIDATOR, Revisions
from mizzen.control.webhooks.documents import MUTATING, VALIDATING
from mizzen.sources.kube.client import Refused

REV, TAG = "istio.io/rev", "istio.io/tag"
KNOWN = (MUTATING.kind, VALIDATING.kind, kind_named("Service"))
SPACES: Mapping[str, Mapping[str, str]] = {"plain": {}, "blues": {REV: "blue"}, "defaults": {REV: "default"}}
OBJECTS: Mapping[Key, Object] = {
    Key("Namespace", "", name): Namespace(metadata=ObjectMeta(name=name, labels=labels))
    for name, labels in SPACES.items()
}


def gateway(namespace: str, revision: str | None = None) -> Object:
    labels = {} if revision is None else {REV: revision}
    return Gateway(metadata=ObjectMeta(name="g", namespace=namespace, labels=labels))


CLASS = GatewayClass(metadata=ObjectMeta(name="istio"))


def injector(store: Store, revision: str, tag: str = "") -> None:
    name = f"istio-revision-tag-{tag}" if tag else f"istio-sidecar-injector-{revision}"
    store.put(MUTATING.kind.name, "", name, {REV: revision, **({TAG: tag} if tag else {})}, webhooks=[{"name": "x"}])


@contextlib.asynccontextmanager
async def following(store: Store, revision: str) -> AsyncIterator[Revisions]:
    revisions = Revisions(store, OBJECTS, revision, "istio-system")
    task = asyncio.ensure_future(revisions.run())
    try:
        await revisions.known()
        yield revisions
        assert not task.done()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def owners(store: Store, found: Object, *names: str) -> list[str]:
    """Which of the revisions write to an object."""
    ours = []
    for name in names:
        async with following(store, name) as revisions:
            if revisions.is_ours(found):
                ours.append(name)
    return ours


def run(test: Any) -> None:
    virtual_loop.run(test())


@pytest.mark.parametrize(
    ("found", "owner"),
    [
        (gateway("plain"), "default"),
        (gateway("blues"), "blue"),
        (gateway("blues", "green"), "green"),
        (gateway("plain", "blue"), "blue"),
        (gateway("blues", ""), "default"),
        (gateway("unknown"), "default"),
        (gateway("defaults"), "default"),
        (CLASS, "default"),
    ],
)
def test_an_object_is_of_the_revision_that_it_or_its_namespace_names(found, owner):
    async def test() -> None:
        store = Store(KNOWN)
        for revision in ("default", "blue", "green"):
            injector(store, revision)
        assert await owners(store, found, "default", "blue", "green") == [owner]

    run(test)


def test_a_control_plane_without_a_name_is_the_default():
    async def test() -> None:
        async with following(Store(KNOWN), "") as revisions:
            assert revisions.is_ours(gateway("plain"))
            assert not revisions.is_ours(gateway("blues"))
            assert revisions.names == {"default"}

    run(test)


def test_what_names_nobody_is_the_default_revisions_by_its_tag_first_and_by_its_validator_then():
    async def test() -> None:
        store, found = Store(KNOWN), gateway("plain")
        injector(store, "default")
        assert await owners(store, found, "default", "blue", "green") == ["default"]
        store.put(VALIDATING.kind.name, "", DEFAULT_VALIDATOR, {REV: "blue"})
        assert await owners(store, found, "default", "blue", "green") == ["blue"]
        injector(store, "green", "default")
        for each in (found, gateway("defaults"), CLASS):
            assert await owners(store, each, "default", "blue", "green") == ["green"]

    run(test)


def test_where_nobody_is_the_default_only_what_is_the_whole_clusters_is_seen_to():
    async def test() -> None:
        store = Store(KNOWN)
        injector(store, "blue")
        assert await owners(store, gateway("plain"), "blue") == []
        assert await owners(store, CLASS, "blue") == ["blue"]

    run(test)


def test_tags_are_names_too_and_move():
    async def test() -> None:
        store, told = Store(KNOWN), []
        injector(store, "blue", "stable")
        injector(store, "green", "canary")
        async with following(store, "blue") as revisions, following(store, "green") as other:
            with revisions.listening(lambda: told.append(revisions.names)):
                assert revisions.names == {"blue", "stable"}
                assert revisions.is_ours(gateway("plain", "stable"))
                assert not revisions.is_ours(gateway("plain", "canary"))
                injector(store, "green", "stable")
                await asyncio.sleep(1)
                assert told == [{"blue"}]
                assert not revisions.is_ours(gateway("plain", "stable"))
                assert other.is_ours(gateway("plain", "stable"))
            store.remove(MUTATING.kind.name, "", "istio-revision-tag-stable")
            await asyncio.sleep(1)
            assert other.names == {"green", "canary"}
            assert told == [{"blue"}], "who no longer listens is told nothing"

    run(test)


def test_a_service_gives_a_tag_too_but_who_injects_for_it_counts_more():
    async def test() -> None:
        store = Store(KNOWN)
        store.put("Service", "istio-system", "istiod-revision-tag-stable", {REV: "green", TAG: "stable"})
        store.put("Service", "shop", "somebodys", {REV: "blue", TAG: "mine"})
        async with following(store, "blue") as revisions, following(store, "green") as other:
            assert revisions.names == {"blue"}
            assert other.names == {"green", "stable"}
            injector(store, "blue", "stable")
            await asyncio.sleep(1)
            assert revisions.names == {"blue", "stable"}
            assert other.names == {"green"}

    run(test)


def test_who_may_not_read_tags_goes_on_without_them_and_one_who_may_later_hears_of_them(caplog):
    async def test() -> None:
        store = Store(KNOWN)
        injector(store, "blue", "stable")
        store.refused[MUTATING.path] = Refused(403, "forbidden")
        async with following(store, "blue") as revisions:
            assert revisions.names == {"blue"}
            del store.refused[MUTATING.path]
            await asyncio.sleep(120)
            assert revisions.names == {"blue", "stable"}

    run(test)
    assert caplog.text.count("forbidden") == 1


def test_a_server_that_does_not_answer_is_waited_for():
    async def test() -> None:
        store = Store(KNOWN)
        injector(store, "blue", "stable")
        store.refused[MUTATING.path] = Refused(500, "not now")
        async with asyncio.TaskGroup() as tasks:
            revisions = Revisions(store, OBJECTS, "blue", "istio-system")
            running = tasks.create_task(revisions.run())
            known = tasks.create_task(revisions.known())
            await asyncio.sleep(300)
            assert not known.done()
            del store.refused[MUTATING.path]
            await known
            assert revisions.names == {"blue", "stable"}
            running.cancel()

    run(test)
