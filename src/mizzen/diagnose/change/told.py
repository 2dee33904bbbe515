"""What each proxy of one state of the mesh is told, kept so that two states can be held against each other.

In: an engine with complete objects. Out: `Told` for every pod with a proxy, and `Reader`, which prints a resource once
however many proxies share it. The engine may go on to the next state meanwhile: sets of resources stay as they are.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from mizzen.api.kube.pods import Pod
from mizzen.api.meta import Key
from mizzen.compile import resource, snapshot
from mizzen.compile.resource import Resource, ResourceSet
from mizzen.diagnose import nodes, references
from mizzen.diagnose.dump import Json
from mizzen.diagnose.snapshot import print_set
from mizzen.incremental import Engine
from mizzen.model import mesh, objects, proxy, workloads

Dialect = Literal["istio", "envoy"]
Names = frozenset[str]

BY_NAME = (resource.ROUTE, resource.ENDPOINT, resource.EXTENSION, resource.SECRET)
"""The types that Envoy asks for by name."""
_EVERYTHING = (resource.CLUSTER, resource.LISTENER)
_REVISION = "controller-revision-hash"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """One pod, and all that its proxy is told."""

    reference: str
    """`NAME.NAMESPACE`."""
    namespace: str
    workload: str
    kind: str
    """`sidecar`, `router` or `waypoint`."""
    incarnation: Any
    """Differs where it is another pod of the same name: containers of a pod cannot be edited, labels can."""
    sets: Mapping[str, ResourceSet]
    """By type URL."""
    asked: Mapping[str, Names]
    """The names that are asked for, by type URL."""
    lingering: Mapping[str, ResourceSet] = {}
    """By type URL where it differs from `sets`: with what is still asked for from the state before. A control plane
    answers that too, because a proxy takes it back only once it has heard of the rest."""


class Reader:
    """Printed resources, by version."""

    def __init__(self) -> None:
        self._printed: dict[tuple[str, str], Json] = {}
        self._asked: dict[tuple[str, str], Mapping[str, Names]] = {}
        self._asked_by: dict[ResourceSet, tuple[Names, ...]] = {}

    def printed(self, one: Resource | None) -> Json | None:
        """The resource as protobuf JSON."""
        if one is None:
            return None
        key = one.name, one.version
        found = self._printed.get(key)
        if found is None:
            found = self._printed[key] = print_set((one,))[one.name]
        return found

    def asked(self, clusters: ResourceSet, listeners: ResourceSet) -> Mapping[str, Names]:
        """The names that Envoy asks for with these clusters and listeners."""
        key = clusters.version, listeners.version
        found = self._asked.get(key)
        if found is None:
            parts = map(self._of_part, (*clusters.parts, *listeners.parts))
            names = (frozenset[str]().union(*of_kind) for of_kind in zip(*parts, strict=True))
            found = self._asked[key] = dict(zip(BY_NAME, names, strict=True))
        return found

    def _of_part(self, part: ResourceSet) -> tuple[Names, ...]:
        """The names that are asked for, in the order of `BY_NAME`; proxies share most parts of what they are told."""
        found = self._asked_by.get(part)
        if found is None:
            printed = list(map(self._print, part))
            is_cluster = part.type_url == resource.CLUSTER
            known = references.find_references(printed if is_cluster else (), () if is_cluster else printed)
            names = (known.routes, known.endpoints, known.extensions, known.secrets)
            found = self._asked_by[part] = tuple(map(frozenset, names))
        return found

    def _print(self, one: Resource) -> Json:
        return self.printed(one) or {}


def read(db: Engine, reader: Reader, dialect: Dialect, before: Mapping[str, "Told"] = {}) -> dict[str, Told]:
    """Every pod with a proxy and an address, by reference; `before` is the state that they come from."""
    found = {}
    for _, pod in pods(db):
        if nodes.has_proxy(pod) and workloads.pod_addresses(pod):
            told = read_one(db, reader, pod, dialect, before.get(reference(pod)))
            found[told.reference] = told
    return found


def pods(db: Engine) -> Iterator[tuple[Key, Pod]]:
    """All pods, by key."""
    for key in sorted(objects.of_kind(db, "Pod")):
        pod: Pod | None = db.input(key)
        if pod is not None:
            yield key, pod


def twins(db: Engine) -> dict[str, tuple[str, ...]]:
    """For each pod the others of its namespace and labels: whatever chooses among them chooses blindly."""
    alike: dict[tuple[str, frozenset[tuple[str, str]]], list[str]] = {}
    for key, pod in pods(db):
        alike.setdefault((key.namespace, frozenset(pod.metadata.labels.items())), []).append(reference(pod))
    return {name: tuple(n for n in names if n != name) for names in alike.values() for name in names if len(names) > 1}


def read_one(db: Engine, reader: Reader, pod: Pod, dialect: Dialect, before: Told | None = None) -> Told:
    """What one pod's proxy is told now."""
    who = msgspec.structs.replace(proxy.parse_node(nodes.build_node(pod, mesh.domain(db))), dialect=dialect)
    sets, asked = follow(db, reader, who)
    return Told(
        reference=reference(pod),
        namespace=pod.metadata.namespace or "default",
        workload=workloads.owner_name(pod),
        kind=nodes.proxy_kind(pod),
        incarnation=(pod.metadata.labels.get(_REVISION, ""), pod.spec),
        sets=sets,
        asked=asked,
        lingering=linger(db, who, asked, before.asked) if before is not None else {},
    )


def linger(
    db: Engine, who: proxy.Proxy, asked: Mapping[str, Names], before: Mapping[str, Names]
) -> dict[str, ResourceSet]:
    """What is told of the types of which more was asked for before."""
    return {
        url: snapshot.resources(db, who, url, asked[url] | before[url])
        for url in BY_NAME
        if not before[url] <= asked[url]
    }


def follow(db: Engine, reader: Reader, who: proxy.Proxy) -> tuple[dict[str, ResourceSet], Mapping[str, Names]]:
    """All that a proxy is told, and the names that it then asks for, by type URL."""
    sets = {url: snapshot.resources(db, who, url, None) for url in _EVERYTHING}
    asked = reader.asked(sets[resource.CLUSTER], sets[resource.LISTENER])
    return sets | {url: snapshot.resources(db, who, url, asked[url]) for url in BY_NAME}, asked


def reference(pod: Pod) -> str:
    """`NAME.NAMESPACE`."""
    return f"{pod.metadata.name}.{pod.metadata.namespace or 'default'}"
