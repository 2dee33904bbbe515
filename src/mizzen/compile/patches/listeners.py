"""Listeners with patches: merged into and removed one by one, their parts patched, others added.

In: the pristine listeners of a proxy and its patches. Out: the patched set; listeners that no patch means stay the same
resources. The side of a listener is its direction. Routes that stand inside an inbound listener are patched like any
route configuration, before the listener is. `connect_originate` takes no patches.
Golden cases: networking/ef-listeners, networking/ef-filters, networking/ef-routes, gateway/cors-and-ratelimit.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from mizzen import protos
from mizzen.compile import resource
from mizzen.compile.patches import chains, filters, matching, merging, trial
from mizzen.compile.patches.routes import patch_configuration
from mizzen.compile.patches.trial import Outcome
from mizzen.compile.patches.values import ReadyPatch, build_problem, contexts, patches
from mizzen.compile.resource import Resource, ResourceSet, encode_resource
from mizzen.incremental import Engine, query
from mizzen.model.envoy_filters import PatchId
from mizzen.model.proxy import Dialect, Kind

_OF_ROUTES = ("ROUTE_CONFIGURATION", "VIRTUAL_HOST", "HTTP_ROUTE")
_UNPATCHED = ("connect_originate",)


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """A listener as patches look for it."""

    port: int | None
    """The port of its TCP address; None where it has none."""
    address: bytes
    inbound: bool
    inline_routes: tuple[str, ...]
    """The names of route configurations that stand inside."""


class Client(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A proxy as the patching of its listeners depends on it."""

    kind: Kind
    dialect: Dialect


@query
def listeners(
    db: Engine, pristine: ResourceSet, ids: tuple[PatchId, ...], route_ids: tuple[PatchId, ...], client: Client
) -> ResourceSet:
    """The listeners of a proxy with the patches of these keys; `route_ids` are for the routes inside them."""
    found, of_routes = patches(db, ids), patches(db, route_ids)
    kept: dict[str, Resource] = {}
    for each in pristine:
        applying, inside = _applying(db, each, found, of_routes, client.kind)
        means = applying or inside
        outcome = trial.patch_one(patched, db, each, applying, inside, client.dialect) if means else each
        if outcome is not None:
            kept.setdefault(outcome.name, outcome)
    for context in contexts(client.kind):
        for patch in found:
            if patch.apply_to == "LISTENER" and patch.adds_to(context):
                _add(db, kept, patch, client.dialect)
    return ResourceSet(resource.LISTENER, kept.values())


def _applying(
    db: Engine, pristine: Resource, found: Sequence[ReadyPatch], of_routes: Sequence[ReadyPatch], kind: Kind
) -> tuple[tuple[PatchId, ...], tuple[PatchId, ...]]:
    """The patches that mean the listener, and those that mean route configurations inside it."""
    if pristine.name in _UNPATCHED:
        return (), ()
    seen = traits(db, pristine)
    inbound = kind == "sidecar" and seen.inbound
    context = contexts(kind)[1 if inbound else 0]
    applying = (p for p in found if p.is_in(context) and matching.is_listener(p, pristine.name, seen.port))
    inside = (
        p
        for p in (of_routes if inbound else ())
        if p.is_in(context) and any(matching.is_configuration(p, name, None) for name in seen.inline_routes)
    )
    return tuple(p.id for p in applying), tuple(p.id for p in inside)


@query
def traits(db: Engine, pristine: Resource) -> Traits:
    """What patches look for in a listener."""
    del db  # Nothing but the argument counts.
    message: Any = pristine.message()
    direction = message.DESCRIPTOR.fields_by_name["traffic_direction"].enum_type
    return Traits(
        port=message.address.socket_address.port_value if message.address.HasField("socket_address") else None,
        address=_address(message),
        inbound=message.traffic_direction == direction.values_by_name["INBOUND"].number,
        inline_routes=tuple(manager.route_config.name for _, manager in _inline_managers(message)),
    )


@query
def patched(
    db: Engine, pristine: Resource, ids: tuple[PatchId, ...], route_ids: tuple[PatchId, ...], dialect: Dialect
) -> Outcome:
    """One listener with the patches that mean it, or something in it."""
    return trial.settle(pristine, _apply, [*patches(db, route_ids), *patches(db, ids)], dialect)


def _apply(listener: Any, chosen: Sequence[ReadyPatch]) -> bool | None:
    changed = _patch_inline_routes(listener, [p for p in chosen if p.apply_to in _OF_ROUTES])
    for patch in chosen:
        if patch.apply_to == "LISTENER":
            if patch.operation == "REMOVE":
                return None
            if patch.merges:
                merging.merge(listener, patch.value, replace_lists=patch.replaces_lists)
                changed = True
    of_filters = [p for p in chosen if p.apply_to == "LISTENER_FILTER"]
    inside = [p for p in chosen if p.apply_to in ("FILTER_CHAIN", "NETWORK_FILTER", "HTTP_FILTER")]
    changed = (bool(of_filters) and filters.patch_listener_filters(listener, of_filters)) or changed
    return (bool(inside) and chains.patch_chains(listener, inside)) or changed


def _patch_inline_routes(listener: Any, chosen: Sequence[ReadyPatch]) -> bool:
    changed = False
    for network_filter, manager in _inline_managers(listener) if chosen else ():
        meant = [p for p in chosen if matching.is_configuration(p, manager.route_config.name, None)]
        if patch_configuration(manager.route_config, meant):
            network_filter.typed_config.value = protos.encode(manager)
            changed = True
    return changed


def _inline_managers(listener: Any) -> Iterator[tuple[Any, Any]]:
    """The network filters that are connection managers with routes inside, each with its configuration."""
    for chain in listener.filter_chains:
        for network_filter in chain.filters:
            manager = filters.open_connection_manager(network_filter)
            if manager is not None and manager.HasField("route_config"):
                yield network_filter, manager


def _address(listener: Any) -> bytes:
    return protos.encode(listener.address)


def _add(db: Engine, kept: dict[str, Resource], patch: ReadyPatch, dialect: Dialect) -> None:
    name: str = patch.value.name
    if name in kept:
        db.remark(build_problem(patch.id, "patch.value.name", f"there is a listener {name} already"))
        return
    address = _address(patch.value)
    reason = trial.refusal(patch.value, dialect)
    if dialect == "envoy" and any(traits(db, each).address == address for each in kept.values()):
        reason = "another listener has its address"
    if reason is not None:
        db.remark(trial.build_refusal(patch, reason))
    else:
        kept[name] = encode_resource(name, patch.value)
