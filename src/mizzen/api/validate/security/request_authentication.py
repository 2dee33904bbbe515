"""RequestAuthentication: who issues tokens, where their keys are, where tokens stand in a request."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from mizzen.api.policy import JWTRule, RequestAuthentication
from mizzen.api.validate.faults import Faults, at, error, quote, warning
from mizzen.api.validate.values.numbers import duration_fault
from mizzen.api.validate.values.selectors import check_attachment, check_match_labels

_BASE64URL = re.compile(r"[A-Za-z0-9_-]+={0,2}")
_OUTPUT_HEADER = re.compile(r"[-_A-Za-z0-9]+")
_KEY_FIELDS: Mapping[str, tuple[str, ...]] = {"RSA": ("n", "e"), "EC": ("x", "y"), "OKP": ("x",), "oct": ("k",)}


def check_request_authentication(authentication: RequestAuthentication, path: str) -> Faults:
    """All rules of a RequestAuthentication."""
    spec = authentication.spec
    yield from check_match_labels(spec.selector, f"{path}.selector")
    yield from check_attachment(spec.selector, spec.target_ref, spec.target_refs, path)
    for index, rule in enumerate(spec.jwt_rules):
        yield from _check_rule(rule, f"{path}.jwtRules[{index}]")


def _check_rule(rule: JWTRule, path: str) -> Faults:
    if not rule.issuer and not rule.jwks_uri:
        yield error(path, "issuer or jwksUri must be non-empty string")
    for index, audience in enumerate(rule.audiences):
        if not audience:
            yield error(f"{path}.audiences[{index}]", "audience must be non-empty string")
    if rule.jwks_uri:
        yield from at(f"{path}.jwksUri", _uri_fault(rule.jwks_uri))
    if rule.jwks:
        yield from _check_keys(rule.jwks, f"{path}.jwks")
    yield from _check_locations(rule, path)
    for index, output in enumerate(rule.output_claim_to_headers):
        here = f"{path}.outputClaimToHeaders[{index}]"
        if not output.header or not output.claim:
            yield error(here, "outputClaimToHeaders header and claim value must be non-empty string")
        if output.header and not _OUTPUT_HEADER.fullmatch(output.header):
            yield error(f"{here}.header", f"header name {output.header} is not a valid header name")
    yield from at(f"{path}.timeout", duration_fault(rule.timeout))


def _check_locations(rule: JWTRule, path: str) -> Faults:
    for index, header in enumerate(rule.from_headers):
        if not header.name:
            message = "location header name must be non-empty string"
            yield error(f"{path}.fromHeaders[{index}].name", message)
    for field, words, places in (
        ("fromParams", "location query", rule.from_params),
        ("fromCookies", "cookie name", rule.from_cookies),
    ):
        for index, name in enumerate(places):
            if not name:
                yield error(f"{path}.{field}[{index}]", f"{words} must be non-empty string")


def _uri_fault(uri: str) -> str | None:
    try:
        parts = urlsplit(uri)
        _port = parts.port  # read for what it raises
    except ValueError as bad:
        return f"parse {quote(uri)}: {bad}"
    if parts.scheme not in ("http", "https"):
        return f"URI scheme {quote(parts.scheme)} is not supported"
    return None


def _check_keys(text: str, path: str) -> Faults:
    try:
        keys = json.loads(text)
    except (ValueError, RecursionError) as bad:
        yield error(path, f"jwks parse error: {bad}")
        return
    found = keys.get("keys", [keys]) if isinstance(keys, dict) else None
    if not isinstance(found, list):
        yield error(path, "jwks parse error: not a set of keys")
        return
    for index, key in enumerate(found):
        fault = _key_fault(key)
        yield from at(path, fault and f"jwks parse error: key at index {index}: {fault}")
        if fault is None and "d" in key:
            what = "contains private key material; only public keys are used for verification"
            yield warning(path, f"jwks key at index {index} {what}")


def _key_fault(key: Any) -> str | None:
    if not isinstance(key, dict):
        return "not a map"
    kind = key.get("kty")
    if not isinstance(kind, str) or kind not in _KEY_FIELDS:
        return f"unknown key type {kind!r}"
    for field in _KEY_FIELDS[kind]:
        value = key.get(field)
        if not isinstance(value, str) or not _BASE64URL.fullmatch(value):
            return f"{field!r} is missing or not base64url"
    return None
