"""From the objects that make pods to the pods that should exist.

In: Deployments, ReplicaSets, StatefulSets, DaemonSets and bare Pods. Out: one `PlannedPod` for each pod, named as
Kubernetes names them. Names are a function of the manifest, so that a mesh that is started again has the same pods:
the template's hash, then five letters by the number of the replica. Nothing runs here, and no address is given.
However many a manifest asks for, there is an end: `excess` tells what is foretold only in part, `admit` leaves out of a
mesh that is to run what does not fit into it whole.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from mizzen.api.kube.pods import Pod, PodTemplate
from mizzen.api.kube.workloads import DaemonSet, Deployment, ReplicaSet, StatefulSet
from mizzen.api.meta import Key, Object, ObjectMeta, OwnerReference
from mizzen.api.problems import Level, Problem
from mizzen.api.scalars import encode_scalar

POD_TEMPLATE_HASH = "pod-template-hash"
DEFAULT_NAMESPACE = "default"
MOST_FORETOLD = 1_000
"""Pods of one workload that are expanded; more of the same tell nothing new."""
MOST_RUN = 500
"""Pods of a mesh: a bridge of Linux has 1,023 ports, and a rollout needs one for the old and one for the new pod."""
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


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """What a mesh runs of all that is asked for."""

    pods: tuple[PlannedPod, ...] = ()
    problems: tuple[Problem, ...] = ()
    """One for each workload that gets no pods."""


def expand(objects: Iterable[Object]) -> tuple[PlannedPod, ...]:
    """The pods that the objects ask for, by namespace and name; objects of other kinds ask for none.

    A pod that two objects would both make is made for the first of them by kind. Of one workload there are at most
    MOST_FORETOLD.
    """
    planned: dict[Key, PlannedPod] = {}
    for item in _in_order(objects):
        for pod in _expand_one(item):
            planned.setdefault(pod.key, pod)
    return tuple(planned[key] for key in sorted(planned))


def excess(objects: Iterable[Object]) -> tuple[Problem, ...]:
    """A Problem for each workload of which `expand` gives fewer pods than it asks for."""
    return tuple(
        _too_many(item, f"at most {MOST_FORETOLD:,} of one workload are foretold", "warning")
        for item in _in_order(objects)
        if _asked(item) > MOST_FORETOLD
    )


def admit(objects: Iterable[Object]) -> Admitted:
    """The pods of the workloads that fit, each as a whole, into a mesh of MOST_RUN."""
    pods: dict[Key, PlannedPod] = {}
    problems: list[Problem] = []
    for item in _in_order(objects):
        left = MOST_RUN - len(pods)
        if _asked(item) > left:
            reason = f"a local mesh runs at most {MOST_RUN:,} and has room for {left:,} more; this one gets none"
            problems.append(_too_many(item, reason, "error"))
            continue
        for pod in _expand_one(item):
            pods.setdefault(pod.key, pod)
    return Admitted(pods=tuple(pods[key] for key in sorted(pods)), problems=tuple(problems))


def _in_order(objects: Iterable[Object]) -> list[Object]:
    return sorted(objects, key=lambda item: (type(item).__name__, _namespace(item), item.metadata.name))


def _asked(item: Object) -> int:
    """How many pods the object asks for."""
    if isinstance(item, Deployment | ReplicaSet | StatefulSet):
        return _count(item.spec.replicas)
    return 1 if isinstance(item, DaemonSet | Pod) else 0


def _too_many(item: Object, reason: str, level: Level) -> Problem:
    asked = _asked(item)
    message = f"asks for {asked:,} pod{'s' if asked > 1 else ''}; {reason}"
    path = "" if isinstance(item, DaemonSet | Pod) else "spec.replicas"
    return Problem(key=_key(item), path=path, code="too-many-pods", message=message, level=level)


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
    for ordinal in range(min(_count(replicas), MOST_FORETOLD)):
        name = f"{prefix}-{_suffix(f'{owner}/{revision}/{ordinal}')}"
        pod = instantiate(template, name, owner.namespace, reference, labels)
        yield PlannedPod(owner=owner, ordinal=ordinal, revision=revision, pod=pod)


def _ordinals(item: StatefulSet) -> Iterator[PlannedPod]:
    owner, template = _key(item), item.spec.template
    revision = template_hash(template)
    reference = OwnerReference(api_version="apps/v1", kind="StatefulSet", name=owner.name, controller=True)
    for ordinal in range(min(_count(item.spec.replicas), MOST_FORETOLD)):
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
