"""Route matches: the conditions of an HTTPMatchRequest as Envoy's RouteMatch.

Golden cases: networking/vs-match-matrix, gateway/header-canary, security/* (claims).
"""

import re
from collections.abc import Iterator
from typing import Any

from mizzen.api.networking.virtual_service import HTTPMatchRequest, StringMatch
from mizzen.compile.filters.dialect import Dialect

_CLAIM = "@request.auth.claims"
_BRACKETED = re.compile(r"\[([^\]]*)\]")
_JWT_FILTER = "envoy.filters.http.jwt_authn"


def build_match(match: HTTPMatchRequest | None, dialect: Dialect, *, gateway_semantics: bool) -> dict[str, Any]:
    """The fields of a RouteMatch; no match at all takes every path."""
    if match is None:
        return {"prefix": "/"}
    fields = _path(match.uri, gateway_semantics=gateway_semantics)
    fields["case_sensitive"] = {"value": not match.ignore_uri_case} if not match.ignore_uri_case else {}
    headers, claims = [], []
    named = [(name, m, False) for name, m in match.headers.items()]
    named += [(name, m, True) for name, m in match.without_headers.items()]
    for name, condition, inverted in sorted(named, key=lambda entry: entry[0]):
        path = _claim_path(name)
        if path is None:
            headers.append(_header(name, condition, inverted=inverted))
        else:
            claims.append(_claim(path, condition, dialect, inverted=inverted))
    for pseudo, required in ((":method", match.method), (":authority", match.authority), (":scheme", match.scheme)):
        if required is not None:
            headers.append(_header(pseudo, required, inverted=False))
    if headers:
        fields["headers"] = headers
    if claims:
        fields["dynamic_metadata"] = claims
    if match.query_params:
        fields["query_parameters"] = [_parameter(name, m) for name, m in sorted(match.query_params.items())]
    return fields


def _path(uri: StringMatch | None, *, gateway_semantics: bool) -> dict[str, Any]:
    if uri is None:
        return {"prefix": "/"}
    if uri.exact is not None:
        return {"path": uri.exact}
    if uri.regex is not None:
        return {"safe_regex": {"regex": uri.regex}}
    prefix = uri.prefix if uri.prefix is not None else "/"
    if gateway_semantics and prefix != "/":
        return {"path_separated_prefix": prefix.removesuffix("/")}
    return {"prefix": prefix}


def string_matcher(condition: StringMatch) -> dict[str, Any] | None:
    """An Envoy StringMatcher; None where any value will do."""
    if condition.exact:
        return {"exact": condition.exact}
    if condition.prefix:
        return {"prefix": condition.prefix}
    if condition.regex and condition.regex != "*":
        return {"safe_regex": {"regex": condition.regex}}
    return None


def _header(name: str, condition: StringMatch, *, inverted: bool) -> dict[str, Any]:
    matcher = string_matcher(condition)
    fields: dict[str, Any] = {"name": name}
    fields.update({"present_match": True} if matcher is None else {"string_match": matcher})
    if inverted:
        fields["invert_match"] = True
        if matcher is not None:
            fields["treat_missing_header_as_empty"] = True
    return fields


def _parameter(name: str, condition: StringMatch) -> dict[str, Any]:
    matcher = string_matcher(condition)
    return {"name": name, **({"present_match": True} if matcher is None else {"string_match": matcher})}


def _claim_path(name: str) -> list[str] | None:
    """The claim that a header name of the form `@request.auth.claims.a.b` or `…[a][b]` stands for."""
    if not name.lower().startswith(_CLAIM):
        return None
    rest = name[len(_CLAIM) :]
    if rest.startswith("["):
        return _BRACKETED.findall(rest)
    return rest.removeprefix(".").split(".") if rest.startswith(".") else None


def _claim(path: list[str], condition: StringMatch, dialect: Dialect, *, inverted: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "filter": _JWT_FILTER,
        "path": [{"key": key} for key in ("payload", *path)],
        "value": _claim_value(string_matcher(condition), dialect),
    }
    if inverted:
        fields["invert"] = True
    return fields


def _claim_value(matcher: dict[str, Any] | None, dialect: Dialect) -> dict[str, Any]:
    """A claim's text, or one of its texts. The reference writes an empty matcher where any value will do, for which
    every Envoy refuses the whole route configuration; upstream Envoy is asked whether there is one."""
    if matcher is None and dialect == "envoy":
        return {"present_match": True}
    single = {"string_match": matcher or {}}
    return {"or_match": {"value_matchers": [{"list_match": {"one_of": single}}, single]}}


def regexes(fields: dict[str, Any]) -> Iterator[str]:
    """The regular expressions of a match."""
    matchers = [entry.get("string_match", {}) for entry in fields.get("headers", ())]
    matchers += [entry.get("string_match", {}) for entry in fields.get("query_parameters", ())]
    for entry in fields.get("dynamic_metadata", ()):
        alternatives = entry["value"].get("or_match", {}).get("value_matchers", ())
        matchers += [one["string_match"] for one in alternatives if "string_match" in one]
    for matcher in (fields, *matchers):
        if "safe_regex" in matcher:
            yield matcher["safe_regex"]["regex"]


def is_catch_all(fields: dict[str, Any]) -> bool:
    """Whether a match takes every request, so that nothing after it is ever reached."""
    every_path = (
        fields.get("prefix") == "/"
        or fields.get("path_separated_prefix") == "/"
        or fields.get("safe_regex", {}).get("regex") == ".*"
    )
    return every_path and not any(fields.get(name) for name in ("headers", "query_parameters", "dynamic_metadata"))


def operation_path(fields: dict[str, Any]) -> str:
    """The path as it stands in a span's name; prefixes of whole segments do not show there."""
    if "path" in fields:
        return str(fields["path"])
    if "safe_regex" in fields:
        return str(fields["safe_regex"]["regex"])
    return f"{fields['prefix']}*" if "prefix" in fields else "/*"
