"""Endpoints as Envoy is told them: grouped by locality, weighted, with priorities by the locality setting in force.

In: `Endpoint` values, what the client's rule says about TLS, and the client's place where locality matters. Out: the
`endpoints` of a ClusterLoadAssignment, for EDS and for clusters that carry theirs.
Golden cases: networking/endpoint-states, networking/dr-locality-distribute, networking/dr-locality-failover.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from mizzen import protos
from mizzen.compile.filters import peers
from mizzen.compile.peer_facts import Telling
from mizzen.compile.values import socket_address, wrapped
from mizzen.model.endpoints import Endpoint
from mizzen.model.localities import LocalitySetting
from mizzen.model.proxy import Labels, Locality
from mizzen.model.workloads import NETWORK, augment

_endpoint_v3 = protos.package("envoy.config.endpoint.v3")
_core_v3 = protos.package("envoy.config.core.v3")


class ClientPlace(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Where a client is, as far as locality settings ask."""

    locality: Locality = Locality()
    labels: Labels = ()


class Group(msgspec.Struct, kw_only=True):
    """Endpoints of one locality and priority."""

    locality: Locality
    members: list[tuple[Endpoint, Any]]
    weight: int
    priority: int = 0


def build_groups(endpoints: Iterable[tuple[Endpoint, bool]], told: Telling) -> list[Group]:
    """Endpoints by locality; with each comes whether this client speaks mutual TLS to it."""
    by_locality: dict[Locality, list[tuple[Endpoint, Any]]] = {}
    for endpoint, mutual in endpoints:
        member = (endpoint, build_endpoint(endpoint, mutual, told))
        by_locality.setdefault(endpoint.locality, []).append(member)
    return [
        Group(
            locality=locality, members=by_locality[locality], weight=sum(_weight(e) for e, _ in by_locality[locality])
        )
        for locality in sorted(by_locality, key=_locality_text)
    ]


def _locality_text(locality: Locality) -> str:
    """The reference sorts by this spelling, in which empty middle parts keep their slash."""
    return "/".join((locality.region, locality.zone, locality.subzone)).rstrip("/")


def _weight(endpoint: Endpoint) -> int:
    return endpoint.weight or 1


def build_endpoint(endpoint: Endpoint, mutual: bool, told: Telling) -> Any:
    """One endpoint with its health, weight and the metadata that TLS and telemetry read."""
    if endpoint.port == 0:
        address: dict[str, Any] = {"pipe": {"path": endpoint.address}}
    else:
        address = socket_address(endpoint.address, endpoint.port)
    workload = endpoint.workload
    metadata: dict[str, Any] = {}
    if mutual and endpoint.tls_mode not in ("", "disabled"):
        metadata["envoy.transport_socket_match"] = {"tlsMode": endpoint.tls_mode}
    revision = workload.canonical_revision if workload is not None else ""
    revision = "" if revision == "latest" else revision
    facts = (
        (workload.name, workload.namespace, workload.canonical_name, revision) if workload is not None else ("",) * 4
    )
    metadata["istio"] = {"workload": ";".join((*facts, told.cluster_id))}
    if told.dialect == "envoy" and workload is not None:
        known = peers.build_endpoint_metadata(workload, told.cluster_id, split=told.split)
        if known:
            metadata[peers.METADATA] = known
    fields: dict[str, Any] = {
        "endpoint": {"address": address},
        "load_balancing_weight": wrapped(_weight(endpoint)),
        "metadata": {"filter_metadata": {name: protos.struct(value) for name, value in metadata.items()}},
    }
    if endpoint.health is not None:
        fields["health_status"] = endpoint.health
    return _endpoint_v3.LbEndpoint(**fields)


def build_localities(groups: Sequence[Group]) -> list[Any]:
    """The groups as messages, in their order."""
    return [
        _endpoint_v3.LocalityLbEndpoints(
            locality={
                "region": group.locality.region,
                "zone": group.locality.zone,
                "sub_zone": group.locality.subzone,
            },
            lb_endpoints=[message for _, message in group.members],
            load_balancing_weight=wrapped(group.weight) if group.weight else None,
            priority=group.priority,
        )
        for group in groups
    ]


# -- locality settings --------------------------------------------------------------------------------------------


def apply_locality_setting(
    groups: list[Group], setting: LocalitySetting | None, place: ClientPlace, *, has_detection: bool
) -> list[Group]:
    """The groups as the setting in force distributes or orders them for a client at `place`."""
    if setting is None or not groups:
        return groups
    if setting.zone_aware is not None:
        if setting.zone_aware.enabled is False:
            return groups
        groups = _by_labels(groups, setting.failover_priority, place) if setting.failover_priority else groups
        return _fail_over_regions(groups, setting, place)
    if setting.distribute:
        return _distribute(groups, setting, place.locality)
    if not (has_detection or setting.forced):
        return groups
    if setting.failover_priority:
        groups = _by_labels(groups, setting.failover_priority, place)
        return _fail_over(groups, setting, place, scale=5) if setting.failover else groups
    return _fail_over(groups, setting, place, scale=0)


def _distribute(groups: list[Group], setting: LocalitySetting, locality: Locality) -> list[Group]:
    rule = next((r for r in setting.distribute if _covers(r.from_, locality)), None)
    if rule is None:
        return groups
    kept: dict[int, int] = {}
    for pattern, share in sorted(rule.to.items()):
        matching = [i for i, g in enumerate(groups) if i not in kept and _covers(pattern, g.locality)]
        total = sum(groups[i].weight for i in matching)
        for i in matching:
            kept[i] = math.ceil(share * groups[i].weight / total) if total else 0
    return [
        Group(locality=g.locality, members=g.members, weight=kept[i])
        if i in kept
        else Group(locality=g.locality, members=[], weight=g.weight)
        for i, g in enumerate(groups)
    ]


def _covers(pattern: str, locality: Locality) -> bool:
    """Whether `region/zone/subzone`, whose last part may be `*`, covers a locality."""
    parts = pattern.split("/")
    actual = (locality.region, locality.zone, locality.subzone)
    for i, part in enumerate(parts[:3]):
        if part == "*":
            return True
        if part != actual[i]:
            return False
    return True


def _distance(a: Locality, b: Locality) -> int:
    """0 the same place, 1 the same zone, 2 the same region, 3 elsewhere."""
    if a.region != b.region:
        return 3
    if a.zone != b.zone:
        return 2
    return 0 if a.subzone == b.subzone else 1


def _fail_over(groups: list[Group], setting: LocalitySetting, place: ClientPlace, *, scale: int) -> list[Group]:
    """Nearest first; with a failover for the client's region, other regions than its target come last."""
    target = next((f.to for f in setting.failover if f.from_ == place.locality.region), None)
    for group in groups:
        distance = _distance(place.locality, group.locality)
        if distance == 3 and target is not None and group.locality.region != target:
            distance = 4
        group.priority = group.priority * scale + distance
    return _compact(groups)


def _fail_over_regions(groups: list[Group], setting: LocalitySetting, place: ClientPlace) -> list[Group]:
    target = next((f.to for f in setting.failover if f.from_ == place.locality.region), None)
    for group in groups:
        same = group.locality.region == place.locality.region
        group.priority = group.priority * 3 + (0 if same else 1 if group.locality.region == target else 2)
    return _compact(groups)


def _by_labels(groups: list[Group], names: tuple[str, ...], place: ClientPlace) -> list[Group]:
    """Each group split by how many of the named labels, from the first on, its members share with the client."""
    own = dict(place.labels)
    split: list[Group] = []
    for group in groups:
        by_priority: dict[int, list[tuple[Endpoint, Any]]] = {}
        for member in group.members:
            by_priority.setdefault(_label_priority(member[0], names, own), []).append(member)
        split.extend(
            Group(
                locality=group.locality,
                members=by_priority[priority],
                weight=sum(_weight(e) for e, _ in by_priority[priority]),
                priority=priority,
            )
            for priority in sorted(by_priority)
        )
    return _compact(split)


def _label_priority(endpoint: Endpoint, names: tuple[str, ...], own: dict[str, str]) -> int:
    workload = endpoint.workload
    labels: dict[str, str] = {}
    if workload is not None:
        labels = dict(augment(dict(workload.labels), workload.locality, "", workload.node_name, workload.network))
    added = 0
    for i, written in enumerate(names):
        name, equals, value = written.partition("=")
        wanted = value if equals else own.get(name, "")
        if labels.get(name, "") == wanted:
            continue
        if i == 0 and name == NETWORK:
            added = len(names)
            continue
        return len(names) - i + added
    return added


def _compact(groups: list[Group]) -> list[Group]:
    """Priorities without gaps: Envoy refuses them."""
    rank = {priority: i for i, priority in enumerate(sorted({g.priority for g in groups}))}
    for group in groups:
        group.priority = rank[group.priority]
    return groups
