"""Which objects are taken, and what a source holds when that becomes another question."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest
import virtual_loop
from kube_store import Store

from mizzen.api.kinds import KINDS, kind_named
from mizzen.api.meta import Key, LabelSelector
from mizzen.sources.batches import Batch
from mizzen.sources.kube.client import Refused
from mizzen.sources.kube.selection import REVISION, Change, Part, Selection, is_revisioned
from mizzen.sources.kube.source import KubeSource

ON = LabelSelector(match_labels={"mesh": "on"})
LATE = LabelSelector(match_labels={"mesh": "late"})
KNOWN = tuple(
    kind_named(name) for name in ("Namespace", "Service", "ConfigMap", "VirtualService", "KubernetesGateway", "Node")
)


def takes(selection: Selection, kind: str, namespace: str, revision: str | None = None) -> bool:
    return selection.takes(kind_named(kind), Key(kind, namespace, "x"), revision)


# -- the question -------------------------------------------------------------------------------------------------------


def test_objects_of_the_mesh_are_taken_if_they_name_the_revision_one_of_its_tags_or_nobody():
    selection = Selection(["blue", "stable"])
    assert takes(selection, "VirtualService", "shop", "blue")
    assert takes(selection, "VirtualService", "shop", "stable")
    assert takes(selection, "VirtualService", "shop", None)
    assert not takes(selection, "VirtualService", "shop", "green")
    assert not takes(selection, "VirtualService", "shop", "")
    assert not takes(selection, "HTTPRoute", "shop", "green")
    assert not takes(selection, "GatewayClass", "", "green")


@pytest.mark.parametrize("kind", ["Service", "Pod", "Secret", "Namespace", "KubernetesGateway", "Ingress"])
def test_a_revision_is_nothing_to_kubernetes_own_kinds_and_a_gateway_is_everybodys(kind):
    assert takes(Selection(["blue"]), kind, "shop", "green")


def test_a_control_plane_of_no_revision_takes_all():
    assert takes(Selection(), "VirtualService", "shop", "green")


def test_every_kind_that_is_written_for_the_mesh_is_written_for_a_revision():
    assert {kind.name for kind in KINDS if is_revisioned(kind)} >= {
        "VirtualService",
        "AuthorizationPolicy",
        "Telemetry",
        "WasmPlugin",
        "HTTPRoute",
        "ReferenceGrant",
        "GatewayClass",
    }


def test_a_namespace_that_no_selector_selects_is_not_taken_but_for_what_always_is():
    always = Key("ConfigMap", "istio-system", "istio")
    selection = Selection(selectors=[ON, LATE], always=[always])
    selection.see_namespace("shop", {"mesh": "on"})
    selection.see_namespace("bank", {"mesh": "late"})
    selection.see_namespace("istio-system", {})
    assert takes(selection, "Pod", "shop")
    assert takes(selection, "Pod", "bank")
    assert not takes(selection, "Pod", "istio-system")
    assert not takes(selection, "Pod", "unknown")
    assert takes(selection, "Node", "")
    assert selection.takes(kind_named("ConfigMap"), always, None)


def test_what_is_the_control_planes_own_affair_is_never_taken() -> None:
    own = Key("Secret", "istio-system", "cacerts")
    selection = Selection(always=[own], never=[own])
    assert not selection.takes(kind_named("Secret"), own, None)
    assert selection.takes(kind_named("Secret"), Key("Secret", "shop", "cacerts"), None)
    assert selection.takes(kind_named("ConfigMap"), Key("ConfigMap", "istio-system", "cacerts"), None)


def test_a_change_says_what_is_to_be_listed_and_whether_something_is_to_be_let_go():
    selection = Selection(["blue"])
    assert selection.set_revisions(["blue"]) == Change()
    assert selection.set_revisions(["blue", "b", "a"]) == Change((Part(revisions=("a", "b")),))
    assert selection.set_revisions(["blue", "c"]) == Change((Part(revisions=("c",)),), shrinks=True)
    assert selection.set_revisions([]) == Change((Part(),))
    assert selection.set_revisions(["blue"]) == Change((Part(),), shrinks=True)
    assert selection.see_namespace("shop", {"mesh": "on"}) == Change()
    assert selection.see_namespace("bank", {}) == Change()
    assert selection.set_selectors([ON]) == Change(shrinks=True)
    assert selection.see_namespace("bank", {"mesh": "on"}) == Change((Part(namespace="bank"),))
    assert selection.see_namespace("bank", {"mesh": "on", "more": ""}) == Change()
    assert selection.see_namespace("bank", {"mesh": "late"}) == Change(shrinks=True)
    assert selection.set_selectors([LATE]) == Change((Part(namespace="bank"),), shrinks=True)
    assert selection.see_namespace("bank", None) == Change(shrinks=True)
    assert selection.set_selectors([]) == Change((Part(),))


# -- a source that asks it ----------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def following(
    store: Store, selection: Selection, batches: list[Batch] | None = None
) -> AsyncIterator[KubeSource]:
    source = KubeSource(store, kinds=KNOWN, selection=selection)
    task = asyncio.ensure_future(source.run((batches if batches is not None else []).append))
    try:
        await source.listed.wait()
        yield source
        assert not task.done()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def held(source: KubeSource) -> set[Key]:
    """What is in memory, told or not."""
    return {key for kind in KNOWN if (one := source._reflectors.get(kind.name)) for key in one.held}


def run(test: Callable[[], Any]) -> None:
    virtual_loop.run(test())


def a_mesh(**options: Any) -> Store:
    store = Store(KNOWN, **options)
    for name, labels in {"shop": {"mesh": "on"}, "bank": {}}.items():
        store.put("Namespace", "", name, labels)
        for at in range(5):
            store.put("Service", name, f"s-{at}", spec={"ports": []})
        store.put("VirtualService", name, "plain", spec={})
        store.put("VirtualService", name, "blue", {REVISION: "blue"}, spec={})
        store.put("VirtualService", name, "tagged", {REVISION: "stable"}, spec={})
    return store


def test_what_is_not_selected_is_not_held():
    async def test() -> None:
        store = a_mesh()
        async with following(store, Selection(["green"], [ON])) as source:
            assert {key.namespace for key in held(source) if key.namespace} == {"shop"}
            assert {key.name for key in held(source) if key.kind == "VirtualService"} == {"plain"}
            assert set(source.objects) == held(source)
            store.put("Service", "bank", "new", spec={"ports": []})
            store.put("VirtualService", "shop", "plain", {REVISION: "blue"}, spec={})
            await asyncio.sleep(1)
            assert set(source.objects) == held(source)
            assert Key("VirtualService", "shop", "plain") not in source.objects
            assert not any(key.namespace == "bank" for key in held(source))

    run(test)


def test_a_source_that_starts_lists_each_kind_once():
    async def test() -> None:
        store = a_mesh(lag=0.2)
        async with following(store, Selection(["blue"], [ON])):
            await asyncio.sleep(60)
            listed = [path for path, _ in store.asked]
            assert len(listed) == len(set(listed))
            assert not any("/namespaces/" in path for path in listed)

    run(test)


def test_one_namespace_that_is_selected_is_listed_alone_and_let_go_again():
    async def test() -> None:
        store, batches = a_mesh(), []
        async with following(store, Selection(selectors=[ON]), batches) as source:
            store.asked.clear()
            batches.clear()
            store.put("Namespace", "", "bank", {"mesh": "on"})
            await asyncio.sleep(1)
            assert len([key for key in source.objects if key.namespace == "bank"]) == 8
            assert all("/namespaces/bank/" in path for path, _ in store.asked)
            assert not any(key.namespace == "shop" for batch in batches for key in (*batch.sets, *batch.removes))
            store.asked.clear()
            store.put("Namespace", "", "bank", {})
            await asyncio.sleep(1)
            assert not any(key.namespace == "bank" for key in held(source))
            assert set(source.objects) == held(source)
            assert not store.asked

    run(test)


def test_a_tag_that_moves_brings_its_objects_and_takes_them_away():
    async def test() -> None:
        store, batches = a_mesh(), []
        async with following(store, Selection(["blue"]), batches) as source:
            before = set(source.objects)
            batches.clear()
            store.asked.clear()
            source.select(revisions=["blue", "stable"])
            await asyncio.sleep(1)
            tagged = {Key("VirtualService", name, "tagged") for name in ("shop", "bank")}
            assert set(source.objects) == before | tagged
            assert {query.get("labelSelector") for _, query in store.asked} == {f"{REVISION} in (stable)"}
            source.select(revisions=["blue"])
            await asyncio.sleep(1)
            assert set(source.objects) == held(source) == before
            assert {key for batch in batches for key in (*batch.sets, *batch.removes)} == tagged

    run(test)


def test_many_namespaces_at_once_are_listed_as_one():
    async def test() -> None:
        store = Store(KNOWN)
        for at in range(30):
            store.put("Namespace", "", f"n-{at}", {"mesh": "late"})
            store.put("Service", f"n-{at}", "s", spec={"ports": []})
        async with following(store, Selection(selectors=[ON])) as source:
            assert not any(key.kind == "Service" for key in held(source))
            store.asked.clear()
            source.select(selectors=[LATE])
            await asyncio.sleep(1)
            assert sum(key.kind == "Service" for key in source.objects) == 30
            assert [path for path, _ in store.asked if path.endswith("/services")] == ["/api/v1/services"]

    run(test)


def test_a_part_that_cannot_be_listed_now_is_listed_later(caplog):
    async def test() -> None:
        store = a_mesh()
        async with following(store, Selection(selectors=[ON])) as source:
            path = "/api/v1/namespaces/bank/services"
            store.refused[path] = Refused(500, "not now")
            store.put("Namespace", "", "bank", {"mesh": "on"})
            await asyncio.sleep(300)
            assert Key("VirtualService", "bank", "plain") in source.objects
            assert Key("Service", "bank", "s-0") not in source.objects
            del store.refused[path]
            await asyncio.sleep(60)
            assert Key("Service", "bank", "s-0") in source.objects

    run(test)
    assert caplog.text.count("/api/v1/services cannot be listed: not now") == 1


def test_selectors_that_come_and_go_leave_what_a_new_source_would_have():
    async def test() -> None:
        store = a_mesh()
        async with following(store, Selection()) as source:
            everything = set(source.objects)
            source.select(selectors=[ON])
            await asyncio.sleep(1)
            assert {key.namespace for key in held(source) if key.namespace} == {"shop"}
            source.select(selectors=[])
            await asyncio.sleep(1)
            assert set(source.objects) == held(source) == everything

    run(test)


def _step(store: Store, source: KubeSource, chance: random.Random) -> None:
    """Something that happens to a mesh."""
    namespace, name = chance.choice(("a", "b", "c")), chance.choice(("x", "y"))
    kind = chance.choice(("Service", "ConfigMap", "VirtualService", "KubernetesGateway"))
    labels: Mapping[str, str] = chance.choice(({}, {REVISION: "blue"}, {REVISION: "t1"}, {REVISION: "t2"}))
    match chance.randrange(8):
        case 0:
            store.put("Namespace", "", namespace, chance.choice(({}, {"mesh": "on"}, {"mesh": "late"})))
        case 1:
            store.remove("Namespace", "", namespace)
        case 2:
            source.select(revisions=["blue", *chance.sample(["t1", "t2"], chance.randrange(3))])
        case 3:
            source.select(selectors=chance.sample([ON, LATE], chance.randrange(3)))
        case 4:
            store.remove(kind, namespace, name)
        case _:
            store.put(kind, namespace, name, labels, data={"n": str(chance.random())}, spec={})


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_a_source_has_what_one_would_have_that_starts_now(seed):
    async def test() -> None:
        chance = random.Random(seed)
        store = Store(KNOWN, page=1, seed=seed, lag=0.2)
        always = [Key("ConfigMap", "c", "x")]
        async with following(store, Selection(["blue"], always=always)) as source:
            for _ in range(120):
                _step(store, source, chance)
                await asyncio.sleep(chance.random() * 0.3)
            await asyncio.sleep(300)
            now = Selection(source.selection.revisions, source.selection._selectors, always)
            async with following(store, now) as fresh:
                assert source.objects == fresh.objects
                assert held(source) == set(source.objects)

    run(test)
