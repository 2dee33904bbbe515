"""What a control plane has of the Kubernetes cluster whose objects it serves.

In: an `Access`, settings, the mesh config. Out: one client, and over it the objects, what they say about injection, the
verdicts on tokens, and whoever writes to it. Which objects are taken goes by the tags of our revision and by the mesh
config's `discoverySelectors`: both are known before the first list, and followed from then on.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence

import msgspec

from mizzen import observe, settings
from mizzen.api.kinds import kind_named
from mizzen.api.kube.data import ConfigMap
from mizzen.api.meta import Key
from mizzen.api.selectors import Selector, find_fault
from mizzen.control import mesh as mesh_config
from mizzen.control.mesh import MeshSettings
from mizzen.control.options import Options
from mizzen.control.revisions import Revisions
from mizzen.control.shared_authority import SECRETS as AUTHORITY_SECRETS
from mizzen.control.token_reviews import TokenReviews
from mizzen.control.webhooks import installation
from mizzen.errors import SourceError
from mizzen.sources.batches import Batch
from mizzen.sources.kube.access import Access
from mizzen.sources.kube.client import Client, Refused
from mizzen.sources.kube.reading import Reader
from mizzen.sources.kube.reflector import Timing
from mizzen.sources.kube.selection import Selection
from mizzen.sources.kube.served import Resource
from mizzen.sources.kube.source import KubeSource

_log = observe.scope("kube")
_TIMING = Timing()
_MISSING, _FORBIDDEN = 404, 403


class Cluster:
    """One cluster; somebody runs it."""

    def __init__(
        self,
        access: Access,
        options: Options,
        config: settings.Settings,
        mesh: MeshSettings,
        clock: Callable[[], float],
    ) -> None:
        instance = config.instance
        self.client = Client(access)
        self._mesh, self._revision, self._told_fault = mesh, instance.revision, ""
        self._map_key = mesh_config.config_map_key(instance.namespace, instance.revision)
        always = (self._map_key, installation.config_map_key(instance.namespace, instance.revision))
        # Keys of the authority are nobody's credential, whatever a Gateway names.
        never = (Key("Secret", instance.namespace, name) for name in AUTHORITY_SECRETS)
        self.source = KubeSource(self.client, selection=Selection(always=always, never=never))
        self.revisions = Revisions(self.client, self.source.objects, instance.revision, instance.namespace)
        self.installation = installation.follow_installation(self.source, options, config)
        self.token_reviews = TokenReviews(self.client, config.authority.audiences, clock)
        self.writers: list[Callable[[], Coroutine[None, None, None]]] = []
        """What runs while the client is open, and has its last word before it is closed."""

    async def run(self, take: Callable[[Batch], None]) -> None:
        """Follow the objects; ends only when cancelled."""

        def taken(batch: Batch) -> None:
            take(batch)
            self.select_namespaces()

        async with self.client, asyncio.TaskGroup() as tasks:
            for write in self.writers:
                tasks.create_task(write())
            tasks.create_task(self.revisions.run())
            await self.revisions.known()
            self._select_revisions()
            self._select(self._mesh.foresee(await self._read_config_map()).discovery_selectors)
            with self.revisions.listening(self._select_revisions):
                await self.source.run(taken)

    # -- which objects are taken ----------------------------------------------------------------------------------

    def select_namespaces(self) -> None:
        """The mesh config may select others now."""
        self._select(self._mesh.config.discovery_selectors)

    def _select(self, selectors: Sequence[Selector]) -> None:
        fault = next(filter(None, map(find_fault, selectors)), "")
        if fault and fault != self._told_fault:
            _log.error("discoverySelectors: %s; those before stay in force", fault)
        self._told_fault = fault
        if not fault:
            self.source.select(selectors=selectors)

    def _select_revisions(self) -> None:
        if self._revision:
            self.source.select(revisions=self.revisions.names)

    async def _read_config_map(self) -> ConfigMap | None:
        """That of the mesh config, before anything is listed that it might leave out."""
        resource = Resource(kind_named("ConfigMap"), "v1")
        path = resource.path_to(self._map_key.namespace, self._map_key.name)
        failures = 0
        while True:
            try:
                found = Reader(resource).read(await self.client.get(path)).object
                return found if isinstance(found, ConfigMap) else None
            except (SourceError, msgspec.DecodeError) as error:
                if isinstance(error, Refused) and error.status in (_MISSING, _FORBIDDEN):
                    return None
                failures += 1
                wait = _TIMING.wait_after(failures)
                _log.warning("%s: %s; trying again in %.1f s", path, error, wait)
            await asyncio.sleep(wait)
