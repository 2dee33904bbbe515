"""Whose objects are whose, where several revisions of the control plane serve one cluster.

    webhook configurations ─┐                                     ┌─> which objects the source takes
    Services of tags ───────┼─> names of our revision, the default ┤
    namespaces' labels ─────┘                                     └─> which objects are ours to write to

In: tags, which webhook configurations or Services of the label `istio.io/tag` give to revisions. Out: the names of our
revision, live; whether an object is this revision's to write to. An object says so by `istio.io/rev`, for want of it
its namespace does. Those that say nothing belong to the default revision: that of the tag `default`, else the one that
validates them, else the one that is called so.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping

from mizzen import observe
from mizzen.api.kinds import Kind
from mizzen.api.meta import Key, Object
from mizzen.control.webhooks.documents import MUTATING, VALIDATING
from mizzen.sources.kube.client import Client
from mizzen.sources.kube.reflector import Reflector, Timing
from mizzen.sources.kube.selection import REVISION
from mizzen.sources.kube.served import Resource

_log = observe.scope("kube")
_TAGS = observe.Gauge("mizzen_revision_tags", "Tags that stand for this control plane's revision.", ("tag",))

TAG = "istio.io/tag"
DEFAULT = "default"
DEFAULT_VALIDATOR = "istiod-default-validator"
"""Who validates objects without a revision; its label names the default revision."""

_LOOK_EVERY = 0.05


class Revisions:
    """The names of our revision; somebody runs it."""

    def __init__(
        self,
        client: Client,
        objects: Mapping[Key, Object],
        revision: str,
        namespace: str,
        *,
        timing: Timing | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`objects` has the Namespaces; `namespace` is the control plane's, where the Services of tags stand."""
        self._objects, self._revision = objects, revision or DEFAULT
        self._listeners: dict[Callable[[], None], None] = {}
        self.names = frozenset({self._revision})
        """The revision and the tags that stand for it."""
        self._default = ""
        """The default revision; empty where there is none."""

        def mirror(resource: Resource) -> Reflector:
            return Reflector(client, resource, self._changed, clock=clock, timing=timing)

        self._injectors, self._validators = mirror(_metadata_of(MUTATING)), mirror(_metadata_of(VALIDATING))
        services = Kind(kind="Service", group="", versions=("v1",), plural="services", type=Object)
        self._services = mirror(Resource(services, "v1", namespace=namespace, selector=TAG))
        self._mirrors = (self._injectors, self._validators, self._services)

    def is_ours(self, found: Object) -> bool:
        """Whether this revision writes to the object."""
        asked = found.metadata.labels.get(REVISION)
        if asked is None and found.metadata.namespace:
            space = self._objects.get(Key("Namespace", "", found.metadata.namespace))
            asked = space.metadata.labels.get(REVISION) if space is not None else None
        if asked and asked != DEFAULT:
            return asked in self.names
        if self._default:
            return self._default == self._revision
        # Nobody is the default, yet somebody must see to what is the whole cluster's.
        return self._revision == DEFAULT or not found.metadata.namespace

    @contextlib.contextmanager
    def listening(self, changed: Callable[[], None]) -> Iterator[None]:
        """Meanwhile, tell whenever names or the default revision are others."""
        self._listeners[changed] = None
        try:
            yield
        finally:
            del self._listeners[changed]

    async def run(self) -> None:
        """Ends only when cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for mirror in self._mirrors:
                tasks.create_task(mirror.run(), name=f"revisions/{mirror.resource.kind.plural}")

    async def known(self) -> None:
        """Until the tags are known, or are seen to be none of our business."""
        while True:
            if self._is_known:
                return self._look()
            await asyncio.sleep(_LOOK_EVERY)

    @property
    def _is_known(self) -> bool:
        return all(mirror.listed.is_set() or mirror.is_forbidden for mirror in self._mirrors)

    def _changed(self, _: Key) -> None:
        if self._is_known:
            self._look()

    def _look(self) -> None:
        before = self.names, self._default
        tags = {tag for tag, revision in self._tags().items() if revision == self._revision}
        self.names, self._default = frozenset({self._revision, *tags}), self._find_default()
        if before == (self.names, self._default):
            return
        observe.replace_series(_TAGS, dict.fromkeys(((tag,) for tag in sorted(tags)), 1))
        shown = ", ".join(sorted(self.names - {self._revision})) or "none"
        _log.info("revision %s has the tags: %s; the default is %s", self._revision, shown, self._default or "nobody")
        for changed in list(self._listeners):
            changed()

    def _tags(self) -> dict[str, str]:
        """The revision that each tag stands for: who injects for it, else where its Service leads."""
        return {**_read_tags(self._services), **_read_tags(self._injectors)}

    def _find_default(self) -> str:
        """The revision of objects that name none."""
        if tagged := self._tags().get(DEFAULT):
            return tagged
        for held in self._validators.held.values():
            found = held.object
            if found is not None and found.metadata.name == DEFAULT_VALIDATOR and REVISION in found.metadata.labels:
                return found.metadata.labels[REVISION]
        injectors = (held.object.metadata.labels for held in self._injectors.held.values() if held.object is not None)
        return DEFAULT if any(labels.get(REVISION) == DEFAULT and TAG not in labels for labels in injectors) else ""


def _read_tags(mirror: Reflector) -> dict[str, str]:
    labels = [held.object.metadata.labels for _, held in sorted(mirror.held.items()) if held.object is not None]
    return {each[TAG]: each.get(REVISION, "") for each in labels if TAG in each}


def _metadata_of(resource: Resource) -> Resource:
    """Of webhook configurations nothing but the metadata is read."""
    described = resource.kind
    kind = Kind(
        kind=described.kind, group=described.group, versions=described.versions, plural=described.plural, type=Object
    )
    return Resource(kind, resource.version)
