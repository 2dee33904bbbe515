"""Where WorkloadEntries stand: in an API server, or in this process where objects come from files alone.

In: documents and merge patches, decided on what was read. Out: what stands there now. Where somebody has written since
there is a conflict, by the server's word or by ours. Entries of this process go to the inputs directly, and end with
it; those that stand in files are nobody's to change.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from mizzen.api.decode import decode_object
from mizzen.api.meta import Key, Object
from mizzen.control.retries import Budget
from mizzen.errors import SourceError
from mizzen.sources.kube.client import MERGE_PATCH, Client, Refused
from mizzen.sources.kube.source import KubeSource

MANAGER = "istio.io/workload-controller"
"""Who has written, as the server notes it beside every field."""

_GONE, _CONFLICT = 404, 409
_RATE, _BURST = 80.0, 160


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of an entry's metadata."""

    uid: str = ""
    resource_version: str = ""
    annotations: Mapping[str, str] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    service_account: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    conditions: tuple[dict[str, Any], ...] | None = None


class Entry(msgspec.Struct, frozen=True):
    """An entry as it stands."""

    metadata: Metadata = Metadata()
    spec: _Spec = _Spec()
    status: _Status | None = None

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return self.metadata.annotations or {}

    @property
    def account(self) -> str:
        """The service account of its workload; empty where it says none."""
        return self.spec.service_account

    @property
    def conditions(self) -> tuple[dict[str, Any], ...]:
        """The conditions of its status."""
        return (self.status.conditions or ()) if self.status is not None else ()


class Entries(Protocol):
    """WorkloadEntries that can be written."""

    def known(self) -> Iterable[Object]:
        """All that somebody may have to remove."""
        ...

    @property
    def version(self) -> str:
        """The API version at which entries and groups stand."""
        ...

    async def read(self, key: Key) -> Entry | None:
        """What stands there; None where nothing does."""
        ...

    async def create(self, key: Key, document: Mapping[str, Any]) -> Entry:
        """Write a new one."""
        ...

    async def annotate(self, key: Key, read: Entry, annotations: Mapping[str, str | None]) -> Entry:
        """Change annotations; None removes one."""
        ...

    async def set_conditions(self, key: Key, read: Entry, conditions: Iterable[Mapping[str, Any]]) -> Entry:
        """Replace the conditions of the status."""
        ...

    async def delete(self, key: Key, read: Entry) -> None:
        """Remove it."""
        ...


class KubeEntries:
    """Entries of an API server."""

    def __init__(self, client: Client, source: KubeSource) -> None:
        self._client, self._source = client, source
        self._budget = Budget(_RATE, _BURST)

    def known(self) -> Iterable[Object]:
        """All that the server has."""
        return self._source.of_kind("WorkloadEntry")

    @property
    def version(self) -> str:
        """At which the source reads entries."""
        resource = self._source.resource("WorkloadEntry")
        return resource.version if resource is not None else "v1"

    async def read(self, key: Key) -> Entry | None:
        """Ask the server."""
        try:
            return await self._call("GET", self._path(key))
        except Refused as refused:
            if refused.status == _GONE:
                return None
            raise

    async def create(self, key: Key, document: Mapping[str, Any]) -> Entry:
        """Write a new one; somebody else's of the name is a conflict."""
        return await self._call("POST", self._path(key).rpartition("/")[0], document, content_type="application/json")

    async def annotate(self, key: Key, read: Entry, annotations: Mapping[str, str | None]) -> Entry:
        """Patch them."""
        metadata = {"annotations": annotations, "resourceVersion": read.metadata.resource_version}
        return await self._call("PATCH", self._path(key), {"metadata": metadata})

    async def set_conditions(self, key: Key, read: Entry, conditions: Iterable[Mapping[str, Any]]) -> Entry:
        """Patch the status."""
        body = {
            "metadata": {"resourceVersion": read.metadata.resource_version},
            "status": {"conditions": list(conditions)},
        }
        return await self._call("PATCH", f"{self._path(key)}/status", body)

    async def delete(self, key: Key, read: Entry) -> None:
        """Remove exactly what was read."""
        metadata = read.metadata
        preconditions = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        await self._budget.spend()
        try:
            await self._client.call("DELETE", self._path(key), {"preconditions": preconditions})
        except Refused as refused:
            if refused.status != _GONE:
                raise

    def _path(self, key: Key) -> str:
        resource = self._source.resource(key.kind)
        if resource is None:
            raise SourceError("the API server has no WorkloadEntries")
        return resource.path_to(key.namespace, key.name)

    async def _call(self, method: str, path: str, body: object = None, *, content_type: str = MERGE_PATCH) -> Entry:
        await self._budget.spend()
        query = {} if method == "GET" else {"fieldManager": MANAGER}
        return _decode(await self._client.call(method, path, body, query=query, content_type=content_type))


Feed = Callable[[Key, Object | None], None]


class OwnEntries:
    """Entries of this process."""

    version = "v1"

    def __init__(self, feed: Feed, peek: Callable[[Key], Object | None]) -> None:
        """`feed` takes what an input is now; `peek` gives an input, which may stand in a file."""
        self._feed, self._peek = feed, peek
        self._documents: dict[Key, dict[str, Any]] = {}
        self._numbers = itertools.count(1)

    def known(self) -> Iterable[Object]:
        """None: what is written here is removed by whoever wrote it."""
        return ()

    async def read(self, key: Key) -> Entry | None:
        """What was written here, or stands in a file."""
        document = self._documents.get(key)
        if document is not None:
            return msgspec.convert(document, Entry)
        found: Any = self._peek(key)
        if found is None:
            return None
        return Entry(Metadata(annotations=found.metadata.annotations), _Spec(found.spec.service_account))

    async def create(self, key: Key, document: Mapping[str, Any]) -> Entry:
        """Write a new one."""
        if self._peek(key) is not None:
            raise Refused(_CONFLICT, f"{key} stands in a file")
        return self._set(key, {**document, "metadata": {**document["metadata"], "uid": f"own-{next(self._numbers)}"}})

    async def annotate(self, key: Key, read: Entry, annotations: Mapping[str, str | None]) -> Entry:
        """Change them; those of a file stay."""
        document = self._documents.get(key)
        if document is None:
            return read
        self._compare(document, read)
        merged = {**document["metadata"].get("annotations", {}), **annotations}
        kept = {name: value for name, value in merged.items() if value is not None}
        return self._set(key, {**document, "metadata": {**document["metadata"], "annotations": kept}})

    async def set_conditions(self, key: Key, read: Entry, conditions: Iterable[Mapping[str, Any]]) -> Entry:
        """Change the status; that of a file stays."""
        document = self._documents.get(key)
        if document is None:
            return read
        self._compare(document, read)
        return self._set(key, {**document, "status": {"conditions": list(conditions)}})

    async def delete(self, key: Key, read: Entry) -> None:
        """Remove what was written here."""
        document = self._documents.get(key)
        if document is not None:
            self._compare(document, read)
            del self._documents[key]
            self._feed(key, None)

    def _compare(self, document: Mapping[str, Any], read: Entry) -> None:
        if document["metadata"]["resourceVersion"] != read.metadata.resource_version:
            raise Refused(_CONFLICT, "it was written since")

    def _set(self, key: Key, document: dict[str, Any]) -> Entry:
        document["metadata"]["resourceVersion"] = str(next(self._numbers))
        decoded = decode_object(document)
        if decoded.object is None:
            raise Refused(422, "; ".join(problem.message for problem in decoded.problems))
        self._documents[key] = document
        self._feed(key, decoded.object)
        return msgspec.convert(document, Entry)


def _decode(body: bytes) -> Entry:
    return msgspec.json.decode(body, type=Entry)
