"""EnvoyFilters: which patches are for a proxy, and in what order.

In: EnvoyFilters, a proxy's kind, namespace, labels and node metadata. Out: `Selection`, the keys of its patches by
what they patch; equal for proxies that get the same patches, and `NONE` for the many that get none. What a patch does
is `compile.patches`. Patches of BOOTSTRAP are the agent's and are not selected here.
Golden case: networking/ef-scope-and-order.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import msgspec
import re2

from mizzen.api.meta import Key
from mizzen.api.networking.envoy_filter import (
    EnvoyConfigObjectPatch,
    EnvoyFilter,
    PatchContext,
    ProxyMatch,
)
from mizzen.incremental import Engine, query
from mizzen.model import attachments, mesh, objects, workloads
from mizzen.model.attachments import Audience
from mizzen.model.proxy import Kind, Proxy

KIND = "EnvoyFilter"
MAX_VERSION_PATTERN = 1024
"""Characters; a longer pattern matches no version, as in Istio."""


Part = Literal["clusters", "listeners", "routes", "extensions"]
_PARTS: Mapping[str, Part] = {
    "CLUSTER": "clusters",
    "LISTENER": "listeners",
    "LISTENER_FILTER": "listeners",
    "FILTER_CHAIN": "listeners",
    "NETWORK_FILTER": "listeners",
    "HTTP_FILTER": "listeners",
    "ROUTE_CONFIGURATION": "routes",
    "VIRTUAL_HOST": "routes",
    "HTTP_ROUTE": "routes",
    "EXTENSION_CONFIG": "extensions",
}
_CONTEXTS: Mapping[Kind, tuple[PatchContext, ...]] = {
    "sidecar": ("ANY", "SIDECAR_INBOUND", "SIDECAR_OUTBOUND"),
    "router": ("ANY", "GATEWAY"),
    "waypoint": ("ANY", "WAYPOINT"),
}


class PatchId(NamedTuple):
    """Names one patch: its EnvoyFilter, and its place in the list."""

    namespace: str
    name: str
    position: int

    @property
    def key(self) -> Key:
        """The EnvoyFilter."""
        return Key(KIND, self.namespace, self.name)


class Selection(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """The patches of a proxy in the order in which they apply, by what they patch."""

    clusters: tuple[PatchId, ...] = ()
    listeners: tuple[PatchId, ...] = ()
    """Patches of listeners and of all that stands in them, routes excepted."""
    routes: tuple[PatchId, ...] = ()
    extensions: tuple[PatchId, ...] = ()


NONE = Selection()


@query
def select(db: Engine, proxy: Proxy) -> Selection:
    """The patches of a proxy.

    EnvoyFilters of the root namespace and of the proxy's own stand in one row: by priority, then root namespace first,
    then age, then `name.namespace`. A filter's own patches keep their order.
    """
    root = mesh.root_namespace(db)
    found = [f for namespace in dict.fromkeys((root, proxy.namespace)) for f in _filters(db, namespace)]
    if not found:
        return NONE
    audience = Audience(proxy.kind, proxy.namespace, workloads.proxy_workload(db, proxy).labels)
    applying = sorted((f for f in found if _is_for(f, audience)), key=lambda f: _order(f, root))
    node: dict[str, Any] = msgspec.json.decode(proxy.metadata)
    parts: dict[Part, list[PatchId]] = {}
    for envoy_filter in applying:
        for position, patch in _patches(envoy_filter, proxy.kind, node):
            identity = PatchId(envoy_filter.metadata.namespace, envoy_filter.metadata.name, position)
            parts.setdefault(_PARTS[patch.apply_to], []).append(identity)
    return Selection(**{part: tuple(ids) for part, ids in parts.items()})


@query
def _filters(db: Engine, namespace: str) -> tuple[EnvoyFilter, ...]:
    return tuple(db.input(key) for key in objects.in_namespace(db, KIND, namespace))


def _is_for(envoy_filter: EnvoyFilter, audience: Audience) -> bool:
    selector = envoy_filter.spec.workload_selector
    labels = selector.labels if selector is not None else None
    return attachments.is_for(audience, envoy_filter.metadata.namespace, labels, envoy_filter.spec.target_refs)


def _order(envoy_filter: EnvoyFilter, root: str) -> tuple[int, bool, float, str]:
    meta = envoy_filter.metadata
    return (envoy_filter.spec.priority, meta.namespace != root, meta.age_order[0], f"{meta.name}.{meta.namespace}")


def _patches(
    envoy_filter: EnvoyFilter, kind: Kind, node: Mapping[str, Any]
) -> Iterator[tuple[int, EnvoyConfigObjectPatch]]:
    """The patches that this kind of proxy, of this version and metadata, is meant by. Extensions have no context."""
    for position, patch in enumerate(envoy_filter.spec.config_patches):
        part = _PARTS.get(patch.apply_to)
        if part is None or patch.patch is None:
            continue
        match = patch.match
        if match is not None:
            if part != "extensions" and match.context not in _CONTEXTS[kind]:
                continue
            if match.proxy is not None and not _is_meant(match.proxy, node):
                continue
        yield position, patch


def _is_meant(match: ProxyMatch, node: Mapping[str, Any]) -> bool:
    if match.proxy_version and not _matches_version(match.proxy_version, node.get("ISTIO_VERSION")):
        return False
    return all(isinstance(node.get(name), str) and node[name] == value for name, value in match.metadata.items())


def _matches_version(pattern: str, version: Any) -> bool:
    """Whether the pattern occurs in the node's version; one that is too long or no pattern matches nothing."""
    if not isinstance(version, str) or not version.isascii() or not version or len(pattern) > MAX_VERSION_PATTERN:
        return False
    compiled = version_pattern(pattern)
    return compiled is not None and compiled.search(version) is not None


def version_pattern(pattern: str) -> Any | None:
    """The compiled RE2 pattern, or None where it is none."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeError):
        return None
