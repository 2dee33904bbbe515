"""What is known of a pod's workload: its names, its owner, its application containers.

In: a raw pod (or pod template) and, if known, the object that owns it. Out: a `Workload`. For a bare pod the owner is
guessed from its owner reference as Istio does: a ReplicaSet with the pod's template hash belongs to a Deployment, a Job
with a time in its name to a CronJob.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

Manifest = Mapping[str, Any]

PROXY = "istio-proxy"
INIT = "istio-init"
VALIDATION = "istio-validation"
CORE_DUMP = "enable-core-dump"

_CRON_JOB = re.compile(r"(.+)-\d{8,10}")
_LABEL_END = "-_."


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """The object that a user would name when asked what this pod is part of."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    """Where the owner of a pod template is; a pod says so itself."""

    def reference(self, namespace: str) -> str:
        """The owner as the proxy's metadata spell it."""
        return f"kubernetes://apis/{self.api_version}/namespaces/{namespace}/{self.kind.lower()}s/{self.name}"


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A pod before injection, as far as injection must know it."""

    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owner: Owner | None
    containers: tuple[Manifest, ...]
    """The application's own, without any proxy."""

    @property
    def name(self) -> str:
        """The workload's name; empty if nobody says."""
        return self.labels.get("service.istio.io/workload-name") or (self.owner.name if self.owner else "")

    @property
    def canonical_name(self) -> str:
        """The name under which telemetry groups workloads, fit for a label."""
        names = ("service.istio.io/canonical-name", "app.kubernetes.io/name", "app")
        found = next((self.labels[label] for label in names if self.labels.get(label)), "")
        return (found or (self.owner.name if self.owner else ""))[:63].strip(_LABEL_END)

    @property
    def canonical_revision(self) -> str:
        """The version beside it."""
        names = ("service.istio.io/canonical-revision", "app.kubernetes.io/version", "version")
        return next((self.labels[label] for label in names if self.labels.get(label)), "latest")


def read_workload(pod: Manifest, *, namespace: str, owner: Owner | None) -> Workload:
    """The workload of a pod; without an `owner` it is guessed."""
    metadata, spec = mapping(pod, "metadata"), mapping(pod, "spec")
    return Workload(
        namespace=namespace,
        labels=texts(metadata, "labels"),
        annotations=texts(metadata, "annotations"),
        owner=owner or _guess_owner(metadata),
        containers=tuple(c for c in items(spec, "containers") if c.get("name") != PROXY),
    )


def mapping(value: Manifest, field: str) -> Manifest:
    """A field that holds an object; empty where there is none."""
    found = value.get(field)
    return found if isinstance(found, Mapping) else {}


def items(value: Manifest, field: str) -> list[Manifest]:
    """A field that holds a list of objects; empty where there is none."""
    found = value.get(field)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def texts(value: Manifest, field: str) -> dict[str, str]:
    """A field that maps names to texts, as labels and annotations do; what is no text takes its JSON spelling."""
    return {
        str(key): text if isinstance(text, str) else msgspec.json.encode(text).decode()
        for key, text in mapping(value, field).items()
    }


def _guess_owner(metadata: Manifest) -> Owner | None:
    references = items(metadata, "ownerReferences")
    reference = next((ref for ref in references if ref.get("controller")), None)
    if reference is None:
        name = str(metadata.get("name") or metadata.get("generateName") or "").rstrip("-")
        return Owner(api_version="v1", kind="Pod", name=name) if name else None
    owner = Owner(
        api_version=str(reference.get("apiVersion", "")),
        kind=str(reference.get("kind", "")),
        name=str(reference.get("name", "")),
    )
    template_hash = texts(metadata, "labels").get("pod-template-hash")
    if owner.kind == "ReplicaSet" and template_hash and owner.name.endswith(f"-{template_hash}"):
        return Owner(api_version=owner.api_version, kind="Deployment", name=owner.name[: -len(template_hash) - 1])
    if owner.kind == "Job" and (cron := _CRON_JOB.fullmatch(owner.name)):
        return Owner(api_version=owner.api_version, kind="CronJob", name=cron.group(1))
    return owner
