"""Webhook configurations: what is written into which, and what is left alone."""

import asyncio
import base64
import contextlib
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from eventually import eventually
from kube_webhooks import MUTATING, VALIDATING, apply_patch, expression, injector, selector, validator

from mizzen.control.webhooks import configurations as module
from mizzen.control.webhooks import guards, probe
from mizzen.control.webhooks.configurations import Configurations
from mizzen.control.webhooks.documents import Entry
from mizzen.sources.kube.client import Event, Page, Refused, Unreachable


class Server:
    """An API server as far as webhook configurations go, in memory; it counts what is written."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.patches: list[tuple[str, list[dict[str, Any]]]] = []
        self.refusals: list[Exception] = []
        """What the next patches meet."""
        self._version = 0
        self._events: list[tuple[str, bytes]] = []
        self._moved = asyncio.Condition()

    async def put(self, document: dict[str, Any], path: str = "") -> str:
        collection = MUTATING if document["kind"].startswith("Mutating") else VALIDATING
        path = path or f"{collection}/{document['metadata']['name']}"
        self._version += 1
        stored = {**document, "metadata": {**document["metadata"], "resourceVersion": str(self._version)}}
        kind = "MODIFIED" if path in self.objects else "ADDED"
        self.objects[path] = stored
        event = json.dumps({"type": kind, "object": stored}).encode()
        async with self._moved:
            self._events.append((collection, event))
            self._moved.notify_all()
        return path

    async def list_pages(self, path: str, _: Any) -> AsyncIterator[Page]:
        items = [stored for name, stored in self.objects.items() if name.startswith(f"{path}/")]
        document = {"metadata": {"resourceVersion": str(self._version)}, "items": items}
        yield msgspec.json.decode(json.dumps(document), type=Page)

    @contextlib.asynccontextmanager
    async def watch(self, path: str, query: Any) -> AsyncIterator[AsyncIterator[Event]]:
        yield self._follow(path, int(query["resourceVersion"]))

    async def _follow(self, path: str, after: int) -> AsyncIterator[Event]:
        for position in itertools.count():
            async with self._moved:
                await self._moved.wait_for(lambda position=position: len(self._events) > position)
            collection, event = self._events[position]
            decoded = msgspec.json.decode(event, type=Event)
            if collection == path and int(json.loads(event)["object"]["metadata"]["resourceVersion"]) > after:
                yield decoded

    async def call(self, method: str, path: str, body: Any, **options: Any) -> bytes:
        assert (method, options["content_type"]) == ("PATCH", "application/json-patch+json")
        if self.refusals:
            raise self.refusals.pop(0)
        seen, *operations = body
        if seen["value"] != self.objects[path]["metadata"]["resourceVersion"]:
            raise Refused(422, "the test did not hold")
        self.patches.append((path, operations))
        await self.put(apply_patch(self.objects[path], operations), path)
        return b"{}"

    def bundles(self, path: str) -> set[str]:
        found = {entry["clientConfig"].get("caBundle", "") for entry in self.objects[path]["webhooks"]}
        return {base64.b64decode(text).decode() for text in found}

    def policies(self, path: str) -> set[str]:
        return {entry["failurePolicy"] for entry in self.objects[path]["webhooks"]}


class Kept:
    """A server whose configurations are kept."""

    def __init__(self) -> None:
        self.server = Server()
        self.roots = b"roots 1"
        self.trouble: str | None = "not yet"
        self.tries = 0
        self.configurations = Configurations(self.server, "default", lambda: self.roots, self._try)  # type: ignore[arg-type]

    async def _try(self) -> str | None:
        self.tries += 1
        return self.trouble

    async def settle(self) -> None:
        """Until nothing more is written."""
        for _ in range(3):
            await asyncio.sleep(0.05)


@pytest.fixture
async def kept() -> AsyncIterator[Kept]:
    kept = Kept()
    task = asyncio.ensure_future(kept.configurations.run())
    yield kept
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


URL = "https://127.0.0.1:1/x"


async def test_entries_of_our_revision_get_the_roots_and_others_do_not(kept: Kept) -> None:
    ours = await kept.server.put(injector(URL))
    tag = await kept.server.put(injector(URL, "default", tag="prod"))
    validating = await kept.server.put(validator(URL))
    foreign = await kept.server.put(injector(URL, "other"))
    mixed = injector(URL, name="mixed")
    mixed["webhooks"][0]["name"] = "somebodys.example"
    somebodys = await kept.server.put(mixed)
    for path in (ours, tag, validating):
        await eventually(lambda path=path: kept.server.bundles(path) == {"roots 1"})
    await eventually(lambda: kept.server.bundles(somebodys) == {"", "roots 1"})
    assert "caBundle" not in kept.server.objects[somebodys]["webhooks"][0]["clientConfig"]
    assert kept.server.bundles(foreign) == {""}
    assert kept.server.policies(validating) == {"Ignore"}


async def test_nothing_is_written_when_nothing_is_wrong(kept: Kept) -> None:
    path = await kept.server.put(injector(URL))
    await eventually(lambda: kept.server.bundles(path) == {"roots 1"})
    written = len(kept.server.patches)
    document = kept.server.objects[path]
    document["metadata"]["annotations"] = {"a": "b"}
    await kept.server.put(document)
    kept.configurations.wake()
    await kept.settle()
    assert len(kept.server.patches) == written == 1


async def test_a_patch_says_only_what_was_wrong(kept: Kept) -> None:
    document = injector(URL)
    for entry in document["webhooks"][1:]:
        entry["clientConfig"]["caBundle"] = base64.b64encode(b"roots 1").decode()
    path = await kept.server.put(document)
    await eventually(lambda: kept.server.patches)
    assert [operation["path"] for operation in kept.server.patches[0][1]] == ["/webhooks/0/clientConfig/caBundle"]
    assert kept.server.bundles(path) == {"roots 1"}


async def test_whoever_overwrites_it_is_corrected(kept: Kept) -> None:
    path = await kept.server.put(injector(URL))
    await eventually(lambda: kept.server.bundles(path) == {"roots 1"})
    for _ in range(3):
        await kept.server.put(injector(URL))
        await eventually(lambda: kept.server.bundles(path) == {"roots 1"})
    waits = [pace.wait for pace in kept.configurations._paces.values()]
    assert waits == [pytest.approx(0.8)]


async def test_roots_that_change_are_written_everywhere(kept: Kept) -> None:
    paths = [await kept.server.put(document) for document in (injector(URL), validator(URL))]
    await eventually(lambda: all(kept.server.bundles(path) == {"roots 1"} for path in paths))
    kept.roots = b"roots 1 and 2"
    kept.configurations.wake()
    await eventually(lambda: all(kept.server.bundles(path) == {"roots 1 and 2"} for path in paths))


@pytest.mark.parametrize("error", [Refused(409, "conflict"), Refused(403, "forbidden"), Unreachable("away")])
async def test_what_fails_is_tried_again(kept: Kept, error: Exception) -> None:
    before = module._FAILURES.value("istio-sidecar-injector", "webhook_update_failure")
    kept.server.refusals = [error, error]
    path = await kept.server.put(injector(URL))
    await eventually(lambda: kept.server.bundles(path) == {"roots 1"})
    assert module._FAILURES.value("istio-sidecar-injector", "webhook_update_failure") == before + 2


async def test_validation_fails_closed_from_when_it_was_seen_to_refuse(kept: Kept) -> None:
    path = await kept.server.put(validator(URL))
    await eventually(lambda: kept.tries > 1)
    assert kept.server.policies(path) == {"Ignore"}
    kept.trouble = None
    await eventually(lambda: kept.server.policies(path) == {"Fail"})
    tries = kept.tries
    await kept.server.put({**validator(URL), "metadata": {"name": "later", "labels": {"istio.io/rev": "default"}}})
    await eventually(lambda: kept.server.policies(f"{VALIDATING}/later") == {"Fail"})
    assert kept.tries == tries


async def test_nothing_is_tried_before_there_is_a_validator(kept: Kept) -> None:
    await kept.server.put(injector(URL))
    await eventually(lambda: kept.server.patches)
    await kept.settle()
    assert kept.tries == 0


@pytest.mark.parametrize("groups", [("",), ("*",), ("networking.istio.io", "apps")])
async def test_a_validator_of_foreign_objects_never_fails_closed(kept: Kept, groups: tuple[str, ...]) -> None:
    kept.trouble = None
    path = await kept.server.put(validator(URL, groups=groups))
    await eventually(lambda: kept.tries == 1 and kept.server.bundles(path) == {"roots 1"})
    await kept.settle()
    assert kept.server.policies(path) == {"Ignore"}


async def test_it_ends_when_it_is_told_to_whatever_happens_just_then() -> None:
    kept = Kept()
    task = asyncio.ensure_future(kept.configurations.run())
    path = await kept.server.put(injector(URL))
    await eventually(lambda: kept.server.bundles(path) == {"roots 1"})
    await kept.settle()
    kept.configurations.wake()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=60)
    assert task.cancelled()


# -- the trial ----------------------------------------------------------------------------------------------------------


class Trial:
    """Answers one request after another."""

    def __init__(self, *answers: Exception | bytes) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Any, Any]] = []

    async def call(self, method: str, path: str, body: Any, *, query: Any) -> bytes:
        assert method == "POST"
        self.asked.append((path, body, query))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


DENIED = Refused(400, 'admission webhook "rev.validation.istio.io" denied the request: configuration is invalid: no')


@pytest.mark.parametrize(
    ("answers", "trouble"),
    [
        ((DENIED,), None),
        ((Refused(404, "no"), DENIED), None),
        ((b"{}",), "a Gateway that must be refused was admitted"),
        ((Refused(404, "no"),) * 3, "the API server has no Gateways of networking.istio.io yet"),
        ((Refused(500, "failed calling webhook"),), "failed calling webhook"),
        ((Unreachable("away"),), "away"),
    ],
)
async def test_the_trial_tells_whether_validation_is_reached(answers: Any, trouble: str | None) -> None:
    trial = Trial(*answers)
    assert await probe.find_trouble(trial, "istio-system", "default") == trouble  # type: ignore[arg-type]
    path, body, query = trial.asked[0]
    assert path == "/apis/networking.istio.io/v1/namespaces/istio-system/gateways"
    assert query == {"dryRun": "All"}
    assert body["metadata"]["labels"] == {"istio.io/rev": "default"}


# -- guards -------------------------------------------------------------------------------------------------------------


SPACES = {
    "kube-system": {"kubernetes.io/metadata.name": "kube-system"},
    "istio-system": {"kubernetes.io/metadata.name": "istio-system"},
}
OWN = {"app": "istiod", "sidecar.istio.io/inject": "false"}


def read(entry: dict[str, Any]) -> Entry:
    return msgspec.convert(entry, Entry)


def blocked(entries: list[dict[str, Any]], spaces: Any = None, own: Any = None) -> list[str]:
    found = [guards.blocked_by_injection(read(each), spaces or SPACES, "istio-system", own or OWN) for each in entries]
    return [sentence for sentence in found if sentence]


def test_the_injector_as_installed_blocks_nothing() -> None:
    assert blocked(injector(URL)["webhooks"]) == []
    labelled = {**SPACES, "istio-system": {"istio-injection": "enabled"}}
    assert blocked(injector(URL)["webhooks"], labelled) == []


def test_an_injector_that_a_control_plane_would_wait_for_itself_is_told_of() -> None:
    labelled = {**SPACES, "istio-system": {"istio-injection": "enabled"}}
    (sentence,) = blocked(injector(URL)["webhooks"], labelled, {"app": "istiod"})
    assert sentence.startswith("the control plane itself in namespace istio-system cannot start")


def test_an_injector_that_is_asked_about_the_systems_pods_is_told_of() -> None:
    entry = {**injector(URL)["webhooks"][0], "namespaceSelector": {}, "objectSelector": {}}
    (sentence,) = blocked([entry])
    assert "namespace kube-system cannot start" in sentence
    assert blocked([{**entry, "failurePolicy": "Ignore"}]) == []
    narrow = selector(expression("kubernetes.io/metadata.name", "NotIn", "kube-system", "istio-system"))
    assert blocked([{**entry, "namespaceSelector": narrow}]) == []


def test_a_warning_is_told_once_and_again_when_it_comes_back() -> None:
    told: set[str] = set()
    assert list(guards.warn_once(told, ["a", None])) == ["a"]
    assert list(guards.warn_once(told, ["a", "b"])) == ["b"]
    assert list(guards.warn_once(told, [None])) == []
    assert list(guards.warn_once(told, ["a"])) == ["a"]
