"""Filters with patches: listener filters, the network filters of a chain, the HTTP filters of a connection manager.

In: a finished listener, chain or connection manager and the patches that mean it. Out: the message changed in place,
and whether it was. Filters are first added, moved and removed, then merged one by one.
Golden cases: networking/ef-filters, networking/ef-listeners.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mizzen import protos
from mizzen.compile.patches import matching, merging, sequences
from mizzen.compile.patches.values import ReadyPatch

CONNECTION_MANAGER = "envoy.filters.network.http_connection_manager"
_CONNECTION_MANAGER_TYPE = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"

Sought = Callable[[ReadyPatch], str | None]
"""The name of the filter that a patch looks for; None for none in particular."""


def patch_listener_filters(listener: Any, patches: Sequence[ReadyPatch]) -> bool:
    """Patch the filters that see a connection before its chain is chosen."""
    return _patch_list(listener.listener_filters, patches, matching.listener_filter)


def patch_network_filters(chain: Any, network: Sequence[ReadyPatch], http: Sequence[ReadyPatch]) -> bool:
    """Patch the filters of a chain, and those of its connection managers."""
    changed = _patch_list(chain.filters, network, matching.network_filter)
    for each in chain.filters:
        if each.name == CONNECTION_MANAGER:
            inside = [p for p in http if matching.network_filter(p) in (None, each.name)]
            changed = (bool(inside) and _patch_connection_manager(each, inside)) or changed
    return changed


def _patch_connection_manager(network_filter: Any, http: Sequence[ReadyPatch]) -> bool:
    manager = open_connection_manager(network_filter)
    if manager is None or not _patch_list(manager.http_filters, http, matching.http_filter):
        return False
    network_filter.typed_config.value = protos.encode(manager)
    return True


def open_connection_manager(network_filter: Any) -> Any | None:
    """The connection manager that a network filter configures; None for one of another type."""
    if network_filter.typed_config.type_url.rpartition("/")[2] != _CONNECTION_MANAGER_TYPE:
        return None
    return protos.unpack(network_filter.typed_config)


def _patch_list(field: Any, patches: Sequence[ReadyPatch], sought: Sought) -> bool:
    elements = list(field)
    changed = False
    for patch in patches:
        name = sought(patch)
        changed = sequences.place(elements, patch, sequences.named(name) if name is not None else None) or changed
    if changed:
        sequences.store(field, elements)
    merges = [p for p in patches if p.merges]
    for each in field:
        for patch in merges:
            if sought(patch) in (None, each.name):
                changed = _merge(each, patch) or changed
    return changed


def _merge(target: Any, patch: ReadyPatch) -> bool:
    """Merge a filter: the name, where the patch has one, and the typed configuration.

    A filter without a typed configuration, such as one that fetches it, is left as it is.
    """
    if target.WhichOneof("config_type") != "typed_config":
        return False
    if patch.value.name:
        target.name = patch.value.name
    if patch.value.WhichOneof("config_type") == "typed_config":
        merging.merge_packed(target.typed_config, patch.value.typed_config, replace_lists=patch.replaces_lists)
    if patch.apply_to == "LISTENER_FILTER" and patch.value.HasField("filter_disabled"):
        target.filter_disabled.CopyFrom(patch.value.filter_disabled)
    return True
