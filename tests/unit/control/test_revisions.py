"""Whose objects are whose: by their labels, those of their namespaces, and tags."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import golden
import msgspec
import pytest

from mizzen.api.meta import Key
from mizzen.control.revisions import Revisions
from mizzen.incremental import Engine
from mizzen.sources.kube.client import ListMeta, Page, Refused


class Webhooks:
    """A client that knows the webhook configurations of a revision's tags."""

    def __init__(self) -> None:
        self.tags: dict[str, tuple[str, ...]] = {}
        self.refuses = False

    async def list_pages(self, path: str, query: Mapping[str, str], accept: str = "") -> AsyncIterator[Page]:
        assert "mutatingwebhookconfigurations" in path
        assert accept
        if self.refuses:
            raise Refused(403, "forbidden")
        revision = query["labelSelector"].split(",")[0].removeprefix("istio.io/rev=")
        labels = [{"istio.io/rev": revision, "istio.io/tag": tag} for tag in self.tags.get(revision, ())]
        raws = [msgspec.Raw(json.dumps({"metadata": {"labels": one}}).encode()) for one in labels]
        yield Page(metadata=ListMeta(), listed=raws or None)


def gateway(namespace: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "g", "namespace": namespace, "labels": {f"istio.io/{k}": v for k, v in labels.items()}},
        "spec": {"gatewayClassName": "istio", "listeners": []},
    }


@pytest.fixture
def db() -> Engine:
    db = Engine()
    for name, labels in {"plain": {}, "blues": {"istio.io/rev": "blue"}}.items():
        metadata = {"name": name, "labels": labels}
        golden.set_object(db, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    return db


def is_ours(revisions: Revisions, db: Engine, document: dict[str, Any]) -> bool:
    golden.set_object(db, document)
    return revisions.is_ours(db.peek(Key("KubernetesGateway", document["metadata"]["namespace"], "g")))


@pytest.mark.parametrize(
    ("document", "owner"),
    [
        (gateway("plain"), "default"),
        (gateway("blues"), "blue"),
        (gateway("blues", rev="green"), "green"),
        (gateway("plain", rev="blue"), "blue"),
        (gateway("blues", rev=""), "default"),
        (gateway("unknown"), "default"),
    ],
)
def test_an_object_is_of_the_revision_that_it_or_its_namespace_names(db, document, owner):
    for revision in ("default", "blue", "green"):
        assert is_ours(Revisions(Webhooks(), db, revision), db, document) == (revision == owner)
    assert is_ours(Revisions(Webhooks(), db, ""), db, document) == (owner == "default")


async def test_tags_are_names_too_and_change(db, caplog):
    webhooks = Webhooks()
    revisions = Revisions(webhooks, db, "blue")
    assert not await revisions.look()
    webhooks.tags = {"blue": ("default", "stable"), "green": ("canary",)}
    assert await revisions.look()
    assert is_ours(revisions, db, gateway("plain"))
    assert is_ours(revisions, db, gateway("plain", rev="stable"))
    assert not is_ours(revisions, db, gateway("plain", rev="canary"))
    webhooks.refuses = True
    for _ in range(3):
        assert not await revisions.look()
    assert is_ours(revisions, db, gateway("plain")), "what was known stays"
    assert caplog.text.count("cannot be read") == 1
