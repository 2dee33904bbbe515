"""Objects by kind, by namespace and by labels, and the pods that templates stand for.

In: the engine's inputs. Out: sorted keys, as index entries and queries, so that a rule depends on no more than it asks
for. A tree of manifests rarely holds Pods: where a namespace has a Deployment or its like of whose pods none is known,
its template counts as one pod. Such a pod is selected like any other, and no finding is ever about it.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from mizzen.analysis.settings import settings
from mizzen.api.kube.pods import Pod, PodTemplate
from mizzen.api.meta import Key, LabelSelector
from mizzen.incremental import Engine, Index, query
from mizzen.model import objects
from mizzen.model.proxy import Labels
from mizzen.model.workloads import freeze

_EVERYWHERE = "default"
"""A namespace that every cluster has. Those of Kubernetes itself count for nothing (golden security/authz-sources)."""
TEMPLATE_KINDS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job")

keys = objects.of_kind
"""The objects of a kind, by namespace and name."""
keys_in = objects.in_namespace
"""The objects of a kind in a namespace, by name."""


def values(db: Engine, kind: str) -> Iterator[tuple[Key, Any]]:
    """The objects of a kind with their keys; whoever iterates depends on all of them."""
    for key in keys(db, kind):
        yield key, db.input(key)


def exists(db: Engine, kind: str) -> bool:
    """Whether there is any object of a kind."""
    return bool(keys(db, kind))


# -- labels ---------------------------------------------------------------------------------------------------------


def _pod_labels(key: tuple[str, ...], pod: Any) -> Iterable[Hashable]:
    for pair in pod.metadata.labels.items():
        yield pair
        yield (key[1], *pair)


def _template_labels(key: tuple[str, ...], value: Any) -> Iterable[Hashable]:
    for pair in value.spec.template.metadata.labels.items():
        yield pair
        yield (key[1], *pair)


_pods_by_label = Index("Pod", "label", _pod_labels)
_templates_by_label = {kind: Index(kind, "label", _template_labels) for kind in TEMPLATE_KINDS}


@query
def matching_pods(db: Engine, namespace: str, labels: Labels) -> tuple[Key, ...]:
    """Pods, and templates that stand for pods, that carry all labels; in any namespace if that is empty.

    Without labels: all.
    """
    found = _carrying(db, "Pod", _pods_by_label, namespace, labels)
    for kind in TEMPLATE_KINDS:
        for key in _carrying(db, kind, _templates_by_label[kind], namespace, labels):
            if stands_for_pods(db, key):
                found.append(key)
    return tuple(found)


def _carrying(db: Engine, kind: str, index: Index, namespace: str, labels: Labels) -> list[Key]:
    if not labels:
        return list(keys_in(db, kind, namespace) if namespace else keys(db, kind))
    groups: list[Hashable] = [(namespace, *pair) if namespace else pair for pair in labels]
    found = db.lookup(index, groups[0])
    for group in groups[1:]:
        others = set(db.lookup(index, group)) if found else ()
        found = tuple(key for key in found if key in others)
    return [Key(*key) for key in found]


@query
def stands_for_pods(db: Engine, key: Key) -> bool:
    """Whether none of the pods of a workload are known, so that its template is the best there is."""
    found: Any = db.input(key)
    if found is None or any(owner.controller for owner in found.metadata.owner_references):
        return False
    spec = found.spec
    if getattr(spec, "replicas", None) == 0:
        return False
    selector: LabelSelector | None = spec.selector
    wanted = freeze(selector.match_labels) if selector is not None else ()
    return not _carrying(db, "Pod", _pods_by_label, key.namespace, wanted or freeze(spec.template.metadata.labels))


@query
def pod(db: Engine, key: Key) -> Pod | None:
    """The pod of that key; of a template, what it would make."""
    found: Any = db.input(key)
    if found is None or isinstance(found, Pod):
        return found
    template: PodTemplate = found.spec.template
    meta = msgspec.structs.replace(template.metadata, name=key.name, namespace=key.namespace)
    return Pod(metadata=meta, spec=template.spec)


def pod_labels(db: Engine, key: Key) -> Mapping[str, str]:
    """The labels of a pod or of what stands for one."""
    found = pod(db, key)
    return found.metadata.labels if found is not None else {}


@query
def has_pods(db: Engine) -> bool:
    """Whether anything is known about pods."""
    return exists(db, "Pod") or any(exists(db, kind) for kind in TEMPLATE_KINDS)


@query
def namespaces(db: Engine) -> tuple[str, ...]:
    """The Namespaces, and those that every cluster has; where there is none among the objects, those they stand in."""
    written = {key.name for key in keys(db, "Namespace")}
    if written:
        return tuple(sorted({*written, _EVERYWHERE, settings(db).istio_namespace}))
    kinds = ("Service", "Pod", *TEMPLATE_KINDS, "ServiceEntry", "AuthorizationPolicy", "VirtualService")
    return tuple(sorted({key.namespace for kind in kinds for key in keys(db, kind)}))
