"""Route configurations with patches: the configuration itself, its virtual hosts and their routes.

In: the pristine route configurations that a proxy asked for, and its patches. Out: the patched set; configurations that
no patch means stay the same resources. The order is Istio's: the configuration is merged; each virtual host is removed,
merged or replaced and its routes after it; routes are added; virtual hosts are added behind all others.
Golden cases: networking/ef-routes, gateway/cors-and-ratelimit.
"""

import functools
from collections.abc import Sequence
from typing import Any

import msgspec

from mizzen.compile import resource
from mizzen.compile.patches import matching, merging, sequences, trial
from mizzen.compile.patches.trial import Outcome
from mizzen.compile.patches.values import ReadyPatch, contexts, patches
from mizzen.compile.resource import Resource, ResourceSet
from mizzen.incremental import Engine, query
from mizzen.model import names
from mizzen.model.envoy_filters import PatchId
from mizzen.model.proxy import Dialect, Kind


class Client(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A proxy as the patching of its routes depends on it."""

    kind: Kind
    dialect: Dialect
    on_demand: bool = False
    """Whether the virtual hosts of a sidecar's ports are patched elsewhere, where they are asked for."""
    served_ports: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """On a gateway: the port in a route configuration's name, and the ports of the servers behind it."""


@query
def routes(db: Engine, pristine: ResourceSet, ids: tuple[PatchId, ...], client: Client) -> ResourceSet:
    """The route configurations with the patches of these keys."""
    here = [p for p in patches(db, ids) if p.is_in(contexts(client.kind)[0])]
    served = dict(client.served_ports) if client.kind == "router" else None
    found: list[Resource] = []
    for each in pristine:
        meant = [p for p in here if matching.is_configuration(p, each.name, served)]
        if client.on_demand and names.is_asked_for_hosts(each.name):
            meant = [p for p in meant if p.apply_to == "ROUTE_CONFIGURATION"]
        applying = tuple(p.id for p in meant)
        outcome = trial.patch_one(patched, db, each, applying, client.dialect) if applying else each
        found.append(outcome or each)
    return ResourceSet(resource.ROUTE, found)


@query
def patched(db: Engine, pristine: Resource, ids: tuple[PatchId, ...], dialect: Dialect) -> Outcome:
    """One route configuration with the patches that mean it, or something in it."""
    return trial.settle(pristine, patch_configuration, patches(db, ids), dialect)


def patch_configuration(configuration: Any, patches: Sequence[ReadyPatch]) -> bool:
    """Apply the patches that mean this configuration; whether that changed anything."""
    changed = False
    for patch in patches:
        if patch.apply_to == "ROUTE_CONFIGURATION" and patch.merges:
            merging.merge(configuration, patch.value, replace_lists=patch.replaces_lists)
            changed = True
    of_host = [p for p in patches if p.apply_to == "VIRTUAL_HOST"]
    of_route = [p for p in patches if p.apply_to == "HTTP_ROUTE"]
    hosts = [(host, _patch_host(host, of_host, of_route)) for host in configuration.virtual_hosts]
    changed = changed or any(outcome is not False for _, outcome in hosts)
    if any(outcome is None for _, outcome in hosts):
        sequences.store(configuration.virtual_hosts, [host for host, outcome in hosts if outcome is not None])
    for patch in of_host:
        if patch.operation == "ADD":
            configuration.virtual_hosts.append(patch.value)
            changed = True
    return changed


def _patch_host(host: Any, of_host: Sequence[ReadyPatch], of_route: Sequence[ReadyPatch]) -> bool | None:
    """Whether the virtual host was changed; None where a patch removes it."""
    changed = False
    for patch in of_host:
        if not matching.is_virtual_host(patch, host):
            continue
        if patch.operation == "REMOVE":
            return None
        if patch.operation == "REPLACE":
            host.CopyFrom(patch.value)
            changed = True
        elif patch.merges:
            merging.merge(host, patch.value, replace_lists=patch.replaces_lists)
            changed = True
    here = [p for p in of_route if matching.is_virtual_host(p, host)]
    return (bool(here) and _patch_routes(host, here)) or changed


def _patch_routes(host: Any, here: Sequence[ReadyPatch]) -> bool:
    """Merge and remove the routes of a virtual host, then add and insert others."""
    kept = [(route, _patch_route(route, here)) for route in host.routes]
    changed = any(outcome is not False for _, outcome in kept)
    routes = [route for route, outcome in kept if outcome is not None]
    for patch in here:
        if patch.operation in ("REMOVE", "REPLACE"):
            continue
        matches = functools.partial(matching.is_route, patch) if matching.names_route(patch) else None
        if patch.operation == "INSERT_FIRST" and matches is not None and not any(map(matches, routes)):
            continue
        changed = sequences.place(routes, patch, matches) or changed
    if changed:
        sequences.store(host.routes, routes)
    return changed


def _patch_route(route: Any, here: Sequence[ReadyPatch]) -> bool | None:
    """Whether the route was changed; None where a patch removes it."""
    changed = False
    for patch in here:
        if not matching.is_route(patch, route):
            continue
        if patch.operation == "REMOVE":
            return None
        if patch.merges:
            merging.merge(route, patch.value, replace_lists=patch.replaces_lists)
            changed = True
    return changed
