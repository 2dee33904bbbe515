"""Whose objects are whose, where several revisions of the control plane serve one cluster.

In: labels of objects and of their namespaces, the tags that webhooks give to revisions. Out: whether an object is this
revision's to write to. An object says so by `istio.io/rev`, for want of it its namespace does; without both it belongs
to `default`, which is a revision or a tag of one. All revisions serve all objects; this is about writing alone.
"""

import asyncio
import contextlib
from collections.abc import Callable

import msgspec

from mizzen import observe
from mizzen.api.meta import Key, Object
from mizzen.control.webhooks.documents import MUTATING, REVISION
from mizzen.errors import SourceError
from mizzen.incremental import Engine
from mizzen.sources.kube.client import METADATA_LIST, Client

_log = observe.scope("kube")

TAG = "istio.io/tag"
DEFAULT = "default"

_EVERY = 15.0


class _Metadata(msgspec.Struct, frozen=True):
    labels: dict[str, str] = {}


class _Webhook(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class Revisions:
    """The names of this revision; somebody runs it while it matters."""

    def __init__(self, client: Client, db: Engine, revision: str) -> None:
        self._client, self._db, self._revision = client, db, revision or DEFAULT
        self._names = frozenset({self._revision})
        self._trouble = ""

    def is_ours(self, found: Object) -> bool:
        """Whether this revision writes to the object."""
        asked = found.metadata.labels.get(REVISION)
        if asked is None:
            namespace: Object | None = self._db.peek(Key("Namespace", "", found.metadata.namespace))
            asked = namespace.metadata.labels.get(REVISION) if namespace is not None else None
        return (asked or DEFAULT) in self._names

    async def look(self) -> bool:
        """Read the tags; whether the names are others now. What was known stays while they cannot be read."""
        query = {"labelSelector": f"{REVISION}={self._revision},{TAG}"}
        tags: set[str] = set()
        try:
            async with contextlib.aclosing(self._client.list_pages(MUTATING.path, query, METADATA_LIST)) as pages:
                async for page in pages:
                    for raw in page.items:
                        tags.add(msgspec.json.decode(raw, type=_Webhook).metadata.labels.get(TAG, ""))
        except (SourceError, msgspec.DecodeError) as error:
            if not self._trouble:
                _log.warning("the tags of revision %s cannot be read: %s", self._revision, error)
            self._trouble = str(error)
            return False
        self._trouble = ""
        before, self._names = self._names, frozenset({self._revision, *tags} - {""})
        return before != self._names

    async def follow(self, changed: Callable[[], None]) -> None:
        """Look again and again; ends only when cancelled."""
        while True:
            await asyncio.sleep(_EVERY)
            if await self.look():
                changed()
