"""What the authority tells everybody, as ConfigMaps in every namespace, kept by the leader.

Pods mount the roots of trust to know each other and the control plane, and revocation lists to know whom not to trust.

    Namespaces that are served, their ConfigMaps ─┐
    content of the authority ─────────────────────┼─> what a namespace lacks ─> create, or a patch of the version seen
    what was written last, and when ──────────────┘

In: the source, the name of the ConfigMap and of its key, the content. Out: writes, none where the ConfigMap holds the
content already; other keys and labels of it stay. Where there is to be no content, one that bears the label of control
planes is deleted. Whoever overwrites it is corrected, more and more slowly if that goes on: a control plane with other
roots must not cost the API server its peace. One that is immutable is its owner's.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from mizzen import observe
from mizzen.api.kube.data import ConfigMap
from mizzen.api.meta import Key, Object
from mizzen.control.leader_requests import LeaderRequests
from mizzen.control.retries import Chores
from mizzen.sources.kube.source import KubeSource

_log = observe.scope("ca")

LABEL = "istio.io/config"
LEFT_OUT = frozenset({"kube-public", "kube-node-lease", "local-path-storage"})
"""Namespaces that get none."""

_LOOK_EVERY = 0.5
_SWEEP_EVERY = 60.0
_PATIENCE = 0.1
"""Seconds after which what was heard of an object is known."""
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 60.0
_TOLD_EVERY = 600.0
_PEACE = 30.0
"""Seconds after which a correction counts as settled."""


class _Pace(NamedTuple):
    """What was written last into a namespace, when, and how long nothing more is to be written."""

    written: str
    at: float
    wait: float

    def is_undone(self, wanted: str, now: float) -> bool:
        """Whether somebody takes back what is written."""
        return wanted == self.written and now < self.at + max(_PEACE, 2 * self.wait)


class Kind(NamedTuple):
    """What is kept in every namespace."""

    what: str
    """For messages."""
    key: str
    manager: str
    """As whose the API server records the fields."""
    writes: observe.Counter


ROOTS = Kind(
    "roots",
    "root-cert.pem",
    "mizzen-roots",
    observe.Counter("mizzen_root_config_map_writes", "ConfigMaps with the roots that were made or put right."),
)
REVOCATIONS = Kind(
    "revocation lists",
    "ca-crl.pem",
    "mizzen-revocations",
    observe.Counter(
        "mizzen_crl_config_map_writes", "ConfigMaps with revocation lists that were made, put right, removed."
    ),
)


class NamespaceConfigMaps:
    """Keeps those of one kind during one term; somebody runs it."""

    def __init__(
        self,
        source: KubeSource,
        requests: LeaderRequests,
        kind: Kind,
        name: str,
        *,
        content: Callable[[], bytes | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`content` may be empty, for none in any namespace, and None for what is to be left as it is."""
        self._source, self._requests, self._kind, self._name = source, requests, kind, name
        self._content, self._clock = content, clock
        self._chores: Chores[str] = Chores(self._see_to, f"a namespace lacks its {name}")
        self._paces: dict[str, _Pace] = {}
        self._told: set[str] = set()
        self._told_at = float("-inf")

    async def run(self) -> None:
        """Ends only when cancelled."""
        with self._source.listening(self._touched):
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._keep_looking())
                tasks.create_task(self._chores.run())

    async def _keep_looking(self) -> None:
        """See to namespaces that are served now, and to all when the content is another, and every now and then."""
        content, served, swept = self._content(), frozenset[str](), float("-inf")
        while True:
            now, found = self._clock(), self._content()
            wanted = frozenset(
                each.metadata.name for each in self._source.of_kind("Namespace") if self._is_wanted(each)
            )
            if found != content or now >= swept + _SWEEP_EVERY:
                served, swept = frozenset(), now
            for namespace in sorted(wanted - served):
                self._chores.add(namespace)
            content, served = found, wanted
            await asyncio.sleep(_LOOK_EVERY)

    def _touched(self, key: Key) -> None:
        if key.kind == "Namespace":
            self._chores.add(key.name, _PATIENCE)
        elif key.kind == "ConfigMap" and key.name == self._name:
            self._chores.add(key.namespace, _PATIENCE)

    def _is_wanted(self, space: Object | None) -> bool:
        if space is None or space.metadata.deletion_timestamp is not None or space.metadata.name in LEFT_OUT:
            return False
        return self._source.selection.takes_namespace(space.metadata.name)

    async def _see_to(self, namespace: str) -> None:
        objects, key = self._source.objects, Key("ConfigMap", namespace, self._name)
        if not self._is_wanted(objects.get(Key("Namespace", "", namespace))):
            self._paces.pop(namespace, None)
            return
        content, found = self._content(), objects.get(key)
        if content is None:
            return
        wanted, found = content.decode(), found if isinstance(found, ConfigMap) else None
        if self._is_right(found, wanted):
            return
        pace, now = self._paces.get(namespace), self._clock()
        if pace is not None and now < pace.at + pace.wait:
            self._chores.add(namespace, pace.at + pace.wait - now)
            return
        if await self._write(key, found, wanted):
            self._kind.writes.inc()
            self._paces[namespace] = self._next_pace(namespace, pace, wanted, now)

    def _next_pace(self, namespace: str, before: _Pace | None, wanted: str, now: float) -> _Pace:
        if before is None or not before.is_undone(wanted, now):
            return _Pace(wanted, now, _FIRST_WAIT)
        if now >= self._told_at + _TOLD_EVERY:
            self._told_at = now
            _log.warning("somebody overwrites the ConfigMap %s/%s; it is corrected again", namespace, self._name)
        return _Pace(wanted, now, min(before.wait * 2, _LONGEST_WAIT))

    def _is_right(self, found: ConfigMap | None, wanted: str) -> bool:
        if found is None:
            return not wanted
        if not wanted:
            return found.metadata.labels.get(LABEL) != "true"
        if found.data.get(self._kind.key) == wanted and found.metadata.labels.get(LABEL) == "true":
            return True
        namespace = found.metadata.namespace
        if found.immutable and namespace not in self._told:
            self._told.add(namespace)
            _log.warning("the ConfigMap %s/%s is immutable and holds other %s", namespace, self._name, self._kind.what)
        return bool(found.immutable)

    async def _write(self, key: Key, found: ConfigMap | None, wanted: str) -> bool:
        """Whether this process was still to write."""
        path, manager = f"/api/v1/namespaces/{key.namespace}/configmaps", self._kind.manager
        version = self._source.resource_version(key) if found is not None else None
        if found is not None and not wanted:
            body: dict[str, Any] = {"preconditions": {"resourceVersion": version}}
            path = f"{path}/{self._name}"
            answer = await self._requests.write("DELETE", path, body, manager=manager, content_type="application/json")
            return answer is not None
        metadata: dict[str, Any] = {"labels": {LABEL: "true"}}
        if found is None:
            metadata["name"] = self._name
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {self._kind.key: wanted}}
            answer = await self._requests.write("POST", path, body, manager=manager, content_type="application/json")
        else:
            metadata["resourceVersion"] = version
            body = {"metadata": metadata, "data": {self._kind.key: wanted}}
            answer = await self._requests.write("PATCH", f"{path}/{self._name}", body, manager=manager)
        return answer is not None
