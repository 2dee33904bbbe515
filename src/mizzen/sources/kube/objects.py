"""Plain documents at an API server: applied, looked up by label, removed.

In: a Client, documents of the kinds that an installation has. Out: what became of each. Everything is applied by
server-side apply under one field manager, so that fields of others (an autoscaler's replicas, a CA bundle) stay
theirs; an apply that changes nothing writes nothing.
"""

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from mizzen.sources.kube.client import APPLY_PATCH, METADATA_LIST, Client, Refused

Document = Mapping[str, Any]
Outcome = Literal["created", "configured", "unchanged"]

_ABSENT = 404

PLACES: Mapping[str, tuple[str, str]] = {
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "Namespace": ("/api/v1", "namespaces"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "ClusterRole": ("/apis/rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "Role": ("/apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "ConfigMap": ("/api/v1", "configmaps"),
    "Service": ("/api/v1", "services"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "HorizontalPodAutoscaler": ("/apis/autoscaling/v2", "horizontalpodautoscalers"),
    "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets"),
    "MutatingWebhookConfiguration": ("/apis/admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations"),
    "ValidatingWebhookConfiguration": ("/apis/admissionregistration.k8s.io/v1", "validatingwebhookconfigurations"),
    "ServiceMonitor": ("/apis/monitoring.coreos.com/v1", "servicemonitors"),
}
"""Where the kinds stand that an installation has, or a control plane makes for Gateways."""


class Name(NamedTuple):
    """One object of a cluster."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in self if part)

    @property
    def path(self) -> str:
        """Where it stands."""
        root, plural = PLACES[self.kind]
        inside = f"namespaces/{self.namespace}/" if self.namespace else ""
        return f"{root}/{inside}{plural}/{self.name}"


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of an object that is there."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class _Object(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()


def name_of(document: Document) -> Name:
    """The object that a document is about."""
    metadata = document["metadata"]
    return Name(document["kind"], metadata.get("namespace", ""), metadata["name"])


class Objects:
    """Documents at one API server, under one field manager."""

    def __init__(self, client: Client, manager: str, *, dry_run: bool = False) -> None:
        """`dry_run` has the server check everything and store nothing."""
        self._client, self._dry = client, {"dryRun": "All"} if dry_run else {}
        self._query = {"fieldManager": manager, "force": "true", **self._dry}

    async def read(self, name: Name) -> dict[str, Any] | None:
        """The object as it is; None where there is none."""
        try:
            found: dict[str, Any] = msgspec.json.decode(await self._client.get(name.path))
        except Refused as refusal:
            if refusal.status != _ABSENT:
                raise
            return None
        return found

    async def apply(self, document: Document) -> Outcome:
        """Make it so. Raises SourceError for what the server refuses."""
        name = name_of(document)
        before = await self.read(name)
        body = await self._client.call("PATCH", name.path, document, query=self._query, content_type=APPLY_PATCH)
        if before is None:
            return "created"
        after = msgspec.json.decode(body)
        return "unchanged" if _is_same(before, after) else "configured"

    async def remove(self, name: Name) -> bool:
        """Whether it was there."""
        try:
            await self._client.call("DELETE", name.path, query={"propagationPolicy": "Background", **self._dry})
        except Refused as refusal:
            if refusal.status != _ABSENT:
                raise
            return False
        return True

    async def find(self, selector: str, kinds: Iterable[str] = PLACES) -> list[tuple[Name, Metadata]]:
        """Everything of these kinds in all namespaces with such labels; a kind that is not served has nothing."""
        return [found for kind in kinds async for found in self._list(kind, selector)]

    async def _list(self, kind: str, selector: str) -> AsyncIterator[tuple[Name, Metadata]]:
        root, plural = PLACES[kind]
        query = {"labelSelector": selector} if selector else {}
        try:
            async with contextlib.aclosing(self._client.list_pages(f"{root}/{plural}", query, METADATA_LIST)) as pages:
                async for page in pages:
                    for raw in page.items:
                        metadata = msgspec.json.decode(raw, type=_Object).metadata
                        yield Name(kind, metadata.namespace, metadata.name), metadata
        except Refused as refusal:
            if refusal.status != _ABSENT:
                raise


def _is_same(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether nothing was written; a dry run has no new version, so contents are compared too."""
    heads = ("managedFields", "resourceVersion", "generation")

    def content(document: Mapping[str, Any]) -> Mapping[str, Any]:
        metadata = {name: value for name, value in document["metadata"].items() if name not in heads}
        return {**document, "metadata": metadata}

    return bool(
        before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
        and content(before) == content(after)
    )
