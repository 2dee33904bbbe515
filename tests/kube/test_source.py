"""Objects of a real API server: listed, followed through its absences, and never told twice."""

import asyncio
import contextlib
import functools
import pathlib
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

import eventually as waiting
from kube_accounts import installed
from kube_bed import Answer, Bed
from kube_mesh_kinds import until_served
from kube_objects import definition, path_of, pod, service

from mizzen.api.kinds import kind_named
from mizzen.api.meta import Key
from mizzen.sources.batches import Batch
from mizzen.sources.kube import client as kube_client
from mizzen.sources.kube import reflector
from mizzen.sources.kube.access import Access, from_kubeconfig
from mizzen.sources.kube.client import Client, Page
from mizzen.sources.kube.reflector import Timing
from mizzen.sources.kube.source import KubeSource

eventually = functools.partial(waiting.eventually, seconds=120.0)
QUICK = Timing(first_wait=0.1, longest_wait=1.0)


class Followed:
    """A source at work, and what it has told."""

    def __init__(self, source: KubeSource) -> None:
        self.source = source
        self.batches: list[Batch] = []

    def told(self, key: Key) -> int:
        """How often an object was told, removals included."""
        return sum((key in batch.sets) + (key in batch.removes) for batch in self.batches)

    def has(self, key: Key) -> bool:
        return key in self.source.objects


async def run(client: Client, source: KubeSource, batches: list[Batch]) -> None:
    async with client:
        await source.run(batches.append)


@contextlib.asynccontextmanager
async def following(
    bed: Bed,
    kinds: str = "Service Pod Namespace",
    timing: Timing = QUICK,
    kubeconfig: pathlib.Path | None = None,
) -> AsyncIterator[Followed]:
    client = Client(from_kubeconfig(kubeconfig or await asyncio.to_thread(installed, bed)))
    source = KubeSource(client, kinds=tuple(kind_named(name) for name in kinds.split()), timing=timing)
    followed = Followed(source)

    task = asyncio.create_task(run(client, source, followed.batches))
    try:
        await eventually(lambda: followed.batches or task.done())
        yield followed
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def call(bed: Bed, method: str, path: str, body: object = None, **more: str) -> dict:
    return await asyncio.to_thread(bed.call, method, path, body, **more)


async def apply(bed: Bed, document: dict, plural: str) -> dict:
    return await asyncio.to_thread(bed.apply, path_of(document, plural), document)


async def test_the_first_batch_is_everything_in_pages(bed, namespace):
    names = [f"s-{number:04}" for number in range(1100)]
    for start in range(0, len(names), 100):
        await asyncio.gather(*(apply(bed, pod(namespace, name), "pods") for name in names[start : start + 100]))
    async with following(bed, "Pod") as followed:
        first = followed.batches[0]
        assert {key.name for key in first.sets if key.namespace == namespace} == set(names)
        assert not first.removes
    await call(bed, "DELETE", f"/api/v1/namespaces/{namespace}/pods")


async def test_objects_come_change_and_go(bed, namespace):
    key = Key("Service", namespace, "one")
    async with following(bed) as followed:
        assert not followed.has(key)
        await apply(bed, service(namespace, "one"), "services")
        await eventually(lambda: followed.has(key))
        await apply(bed, service(namespace, "one", 81), "services")
        await eventually(lambda: followed.source.objects[key].spec.ports[0].port == 81)
        await call(bed, "DELETE", path_of(service(namespace, "one"), "services"))
        await eventually(lambda: not followed.has(key))
        assert followed.told(key) == 3


async def test_what_changes_nothing_is_not_told(bed, namespace):
    key, path = Key("Pod", namespace, "p"), path_of(pod(namespace, "p"), "pods")
    await apply(bed, pod(namespace, "p"), "pods")
    async with following(bed) as followed:
        last_applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
        await apply(bed, pod(namespace, "p", annotations=last_applied), "pods")
        container = {"name": "app", "image": "app", "imageID": "", "ready": False, "restartCount": 1}
        for place, patch in (
            (path, {"metadata": {"finalizers": ["mizzen.test/wait"]}}),
            (path, {"metadata": {"finalizers": None}}),
            (path, {"metadata": {"annotations": {"example.com/note": "x", "kubectl.kubernetes.io/restartedAt": "y"}}}),
            (f"{path}/status", {"status": {"conditions": [{"type": "ContainersReady", "status": "False"}]}}),
            (f"{path}/status", {"status": {"containerStatuses": [container]}}),
        ):
            await call(bed, "PATCH", place, patch, kind="application/merge-patch+json")
        await apply(bed, service(namespace, "after"), "services")
        await apply(bed, pod(namespace, "after"), "pods")
        await eventually(lambda: followed.has(Key("Pod", namespace, "after")))
        assert followed.told(key) == 1


async def test_a_status_changes_nothing_where_the_version_of_an_object_counts(bed, mesh_kinds, namespace):
    kinds = {"WasmPlugin": {"url": "oci://example/a"}, "TrafficExtension": {"wasm": {"url": "oci://example/a"}}}
    plurals = {"WasmPlugin": "wasmplugins", "TrafficExtension": "trafficextensions"}
    for kind, spec in kinds.items():
        key, version = Key(kind, namespace, "a"), "extensions.istio.io/v1alpha1"
        document = {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": "a", "namespace": namespace},
            "spec": spec,
        }
        made = await apply(bed, document, plurals[kind])
        async with following(bed, kind) as followed:
            path = f"{path_of(document, plurals[kind])}/status"
            body = {"status": {"validationMessages": [{"level": "ERROR", "type": {"code": "IST0101"}}]}}
            await call(bed, "PATCH", path, body, kind="application/merge-patch+json")
            after = {**document, "metadata": {"name": "after", "namespace": namespace}}
            await apply(bed, after, plurals[kind])
            await eventually(lambda key=key: followed.has(key._replace(name="after")))
            assert followed.told(key) == 1
            assert followed.source.objects[key].metadata.resource_version == made["metadata"]["resourceVersion"]
            changed = await apply(bed, {**document, "spec": {**spec, "priority": 7}}, plurals[kind])
            await eventually(lambda key=key: followed.told(key) == 2)
            told = followed.source.objects[key].metadata.resource_version
            assert told == changed["metadata"]["resourceVersion"]


async def test_secrets_of_helm_are_never_asked_for(bed, namespace):
    for name, kind in {"release": "helm.sh/release.v1", "certificate": "Opaque"}.items():
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "type": kind}
        await apply(bed, body, "secrets")
    async with following(bed, "Secret") as followed:
        assert {key.name for key in followed.source.objects if key.namespace == namespace} == {"certificate"}


async def test_a_past_that_is_gone_is_listed_again_and_only_differences_are_told(bed, namespace):
    kept, gone, new = (Key("Service", namespace, name) for name in ("kept", "gone", "new"))
    for key in (kept, gone):
        await apply(bed, service(namespace, key.name), "services")
    async with following(bed, "Service", Timing(first_wait=3.0, longest_wait=3.0)) as followed:
        await asyncio.to_thread(bed.stop_server, signal.SIGKILL)
        await eventually(lambda: followed.source.troubles)
        try:
            await asyncio.to_thread(bed.start_server)
            await call(bed, "DELETE", path_of(service(namespace, "gone"), "services"))
            await apply(bed, service(namespace, "new"), "services")
            # A server whose cache begins now, over a store that has forgotten: what we watched from is gone.
            await asyncio.to_thread(bed.stop_server, signal.SIGKILL)
            await asyncio.to_thread(bed.compact)
        finally:
            await asyncio.to_thread(bed.start_server)
        await eventually(lambda: followed.has(new) and not followed.has(gone))
        assert (followed.told(kept), followed.told(new), followed.told(gone)) == (1, 1, 2)


class Interrupted(Client):
    """Has something happen between the first two pages of the first list of Services."""

    def __init__(self, access: Access, happen: Callable[[], None]) -> None:
        super().__init__(access)
        self._happen: Callable[[], None] | None = happen

    async def list_pages(self, path: str, query: Mapping[str, str], accept: str = "") -> AsyncGenerator[Page, None]:
        async with contextlib.aclosing(super().list_pages(path, query, accept)) as pages:
            async for page in pages:
                yield page
                if path.endswith("/services") and self._happen is not None:
                    happen, self._happen = self._happen, None
                    await asyncio.to_thread(happen)


async def test_a_list_whose_past_is_gone_between_two_pages_begins_anew(bed, namespace, monkeypatch):
    monkeypatch.setattr(kube_client, "PAGE", 1)
    keys = [Key("Service", namespace, f"s-{number}") for number in range(3)]
    for key in keys:
        await apply(bed, service(namespace, key.name), "services")

    def forget() -> None:
        bed.stop_server(signal.SIGKILL)
        bed.start_server()
        bed.call("DELETE", path_of(service(namespace, "s-0"), "services"))
        bed.stop_server(signal.SIGKILL)
        bed.compact()
        bed.start_server()

    client = Interrupted(from_kubeconfig(await asyncio.to_thread(installed, bed)), forget)
    source = KubeSource(client, kinds=(kind_named("Service"),), timing=QUICK)
    batches: list[Batch] = []
    before = reflector._TROUBLE.value("Service", "410")
    task = asyncio.create_task(run(client, source, batches))
    try:
        await eventually(lambda: batches or task.done())
        assert [key for key in keys if key in source.objects] == keys[1:]
        assert reflector._TROUBLE.value("Service", "410") == before + 1
        assert len(batches) == 1
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_store_that_is_killed_below_the_server_costs_nobody_an_object(bed, namespace):
    kept, after = (Key("Service", namespace, name) for name in ("kept", "after"))
    await apply(bed, service(namespace, "kept"), "services")
    async with following(bed) as followed:
        await asyncio.to_thread(bed.restart_etcd)
        await apply(bed, service(namespace, "after"), "services")
        await eventually(lambda: followed.has(after))
        assert (followed.told(kept), followed.told(after)) == (1, 1)


async def test_an_absent_server_takes_nothing_away_and_its_age_is_told(bed, namespace):
    await apply(bed, service(namespace, "s"), "services")
    key = Key("Service", namespace, "s")
    async with following(bed) as followed:
        assert followed.source.age() == 0
        await asyncio.to_thread(bed.stop_server, signal.SIGKILL)
        try:
            await eventually(lambda: followed.source.age() > 1)
            assert followed.has(key)
            assert any("Connect" in why or "API server" in why for why in followed.source.troubles)
        finally:
            await asyncio.to_thread(bed.start_server)
        await eventually(lambda: followed.source.age() == 0)
        await apply(bed, service(namespace, "after"), "services")
        await eventually(lambda: followed.has(Key("Service", namespace, "after")))
        assert followed.told(key) == 1


async def test_a_source_waits_for_a_server_that_is_not_there_yet(bed, namespace):
    await apply(bed, service(namespace, "s"), "services")
    kubeconfig = await asyncio.to_thread(installed, bed)
    await asyncio.to_thread(bed.stop_server)
    started = asyncio.create_task(asyncio.to_thread(bed.start_server))
    async with following(bed, kubeconfig=kubeconfig) as followed:
        assert followed.has(Key("Service", namespace, "s"))
    await started


async def test_kinds_come_and_go_with_their_definitions(new_bed):
    bed, namespace = new_bed, "default"
    kind = definition("DestinationRule", "destinationrules", "networking.istio.io", "v1beta1")
    where = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    rule = {
        "apiVersion": "networking.istio.io/v1beta1",
        "kind": "DestinationRule",
        "metadata": {"name": "d", "namespace": namespace},
        "spec": {"host": "h"},
    }
    key = Key("DestinationRule", namespace, "d")
    async with following(bed, "Service DestinationRule") as followed:
        await call(bed, "POST", where, kind)
        await asyncio.to_thread(until_served, bed, "networking.istio.io/v1beta1", "destinationrules")
        await apply(bed, rule, "destinationrules")
        await eventually(lambda: followed.has(key))
        # One more version, which is the one we would rather read: the object is the same, and nobody is told.
        more = definition("DestinationRule", "destinationrules", "networking.istio.io", "v1beta1", "v1")
        await call(
            bed,
            "PATCH",
            f"{where}/{more['metadata']['name']}",
            {"spec": more["spec"]},
            kind="application/merge-patch+json",
        )
        await eventually(lambda: followed.source.versions["DestinationRule"] == "v1")
        await apply(bed, {**rule, "metadata": {"name": "after", "namespace": namespace}}, "destinationrules")
        await eventually(lambda: followed.has(key._replace(name="after")))
        assert followed.told(key) == 1
        await call(bed, "DELETE", f"{where}/{more['metadata']['name']}")
        await eventually(lambda: not followed.has(key))


async def test_what_does_not_decode_is_absent_and_said(new_bed):
    bed, namespace = new_bed, "default"
    where = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    kind, plural = "VirtualService", "virtualservices"
    await call(bed, "POST", where, definition(kind, plural, "networking.istio.io", "v1"))
    await asyncio.to_thread(until_served, bed, "networking.istio.io/v1", plural)
    good = {
        "apiVersion": "networking.istio.io/v1",
        "kind": kind,
        "metadata": {"name": "v", "namespace": namespace},
        "spec": {"hosts": ["h"], "http": [{"route": [{"destination": {"host": "h"}}]}]},
    }
    key = Key(kind, namespace, "v")
    async with following(bed, kind) as followed:
        await apply(bed, good, plural)
        await eventually(lambda: followed.has(key))
        await apply(bed, good | {"spec": {"hosts": 7}}, plural)
        await eventually(lambda: not followed.has(key))
        assert any(finding.problem.key == key for finding in followed.batches[-1].findings)
        await apply(bed, good, plural)
        await eventually(lambda: followed.has(key))
        assert not followed.batches[-1].findings


async def test_a_token_that_is_refused_is_waited_for(bed, namespace, tmp_path, caplog):
    token = tmp_path / "token"
    token.write_text("wrong")
    kubeconfig = bed.kubeconfig("token-file", tokenFile=str(token))
    client = Client(from_kubeconfig(kubeconfig))
    source = KubeSource(client, kinds=(kind_named("Service"),), timing=QUICK)
    batches: list[Batch] = []
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(run(client, source, batches))
        await eventually(lambda: "Unauthorized; trying again" in caplog.text)
        assert not batches
        token.write_text("administrator-of-this-run")
        await eventually(lambda: batches)
        task.cancel()


async def test_client_certificates_are_accepted(bed):
    await eventually(lambda: asyncio.to_thread(has_service, bed))
    paths = {"client-certificate": str(bed.folder / "admin.crt"), "client-key": str(bed.folder / "admin.key")}
    client = Client(from_kubeconfig(bed.kubeconfig("certificate", **paths)))
    source = KubeSource(client, kinds=(kind_named("Service"),))
    batches: list[Batch] = []
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(run(client, source, batches))
        await eventually(lambda: batches)
        task.cancel()
    assert Key("Service", "default", "kubernetes") in batches[0].sets


def has_service(bed: Bed) -> bool:
    """Whether the server has made the Service of itself, which it does some time after it is ready."""
    with contextlib.suppress(Answer):
        return bool(bed.call("GET", "/api/v1/namespaces/default/services/kubernetes"))
    return False
