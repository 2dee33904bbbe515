"""Routes that are never reached, and regular expressions that are wrong.

In: VirtualServices, HTTPRoutes, GRPCRoutes. Out: MZ0109 for matches that an earlier one covers and IST0131 does not
tell (exact paths and regular expressions behind a prefix), MZ0110 for patterns that do not compile as RE2 or that no
path is like.
"""

from collections.abc import Iterator

import re2

from mizzen.analysis import own_codes
from mizzen.analysis.findings import Finding, report
from mizzen.api.gateway_api.grpc_route import GRPCRoute
from mizzen.api.gateway_api.http_route import HTTPRoute
from mizzen.api.meta import Key
from mizzen.api.networking.virtual_service import HTTPMatchRequest, VirtualService
from mizzen.incremental import Engine, query

_REGEX = "RegularExpression"
_LITERAL = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


@query
def check_matches(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Matches of a VirtualService behind a prefix that takes all their requests."""
    found: VirtualService | None = db.input(key)
    if found is None:
        return ()
    earlier: list[tuple[HTTPMatchRequest, str]] = []
    findings = []
    for i, route in enumerate(found.spec.http):
        for j, match in enumerate(route.match):
            where = f"match {j} of rule {i}"
            by = next((name for other, name in earlier if _covers(other, match)), None)
            if by is not None:
                text = where[0].upper() + where[1:]
                findings.append(report(own_codes.UNREACHABLE_ROUTE, key, text, by, path=f"spec.http[{i}].match[{j}]"))
            earlier.append((match, where))
    return tuple(findings)


def _covers(one: HTTPMatchRequest, other: HTTPMatchRequest) -> bool:
    """Whether `one`, a bare prefix, takes every request of `other`, which is no prefix."""
    prefix = one.uri.prefix if one.uri is not None else None
    if prefix is None or other.uri is None or other.uri.prefix is not None:
        return False
    rest = (one.scheme, one.method, one.authority, one.headers, one.query_params, one.without_headers)
    if any(rest) or one.port not in (0, other.port):
        return False
    if one.source_labels or one.source_namespace or (one.gateways and set(one.gateways) != set(other.gateways)):
        return False
    if other.uri.exact is not None:
        path = other.uri.exact
        if one.ignore_uri_case:
            return path.lower().startswith(prefix.lower())
        return path.startswith(prefix) and not other.ignore_uri_case
    return prefix in ("", "/")


# -- regular expressions --------------------------------------------------------------------------------------------


@query
def check_virtual_service(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Patterns of paths that no path is like, since each begins with a slash and a pattern is for the whole of it."""
    found: VirtualService | None = db.input(key)
    patterns = (
        (match.uri.regex, f"spec.http[{i}].match[{j}].uri.regex")
        for i, route in enumerate(found.spec.http if found is not None else ())
        for j, match in enumerate(route.match)
        if match.uri is not None and match.uri.regex
    )
    return tuple(finding for pattern, path in patterns for finding in _check_path(key, pattern, path))


@query
def check_http_route(db: Engine, key: Key) -> tuple[Finding, ...]:
    """The patterns of an HTTPRoute, which no admission looks at."""
    found: HTTPRoute | None = db.input(key)
    return tuple(_check_http_route(key, found)) if found is not None else ()


def _check_http_route(key: Key, found: HTTPRoute) -> Iterator[Finding]:
    for i, rule in enumerate(found.spec.rules):
        for j, match in enumerate(rule.matches):
            path = f"spec.rules[{i}].matches[{j}]"
            if match.path is not None and match.path.type == _REGEX:
                yield from _check_pattern(key, match.path.value, f"{path}.path.value")
                yield from _check_path(key, match.path.value, f"{path}.path.value")
            for k, header in enumerate(match.headers):
                if header.type == _REGEX:
                    yield from _check_pattern(key, header.value, f"{path}.headers[{k}].value")
            for k, parameter in enumerate(match.query_params):
                if parameter.type == _REGEX:
                    yield from _check_pattern(key, parameter.value, f"{path}.queryParams[{k}].value")


@query
def check_grpc_route(db: Engine, key: Key) -> tuple[Finding, ...]:
    """The patterns of a GRPCRoute."""
    found: GRPCRoute | None = db.input(key)
    findings: list[Finding] = []
    for i, rule in enumerate(found.spec.rules if found is not None else ()):
        for j, match in enumerate(rule.matches):
            path = f"spec.rules[{i}].matches[{j}]"
            if match.method is not None and match.method.type == _REGEX:
                for field, value in (("service", match.method.service), ("method", match.method.method)):
                    findings += _check_pattern(key, value, f"{path}.method.{field}")
            for k, each in enumerate(match.headers):
                if each.type == _REGEX:
                    findings += _check_pattern(key, each.value, f"{path}.headers[{k}].value")
    return tuple(findings)


def _check_pattern(key: Key, pattern: str, path: str) -> Iterator[Finding]:
    fault = pattern_fault(pattern)
    if fault is not None:
        yield report(own_codes.BAD_REGEX, key, pattern, f"is no RE2 expression: {fault}", path=path)


def pattern_fault(pattern: str) -> str | None:
    """Why RE2 refuses a pattern; None if it does not."""
    quiet = re2.Options()
    quiet.log_errors = False
    try:
        re2.compile(pattern, quiet)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    return None


def _check_path(key: Key, pattern: str, path: str) -> Iterator[Finding]:
    """A pattern that begins with a letter, which no path does. Alternatives could begin otherwise."""
    begins_with_letter = pattern[:1] in _LITERAL and pattern[1:2] not in ("*", "?", "{") and "|" not in pattern
    if begins_with_letter and pattern_fault(pattern) is None:
        text = "matches no path, since every path begins with a slash and must match as a whole"
        yield report(own_codes.BAD_REGEX, key, pattern, text, path=path)
