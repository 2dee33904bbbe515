"""From the objects that make pods to the pods that should exist.

In: Deployments, ReplicaSets, StatefulSets, DaemonSets and bare Pods. Out: one `PlannedPod` for each pod, named as
Kubernetes names them. Names are a function of the manifest, so that a mesh that is started again has the same pods:
the template's hash, then five letters by the number of the replica. Nothing runs here, and no address is given.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from mizzen.api.kube.pods import Pod, PodTemplate
from mizzen.api.kube.workloads import DaemonSet, Deployment, ReplicaSet, StatefulSet
from mizzen.api.meta import Key, Object, ObjectMeta, OwnerReference
from mizzen.api.scalars import encode_scalar

POD_TEMPLATE_HASH = "pod-template-hash"
DEFAULT_NAMESPACE = "default"
# The letters of generated names in Kubernetes: none that form words or look alike.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class PlannedPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that should exist."""

    owner: Key
    """The object of the manifests that asks for it; the pod itself when it stands alone."""
    ordinal: int
    revision: str
    """Hash of the template: a pod of another revision is another pod."""
    pod: Pod

    @property
    def key(self) -> Key:
        return Key("Pod", self.pod.metadata.namespace, self.pod.metadata.name)


def expand(objects: Iterable[Object]) -> tuple[PlannedPod, ...]:
    """All pods that the objects ask for, by namespace and name; objects of other kinds ask for none.

    A pod that two objects would both make is made for the first of them by kind.
    """
    planned: dict[Key, PlannedPod] = {}
    for item in sorted(objects, key=lambda item: (type(item).__name__, _namespace(item), item.metadata.name)):
        for pod in _expand_one(item):
            planned.setdefault(pod.key, pod)
    return tuple(planned[key] for key in sorted(planned))


def _expand_one(item: Object) -> Iterator[PlannedPod]:
    if isinstance(item, Deployment):
        yield from _replicas(item, item.spec.template, item.spec.replicas, through_replica_set=True)
    elif isinstance(item, ReplicaSet):
        yield from _replicas(item, item.spec.template, item.spec.replicas, through_replica_set=False)
    elif isinstance(item, StatefulSet):
        yield from _ordinals(item)
    elif isinstance(item, DaemonSet):
        yield from _replicas(item, item.spec.template, 1, through_replica_set=False)
    elif isinstance(item, Pod):
        yield _alone(item)


def _replicas(
    item: Object, template: PodTemplate, replicas: int | None, *, through_replica_set: bool
) -> Iterator[PlannedPod]:
    revision = template_hash(template)
    owner = _key(item)
    if through_replica_set:
        prefix = f"{owner.name}-{revision}"
        reference = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=prefix, controller=True)
        labels = {POD_TEMPLATE_HASH: revision}
    else:
        prefix = owner.name
        reference = OwnerReference(api_version="apps/v1", kind=owner.kind, name=owner.name, controller=True)
        labels = {}
    for ordinal in range(_count(replicas)):
        name = f"{prefix}-{_suffix(f'{owner}/{revision}/{ordinal}')}"
        pod = instantiate(template, name, owner.namespace, reference, labels)
        yield PlannedPod(owner=owner, ordinal=ordinal, revision=revision, pod=pod)


def _ordinals(item: StatefulSet) -> Iterator[PlannedPod]:
    owner, template = _key(item), item.spec.template
    revision = template_hash(template)
    reference = OwnerReference(api_version="apps/v1", kind="StatefulSet", name=owner.name, controller=True)
    for ordinal in range(_count(item.spec.replicas)):
        name = f"{owner.name}-{ordinal}"
        labels = {
            "apps.kubernetes.io/pod-index": str(ordinal),
            "controller-revision-hash": f"{owner.name}-{revision}",
            "statefulset.kubernetes.io/pod-name": name,
        }
        pod = instantiate(template, name, owner.namespace, reference, labels)
        spec = msgspec.structs.replace(pod.spec, hostname=name, subdomain=item.spec.service_name)
        pod = msgspec.structs.replace(pod, spec=spec)
        yield PlannedPod(owner=owner, ordinal=ordinal, revision=revision, pod=pod)


def _alone(item: Pod) -> PlannedPod:
    metadata = msgspec.structs.replace(item.metadata, namespace=_namespace(item))
    template = PodTemplate(metadata=ObjectMeta(labels=item.metadata.labels), spec=item.spec)
    pod = Pod(metadata=metadata, spec=item.spec)
    return PlannedPod(owner=_key(item), ordinal=0, revision=template_hash(template), pod=pod)


def instantiate(
    template: PodTemplate, name: str, namespace: str, owner: OwnerReference, labels: Mapping[str, str]
) -> Pod:
    """The pod that a controller makes of its template."""
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        labels={**template.metadata.labels, **labels},
        annotations=template.metadata.annotations,
        owner_references=(owner,),
    )
    return Pod(metadata=metadata, spec=template.spec)


def template_hash(template: PodTemplate) -> str:
    """A short name for the content of a template, in the letters of generated names."""
    text = msgspec.json.encode(template, enc_hook=encode_scalar, order="sorted")
    digest = hashlib.sha256(text).digest()
    # Kubernetes spells a 32-bit number in these letters, digit by digit.
    number = str(int.from_bytes(digest[:4]))
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in number)


def _suffix(seed: str) -> str:
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in hashlib.sha256(seed.encode()).digest()[:5])


def _count(replicas: int | None) -> int:
    return 1 if replicas is None else max(replicas, 0)


def _namespace(item: Object) -> str:
    return item.metadata.namespace or DEFAULT_NAMESPACE


def _key(item: Object) -> Key:
    return Key(type(item).__name__, _namespace(item), item.metadata.name)
