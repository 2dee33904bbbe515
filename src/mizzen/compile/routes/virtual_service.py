"""The routes of one VirtualService for one client, port and gateway, encoded.

In: a VirtualService by key. Out: `EncodedRoute` values in order, up to the first that takes every request.
A route whose regular expression Envoy would refuse is left out, with a remark; the others stay.
Golden cases: networking/vs-*, gateway/*.
"""

from typing import Any

import msgspec

from mizzen import protos
from mizzen.api.meta import Key
from mizzen.api.networking.destination import Percent
from mizzen.api.networking.virtual_service import HTTPMatchRequest, HTTPRoute, VirtualService
from mizzen.api.problems import Problem
from mizzen.compile.routes import actions, headers, matches, refusals
from mizzen.compile.routes.destinations import Place, RouteClient, Target, resolve
from mizzen.compile.routes.route_filters import CORS, FAULT, build_cors, build_fault
from mizzen.incremental import Engine, query
from mizzen.model import mesh, names, objects
from mizzen.model.patterns import is_expression
from mizzen.model.proxy import Labels
from mizzen.model.virtual_services import VirtualServiceRef, qualify_gateway, virtual_service, virtual_service_ref

_route_v3 = protos.package("envoy.config.route.v3")


class EncodedRoute(msgspec.Struct, frozen=True):
    """A route as bytes, and whether it takes every request."""

    data: bytes
    is_catch_all: bool = False


@query
def source_label_names(db: Engine) -> frozenset[str]:
    """The labels by which any VirtualService tells sources apart."""
    found: set[str] = set()
    for key in objects.of_kind(db, "VirtualService"):
        virtual: VirtualService = db.input(key)
        spec = virtual.spec
        found.update(label for rule in spec.http for match in rule.match for label in match.source_labels)
        found.update(label for tls in spec.tls for match in tls.match for label in match.source_labels)
        found.update(label for tcp in spec.tcp for match in tcp.match for label in match.source_labels)
    return frozenset(found)


def source_labels(db: Engine, labels: Labels) -> Labels:
    """The labels of a client that make a difference to VirtualServices."""
    named = source_label_names(db)
    return tuple(pair for pair in labels if pair[0] in named) if named else ()


@query
def routes(db: Engine, client: RouteClient, key: Key, place: Place) -> tuple[EncodedRoute, ...]:
    """The routes of the VirtualService that can apply to this client here."""
    virtual, ref = virtual_service(db, key), virtual_service_ref(db, key)
    if virtual is None or ref is None:
        return ()
    found: list[EncodedRoute] = []
    with_delegates = virtual is not db.input(key)
    for nth, rule in enumerate(virtual.spec.http):
        # What a delegate wrote has its place in the delegate.
        path = "spec.http" if with_delegates else f"spec.http[{nth}]"
        if not rule.match:
            route = _build(db, client, ref, rule, None, place, path)
            if route is not None:
                found.append(route)
            break
        stop = False
        for position, match in enumerate(rule.match):
            if not _applies(match, key.namespace, client, place):
                continue
            where = path if with_delegates else f"{path}.match[{position}]"
            route = _build(db, client, ref, rule, match, place, where)
            if route is not None:
                found.append(route)
                if route.is_catch_all:
                    stop = True
                    break
        if stop:
            break
    return tuple(found)


def _applies(match: HTTPMatchRequest, namespace: str, client: RouteClient, place: Place) -> bool:
    """Whether what is known of the client before any request fits the match, written in `namespace`."""
    if match.port and match.port != place.port:
        return False
    if match.gateways:
        return any(qualify_gateway(g, namespace) == place.gateway for g in match.gateways)
    if match.source_namespace and match.source_namespace != client.namespace:
        return False
    return set(match.source_labels.items()) <= set(client.source_labels)


class _Unusable(Exception):
    """A route that cannot be built; its text says why."""


def _build(
    db: Engine,
    client: RouteClient,
    ref: VirtualServiceRef,
    rule: HTTPRoute,
    match: HTTPMatchRequest | None,
    place: Place,
    path: str,
) -> EncodedRoute | None:
    """The route, or None and a remark about what stands at `path`."""
    matched = matches.build_match(match, client.dialect, gateway_semantics=ref.splits_paths)
    try:
        built = _route(db, client, ref, rule, match, place, matched)
    except _Unusable as reason:
        _remark(db, ref, path, f"left out, for {reason}")
        return None
    route, refused = refusals.without_violations(built, client.dialect)
    if refused is not None:
        effect = "left out" if route is None else "answered with 503"
        _remark(db, ref, path, f"{effect}, for Envoy would refuse the route: {refused}")
    return EncodedRoute(protos.encode(route), matches.is_catch_all(matched)) if route is not None else None


def _route(
    db: Engine,
    client: RouteClient,
    ref: VirtualServiceRef,
    rule: HTTPRoute,
    match: HTTPMatchRequest | None,
    place: Place,
    matched: dict[str, Any],
) -> Any:
    """The message; raises _Unusable."""
    for regex in matches.regexes(matched):
        if not is_expression(regex):  # Envoy would refuse the whole configuration for it.
            raise _Unusable(f"{regex!r} is not a regular expression that Envoy takes")
    fields: dict[str, Any] = {
        "match": matched,
        "metadata": {"filter_metadata": {"istio": protos.struct({"config": ref.config_path})}},
    }
    name = rule.name if match is None or not match.name else f"{rule.name}.{match.name}"
    if name:
        fields["name"] = name
    if match is not None and match.stat_prefix:
        fields["stat_prefix"] = match.stat_prefix
    headers.apply_headers(fields, rule.headers)
    authority = _act(db, client, ref, rule, place, fields)
    operation_host = authority or f"{ref.key.name}:{place.port}"
    fields["decorator"] = {"operation": operation_host + matches.operation_path(matched)}
    _apply_filters(fields, rule)
    _apply_http3(fields, place)
    return _route_v3.Route(**fields)


def _act(
    db: Engine, client: RouteClient, ref: VirtualServiceRef, rule: HTTPRoute, place: Place, fields: dict[str, Any]
) -> str:
    """Say what is done with the requests; the host and port of the one cluster that they go to, if there is one."""
    if rule.redirect is not None:
        redirect = actions.build_redirect(rule.redirect, place.port, is_tls=place.is_tls)
        if redirect is None:
            raise _Unusable(f"{rule.redirect.redirect_code} is not a status of a redirect")
        fields["redirect"] = redirect
        return ""
    if rule.direct_response is not None:
        fields["direct_response"] = actions.build_direct_response(rule.direct_response)
        return ""
    targets = [
        (each, resolve(db, client, each.destination, ref.namespace, place))
        for each in rule.route
        if each.destination is not None
    ]
    if not targets:
        raise _Unusable("it has no destination")
    mirrors = _mirrors(db, client, ref, rule, place)
    config = mesh.mesh_config(db)
    fields["route"] = actions.build_forward(
        client, rule, targets, mirrors, config, fields, gateway_semantics=ref.is_gateway_api
    )
    return _cluster_authority(fields["route"]["cluster"]) if "cluster" in fields["route"] else ""


def _remark(db: Engine, ref: VirtualServiceRef, path: str, message: str) -> None:
    """Tell of a route that is not in force as written; generated ones are told of in the statuses of their sources."""
    if not (ref.is_gateway_api or ref.is_ingress):
        db.remark(Problem(key=ref.key, path=path, code="unusable-route", message=message))


def _cluster_authority(cluster: str) -> str:
    key = names.parse_subset_key(cluster)
    return f"{key.host}:{key.port}" if key is not None else ""


def _apply_filters(fields: dict[str, Any], rule: HTTPRoute) -> None:
    configs: dict[str, Any] = {}
    if rule.fault is not None:
        configs[FAULT] = build_fault(rule.fault)
    if rule.cors_policy is not None:
        configs[CORS] = build_cors(rule.cors_policy)
    if configs:
        fields.setdefault("typed_per_filter_config", {}).update(configs)


def _apply_http3(fields: dict[str, Any], place: Place) -> None:
    if place.http3:
        header = {"header": {"key": "alt-svc", "value": f'h3=":{place.port}"; ma=86400'}}
        fields.setdefault("response_headers_to_add", []).append(header)


def _mirrors(
    db: Engine, client: RouteClient, ref: VirtualServiceRef, rule: HTTPRoute, place: Place
) -> list[tuple[Target, Percent | None, int]]:
    found: list[tuple[Target, Percent | None, int]] = []
    if rule.mirror is not None:
        whole = rule.mirror_percent if rule.mirror_percent is not None else 100
        found.append((resolve(db, client, rule.mirror, ref.namespace, place), rule.mirror_percentage, whole))
    for mirror in rule.mirrors:
        if mirror.destination is not None:
            found.append((resolve(db, client, mirror.destination, ref.namespace, place), mirror.percentage, 100))
    return found
