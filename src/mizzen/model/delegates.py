"""Delegation: rules of a VirtualService whose routes another VirtualService holds, merged into one list.

In: a root VirtualService and the delegates that it names. Out: its HTTP rules with each delegating rule replaced by
the delegate's, their matches merged. A delegate that is missing, not visible to the root, or in conflict with the
root's match takes only that rule away. Golden cases: networking/vs-delegates, gateway/delegates.
"""

from collections.abc import Iterable, Mapping

import msgspec

from mizzen.api.meta import Key
from mizzen.api.networking.destination import Destination
from mizzen.api.networking.virtual_service import HTTPMatchRequest, HTTPRoute, StringMatch, VirtualService
from mizzen.incremental import Engine
from mizzen.model import mesh, names
from mizzen.model.services import audience

_STRING_FIELDS = ("uri", "scheme", "method", "authority")
_MAP_FIELDS = ("headers", "without_headers", "query_params")
_INHERITED = (
    "rewrite",
    "direct_response",
    "timeout",
    "retries",
    "fault",
    "mirror",
    "mirror_percent",
    "mirror_percentage",
    "cors_policy",
    "headers",
)


def merged_http_routes(db: Engine, root: VirtualService) -> tuple[HTTPRoute, ...]:
    """The root's HTTP rules with the rules of its delegates in their place."""
    merged: list[HTTPRoute] = []
    for rule in root.spec.http:
        if rule.delegate is None:
            merged.append(rule)
            continue
        delegate = _delegate(db, root, rule)
        if delegate is not None:
            domain = mesh.domain(db)
            own_rules = (_qualify(own, delegate.metadata.namespace, domain) for own in delegate.spec.http)
            merged.extend(m for own in own_rules if (m := _merge_rule(rule, own)) is not None)
    return tuple(merged)


def _delegate(db: Engine, root: VirtualService, rule: HTTPRoute) -> VirtualService | None:
    assert rule.delegate is not None
    namespace = rule.delegate.namespace or root.metadata.namespace
    found: VirtualService | None = db.input(Key("VirtualService", namespace, rule.delegate.name))
    if found is None or found.spec.hosts:
        return None
    default = tuple(mesh.mesh_config(db).default_virtual_service_export_to)
    seen_by = audience(tuple(found.spec.export_to), default, namespace)
    return found if seen_by.includes(root.metadata.namespace) else None


def _qualify(rule: HTTPRoute, namespace: str, domain: str) -> HTTPRoute:
    """The rule with short names completed in its own namespace: in the root's they would mean other hosts."""

    def whole(destination: Destination | None) -> Destination | None:
        if destination is None:
            return None
        return msgspec.structs.replace(destination, host=names.resolve_host(destination.host, namespace, domain))

    return msgspec.structs.replace(
        rule,
        route=tuple(msgspec.structs.replace(r, destination=whole(r.destination)) for r in rule.route),
        mirror=whole(rule.mirror),
        mirrors=tuple(msgspec.structs.replace(m, destination=whole(m.destination)) for m in rule.mirrors),
    )


def _merge_rule(root: HTTPRoute, delegate: HTTPRoute) -> HTTPRoute | None:
    """The delegate's rule under the root's; None where one of its matches contradicts all of the root's."""
    if delegate.delegate is not None:
        return None
    if not root.match:
        match: tuple[HTTPMatchRequest, ...] = delegate.match
    elif not delegate.match:
        match = root.match
    else:
        merged: list[HTTPMatchRequest] = []
        for inner in delegate.match:
            joined = [_merge_match(outer, inner) for outer in root.match if _compatible(outer, inner)]
            if not joined:
                return None
            merged.extend(joined)
        match = tuple(merged)
    inherited = {
        name: getattr(delegate, name) if getattr(delegate, name) is not None else getattr(root, name)
        for name in _INHERITED
    }
    return msgspec.structs.replace(
        delegate,
        name=_join(root.name, delegate.name),
        match=match,
        delegate=None,
        mirrors=delegate.mirrors or root.mirrors,
        **inherited,
    )


def _join(root: str, delegate: str) -> str:
    return "-".join(n for n in (root, delegate) if n)


def _merge_match(root: HTTPMatchRequest, delegate: HTTPMatchRequest) -> HTTPMatchRequest:
    changes: dict[str, object] = {}
    for name in _STRING_FIELDS:
        changes[name] = getattr(delegate, name) if getattr(delegate, name) is not None else getattr(root, name)
    for name in (*_MAP_FIELDS, "source_labels"):
        changes[name] = {**getattr(root, name), **getattr(delegate, name)}
    return msgspec.structs.replace(
        delegate,
        name=_join(root.name, delegate.name),
        port=delegate.port or root.port,
        gateways=delegate.gateways or root.gateways,
        ignore_uri_case=delegate.ignore_uri_case or root.ignore_uri_case,
        source_namespace=delegate.source_namespace or root.source_namespace,
        stat_prefix=delegate.stat_prefix or root.stat_prefix,
        **changes,
    )


def _compatible(root: HTTPMatchRequest, delegate: HTTPMatchRequest) -> bool:
    """Whether a request may meet both: the delegate must only narrow what the root takes."""
    if root.ignore_uri_case != delegate.ignore_uri_case:
        return False
    if root.port and delegate.port and root.port != delegate.port:
        return False
    if root.source_namespace and root.source_namespace != delegate.source_namespace:
        return False
    if any(delegate.source_labels.get(k, v) != v for k, v in root.source_labels.items()):
        return False
    if root.gateways and delegate.gateways and not set(delegate.gateways) <= set(root.gateways):
        return False
    return all(_narrows(a, b) for a, b in _pairs(root, delegate))


def _pairs(root: HTTPMatchRequest, delegate: HTTPMatchRequest) -> Iterable[tuple[StringMatch, StringMatch]]:
    for name in _STRING_FIELDS:
        a, b = getattr(root, name), getattr(delegate, name)
        if a is not None and b is not None:
            yield a, b
    for name in _MAP_FIELDS:
        outer: Mapping[str, StringMatch] = getattr(root, name)
        inner: Mapping[str, StringMatch] = getattr(delegate, name)
        yield from ((outer[k], inner[k]) for k in sorted(outer.keys() & inner.keys()))


def _narrows(root: StringMatch, delegate: StringMatch) -> bool:
    if root.exact is not None:
        return root.exact == delegate.exact
    if root.prefix is not None:
        inner = delegate.exact if delegate.exact is not None else delegate.prefix
        return inner is not None and inner.startswith(root.prefix)
    return False
