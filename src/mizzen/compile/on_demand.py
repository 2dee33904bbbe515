"""Resources on demand: what a sidecar holds that asks for virtual hosts as requests name them.

In: the names under which Envoy asked for virtual hosts, and what the sidecar would be told otherwise. Out: those
virtual hosts, and of the clusters those alone that something the sidecar holds names. Envoy never asks for these
clusters: they are sent before the virtual host that needs them, so that its routes find every one at work, mirrors too.
"""

import re
from collections.abc import Iterator

import msgspec

from mizzen import protos
from mizzen.compile import resource
from mizzen.compile.patches import routes as patches
from mizzen.compile.resource import Resource, ResourceSet
from mizzen.compile.routes import on_demand, sidecar
from mizzen.compile.routes.mesh_hosts import SidecarClient
from mizzen.compile.routes.virtual_hosts import VirtualHost
from mizzen.incremental import Engine, query
from mizzen.model import names
from mizzen.model.envoy_filters import PatchId

_MANY = 500
"""Who has asked for more hosts of one port holds all that there are, so that it need not ask any more."""
_CLUSTER_NAME = re.compile(rb"outbound\|\d+\|[^|\x00-\x20]*\|[\w.*:-]+")
_CONTINUED = 0x80
"""Set in every byte of a length but its last."""
_BY_DNS = ("STRICT_DNS", "LOGICAL_DNS")


# -- virtual hosts --------------------------------------------------------------------------------------------------


def virtual_hosts(
    db: Engine, client: SidecarClient, patching: tuple[PatchId, ...], asked: frozenset[str]
) -> ResourceSet:
    """The virtual hosts of these names `ROUTE/AUTHORITY`; a route configuration's own name stands for its nobody."""
    return ResourceSet(resource.VIRTUAL_HOST, _virtual_hosts(db, client, patching, asked))


def _virtual_hosts(
    db: Engine, client: SidecarClient, patching: tuple[PatchId, ...], asked: frozenset[str]
) -> Iterator[Resource]:
    routes: dict[str, list[str]] = {}
    for name in sorted(asked):
        route, authority = on_demand.parse_name(name)
        if authority not in ("", on_demand.NOBODY):
            routes.setdefault(route, []).append(authority)
            yield virtual_host(db, client, patching, name)
        elif names.is_asked_for_hosts(route):
            yield on_demand.encode_nobody(route)
    for route, authorities in routes.items():
        if len(authorities) > _MANY:
            yield from _other_hosts(db, client, patching, route, frozenset(authorities))


@query
def _other_hosts(
    db: Engine, client: SidecarClient, patching: tuple[PatchId, ...], route: str, held: frozenset[str]
) -> tuple[Resource, ...]:
    """All virtual hosts of a route configuration, the one for any host included, under domains that are not `held`."""
    return tuple(on_demand.encode_others(route, _directory(db, client, patching, route), held))


def every_host(db: Engine, client: SidecarClient, patching: tuple[PatchId, ...], route: str) -> tuple[Resource, ...]:
    """The virtual hosts that could be asked for, as if nobody had."""
    return _other_hosts(db, client, patching, route, frozenset())


@query
def virtual_host(db: Engine, client: SidecarClient, patching: tuple[PatchId, ...], name: str) -> Resource:
    """The virtual host that requests to an authority meet."""
    route, authority = on_demand.parse_name(name)
    return on_demand.encode_answer(name, _directory(db, client, patching, route).find(authority))


@query
def _directory(db: Engine, client: SidecarClient, patching: tuple[PatchId, ...], route: str) -> on_demand.Directory:
    if patching:
        return _patched_directory(db, client, patching, route)
    found = sidecar.configured(db, client, sidecar.Wanted(port=int(route)))
    return on_demand.build_directory(found.hosts, ignores_port=found.ignores_port)


def _patched_directory(
    db: Engine, client: SidecarClient, patching: tuple[PatchId, ...], route: str
) -> on_demand.Directory:
    """Patches may change any host, and which names it has; so they see them all."""
    whole = ResourceSet(resource.ROUTE, [sidecar.configuration(db, client, route)])
    patcher = patches.Client(kind="sidecar", dialect=client.routes.dialect)
    message = next(iter(patches.routes(db, whole, patching, patcher))).message()
    hosts = [
        VirtualHost(name=host.name, domains=tuple(host.domains), routes=(), encoded=protos.encode(host))
        for host in message.virtual_hosts  # type: ignore[attr-defined]
    ]
    return on_demand.build_directory(hosts, ignores_port=message.ignore_port_in_host_matching)  # type: ignore[attr-defined]


# -- clusters -------------------------------------------------------------------------------------------------------


class Uses(msgspec.Struct, frozen=True, kw_only=True):
    """What a listener names."""

    clusters: frozenset[str]
    routes: frozenset[str]
    extensions: frozenset[str]


@query
def clusters(db: Engine, whole: ResourceSet, used: frozenset[str]) -> ResourceSet:
    """Of all clusters those that always stand, and those that are used."""
    standing = ResourceSet.join(resource.CLUSTER, (_standing(db, part) for part in whole.parts))
    picked = [each for each in whole.among(used) if each.name not in standing]
    return ResourceSet.join(resource.CLUSTER, (standing, ResourceSet(resource.CLUSTER, picked)))


@query
def _standing(db: Engine, part: ResourceSet) -> ResourceSet:  # noqa: ARG001 (parts are shared by many)
    """Those that are no service's; and those by DNS: a request does not wait until a new one has resolved its host."""
    return ResourceSet(resource.CLUSTER, [each for each in part if _stands(each)])


def _stands(cluster: Resource) -> bool:
    if not cluster.name.startswith(names.OUTBOUND + "|"):
        return True
    message = cluster.message()
    kind = type(message).DiscoveryType.Name(message.type)  # type: ignore[attr-defined]
    return message.HasField("cluster_type") or kind in _BY_DNS


@query
def named_clusters(db: Engine, of: Resource) -> frozenset[str]:  # noqa: ARG001 (resources are shared by many)
    """The clusters of services that a resource names, wherever in it, and in whatever extension of Envoy.

    As a field a name is told from what follows by the length before it, in a text by the letters that a name may have.
    Which of both it is cannot be known, so both readings count: one too many does no harm.
    """
    return frozenset(_named(of.data))


def _named(data: bytes) -> Iterator[str]:
    for match in _CLUSTER_NAME.finditer(data):
        start = match.start()
        length = data[start - 1] if start else 0
        if start > 1 and data[start - 2] & _CONTINUED:
            length = length << 7 | data[start - 2] & ~_CONTINUED
        measured = data[start : start + length]
        yield match[0].decode()
        if _CLUSTER_NAME.fullmatch(measured):
            yield measured.decode()
