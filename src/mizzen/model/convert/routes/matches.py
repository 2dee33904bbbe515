"""Matches of rules as Istio's: paths, headers, query parameters, methods, and the order in which rules are tried.

In: matches of HTTPRoute and GRPCRoute. Out: HTTPMatchRequest, and the key that sorts rules as the Gateway API wants.
Golden cases: gateway-api/http-matches, gateway-api/grpc-routes, gateway-api/route-precedence.
"""

from mizzen.api.gateway_api.grpc_route import GRPCHeaderMatch, GRPCMethodMatch, GRPCRouteMatch
from mizzen.api.gateway_api.http_route import (
    HTTPHeaderMatch,
    HTTPPathMatch,
    HTTPQueryParamMatch,
    HTTPRouteMatch,
)
from mizzen.api.networking.virtual_service import HTTPMatchRequest, HTTPRoute, StringMatch


def http_match(match: HTTPRouteMatch) -> HTTPMatchRequest:
    """A match of an HTTPRoute."""
    return HTTPMatchRequest(
        uri=_path(match.path),
        headers={h.name: _value(h) for h in reversed(match.headers)},
        query_params={p.name: _value(p) for p in reversed(match.query_params)},
        method=StringMatch(exact=match.method) if match.method is not None else None,
    )


def grpc_match(match: GRPCRouteMatch) -> HTTPMatchRequest:
    """A match of a GRPCRoute: a call of method M of service S is a request for the path /S/M."""
    return HTTPMatchRequest(
        uri=_call(match.method) if match.method is not None else None,
        headers={h.name: _value(h) for h in reversed(match.headers)},
    )


def _value(condition: HTTPHeaderMatch | HTTPQueryParamMatch | GRPCHeaderMatch) -> StringMatch:
    if condition.type == "RegularExpression":
        return StringMatch(regex=condition.value)
    return StringMatch(exact=condition.value)


def _path(path: HTTPPathMatch) -> StringMatch:
    match path.type:
        case "Exact":
            return StringMatch(exact=path.value)
        case "RegularExpression":
            return StringMatch(regex=path.value)
    return StringMatch(prefix=_without_slash(path.value))


def _without_slash(prefix: str) -> str:
    return prefix if prefix == "/" else prefix.removesuffix("/")


def _call(call: GRPCMethodMatch) -> StringMatch | None:
    if not call.method and not call.service:
        return None
    if not call.service:
        return StringMatch(regex=f"/[^/]+/{call.method}")
    if call.type == "RegularExpression":
        return StringMatch(regex=f"/{call.service}/{call.method or '.+'}")
    if not call.method:
        return StringMatch(prefix=f"/{call.service}/")
    return StringMatch(exact=f"/{call.service}/{call.method}")


Precedence = tuple[bool, int, int, bool, int, int]


def precedence(rule: HTTPRoute) -> Precedence:
    """Sorts rules of one match each: the more specific first. Equal ones stay in the order they have.

    Exact paths go before prefixes, prefixes before regular expressions, longer ones before shorter, and matches
    without a path after all of these; then count a method, headers and query parameters. No match at all is last.
    """
    if not rule.match:
        return (True, 0, 0, False, 0, 0)
    match = rule.match[0]
    rank, length = _specificity(match.uri)
    return (False, -rank, -length, match.method is None, -len(match.headers), -len(match.query_params))


def _specificity(uri: StringMatch | None) -> tuple[int, int]:
    if uri is None:
        return -1, 0
    if uri.exact is not None:
        return 3, len(uri.exact)
    if uri.prefix is not None:
        return 2, len(uri.prefix)
    return 1, len(uri.regex or "")
