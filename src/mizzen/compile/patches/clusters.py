"""Clusters with patches: merged into and removed one by one, added at the end of each side.

In: the pristine clusters of a proxy, its patches, and the services behind its inbound clusters. Out: the patched set;
clusters that no patch means stay the same resources. Of two clusters of one name the first in Istio's order stays.
Golden cases: networking/ef-clusters, networking/ef-scope-and-order, gateway/cors-and-ratelimit.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mizzen.api.networking.envoy_filter import PatchContext
from mizzen.compile import resource
from mizzen.compile.patches import matching, merging, trial
from mizzen.compile.patches.trial import Outcome
from mizzen.compile.patches.values import ReadyPatch, build_problem, contexts, patches
from mizzen.compile.resource import Resource, ResourceSet
from mizzen.incremental import Engine, query
from mizzen.model import names
from mizzen.model.envoy_filters import PatchId
from mizzen.model.proxy import Dialect, Kind

InboundHosts = tuple[tuple[int, tuple[str, ...]], ...]
"""Workload port, and the hosts of the services that it serves."""


_UNPATCHED = ("connect_originate", "sds-external")


class Client(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A proxy as the patching of its clusters depends on it."""

    kind: Kind
    dialect: Dialect
    inbound_hosts: InboundHosts = ()


@query
def clusters(db: Engine, pristine: ResourceSet, ids: tuple[PatchId, ...], client: Client) -> ResourceSet:
    """The clusters of a proxy with the patches of these keys."""
    found = patches(db, ids)
    changing = [p for p in found if p.merges or p.operation == "REMOVE"]
    hosts = dict(client.inbound_hosts)
    kept: dict[str, Resource] = {}
    for context, members in _sides(pristine, client.kind):
        here = [p for p in changing if p.is_in(context)]
        for cluster in members:
            applying = _applying(here, cluster.name, hosts) if cluster.name not in _UNPATCHED else ()
            outcome = trial.patch_one(patched, db, cluster, applying, client.dialect) if applying else cluster
            if outcome is not None:
                kept.setdefault(outcome.name, outcome)
        for patch in found:
            if patch.adds_to(context):
                _add(db, kept, patch, client.dialect)
    return ResourceSet(resource.CLUSTER, kept.values())


def _sides(pristine: ResourceSet, kind: Kind) -> Iterator[tuple[PatchContext, Sequence[Resource]]]:
    """The clusters by context, in the order of their sides."""
    for context in contexts(kind):
        yield (
            context,
            [c for c in pristine if kind != "sidecar" or _is_inbound(c.name) == (context == "SIDECAR_INBOUND")],
        )


def _is_inbound(name: str) -> bool:
    return name == names.INBOUND_PASSTHROUGH or name.startswith(f"{names.INBOUND}|")


def _applying(here: Sequence[ReadyPatch], name: str, hosts: Mapping[int, tuple[str, ...]]) -> tuple[PatchId, ...]:
    parts = names.parse_subset_key(name) if here else None
    behind = hosts.get(parts.port, ()) if parts is not None else ()
    return tuple(p.id for p in here if matching.is_cluster(p, name, behind))


@query
def patched(db: Engine, pristine: Resource, ids: tuple[PatchId, ...], dialect: Dialect) -> Outcome:
    """One cluster with the patches that mean it."""
    return trial.settle(pristine, _apply, patches(db, ids), dialect)


def _apply(cluster: Any, chosen: Sequence[ReadyPatch]) -> bool | None:
    changed = False
    for patch in chosen:
        if patch.operation == "REMOVE":
            return None
        changed = _merge(cluster, patch) or changed
    return changed


def _merge(cluster: Any, patch: ReadyPatch) -> bool:
    """Merge a cluster, but for its transport socket, which merges alone, into the socket of its name.

    A patch with a socket does nothing where the cluster chooses among sockets and none has the name; whatever else
    such a patch holds counts only where no socket was merged.
    """
    value = patch.value
    if value.HasField("transport_socket"):
        same = _sockets(cluster, value.transport_socket.name)
        if not same and len(cluster.transport_socket_matches):
            return False
        if same and merging.merge_socket(same[0], value.transport_socket, replace_lists=patch.replaces_lists):
            return True
        if not same:
            cluster.ClearField("transport_socket")
    merging.merge(cluster, value, replace_lists=patch.replaces_lists)
    return True


def _sockets(cluster: Any, name: str) -> list[Any]:
    """The sockets of that name among those that the cluster chooses from, or its only one."""
    found = [m.transport_socket for m in cluster.transport_socket_matches if m.HasField("transport_socket")]
    if not len(cluster.transport_socket_matches) and cluster.HasField("transport_socket"):
        found = [cluster.transport_socket]
    return [socket for socket in found if socket.name == name]


def _add(db: Engine, kept: dict[str, Resource], patch: ReadyPatch, dialect: Dialect) -> None:
    name: str = patch.value.name
    if name in kept:
        db.remark(build_problem(patch.id, "patch.value.name", f"there is a cluster {name} already"))
    elif (reason := trial.refusal(patch.value, dialect)) is not None:
        db.remark(trial.build_refusal(patch, reason))
    else:
        added: Any = type(patch.value)()
        added.CopyFrom(patch.value)
        kept[name] = trial.encode_patched(added, dialect)
