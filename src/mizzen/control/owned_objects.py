"""What was made for Gateways, as the API server has it: watched by metadata, so that what somebody changes is repaired.

In: a client. Out: a call for each object with the label of managed Gateways that was written by somebody else, or
removed. Who wrote last stands in the fields that the server notes for each writer; writes of statuses are no news.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from mizzen import observe
from mizzen.errors import SourceError
from mizzen.inject.gateways.manifests import MANAGED_LABEL
from mizzen.sources.kube.client import METADATA, METADATA_LIST, Client
from mizzen.sources.kube.objects import PLACES, Name
from mizzen.sources.kube.reflector import Timing

_log = observe.scope("kube")

_TIMING = Timing(first_wait=3.0)

_KINDS = ("ServiceAccount", "Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget")
"""What may be made for a Gateway."""


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of an object."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    labels: Mapping[str, str] = {}
    managed_fields: Sequence[Mapping[str, Any]] = ()

    @property
    def is_managed(self) -> bool:
        """Whether a control plane has made it."""
        return MANAGED_LABEL in self.labels

    @property
    def writers(self) -> str:
        """Who wrote what and when, but for statuses; another text means that somebody has written."""
        entries = [entry for entry in self.managed_fields if entry.get("subresource") != "status"]
        return msgspec.json.encode(entries, order="deterministic").decode()


class _Object(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()


_object = msgspec.json.Decoder(_Object)


def decode_metadata(raw: bytes | msgspec.Raw) -> Metadata:
    """The metadata of an object of any kind."""
    return _object.decode(raw).metadata


class OwnedObjects:
    """Follows them; somebody runs it."""

    def __init__(self, client: Client, touched: Callable[[Name], None]) -> None:
        self._client, self._touched = client, touched
        self.writers: dict[Name, str] = {}
        """Who has written each of those that there are."""

    async def run(self) -> None:
        """Ends only when cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for kind in _KINDS:
                tasks.create_task(self._follow(kind))

    async def _follow(self, kind: str) -> None:
        root, plural = PLACES[kind]
        path, query = f"{root}/{plural}", {"labelSelector": MANAGED_LABEL}
        failures, trouble = 0, ""
        while True:
            try:
                version = await self._list(kind, path, query)
                async with self._client.watch(path, {**query, "resourceVersion": version}, METADATA) as events:
                    failures, trouble = 0, ""
                    async for event in events:
                        if event.type != "BOOKMARK":
                            self._take(kind, decode_metadata(event.object), is_there=event.type != "DELETED")
            except (SourceError, msgspec.DecodeError) as error:
                if str(error) != trouble:
                    _log.warning("what is made for Gateways cannot be watched: %s: %s", path, error)
                failures, trouble = failures + 1, str(error)
            await asyncio.sleep(_TIMING.wait_after(max(1, failures)))

    async def _list(self, kind: str, path: str, query: Mapping[str, str]) -> str:
        found: set[Name] = set()
        version = ""
        async with contextlib.aclosing(self._client.list_pages(path, query, METADATA_LIST)) as pages:
            async for page in pages:
                version = page.metadata.resource_version
                for raw in page.items:
                    metadata = decode_metadata(raw)
                    found.add(self._take(kind, metadata, is_there=True))
        for name in [name for name in self.writers if name.kind == kind and name not in found]:
            del self.writers[name]
            self._touched(name)
        return version

    def _take(self, kind: str, metadata: Metadata, *, is_there: bool) -> Name:
        name = Name(kind, metadata.namespace, metadata.name)
        before = self.writers.get(name)
        if is_there:
            self.writers[name] = metadata.writers
        else:
            self.writers.pop(name, None)
        if self.writers.get(name) != before:
            self._touched(name)
        return name
