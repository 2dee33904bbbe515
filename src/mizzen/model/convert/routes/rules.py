"""Rules of one HTTPRoute or GRPCRoute as Istio's HTTP rules, each with at most one match.

In: a route's rules; of other objects only what its backends and grants say. Out: `Conversion`: the rules in order of
precedence, and the fault to report. A soft fault leaves its rule in place; a hard one takes all rules of the route.
Golden cases: gateway-api/http-filters, gateway-api/grpc-routes, gateway-api/invalid-references.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from mizzen.api.gateway_api.filters import HTTPRouteFilter, RequestMirrorFilter
from mizzen.api.gateway_api.grpc_route import GRPCBackendRef, GRPCRoute, GRPCRouteRule
from mizzen.api.gateway_api.http_route import HTTPBackendRef, HTTPRoute, HTTPRouteRetry, HTTPRouteRule
from mizzen.api.meta import Key
from mizzen.api.networking.virtual_service import (
    Headers,
    HTTPDirectResponse,
    HTTPMatchRequest,
    HTTPMirrorPolicy,
    HTTPRetry,
    HTTPRouteDestination,
)
from mizzen.api.networking.virtual_service import HTTPRoute as Rule
from mizzen.incremental import Engine, query
from mizzen.model.convert.faults import Fault, join
from mizzen.model.convert.routes import backends, filters, matches
from mizzen.model.convert.routes.backends import HardFault, Route, resolve_backend
from mizzen.model.convert.routes.filters import Filter

_MODIFIERS = ("RequestHeaderModifier", "ResponseHeaderModifier")
_RETRY_ON = ("connect-failure", "refused-stream", "unavailable", "cancelled")
_DEFAULT_ATTEMPTS = 2
_NO_BACKEND = HTTPDirectResponse(status=500)


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """What a route's rules became."""

    rules: tuple[Rule, ...] = ()
    fault: Fault | None = None


@query
def convert_rules(db: Engine, key: Key, is_mesh: bool) -> Conversion:
    """The rules of a route, for gateways or for parents of the mesh."""
    found: HTTPRoute | GRPCRoute | None = db.input(key)
    route = Route(key, is_mesh)
    if found is None:
        return Conversion()
    rules: list[Rule] = []
    fault: Fault | None = None
    try:
        for rule, soft in _rules(db, found, route):
            rules.append(rule)
            fault = soft or fault
    except HardFault as hard:
        return Conversion(fault=hard.fault)
    return Conversion(rules=tuple(sorted(rules, key=matches.precedence)), fault=fault)


@query
def has_rules(db: Engine, key: Key, is_mesh: bool) -> bool:
    """Whether anything is left of a route's rules."""
    return bool(convert_rules(db, key, is_mesh).rules)


def _rules(db: Engine, found: HTTPRoute | GRPCRoute, route: Route) -> Iterator[tuple[Rule, Fault | None]]:
    """One rule for each match, with the soft fault of its backends."""
    listed: Sequence[HTTPRouteRule | GRPCRouteRule] = found.spec.rules
    for position, rule in enumerate(listed):
        name = rule.name or f"{route.key.namespace}.{route.key.name}.{position}"
        common, fault = _http(db, rule, route) if isinstance(rule, HTTPRouteRule) else _grpc(db, rule, route)
        for match in _matches(rule):
            yield msgspec.structs.replace(common, name=name, match=() if match is None else (match,)), fault


def _matches(rule: HTTPRouteRule | GRPCRouteRule) -> Sequence[HTTPMatchRequest | None]:
    if not rule.matches:
        return (None,)
    if isinstance(rule, HTTPRouteRule):
        return [matches.http_match(match) for match in rule.matches]
    return [matches.grpc_match(match) for match in rule.matches]


# -- HTTP -------------------------------------------------------------------------------------------------------------


def _http(db: Engine, rule: HTTPRouteRule, route: Route) -> tuple[Rule, Fault | None]:
    """A rule of an HTTPRoute without its matches."""
    filtered, mirror_fault = _http_filters(db, rule.filters, route)
    retries = _retries(rule.retry) if rule.retry is not None else None
    timeout = rule.timeouts.request if rule.timeouts is not None else None
    each = rule.timeouts.backend_request if rule.timeouts is not None else None
    if each and retries is not None:
        retries = msgspec.structs.replace(retries, per_try_timeout=each)
    elif each:
        timeout = each
    filtered = msgspec.structs.replace(filtered, retries=retries, timeout=timeout)
    forwarded, fault = _forward(db, filtered, rule.backend_refs, route)
    return forwarded, join(fault, mirror_fault)


def _http_filters(db: Engine, listed: Iterable[HTTPRouteFilter], route: Route) -> tuple[Rule, Fault | None]:
    """What the filters of a rule say, and the soft fault of its mirrors: a refused mirror is left out."""
    rule = Rule(headers=filters.headers(listed))
    mirrors: list[HTTPMirrorPolicy] = []
    fault: Fault | None = None
    for one in listed:
        if one.type == "RequestRedirect" and one.request_redirect is not None:
            rule = msgspec.structs.replace(rule, redirect=filters.redirect(one.request_redirect))
        elif one.type == "URLRewrite" and one.url_rewrite is not None:
            rule = msgspec.structs.replace(rule, rewrite=filters.rewrite(one.url_rewrite))
        elif one.type == "CORS" and one.cors is not None:
            rule = msgspec.structs.replace(rule, cors_policy=filters.cors(one.cors))
        elif one.type == "RequestMirror" and one.request_mirror is not None:
            mirrored, refused = _mirror(db, one.request_mirror, route)
            mirrors += [] if mirrored is None else [mirrored]
            fault = refused or fault
        elif one.type not in _MODIFIERS:
            raise filters.unsupported(one)
    return msgspec.structs.replace(rule, mirrors=tuple(mirrors)), fault


def _mirror(db: Engine, wanted: RequestMirrorFilter, route: Route) -> tuple[HTTPMirrorPolicy | None, Fault | None]:
    if wanted.backend_ref is None:
        return None, None
    try:
        resolved = resolve_backend(db, wanted.backend_ref, route)
    except HardFault as hard:
        return None, hard.fault
    if resolved.fault is not None:
        return None, resolved.fault
    return filters.mirror(wanted, resolved.destination), None


def _retries(wanted: HTTPRouteRetry) -> HTTPRetry:
    """Retries of a rule; a pause of zero is none, since Envoy would refuse the route for it."""
    attempts = wanted.attempts if wanted.attempts is not None else _DEFAULT_ATTEMPTS
    conditions = ",".join((*_RETRY_ON, *(str(code) for code in wanted.codes)))
    return HTTPRetry(attempts=attempts, retry_on=conditions if attempts else "", backoff=wanted.backoff or None)


# -- gRPC -------------------------------------------------------------------------------------------------------------


def _grpc(db: Engine, rule: GRPCRouteRule, route: Route) -> tuple[Rule, Fault | None]:
    """A rule of a GRPCRoute without its matches; here a mirror that cannot be converted takes the route with it."""
    mirrors: list[HTTPMirrorPolicy] = []
    for one in rule.filters:
        if one.type == "RequestMirror" and one.request_mirror is not None:
            mirrored, refused = _mirror(db, one.request_mirror, route)
            if refused is not None:
                raise HardFault(refused)
            mirrors += [] if mirrored is None else [mirrored]
        elif one.type not in _MODIFIERS:
            raise filters.unsupported(one)
    filtered = Rule(headers=filters.headers(rule.filters), mirrors=tuple(mirrors))
    return _forward(db, filtered, rule.backend_refs, route)


# -- both -------------------------------------------------------------------------------------------------------------


def _forward(
    db: Engine, rule: Rule, references: Sequence[HTTPBackendRef | GRPCBackendRef], route: Route
) -> tuple[Rule, Fault | None]:
    """The rule with its destinations; one that has no share to give answers 500 unless it redirects."""
    if not sum(reference.weight for reference in references) and rule.redirect is None:
        return msgspec.structs.replace(rule, direct_response=_NO_BACKEND), None
    destinations: list[HTTPRouteDestination] = []
    fault: Fault | None = None
    for reference, weight in backends.effective(references):
        resolved = resolve_backend(db, reference, route)
        fault = resolved.fault or fault
        destinations.append(
            HTTPRouteDestination(
                destination=resolved.destination, weight=weight, headers=_backend_headers(reference.filters)
            )
        )
    return msgspec.structs.replace(rule, route=tuple(destinations)), fault


def _backend_headers(listed: Sequence[Filter]) -> Headers | None:
    refused: Filter | None = next((one for one in listed if one.type not in _MODIFIERS), None)
    if refused is not None:
        raise filters.unsupported(refused)
    return filters.headers(listed)
