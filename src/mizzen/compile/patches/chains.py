"""Filter chains with patches.

In: a finished listener and the patches that mean it. Out: the message changed in place, and whether it was. Each chain
is removed or merged, then its filters are patched; added chains come last. The default chain is a chain like the
others, but none is added in its place. Golden case: networking/ef-listeners.
"""

from collections.abc import Sequence
from typing import Any

from mizzen.compile.patches import filters, matching, merging, sequences
from mizzen.compile.patches.values import ReadyPatch


def patch_chains(listener: Any, patches: Sequence[ReadyPatch]) -> bool:
    """Patch every chain of a listener, the default one included, and add chains."""
    outcomes = [(chain, _patch_chain(listener, chain, patches)) for chain in listener.filter_chains]
    changed = any(outcome is not False for _, outcome in outcomes)
    if any(outcome is None for _, outcome in outcomes):
        sequences.store(listener.filter_chains, [chain for chain, outcome in outcomes if outcome is not None])
    if listener.HasField("default_filter_chain"):
        outcome = _patch_chain(listener, listener.default_filter_chain, patches)
        if outcome is None:
            listener.ClearField("default_filter_chain")
        changed = changed or outcome is not False
    for patch in patches:
        if patch.apply_to == "FILTER_CHAIN" and patch.operation == "ADD":
            listener.filter_chains.append(patch.value)
            changed = True
    return changed


def _patch_chain(listener: Any, chain: Any, patches: Sequence[ReadyPatch]) -> bool | None:
    """Whether the chain was changed; None where a patch removes it. A chain without filters is nobody's to patch."""
    if not len(chain.filters):
        return False
    changed = False
    for patch in patches:
        if patch.apply_to == "FILTER_CHAIN" and matching.is_chain(patch, listener.name, chain):
            if patch.operation == "REMOVE":
                return None
            if patch.merges:
                _merge_chain(chain, patch)
                changed = True
    inside = [p for p in patches if p.apply_to != "FILTER_CHAIN" and matching.is_chain(p, listener.name, chain)]
    network = [p for p in inside if p.apply_to == "NETWORK_FILTER"]
    http = [p for p in inside if p.apply_to == "HTTP_FILTER"]
    return filters.patch_network_filters(chain, network, http) or changed


def _merge_chain(chain: Any, patch: ReadyPatch) -> None:
    """Merge a chain, but for a transport socket of the name that is there, which merges alone."""
    value = patch.value
    if value.HasField("transport_socket") and chain.HasField("transport_socket"):
        if chain.transport_socket.name != value.transport_socket.name:
            chain.ClearField("transport_socket")
        elif merging.merge_socket(chain.transport_socket, value.transport_socket, replace_lists=patch.replaces_lists):
            return
    merging.merge(chain, value, replace_lists=patch.replaces_lists)
