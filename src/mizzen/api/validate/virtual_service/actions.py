"""Actions: what an HTTP route does to requests beside forwarding them."""

from collections.abc import Sequence
from http import HTTPStatus

from mizzen.api.message import names
from mizzen.api.networking.virtual_service import (
    CorsPolicy,
    HTTPDirectResponse,
    HTTPMatchRequest,
    HTTPRedirect,
    HTTPRetry,
    HTTPRewrite,
    HTTPRoute,
    RegexRewrite,
)
from mizzen.api.validate.faults import Faults, at, error, quote, warning
from mizzen.api.validate.values.addresses import port_fault
from mizzen.api.validate.values.headers import cors_name_fault
from mizzen.api.validate.values.numbers import SECOND, duration_fault
from mizzen.api.validate.values.texts import check_regex, regex_fault
from mizzen.api.validate.virtual_service.destinations import check_destination

_RETRY_POLICIES = names(
    "5xx gateway-error reset reset-before-request connect-failure retriable-4xx refused-stream retriable-status-codes "
    "retriable-headers envoy-ratelimited http3-post-connect-failure cancelled deadline-exceeded internal "
    "resource-exhausted unavailable"
)
_STATUSES = frozenset(str(status.value) for status in HTTPStatus)
_METHODS = names("GET HEAD POST PUT PATCH DELETE CONNECT OPTIONS TRACE *")
_LARGE_BODY, _LARGEST_BODY = 100 * 1024, 1024 * 1024
_LARGE = "large direct_responses may impact control plane performance"


def status_fault(status: int) -> str | None:
    """What is wrong with the status of an answer that the proxy gives; as in the reference 600 passes."""
    return None if 200 <= status <= 600 else f"HTTP status {status} is not in range 200-599"


def check_redirect(redirect: HTTPRedirect, matches: Sequence[HTTPMatchRequest], path: str) -> Faults:
    """A redirect of the requests that match."""
    if redirect.uri and redirect.prefix_rewrite:
        yield error(path, "redirect may only specify one of uri or prefix_rewrite")
    if redirect.prefix_rewrite and any(match.uri is not None and match.uri.prefix is None for match in matches):
        message = "redirect prefix_rewrite requires all URI matches to use prefix match type"
        yield error(f"{path}.prefixRewrite", message)
    has_port = redirect.port is not None or redirect.derive_port is not None
    if not (redirect.uri or redirect.prefix_rewrite or redirect.authority or redirect.scheme or has_port):
        yield error(path, "redirect must specify URI, authority, scheme, or port")
    if redirect.redirect_code and not 300 <= redirect.redirect_code <= 399:
        message = f"{redirect.redirect_code} is not a valid redirect code, must be 3xx"
        yield error(f"{path}.redirectCode", message)
    if redirect.scheme not in ("", "http", "https"):
        yield error(f"{path}.scheme", 'invalid redirect scheme, must be "http" or "https"')
    if redirect.port:
        yield from at(f"{path}.port", port_fault(redirect.port))


def check_direct_response(response: HTTPDirectResponse, path: str) -> Faults:
    """An answer that the proxy gives itself."""
    body = response.body
    size = 0 if body is None else len(body.bytes or b"") + len((body.string or "").encode(errors="replace"))
    if size > _LARGEST_BODY:
        yield error(f"{path}.body", f"{_LARGE}, must be less than 1MB")
    elif size > _LARGE_BODY:
        yield warning(f"{path}.body", _LARGE)
    yield from at(f"{path}.status", status_fault(response.status))


def check_rewrite(rewrite: HTTPRewrite, path: str) -> Faults:
    """A rewrite of the path, the authority or both."""
    if rewrite.uri_regex_rewrite is not None:
        if rewrite.uri:
            yield error(path, "rewrite may only contain one of URI or UriRegexRewrite")
        fault = _regex_rewrite_fault(rewrite.uri_regex_rewrite)
        yield from at(f"{path}.uriRegexRewrite", fault and f"UriRegexRewrite has errors\n{fault}")
    elif not rewrite.uri and not rewrite.authority:
        message = (
            "rewrite must specify at least one of URI, UriRegexRewrite, or authority. "
            "Only one of URI or UriRegexRewrite may be specified"
        )
        yield error(path, message)


def _regex_rewrite_fault(rewrite: RegexRewrite) -> str | None:
    if not rewrite.match or not rewrite.rewrite:
        return "UriRegexRewrite requires both Rewrite and Match fields to be specified"
    return regex_fault(rewrite.match, "HTTPRewrite.UriRegexRewrite.Match")


def check_retries(retries: HTTPRetry, path: str) -> Faults:
    """When and how often to try again; items of `retryOn` are not trimmed, as in the reference."""
    if retries.attempts < 0:
        yield error(f"{path}.attempts", "attempts cannot be negative")
    configured = retries.per_try_timeout is not None or retries.retry_on or retries.retry_remote_localities is not None
    if retries.attempts == 0 and configured:
        yield error(path, "http retry policy configured when attempts are set to 0 (disabled)")
    yield from at(f"{path}.perTryTimeout", duration_fault(retries.per_try_timeout))
    for policy in retries.retry_on.split(",") if retries.retry_on else ():
        if policy not in _RETRY_POLICIES and policy not in _STATUSES:
            yield error(f"{path}.retryOn", f"{quote(policy)} is not a valid retryOn policy")


def check_mirrors(route: HTTPRoute, path: str) -> Faults:
    """Where copies of requests go, and how many of them."""
    if route.mirror is not None:
        if route.mirrors:
            yield error(path, "HTTP route cannot contain both mirror and mirrors")
        yield from check_destination(route.mirror, f"{path}.mirror")
    if route.mirror_percent is not None:
        here = f"{path}.mirrorPercent"
        yield warning(here, 'using deprecated setting "mirrorPercent", use "mirrorPercentage" instead')
        if route.mirror_percent > 100:
            yield error(here, f"mirror_percent must have a max value of 100 (it has {route.mirror_percent})")
    if route.mirror_percentage is not None:
        share = route.mirror_percentage.value
        yield from at(f"{path}.mirrorPercentage", _share_fault("mirror_percentage", share))
    for index, mirror in enumerate(route.mirrors):
        here = f"{path}.mirrors[{index}]"
        yield from check_destination(mirror.destination, f"{here}.destination", "destination is required for mirrors")
        if mirror.percentage is not None:
            yield from at(f"{here}.percentage", _share_fault("mirror percentage", mirror.percentage.value))


def _share_fault(what: str, share: float) -> str | None:
    if 0 <= share <= 100:
        return None
    limit = "max value of 100" if share > 100 else "min value of 0"
    return f"{what} must have a {limit} (it has {share:f})"


def check_cors(policy: CorsPolicy, path: str) -> Faults:
    """Which origins may do what."""
    for index, origin in enumerate(policy.allow_origins):
        here = f"{path}.allowOrigins[{index}]"
        if not (origin.exact or origin.prefix or origin.regex):
            yield error(here, "'' is not a valid match type for CORS allow origins")
        else:
            yield from check_regex(origin, "corsPolicy.allowOrigins", here)
    for index, method in enumerate(policy.allow_methods):
        if method not in _METHODS:
            yield error(f"{path}.allowMethods[{index}]", f"{quote(method)} is not a supported HTTP method")
    for field, headers in (("allowHeaders", policy.allow_headers), ("exposeHeaders", policy.expose_headers)):
        for index, name in enumerate(headers):
            yield from at(f"{path}.{field}[{index}]", cors_name_fault(name))
    yield from at(f"{path}.maxAge", duration_fault(policy.max_age))
    if policy.max_age is not None and policy.max_age % SECOND:
        yield error(f"{path}.maxAge", "max_age duration is accurate only to seconds precision")
