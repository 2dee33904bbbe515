"""A client of an API server that is not there: objects in memory, listed in pages and watched, as a real one does.

Watches may lag behind: each event is held back by chance. What is listed is always the latest, as from etcd.
"""

import asyncio
import contextlib
import copy
import itertools
import json
import random
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

import msgspec

from mizzen.api.kinds import KINDS, Kind
from mizzen.sources.kube.client import Event, ListMeta, Page, Refused

Name = tuple[str, str, str]
"""Plural, namespace, name."""


class Store:
    """All objects of one server, and everybody who watches them."""

    def __init__(self, kinds: tuple[Kind, ...] = KINDS, *, page: int = 3, seed: int = 0, lag: float = 0.0) -> None:
        self._kinds, self._page, self._random, self._lag = kinds, page, random.Random(seed), lag
        self._versions = itertools.count(1)
        self._version = 0
        self._objects: dict[tuple[str, Name], dict[str, Any]] = {}
        self._history: list[tuple[int, str, Name, str, bytes]] = []
        self._changed = asyncio.Event()
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        """Paths that were listed, with their queries."""
        self.refused: dict[str, Refused] = {}
        """What may not be listed, by path."""

    # -- what happens in it ---------------------------------------------------------------------------------------

    def put(self, kind: str, namespace: str, name: str, labels: Mapping[str, str] | None = None, **body: Any) -> None:
        """Write an object, whether or not it was there."""
        group, found = self._place(kind, namespace, name)
        before = self._objects.get((group, found))
        self._version = next(self._versions)
        metadata = {"name": name, "namespace": namespace, "resourceVersion": str(self._version), "labels": labels or {}}
        self._objects[group, found] = {"metadata": metadata, **copy.deepcopy(body)}
        self._tell(group, found, "MODIFIED" if before else "ADDED", self._objects[group, found])

    def remove(self, kind: str, namespace: str, name: str) -> None:
        group, found = self._place(kind, namespace, name)
        gone = self._objects.pop((group, found), None)
        if gone is not None:
            self._version = next(self._versions)
            gone["metadata"]["resourceVersion"] = str(self._version)
            self._tell(group, found, "DELETED", gone)

    def _place(self, kind: str, namespace: str, name: str) -> tuple[str, Name]:
        known = next(each for each in self._kinds if each.name == kind)
        return known.group, (known.plural, namespace, name)

    def _tell(self, group: str, name: Name, event: str, document: dict[str, Any]) -> None:
        self._history.append((self._version, group, name, event, json.dumps(document).encode()))
        self._changed.set()
        self._changed = asyncio.Event()

    # -- what a client asks ---------------------------------------------------------------------------------------

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """Which kinds there are, or one object."""
        del query
        await asyncio.sleep(0)
        steps = path.strip("/").split("/")
        if (steps[0] == "api" and len(steps) > 2) or len(steps) > 3:
            return self._one(path)
        group = "" if steps[0] == "api" else steps[1]
        of_group = [kind for kind in self._kinds if kind.group == group]
        if not of_group:
            raise Refused(404, "not found")
        if len(steps) == (1 if steps[0] == "api" else 2):
            versions = sorted({version for kind in of_group for version in kind.versions})
            return msgspec.json.encode({"versions": [{"version": version} for version in versions]})
        names = [{"name": kind.plural} for kind in of_group if steps[-1] in kind.versions]
        return msgspec.json.encode({"resources": names})

    def _one(self, path: str) -> bytes:
        group, plural, namespace = self._read_path(path.rpartition("/")[0])
        found = self._objects.get((group, (plural, namespace, path.rpartition("/")[2])))
        if found is None:
            raise Refused(404, "not found")
        return json.dumps(found).encode()

    async def list_pages(self, path: str, query: Mapping[str, str], accept: str = "") -> AsyncGenerator[Page, None]:
        del accept
        self.asked.append((path, dict(query)))
        if path in self.refused:
            raise self.refused[path]
        group, plural, namespace = self._read_path(path)
        version = self._version
        found = [
            json.dumps(document).encode()
            for (of, name), document in sorted(self._objects.items())
            if of == group and name[0] == plural and namespace in ("", name[1]) and _is_asked(document, query)
        ]
        parts = [found[at : at + self._page] for at in range(0, len(found), self._page)] or [[]]
        for at, part in enumerate(parts):
            await self._dawdle()
            more = "more" if at + 1 < len(parts) else ""
            yield Page(ListMeta(str(version), more), [msgspec.Raw(raw) for raw in part])

    @contextlib.asynccontextmanager
    async def watch(self, path: str, query: Mapping[str, str], accept: str = "") -> AsyncIterator[AsyncIterator[Event]]:
        del accept
        async with contextlib.aclosing(self._events(path, int(query["resourceVersion"] or 0))) as events:
            yield events

    async def _events(self, path: str, seen: int) -> AsyncGenerator[Event, None]:
        group, plural, namespace = self._read_path(path)
        while True:
            changed = self._changed
            for version, of, name, kind, raw in list(self._history):
                if version > seen and of == group and name[0] == plural and namespace in ("", name[1]):
                    await self._dawdle()
                    seen = version
                    yield Event(kind, msgspec.Raw(raw))
            await changed.wait()

    async def _dawdle(self) -> None:
        await asyncio.sleep(self._random.random() * self._lag)

    def _read_path(self, path: str) -> tuple[str, str, str]:
        """Group, plural and namespace."""
        steps = path.strip("/").split("/")
        group, rest = ("", steps[2:]) if steps[0] == "api" else (steps[1], steps[3:])
        return (group, rest[2], rest[1]) if len(rest) == 3 else (group, rest[0], "")


def _is_asked(document: dict[str, Any], query: Mapping[str, str]) -> bool:
    """By the selectors that are used: `KEY`, `KEY=VALUE`, `KEY in (A,B)`, several with commas between."""
    labels = document["metadata"]["labels"]
    for clause in re.findall(r"[^,(]+(?:\([^)]*\))?", query.get("labelSelector", "")):
        key, _, values = clause.partition(" in ")
        wanted = values.strip("()").split(",") if values else None
        key, _, value = key.strip(",").partition("=")
        if key not in labels or (wanted and labels[key] not in wanted) or (value and labels[key] != value):
            return False
    return True
