"""Secrets of an API server in memory: versions, conflicts and refusals.

What it answers to is what `sources.kube.client.Client` sends; the real server is asked in tests/kube.
"""

import asyncio
import base64
import itertools
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from mizzen.sources.kube.client import Refused

ROOT = "/api/v1/namespaces/istio-system"


class SecretServer:
    """Answers as a `Client` does."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.writes: list[tuple[str, str]] = []
        self.refusals: list[Exception] = []
        self._versions = itertools.count(1)

    def data(self, name: str) -> dict[str, bytes]:
        stored = self.objects[f"{ROOT}/secrets/{name}"]["data"]
        return {key: base64.b64decode(value) for key, value in stored.items()}

    def put(self, name: str, data: Mapping[str, bytes]) -> None:
        """Somebody else's write."""
        self._store(f"{ROOT}/secrets/{name}", {"data": {k: base64.b64encode(v).decode() for k, v in data.items()}})

    def remove(self, name: str) -> None:
        del self.objects[f"{ROOT}/secrets/{name}"]

    def put_config_map(self, name: str, data: Mapping[str, str]) -> None:
        self._store(f"{ROOT}/configmaps/{name}", {"data": dict(data)})

    async def get(self, path: str) -> bytes:
        await asyncio.sleep(0)  # Others get between.
        if self.refusals:
            raise self.refusals.pop(0)
        if path not in self.objects:
            raise Refused(404, f"{path} not found")
        return json.dumps(self.objects[path]).encode()

    async def call(self, method: str, path: str, body: Any, **_: str | dict[str, str]) -> bytes:
        await asyncio.sleep(0)
        sent = json.loads(msgspec.json.encode(body))
        if method == "POST":
            path = f"{path}/{sent['metadata']['name']}"
            if path in self.objects:
                raise Refused(409, "already exists")
            self._store(path, sent)
        else:
            held = self.objects.get(path)
            if held is None:
                raise Refused(404, "not found")
            if held["metadata"]["resourceVersion"] != sent["metadata"]["resourceVersion"]:
                raise Refused(409, "the object has been modified")
            self._store(path, {**held, "data": {**held["data"], **sent["data"]}})
        self.writes.append((method, path.rpartition("/")[2]))
        return json.dumps(self.objects[path]).encode()

    def _store(self, path: str, document: dict[str, Any]) -> None:
        metadata = {**document.get("metadata", {}), "resourceVersion": str(next(self._versions))}
        self.objects[path] = {**document, "metadata": metadata}
