"""Managed Gateways, deployed by the leader: Deployment, Service, ServiceAccount, and what their patches ask for.

In: the engine, whose roots say what each Gateway wants; the installation's choices; what the server has of all that.
Out: server-side applies under Istio's name, so that fields of others (an autoscaler's replicas) stay theirs, and what
somebody changed of ours is put right. The objects name their Gateway as owner and are removed with it by Kubernetes.
What bears no label of a managed Gateway is somebody else's and is left alone; so is a Gateway that a newer control
plane has taken over. The GatewayClasses of every installation are made where they are missing, and never changed.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mizzen import observe
from mizzen.api.gateway_api.references import GATEWAY_GROUP
from mizzen.api.meta import Key, Object
from mizzen.control.computed import Computed
from mizzen.control.leader_requests import LeaderRequests
from mizzen.control.owned_objects import OwnedObjects, decode_metadata
from mizzen.control.retries import Chores
from mizzen.control.revisions import Revisions
from mizzen.incremental import Engine
from mizzen.inject.gateways.manifests import gateway_manifests
from mizzen.inject.values import InjectionConfig
from mizzen.model.convert.gateways.classes import GATEWAY_CONTROLLER, UNMANAGED_CONTROLLER
from mizzen.model.convert.gateways.deployments import CONTROLLER_VERSION, Deployment, deployment, gateway_keys
from mizzen.sources.kube.client import APPLY_PATCH, Client, Refused
from mizzen.sources.kube.objects import Name, name_of
from mizzen.sources.kube.source import KubeSource

_log = observe.scope("gateway")
_APPLIES = observe.Counter("mizzen_managed_gateway_applies", "Objects applied for managed Gateways.", ("kind",))

_VERSION = 5
"""Of what is made; who makes a later one is not overtaken."""
_CLASSES: Mapping[str, tuple[str, str]] = {
    "istio": (GATEWAY_CONTROLLER, "Gateways that the mesh deploys and programs."),
    "istio-remote": (UNMANAGED_CONTROLLER, "Gateways that stand for those of other clusters."),
}
_EVERY, _CHOICES_EVERY = 0.1, 1.0
_PATIENCE = 0.3
_ABSENT, _CONFLICT = 404, 409


class GatewayDeployer:
    """Deploys Gateways during one term; somebody runs it."""

    def __init__(
        self,
        db: Engine,
        source: KubeSource,
        client: Client,
        requests: LeaderRequests,
        revisions: Revisions,
        *,
        installation: Callable[[], InjectionConfig],
        mesh: Callable[[], Mapping[str, Any]],
        makes_classes: bool = True,
    ) -> None:
        self._source, self._requests, self._revisions = source, requests, revisions
        self._installation, self._mesh = installation, mesh
        self._classes = tuple(Key("GatewayClass", "", name) for name in _CLASSES) if makes_classes else ()
        self._chores: Chores[Key] = Chores(self._see_to, "a Gateway cannot be deployed")
        self._computed: Computed[Deployment] = Computed(db, gateway_keys, deployment, self._chores.add)
        self._owned = OwnedObjects(client, self._touched_owned)
        self._owners: dict[Name, Key] = {}
        self._applied: dict[Name, tuple[bytes, str]] = {}
        """What was applied, and who had written the object then."""
        self._choices: tuple[InjectionConfig, Mapping[str, Any]] | None = None
        self._choices_at = 0.0
        self._told: dict[Key, set[str]] = {}

    async def run(self) -> None:
        """Ends only when cancelled."""
        try:
            with self._source.listening(self._touched), self._revisions.listening(self._add_all):
                for key in self._classes:
                    self._chores.add(key)
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._owned.run())
                    tasks.create_task(self._keep_looking())
                    tasks.create_task(self._chores.run())
        finally:
            self._computed.release()

    # -- what may have changed ------------------------------------------------------------------------------------

    async def _keep_looking(self) -> None:
        served = False
        while True:
            self._look_at_choices()
            await self._computed.look()
            now_served = self._source.resource("GatewayClass") is not None
            if now_served and not served:
                for key in self._classes:
                    self._chores.add(key, _PATIENCE)
            served = now_served
            await asyncio.sleep(_EVERY)

    def _look_at_choices(self) -> None:
        """Not at every look, for it asks all nodes of the cluster."""
        now = asyncio.get_running_loop().time()
        if self._choices is not None and now < self._choices_at + _CHOICES_EVERY:
            return
        choices, self._choices_at = (self._installation(), self._mesh()), now
        if choices != self._choices:
            self._choices = choices
            self._add_all()

    def _add_all(self) -> None:
        for key in self._computed.values:
            self._chores.add(key)

    def _touched(self, key: Key) -> None:
        if key.kind == "Namespace":
            for each in self._computed.values:
                if each.namespace == key.name:
                    self._chores.add(each)
        elif key in self._classes:
            self._chores.add(key)

    def _touched_owned(self, name: Name) -> None:
        owner = self._owners.get(name)
        if owner is not None:
            self._chores.add(owner, _PATIENCE)

    # -- Gateways -------------------------------------------------------------------------------------------------

    async def _see_to(self, key: Key) -> None:
        if key.kind == "GatewayClass":
            await self._make_class(key)
            return
        found, wanted = self._computed.values.get(key, (None, None))
        if found is None:
            self._told.pop(key, None)
        if found is None or wanted is None or not self._is_to_be_deployed(key, found):
            self._forget(key)
            return
        config, mesh = self._choices or (self._installation(), self._mesh())
        rendered = gateway_manifests(wanted, config, mesh)
        for problem in rendered.problems:
            self._tell(key, str(problem))
        if rendered.documents:
            await self._sign(key, found)
        for document in rendered.documents:
            await self._apply(key, document, wanted.controller)

    def _is_to_be_deployed(self, key: Key, found: Object) -> bool:
        if not found.metadata.uid or found.metadata.deletion_timestamp is not None:
            return False
        if not self._source.resource_version(key) or not self._revisions.is_ours(found):
            return False
        version = _number(found.metadata.annotations.get(CONTROLLER_VERSION, ""))
        if version > _VERSION:
            self._tell(key, f"it is deployed by a newer control plane, of version {version}")
        return version <= _VERSION

    def _forget(self, key: Key) -> None:
        """What a Gateway had made stays or goes as its owner does; that is for Kubernetes to do."""
        for name in [name for name, owner in self._owners.items() if owner == key]:
            del self._owners[name]
            self._applied.pop(name, None)

    async def _sign(self, key: Key, found: Object) -> None:
        """Say on the Gateway who deploys it; one that is gone is not made again by that."""
        resource = self._source.resource(key.kind)
        if found.metadata.annotations.get(CONTROLLER_VERSION) == str(_VERSION) or resource is None:
            return
        body = {"metadata": {"uid": found.metadata.uid, "annotations": {CONTROLLER_VERSION: str(_VERSION)}}}
        path = resource.path_to(key.namespace, key.name)
        await self._requests.write("PATCH", path, body, manager=GATEWAY_CONTROLLER)

    async def _apply(self, key: Key, document: dict[str, Any], manager: str) -> None:
        metadata = document["metadata"]
        name = name_of(document)
        self._owners[name] = key
        digest = msgspec.json.encode(document, order="deterministic")
        if self._applied.get(name) == (digest, self._owned.writers.get(name)):
            return
        try:
            there = decode_metadata(await self._requests.get(name.path))
        except Refused as refusal:
            if refusal.status != _ABSENT:
                raise
            there = None
        if there is not None and not there.is_managed:
            self._tell(key, f"{name.kind} {name.name} is somebody else's, and is left as it is")
            return
        if there is not None:
            metadata = {**metadata, "resourceVersion": there.resource_version}
        applied = {**document, "metadata": metadata}
        answer = await self._requests.write("PATCH", name.path, applied, manager=manager, content_type=APPLY_PATCH)
        if answer is not None:
            _APPLIES.labels(name.kind).inc()
            self._applied[name] = digest, decode_metadata(answer).writers

    def _tell(self, key: Key, trouble: str) -> None:
        """Once a term, for each Gateway."""
        told = self._told.setdefault(key, set())
        if trouble and trouble not in told:
            told.add(trouble)
            _log.warning("%s: %s", key, trouble)

    # -- GatewayClasses -------------------------------------------------------------------------------------------

    async def _make_class(self, key: Key) -> None:
        resource = self._source.resource(key.kind)
        if resource is None or self._source.resource_version(key):
            return
        controller, description = _CLASSES[key.name]
        body = {
            "apiVersion": f"{GATEWAY_GROUP}/{resource.version}",
            "kind": "GatewayClass",
            "metadata": {"name": key.name},
            "spec": {"controllerName": controller, "description": description},
        }
        try:
            await self._requests.write(
                "POST", resource.path, body, manager=GATEWAY_CONTROLLER, content_type="application/json"
            )
        except Refused as refusal:
            if refusal.status != _CONFLICT:  # It is there by now.
                raise


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0
