"""All kinds of an API server as one row of batches, as files are.

In: a `Client`. Out: `Batch`es: the first one is everything, once every kind has been listed; each later one is what
has changed since. Kinds come and go with their CRDs, whose metadata is watched too. While the server is away no batch
comes; how old what is known has become is told by `age` and by metrics.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from mizzen import observe
from mizzen.api.kinds import Kind
from mizzen.api.meta import Key, Object
from mizzen.api.problems import Problem
from mizzen.api.selectors import Selector
from mizzen.errors import SourceError
from mizzen.sources.batches import Batch, count_events
from mizzen.sources.kube.client import METADATA, METADATA_LIST, Client
from mizzen.sources.kube.reflector import Held, Reflector, Timing
from mizzen.sources.kube.selection import Change, Selection, is_revisioned
from mizzen.sources.kube.served import SERVED_KINDS, Resource, find_served
from mizzen.sources.origins import Finding, Origin

_log = observe.scope("kube")
_AGE = observe.Gauge(
    "mizzen_source_age_seconds", "Seconds since the API server last answered for some kind; 0 while it answers for all."
)

ORIGIN = Origin("kubernetes")
"""Where objects of an API server stand."""

_NAMESPACE = "Namespace"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SETTLE = 0.5
"""Seconds for a CRD to be established after it was written."""
_AGAIN = (2.0, 10.0)
"""Seconds until the kinds are looked at again: a server lists what a CRD defines in its own time."""
_RETRY = 2.0


class KubeSource:
    """An API server, followed."""

    def __init__(
        self,
        client: Client,
        *,
        kinds: tuple[Kind, ...] = SERVED_KINDS,
        timing: Timing | None = None,
        clock: Callable[[], float] = time.monotonic,
        selection: Selection | None = None,
        is_measured: bool = True,
    ) -> None:
        """`is_measured` is for the one source of which the metrics tell."""
        self._is_measured = is_measured
        self._client, self._kinds, self._clock = client, kinds, clock
        self.selection = selection or Selection()
        """Which objects are taken."""
        self._timing = timing or Timing()
        self._reflectors: dict[str, Reflector] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._dirty: set[Key] = set()
        self._wake = asyncio.Event()
        self._listeners: dict[Callable[[Key], None], None] = {}
        self._told: dict[Key, Object] = {}
        self.objects: Mapping[Key, Object] = self._told
        """All that was told."""
        self._problems: dict[Key, tuple[Problem, ...]] = {}
        """What is wrong with objects, of those that have something."""
        self.listed = asyncio.Event()
        """Set once the first lists are told."""
        if is_measured:
            _AGE.set_function(self.age)

    def age(self) -> float:
        """Seconds since the server last answered for the kind that it has been silent about the longest; 0 if none."""
        silent = [one.heard_at for one in self._reflectors.values() if one.trouble]
        if not silent:
            return 0.0
        return self._clock() - min(self._clock() if at is None else at for at in silent)

    @property
    def versions(self) -> Mapping[str, str]:
        """The version at which each kind is read."""
        return {name: one.resource.version for name, one in self._reflectors.items()}

    def resource(self, kind: str) -> Resource | None:
        """What the server has of a kind; None where it has nothing."""
        reflector = self._reflectors.get(kind)
        return reflector.resource if reflector else None

    def resource_version(self, key: Key) -> str:
        """The version of an object that was seen last; empty where there is none."""
        held = self._held(key)
        return held.resource_version if held else ""

    @contextlib.contextmanager
    def listening(self, told: Callable[[Key], None]) -> Iterator[None]:
        """Meanwhile, tell of every object that is written or removed, even if nothing changed that is read."""
        self._listeners[told] = None
        try:
            yield
        finally:
            del self._listeners[told]

    def heard_at(self, kind: str) -> float | None:
        """When the server last said something about a kind, by the source's clock; None if it never did."""
        reflector = self._reflectors.get(kind)
        return reflector.heard_at if reflector else None

    def select(self, *, revisions: Iterable[str] | None = None, selectors: Iterable[Selector] | None = None) -> None:
        """Take objects by these from now on; what is not said stays."""
        if revisions is not None:
            self._reselect(self.selection.set_revisions(revisions), is_revisioned)
        if selectors is not None:
            self._reselect(self.selection.set_selectors(selectors), _is_in_namespaces)

    def of_kind(self, kind: str) -> Iterator[Object]:
        """The objects of one kind."""
        reflector = self._reflectors.get(kind)
        for held in reflector.held.values() if reflector else ():
            if held.object is not None:
                yield held.object

    @property
    def troubles(self) -> tuple[str, ...]:
        """Why some kinds are not heard of now."""
        return tuple(sorted({one.trouble for one in self._reflectors.values() if one.trouble}))

    async def run(self, deliver: Callable[[Batch], None]) -> None:
        """Deliver the batches; ends only when cancelled."""
        async with asyncio.TaskGroup() as tasks:
            await self._discover_first(tasks)
            tasks.create_task(self._follow_crds(tasks), name="crds")
            for reflector in list(self._reflectors.values()):
                await reflector.listed.wait()
            deliver(self._collect())
            self.listed.set()
            while True:
                await self._wake.wait()
                self._wake.clear()
                if self._dirty:
                    deliver(self._collect())

    # -- batches --------------------------------------------------------------------------------------------------

    def _changed(self, key: Key) -> None:
        self._dirty.add(key)
        self._wake.set()
        if key.kind == _NAMESPACE:
            held = self._held(key)
            labels = held.object.metadata.labels if held is not None and held.object is not None else None
            self._reselect(self.selection.see_namespace(key.name, labels), _is_in_namespaces)

    def _reselect(self, change: Change, concerns: Callable[[Kind], bool]) -> None:
        """Let go of what is no longer taken, and list what is taken now."""
        for reflector in self._reflectors.values():
            if concerns(reflector.resource.kind):
                if change.shrinks:
                    reflector.forget_unselected()
                for part in change.parts:
                    reflector.want(part)

    def _held(self, key: Key) -> Held | None:
        reflector = self._reflectors.get(key.kind)
        return reflector.held.get(key) if reflector else None

    def _touched(self, key: Key) -> None:
        for told in list(self._listeners):
            told(key)

    def _collect(self) -> Batch:
        sets: dict[Key, Object] = {}
        removes: list[Key] = []
        for key in sorted(self._dirty):
            held = self._held(key)
            if held is not None and held.object is not None:
                sets[key] = held.object
            elif key in self._told:
                removes.append(key)
            self._note_problems(key, held)
        self._dirty.clear()
        if self._is_measured:
            count_events(sets, removes, self._told)
        self._told.update(sets)
        for key in removes:
            del self._told[key]
        findings = (Finding(ORIGIN, problem) for key in sorted(self._problems) for problem in self._problems[key])
        return Batch(sets=sets, removes=tuple(removes), findings=tuple(findings))

    def _note_problems(self, key: Key, held: Held | None) -> None:
        if held is not None and held.problems:
            self._problems[key] = held.problems
        else:
            self._problems.pop(key, None)

    # -- kinds ----------------------------------------------------------------------------------------------------

    async def _discover_first(self, tasks: asyncio.TaskGroup) -> None:
        """Wait for the server; refused credentials are waited for too, since others renew them."""
        failures = 0
        while True:
            try:
                self._set_kinds(await find_served(self._client, self._kinds), tasks)
                return
            except SourceError as error:
                failures += 1
                wait = self._timing.wait_after(failures)
                _log.warning("%s; trying again in %.1f s", error, wait)
            await asyncio.sleep(wait)

    def _set_kinds(self, served: Mapping[str, Resource], tasks: asyncio.TaskGroup) -> None:
        known: dict[str, dict[Key, Held]] = {}
        for name, old in list(self._reflectors.items()):
            if served.get(name) != old.resource:
                self._tasks.pop(name).cancel()
                del self._reflectors[name]
                known[name] = old.held
                _log.info("%s is no longer served", old.resource.path)
        for name, resource in served.items():
            if name not in self._reflectors:
                reflector = Reflector(
                    self._client,
                    resource,
                    self._changed,
                    clock=self._clock,
                    timing=self._timing,
                    touched=self._touched,
                    selection=self.selection,
                )
                reflector.held = known.pop(name, {})  # The same objects at another version.
                self._reflectors[name] = reflector
                self._tasks[name] = tasks.create_task(self._run(reflector), name=resource.path)
        for held in known.values():
            for key in held:
                self._changed(key)

    async def _run(self, reflector: Reflector) -> None:
        """Namespaces are known before what is in them."""
        spaces = self._reflectors.get(_NAMESPACE)
        if spaces is not None and reflector.resource.kind.namespaced:
            await spaces.listed.wait()
        await reflector.run()

    async def _follow_crds(self, tasks: asyncio.TaskGroup) -> None:
        """Look again which kinds are served whenever CRDs have changed, once for those that change together."""
        changed = asyncio.Event()
        tasks.create_task(self._keep_discovering(changed, tasks), name="kinds")
        failures = 0
        while True:
            wait = _RETRY
            try:
                version = ""
                async with contextlib.aclosing(self._client.list_pages(_CRDS, {}, METADATA_LIST)) as pages:
                    async for page in pages:
                        version = page.metadata.resource_version
                changed.set()
                async with self._client.watch(_CRDS, {"resourceVersion": version}, METADATA) as events:
                    failures = 0
                    async for event in events:
                        if event.type != "BOOKMARK":
                            changed.set()
            except SourceError as error:
                failures += 1
                wait = max(wait, self._timing.wait_after(failures))
                if failures == 1:
                    _log.warning("%s: %s; kinds that come and go are not heard of", _CRDS, error)
            await asyncio.sleep(wait)

    async def _keep_discovering(self, changed: asyncio.Event, tasks: asyncio.TaskGroup) -> None:
        failures = 0
        waits: list[float] = []
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(waits.pop(0) if waits else None):
                    await changed.wait()
            if changed.is_set():
                changed.clear()
                waits = list(_AGAIN)
                await asyncio.sleep(_SETTLE)
            try:
                await self._discover(tasks)
                failures = 0
            except SourceError as error:
                failures += 1
                wait = self._timing.wait_after(failures)
                _log.warning("the kinds that are served cannot be told: %s; trying again in %.1f s", error, wait)
                await asyncio.sleep(wait)
                changed.set()

    async def _discover(self, tasks: asyncio.TaskGroup) -> None:
        before = {name: one.resource for name, one in self._reflectors.items()}
        self._set_kinds(await find_served(self._client, self._kinds, before), tasks)


def _is_in_namespaces(kind: Kind) -> bool:
    return kind.namespaced
