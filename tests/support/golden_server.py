"""The recorded cases in a real API server: what it has is made what a case has, one case after another.

In: a Bed whose store keeps JSON, and cases. Out: a server with the objects of the case, as old as they were when it was
recorded. A server gives every object the second in which it was made as its age and lets nobody choose another; so
objects go to the server, which judges, completes and keeps them, and their ages are rewritten in the store below it.
"""

import base64
import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import golden
from kube_bed import ADMIN, Answer, Bed
from kube_objects import path_of

from mizzen.api.decode import decode_object
from mizzen.api.kinds import kind_of_api
from mizzen.api.meta import Key

JSON_STORE = "--storage-media-type=application/json"
_APPLY = "application/apply-patch+yaml"
_DENIED = "denied the request"
_CHOSEN_BY_SERVER = ("creationTimestamp", "resourceVersion")
"""What no writer may say of an object."""
_PATIENCE = 60.0
Document = dict[str, Any]


class Stored(NamedTuple):
    """An object in the store."""

    at: str
    """Its name there, encoded as the store takes it."""
    revision: str
    document: Document


class GoldenServer:
    """A server, and what of a case it has."""

    def __init__(self, bed: Bed, token: str) -> None:
        """The token is of somebody whose writes are subject to admission; those of the administrator are not."""
        self.bed, self._token = bed, token
        self._has: dict[str, Document] = {}
        self.refused: dict[str, str] = {}
        """What admission said against objects of the case, which the server has all the same, by their names."""
        self.revisions: dict[Key, int] = {}
        """From which revision on each object is what the case wants."""
        self.gone: set[Key] = set()
        """What the case before had."""

    def hold(self, case: golden.Case) -> None:
        """Have what the case has, and nothing of any other."""
        wanted = {path(document): document for document in (_mesh(case), *case.objects)}
        self.gone.clear()
        for at in [at for at in self._has if at not in wanted]:
            self._remove(at)
        changed = [document for at, document in wanted.items() if self._has.get(at) != document]
        for document in changed:
            self._apply(document)
            self._has[path(document)] = document
        self._date(changed)

    def _remove(self, at: str) -> None:
        self.bed.call("DELETE", f"{at}?gracePeriodSeconds=0", token=self._token)
        key = key_of(self._has.pop(at))
        del self.revisions[key]
        self.gone.add(key)
        self.refused.pop(str(key), None)

    def _apply(self, document: Document) -> None:
        """Everything of a document but its age, its status by the subresource."""
        metadata = {name: value for name, value in document["metadata"].items() if name not in _CHOSEN_BY_SERVER}
        body = {name: value for name, value in document.items() if name != "status"} | {"metadata": metadata}
        at, key = path(document), key_of(document)
        self.refused.pop(str(key), None)
        try:
            written = self.bed.apply(at, body, token=self._token)
        except Answer as answer:
            if _DENIED not in str(answer):
                raise
            self.refused[str(key)] = str(answer)
            written = self.bed.apply(at, body, token=ADMIN)
        if "status" in document:
            status = {"status": document["status"]}
            written = self.bed.call("PATCH", f"{at}/status", status, kind="application/merge-patch+json")
        self.revisions[key] = int(written["metadata"]["resourceVersion"])

    def refuses(self, document: Document) -> bool:
        """Whether admission says no to an object, which is not kept."""
        try:
            self.bed.call(
                "PATCH", f"{path(document)}?fieldManager=tests&dryRun=All", document, token=self._token, kind=_APPLY
            )
        except Answer as answer:
            return _DENIED in str(answer)
        return False

    def versions_of(self, kind: str) -> dict[str, str]:
        """The resource versions of the case's objects of a kind, by namespace and name."""
        return {f"{key.namespace}.{key.name}": str(at) for key, at in self.revisions.items() if key.kind == kind}

    def _date(self, documents: list[Document]) -> None:
        """Give the objects the ages that their documents tell; others may be writing to them meanwhile."""
        ages = {key_of(one): one["metadata"].get("creationTimestamp") for one in documents}
        ages = {key: age for key, age in ages.items() if age}
        end = time.monotonic() + _PATIENCE
        while ages:
            assert time.monotonic() < end, f"not in the store: {sorted(ages)}"
            for stored in self._stored_since(min(self.revisions[key] for key in ages)):
                key = decode_object(stored.document).key
                if key in ages:
                    stored.document["metadata"]["creationTimestamp"] = ages[key]
                    revision = self._replace(stored)
                    if revision:
                        self.revisions[key] = revision
                        del ages[key]

    def _stored_since(self, revision: int) -> Iterator[Stored]:
        for one in self.bed.stored(min_mod_revision=revision):
            value = base64.b64decode(one["value"])
            if value.startswith(b"{"):
                yield Stored(one["key"], one["mod_revision"], json.loads(value))

    def _replace(self, stored: Stored) -> int:
        """The revision at which it was replaced; 0 if somebody else has written it meanwhile."""
        value = base64.b64encode(json.dumps(stored.document).encode()).decode()
        unchanged = {"key": stored.at, "target": "MOD", "mod_revision": stored.revision, "result": "EQUAL"}
        body = {"compare": [unchanged], "success": [{"request_put": {"key": stored.at, "value": value}}]}
        answer = self.bed.ask_etcd("/v3/kv/txn", body)
        return int(answer["header"]["revision"]) if answer.get("succeeded") else 0


def _mesh(case: golden.Case) -> Document:
    """The mesh config of a case, where an installation has it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "istio", "namespace": "istio-system"},
        "data": {"mesh": json.dumps(case.mesh)},
    }


def path(document: Document) -> str:
    """Where the object of a document stands."""
    kind = kind_of_api(document["apiVersion"].rpartition("/")[0], document["kind"])
    assert kind is not None, document["kind"]
    return path_of(document, kind.plural)


def key_of(document: Document) -> Key:
    key = decode_object(document).key
    assert key is not None, document
    return key
