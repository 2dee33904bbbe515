"""Injection of whole manifests: every pod and pod template in a stream of documents.

In: documents as plain data, in order. Out: as many documents in the same order, with what was skipped and what could
not be injected. Pods, everything that Kubernetes or OpenShift makes pods of, whatever else has a pod template at the
usual place, and the items of Lists are injected; all other documents come out as they went in.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mizzen.api.meta import Key
from mizzen.api.problems import Problem
from mizzen.inject.pod import Injection, inject_pod
from mizzen.inject.values import InjectionConfig
from mizzen.inject.workload import Manifest, Owner, mapping

_TEMPLATE = ("spec", "template")
_PATHS: Mapping[str, tuple[str, ...]] = {"Pod": (), "CronJob": ("spec", "jobTemplate", "spec", "template")}
"""Where a kind holds its pod, if not at the usual place."""


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that was left as it is."""

    key: Key
    reason: str


class Injected(msgspec.Struct, frozen=True, kw_only=True):
    """The documents after injection."""

    documents: tuple[Any, ...]
    skipped: tuple[Skipped, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Each with the key of its workload; such a workload is unchanged."""


def inject_documents(
    documents: Iterable[Any], *, mesh: Mapping[str, Any] | None = None, config: InjectionConfig | None = None
) -> Injected:
    """Every document with its pods injected. Labels of namespaces play no part, as nobody is there to ask."""
    run = _Run(mesh, config or InjectionConfig())
    changed = tuple(run.inject(document) for document in documents)
    return Injected(documents=changed, skipped=tuple(run.skipped), problems=tuple(run.problems))


class _Run:
    """One pass over documents; gathers what is to be said about them."""

    def __init__(self, mesh: Mapping[str, Any] | None, config: InjectionConfig) -> None:
        self._mesh = mesh
        self._config = config
        self.skipped: list[Skipped] = []
        self.problems: list[Problem] = []

    def inject(self, document: Any) -> Any:
        """The document after injection; a List item by item."""
        if not isinstance(document, Mapping):
            return document
        items = document.get("items")
        if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
            return {**document, "items": [self.inject(item) for item in items]}
        return self._inject_workload(document)

    def _inject_workload(self, document: Manifest) -> Any:
        path = _PATHS.get(str(document.get("kind", "")), _TEMPLATE)
        pod = _descend(document, path)
        if pod is None or not isinstance(mapping(pod, "spec").get("containers"), list):
            return document
        owner = _owner(document) if path else None
        outcome = inject_pod(pod, mesh=self._mesh, config=self._config, owner=owner)
        self._note(document, path, outcome)
        return _replace(document, path, outcome.pod) if outcome.injected else document

    def _note(self, document: Manifest, path: tuple[str, ...], outcome: Injection) -> None:
        metadata = mapping(document, "metadata")
        key = Key(str(document.get("kind", "")), str(metadata.get("namespace") or "default"), _name(metadata))
        if outcome.skipped_reason is not None:
            self.skipped.append(Skipped(key=key, reason=outcome.skipped_reason))
        for problem in outcome.problems:
            place = ".".join((*path, problem.path)).strip(".")
            self.problems.append(msgspec.structs.replace(problem, key=key, path=place))


def _owner(document: Manifest) -> Owner:
    metadata = mapping(document, "metadata")
    return Owner(
        api_version=str(document.get("apiVersion", "")),
        kind=str(document.get("kind", "")),
        name=_name(metadata),
        namespace=str(metadata.get("namespace") or ""),
    )


def _name(metadata: Manifest) -> str:
    return str(metadata.get("name") or str(metadata.get("generateName") or "").rstrip("-"))


def _descend(document: Manifest, path: tuple[str, ...]) -> Manifest | None:
    found: Any = document
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _replace(document: Manifest, path: tuple[str, ...], pod: Any) -> Any:
    """A copy of the document with another pod at the path."""
    if not path:
        return pod
    step, *rest = path
    return {**document, step: _replace(document[step], tuple(rest), pod)}
