"""An installation carried out at an API server.

    refuse what is somebody else's ─> apply ─> wait for the control plane ─> apply gateways ─> wait ─> prune

In: documents of `mizzen.install.manifests`, an API server. Out: a cluster that has them and nothing that an earlier
installation of the revision had besides; lines that say what is waited for. Definitions that somebody else installed
(Istio's own) stay as they are, and so does a failure policy that a control plane has closed meanwhile, whom a webhook
asks where somebody has aimed it at another place, or what the tag `default` has taken over.
"""

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from mizzen.cli.rollouts import Rollout, describe_trouble
from mizzen.errors import MizzenError
from mizzen.install.identity import COMPONENT_LABEL, DEFAULT_REVISION, MIZZEN, PART_OF, REVISION_LABEL, Identity
from mizzen.install.tags import DEACTIVATED, DEFAULT_VALIDATOR
from mizzen.sources.kube.client import Client, Refused
from mizzen.sources.kube.objects import PLACES, Document, Name, Objects, Outcome, name_of

MANAGER = "mizzen-install"
MANAGED_BY = "app.kubernetes.io/managed-by"
HELM = "meta.helm.sh/release-name"

_GATEWAYS = "IngressGateways"
_LOOK_EVERY = 1.0
_DEFINITION = "CustomResourceDefinition"
_CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_WAYS = ("service", "url")
"""How a webhook names whom it asks; it has one of them."""
_OPTIONAL = "ServiceMonitor"

Tell = Callable[[str], None]


class Plan(NamedTuple):
    """What is to be there."""

    identity: Identity
    documents: tuple[Document, ...]

    @property
    def is_by_parts(self) -> tuple[list[Document], list[Document]]:
        """The control plane, and the gateways that need it to start."""
        gateways = [each for each in self.documents if each["metadata"]["labels"].get(COMPONENT_LABEL) == _GATEWAYS]
        return [each for each in self.documents if each not in gateways], gateways


class Installer:
    """Carries one plan out."""

    def __init__(self, client: Client, plan: Plan, tell: Tell, *, dry_run: bool = False, wait: float = 300.0) -> None:
        """`wait` is for how many seconds workloads may take to become available; 0 does not wait."""
        self._client, self._plan, self._tell = client, plan, tell
        self._dry_run, self._wait, self._force = dry_run, wait, False
        self._unmade = ""
        """The namespace that a dry run lacks: nothing in it can be checked."""
        self._objects = Objects(client, MANAGER, dry_run=dry_run)
        self.outcomes: Counter[str] = Counter()

    async def run(self, *, force: bool = False) -> None:
        """Raises MizzenError for what is in the way, and for workloads that do not become available."""
        self._force = force
        if not force:
            await self._refuse_others()
        await self._make_namespace()
        control_plane, gateways = self._plan.is_by_parts
        await self._apply("Istiod", control_plane)
        if gateways:
            await self._apply("Ingress gateways", gateways)
        await self._prune()

    async def verify(self) -> list[str]:
        """What is not as it is to be."""
        trial = Objects(self._client, MANAGER, dry_run=True)
        found = []
        for document in self._plan.documents:
            if not await self._is_left_alone(document):
                outcome = await trial.apply(await self._fit(document))
                found += [f"{name_of(document)}: {outcome}"] if outcome != "unchanged" else []
        return found

    # -- what is in the way ---------------------------------------------------------------------------------------

    async def _refuse_others(self) -> None:
        """Istio's own workloads, or Helm's installation, of the same names."""
        for document in self._plan.documents:
            if document["kind"] == "Deployment":
                await self._refuse_other(name_of(document))

    async def _refuse_other(self, name: Name) -> None:
        found = await self._objects.read(name)
        if found is None:
            return
        metadata = found["metadata"]
        if release := (metadata.get("annotations") or {}).get(HELM):
            raise MizzenError(f"{name} belongs to the Helm release {release}; upgrade that, or use another --revision")
        if (metadata.get("labels") or {}).get(PART_OF) != MIZZEN:
            what = "control plane" if name.name == self._plan.identity.name else "gateway"
            way = "install beside it with --revision NAME" if what == "control plane" else "give yours another name"
            raise MizzenError(f"{name} is another {what}'s; {way}, or remove it first (--force overwrites it)")

    async def _make_namespace(self) -> None:
        name = Name("Namespace", "", self._plan.identity.namespace)
        if await self._objects.read(name) is not None:
            return
        await self._objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name.name}})
        if self._dry_run:
            self._unmade = name.name
            self._tell(f"{name} created (dry run)")

    # -- what is to be there --------------------------------------------------------------------------------------

    async def _apply(self, component: str, documents: list[Document]) -> None:
        applied: list[Document] = []
        for document in documents:
            if await self._is_left_alone(document):
                self.outcomes["left alone"] += 1
                continue
            self.outcomes[await self._apply_one(document)] += 1
            applied.append(document)
        if others := _definitions(documents) - _definitions(applied):
            self._tell(
                f"{others} definitions (CRDs) are not this program's and stay as they are; --force replaces them"
            )
        if self._wait and not self._dry_run:
            await self._wait_for(component, [name_of(each) for each in applied if each["kind"] == "Deployment"])
        if not self._dry_run:
            self._tell(f"✔ {component} installed")

    async def _apply_one(self, document: Document) -> Outcome:
        name = name_of(document)
        if self._unmade and name.namespace == self._unmade:
            self._tell(f"{name} created (dry run; unchecked, since {self._unmade} is not there)")
            return "created"
        fitted = await self._fit(document)
        outcome = await self._objects.apply(fitted)
        if document["kind"] in _CONFIGURATIONS and not all(_is_aimed(each) for each in fitted["webhooks"]):
            self._tell(f"{name} still asks where somebody else has pointed it, not this control plane")
        if self._dry_run:
            self._tell(f"{name} {outcome} (dry run)")
        return outcome

    async def _is_left_alone(self, document: Document) -> bool:
        """Somebody else's definition, a default that is another revision's by its tag, or a kind that is not there."""
        name = name_of(document)
        if name.kind == _OPTIONAL:
            served = await self._is_served(name.kind)
            if not served:
                self._tell(f"{name} is left out: the cluster has no {name.kind}s")
            return not served
        if name.name == DEFAULT_VALIDATOR and self._plan.identity.is_default:
            labels = await self._labels(name)
            return labels is not None and labels.get(REVISION_LABEL, DEFAULT_REVISION) != DEFAULT_REVISION
        if name.kind != _DEFINITION or self._force:
            return False
        labels = await self._labels(name)
        return labels is not None and labels.get(MANAGED_BY) != MIZZEN

    async def _labels(self, name: Name) -> Mapping[str, str] | None:
        found = await self._objects.read(name)
        return None if found is None else found["metadata"].get("labels") or {}

    async def _is_served(self, kind: str) -> bool:
        root, plural = PLACES[kind]
        with contextlib.suppress(Refused):
            await self._client.get(f"{root}/{plural}", {"limit": "1"})
            return True
        return False

    async def _fit(self, document: Document) -> dict[str, Any]:
        """The document as it is applied: marked as ours, with what was decided meanwhile about webhooks."""
        labels = {**document["metadata"]["labels"], MANAGED_BY: MIZZEN}
        made = {**document, "metadata": {**document["metadata"], "labels": labels}}
        found = await self._objects.read(name_of(document)) if document["kind"] in _CONFIGURATIONS else None
        if found is not None:
            before = {each["name"]: each for each in found.get("webhooks") or ()}
            aimed = _aimed_by_others(found)
            kept = [_keep_decisions(each, before.get(each["name"], {})) for each in made["webhooks"]]
            made["webhooks"] = [_keep_aim(each, aimed.get(each["name"])) for each in kept]
        return made

    # -- waiting --------------------------------------------------------------------------------------------------

    async def _wait_for(self, component: str, names: list[Name]) -> None:
        until = time.monotonic() + self._wait
        told = ""
        while waiting := [each for each in [await self._rollout(name) for name in names] if not each.is_done]:
            line = f"- Processing resources for {component}. Waiting for " + ", ".join(str(each) for each in waiting)
            if line != told:
                self._tell(line)
            told = line
            if time.monotonic() >= until:
                raise MizzenError(await self._give_up(waiting))
            await asyncio.sleep(_LOOK_EVERY)

    async def _rollout(self, name: Name) -> Rollout:
        return Rollout(name, await self._objects.read(name) or {})

    async def _give_up(self, waiting: list[Rollout]) -> str:
        told = [f"failed to wait for resource: resources not ready after {self._wait:g}s"]
        for each in waiting:
            told.append(f"  {each}: {each.trouble}")
            told += [f"    {line}" for line in await describe_trouble(self._client, each)]
        return "\n".join(told)

    # -- what is not to be there any more ---------------------------------------------------------------------------

    async def _prune(self) -> None:
        wanted = {name_of(each) for each in self._plan.documents}
        selector = f"{MANAGED_BY}={MIZZEN},{REVISION_LABEL}={self._plan.identity.revision_label}"
        kinds = [kind for kind in PLACES if kind not in (_DEFINITION, "Namespace")]
        for name, _ in await self._objects.find(selector, kinds):
            if name not in wanted and await self._objects.remove(name):
                self.outcomes["pruned"] += 1
                self._tell(f"{name} pruned{' (dry run)' if self._dry_run else ''}")


def _keep_decisions(entry: Document, before: Document) -> dict[str, Any]:
    """An entry as it is to be; closed where the control plane has closed it, off where a tag stands in for it."""
    kept = dict(entry)
    if before.get("failurePolicy") == "Fail":
        kept["failurePolicy"] = "Fail"
    if (before.get("namespaceSelector") or {}).get("matchLabels") == DEACTIVATED:
        never = {"matchLabels": DEACTIVATED}
        kept |= {"namespaceSelector": never, "objectSelector": never}
    return kept


def _aimed_by_others(found: Document) -> dict[str, str]:
    """Entries of a configuration for which somebody else has written whom they ask, and by which of the two ways."""
    aimed: dict[str, str] = {}
    for owner in found["metadata"].get("managedFields") or ():
        if owner["manager"] != MANAGER:
            for key, fields in owner.get("fieldsV1", {}).get("f:webhooks", {}).items():
                for way in _WAYS:
                    if f"f:{way}" in fields.get("f:clientConfig", {}):
                        aimed[json.loads(key.removeprefix("k:"))["name"]] = way
    return aimed


def _keep_aim(entry: dict[str, Any], way: str | None) -> dict[str, Any]:
    """An entry without its own way to whom it asks if somebody else has chosen the other one: it may not have both."""
    if way is None or way in entry["clientConfig"]:
        return entry
    return entry | {"clientConfig": {name: part for name, part in entry["clientConfig"].items() if name not in _WAYS}}


def _is_aimed(entry: Document) -> bool:
    return any(way in entry["clientConfig"] for way in _WAYS)


def _definitions(documents: Iterable[Document]) -> int:
    return sum(each["kind"] == _DEFINITION for each in documents)


def summarize(outcomes: Mapping[str, int]) -> str:
    """What became of how many objects."""
    order = ("created", "configured", "unchanged", "left alone", "pruned")
    return ", ".join(f"{outcomes[each]} {each}" for each in order if outcomes.get(each)) or "nothing"
