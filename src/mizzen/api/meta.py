"""Keys and metadata: what every object has, whatever its kind.

`Key` is the one way to name an object. `ObjectMeta` keeps what a mesh acts on and drops what changes by itself
(resourceVersion, managedFields, kubectl's copy of the last applied object, what other tools remark in annotations), so
that an object written again without a change that matters is equal to what it was. `LabelSelector` is Kubernetes'
selector with its expressions.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar, NamedTuple

from msgspec import Meta

from mizzen.api.message import Message, names
from mizzen.api.scalars import Int64

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_READ_DOMAIN = "istio.io"
"""Whose annotations mean something to a mesh."""
_READ = "kubernetes.io/ingress.class"
"""The one annotation of Kubernetes' that does; its controllers write many others again and again."""

Timestamp = Annotated[datetime, Meta(tz=True)]


class Key(NamedTuple):
    """The identity of an object. A Gateway of the Gateway API has the kind `KubernetesGateway`."""

    kind: str
    namespace: str
    """Empty for an object of the whole cluster."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def without_remarks(annotations: Mapping[str, str], *, of_tools: bool) -> Mapping[str, str]:
    """Annotations without kubectl's copy of the object and, with `of_tools`, without those that nothing here reads.

    Tools and controllers mark all that they touch; a mark that moves is no change of the mesh. The same mapping where
    there is nothing to leave out.
    """
    kept = {name: text for name, text in annotations.items() if not _is_remark(name, of_tools)}
    return kept if len(kept) < len(annotations) else annotations


def _is_remark(annotation: object, of_tools: bool) -> bool:
    if not isinstance(annotation, str):
        return False  # A fault for whoever decodes it.
    domain, slash, _ = annotation.partition("/")
    foreign = slash and annotation != _READ and not f".{domain}".endswith(f".{_READ_DOMAIN}")
    return annotation == LAST_APPLIED or bool(of_tools and foreign)


class OwnerReference(Message, frozen=True, kw_only=True):
    """The object that made this one."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    controller: bool = False

    unread: ClassVar[frozenset[str]] = names("uid blockOwnerDeletion")


class ObjectMeta(Message, frozen=True, kw_only=True):
    """The metadata of an object, without what changes by itself."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    """Without kubectl's last-applied-configuration, and on most kinds without those of other tools."""
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    generation: Int64 = 0
    owner_references: tuple[OwnerReference, ...] = ()

    unread: ClassVar[frozenset[str]] = names(
        "resourceVersion managedFields selfLink finalizers deletionGracePeriodSeconds clusterName"
    )

    @property
    def age_order(self) -> tuple[float, str, str]:
        """Sorts the oldest first, as Istio does: creation time, name, namespace; undated objects are the youngest."""
        created = self.creation_timestamp
        return (created.timestamp() if created else float("inf"), self.name, self.namespace)


class VersionedMeta(ObjectMeta, frozen=True, kw_only=True):
    """Metadata of a kind whose resource version stands in what Envoy is told (WasmPlugin)."""

    resource_version: str = ""

    unread: ClassVar[frozenset[str]] = ObjectMeta.unread - {"resourceVersion"}


class LabelSelectorRequirement(Message, frozen=True, kw_only=True):
    """One expression of a selector; `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Message, frozen=True, kw_only=True):
    """Objects whose labels hold all of this; an empty selector means every object."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Object(Message, frozen=True, kw_only=True):
    """The top of every object: its metadata, beside which each kind has its `spec` or its own fields."""

    metadata: ObjectMeta = ObjectMeta()

    unread: ClassVar[frozenset[str]] = names("apiVersion kind status")


def key_of(item: Object) -> Key:
    """The key of an object as it stands, of whatever namespace that says."""
    return Key(type(item).__name__, item.metadata.namespace, item.metadata.name)
