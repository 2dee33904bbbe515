"""HTTP routes: their parts, and which parts exclude each other.

A route of a VirtualService with hosts that delegates is a *root* route: what it delegates to does the routing, so it
may neither forward nor redirect, and nothing else about conflicts is looked at.
"""

from mizzen.api.networking.virtual_service import Headers, HTTPRewrite, HTTPRoute
from mizzen.api.validate.faults import Faults, at, error, quote
from mizzen.api.validate.values.headers import check_changes
from mizzen.api.validate.values.numbers import duration_fault
from mizzen.api.validate.virtual_service.actions import (
    check_cors,
    check_direct_response,
    check_mirrors,
    check_redirect,
    check_retries,
    check_rewrite,
)
from mizzen.api.validate.virtual_service.destinations import check_weights
from mizzen.api.validate.virtual_service.injection import check_injection
from mizzen.api.validate.virtual_service.matches import check_http_match


def check_http_route(route: HTTPRoute, path: str, *, in_delegate: bool) -> Faults:
    """One rule; `in_delegate` is one of a VirtualService that others delegate to."""
    yield from _check_conflicts(route, path, in_delegate=in_delegate)
    for index, match in enumerate(route.match):
        yield from check_http_match(match, f"{path}.match[{index}]")
    yield from _check_headers(route, path)
    yield from _check_answers(route, path)
    yield from check_mirrors(route, path)
    yield from at(f"{path}.timeout", duration_fault(route.timeout))
    if route.retries is not None:
        yield from check_retries(route.retries, f"{path}.retries")
    if route.fault is not None:
        yield from check_injection(route.fault, f"{path}.fault")
    if route.cors_policy is not None:
        yield from check_cors(route.cors_policy, f"{path}.corsPolicy")
    yield from check_weights(route.route, f"{path}.route")


def _check_answers(route: HTTPRoute, path: str) -> Faults:
    if route.redirect is not None:
        yield from check_redirect(route.redirect, route.match, f"{path}.redirect")
    if route.direct_response is not None:
        yield from check_direct_response(route.direct_response, f"{path}.directResponse")
    if route.rewrite is not None:
        yield from check_rewrite(route.rewrite, f"{path}.rewrite")


def _check_conflicts(route: HTTPRoute, path: str, *, in_delegate: bool) -> Faults:
    if route.delegate is not None:
        if in_delegate:
            yield error(f"{path}.delegate", "delegate HTTP route cannot contain delegate")
        else:
            for word, value in (("redirect", route.redirect), ("route", route.route)):
                if value:
                    yield error(f"{path}.{word}", f"root HTTP route {route.name} must not specify {word}")
            return
    if route.redirect is not None:
        yield from _check_exclusive(route, "redirect", path)
        if route.direct_response is not None:
            yield error(path, "HTTP route rule cannot contain both direct_response and redirect")
    elif route.direct_response is not None:
        yield from _check_exclusive(route, "direct_response", path)
    elif not route.route:
        yield error(path, "HTTP route, redirect or direct_response is required")


def _check_exclusive(route: HTTPRoute, answer: str, path: str) -> Faults:
    """What may not stand beside an answer that needs no destination."""
    if route.route:
        yield error(path, f"HTTP route cannot contain both route and {answer}")
    if route.fault is not None:
        yield error(path, f"HTTP route cannot contain both fault and {answer}")
    if route.rewrite is not None:
        yield error(path, f"HTTP route rule cannot contain both rewrite and {answer}")


def _check_headers(route: HTTPRoute, path: str) -> Faults:
    yield from check_changes(route.headers, f"{path}.headers")
    yield from at(f"{path}.headers", _authority_fault(route.rewrite, route.headers))
    for index, destination in enumerate(route.route):
        here = f"{path}.route[{index}].headers"
        yield from check_changes(destination.headers, here)
        yield from at(here, _authority_fault(None, destination.headers))


def _authority_fault(rewrite: HTTPRewrite | None, headers: Headers | None) -> str | None:
    """The authority may be written once only, by a rewrite or by a header."""
    have = rewrite.authority if rewrite is not None else ""
    request = headers.request if headers is not None else None
    if request is None:
        return None
    for name, value in (*request.set.items(), *request.add.items()):
        if name.lower() not in ("host", ":authority"):
            continue
        if have:
            attempt = f"attempting to set {quote(value)}"
            return f"authority header cannot be set multiple times: have {quote(have)}, {attempt}"
        have = value
    return None
