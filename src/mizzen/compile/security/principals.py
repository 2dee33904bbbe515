"""Who calls: sources, and the conditions about the source, as RBAC principals.

In: one field of a source, or one condition, with its values. Out: a principal as plain fields, or `InvalidValueError`
where a value makes no sense. Golden cases: security/authz-sources, security/authz-when.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from mizzen.compile.security import matching, trust_domains
from mizzen.compile.security.attributes import (
    Attribute,
    InvalidValueError,
    between_brackets,
    cidr_range,
    metadata_matcher,
)

JWT_FILTER = "envoy.filters.http.jwt_authn"
_PAYLOAD = "payload"
_NESTED = re.compile(r"(?:\[[^\[\]]+\])+")
_CLAIMS = "request.auth.claims"
_HEADERS = "request.headers"


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What the meaning of a source depends on besides its values."""

    namespace: str
    """The policy's."""
    trust_domains: tuple[str, ...]
    """The mesh's own, then its aliases."""


def _any_of(build: Callable[[str], dict[str, Any]]) -> Callable[[Iterable[str]], dict[str, Any]]:
    return lambda values: {"or_ids": {"ids": [build(value) for value in values]}}


def _authenticated(matcher: dict[str, Any]) -> dict[str, Any]:
    return {"authenticated": {"principal_name": matcher}}


def _address(name: str) -> Attribute:
    return Attribute(build=_any_of(lambda value: {name: cidr_range(value)}))


PEER_ADDRESS = _address("direct_remote_ip")
CLIENT_ADDRESS = _address("remote_ip")
NAMESPACE = Attribute(build=_any_of(lambda value: _authenticated(matching.match_namespace(value))))


def principal(context: Context) -> Attribute:
    """The peer's identity, from its certificate."""
    each = _any_of(lambda value: _authenticated(matching.match_principal(value)))
    return Attribute(build=lambda values: each(trust_domains.expand_principals(values, context.trust_domains)))


def service_account(context: Context) -> Attribute:
    """The peer's service account, whatever its trust domain."""
    namespace = context.namespace
    return Attribute(build=_any_of(lambda v: _authenticated(matching.match_service_account(v, namespace))))


def trust_domain(context: Context) -> Attribute:
    """The peer's trust domain."""
    each = _any_of(lambda value: _authenticated(matching.match_trust_domain(value)))
    return Attribute(build=lambda values: each(trust_domains.expand_trust_domains(values, context.trust_domains)))


# -- tokens -----------------------------------------------------------------------------------------------------------


def _request_principals(values: Iterable[str]) -> dict[str, Any]:
    each = [_request_principal(value) for value in values]
    return each[0] if len(each) == 1 else {"or_ids": {"ids": each}}


def _request_principal(value: str) -> dict[str, Any]:
    issuer, subject = _split_request_principal(value)
    return {
        "and_ids": {
            "ids": [
                {"metadata": metadata_matcher(JWT_FILTER, (_PAYLOAD, claim), {"string_match": matcher})}
                for claim, matcher in (("iss", issuer), ("sub", subject))
            ]
        }
    }


def _split_request_principal(value: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The matchers of issuer and subject; they meet at the last slash, since issuers are URLs."""
    if value == "*":
        return matching.ANYTHING, matching.ANYTHING
    issuer, slash, subject = value.rpartition("/")
    if value.startswith("*"):
        if not slash:
            return matching.ANYTHING, {"suffix": value[1:]}
        return (matching.ANYTHING if issuer == "*" else {"suffix": issuer[1:]}), {"exact": subject}
    if value.endswith("*"):
        if not slash:
            return {"prefix": value[:-1]}, matching.ANYTHING
        return {"exact": issuer}, (matching.ANYTHING if subject == "*" else {"prefix": subject[:-1]})
    return ({"exact": issuer}, {"exact": subject}) if slash else ({"exact": value}, {"exact": ""})


REQUEST_PRINCIPAL = Attribute(build=_request_principals, http_only=True)


def _claim(path: tuple[str, ...]) -> Attribute:
    """A claim of the token: one of the values, or a list that holds one of them."""

    def build(values: Iterable[str]) -> dict[str, Any]:
        matchers = [{"string_match": matching.match_string(value)} for value in values]
        one = matchers[0] if len(matchers) == 1 else {"or_match": {"value_matchers": matchers}}
        value = {"or_match": {"value_matchers": [{"list_match": {"one_of": one}}, one]}}
        return {"metadata": metadata_matcher(JWT_FILTER, (_PAYLOAD, *path), value)}

    return Attribute(build=build, http_only=True)


def _claim_path(key: str) -> tuple[str, ...]:
    brackets = key.removeprefix(_CLAIMS)
    if _NESTED.fullmatch(brackets):
        return tuple(brackets[1:-1].split("]["))
    name = between_brackets(brackets)
    if not name:
        raise InvalidValueError(f"{key!r} names no claim")
    return (name,)


def _header(key: str) -> Attribute:
    name = between_brackets(key)
    if not name or any(c in name for c in "\0\r\n"):
        raise InvalidValueError(f"{key!r} names no header")
    return Attribute(build=_any_of(lambda value: {"header": matching.match_header(name, value)}), http_only=True)


# -- conditions -------------------------------------------------------------------------------------------------------

_BY_KEY: dict[str, Callable[[Context], Attribute]] = {
    "source.ip": lambda _: PEER_ADDRESS,
    "remote.ip": lambda _: CLIENT_ADDRESS,
    "source.namespace": lambda _: NAMESPACE,
    "source.serviceAccount": service_account,
    "source.trustDomain": trust_domain,
    "source.principal": principal,
    "request.auth.principal": lambda _: REQUEST_PRINCIPAL,
    "request.auth.audiences": lambda _: _claim(("aud",)),
    "request.auth.presenter": lambda _: _claim(("azp",)),
}


def find_condition(key: str, context: Context) -> Attribute | None:
    """The attribute of a `when` key that is about the source; None for all other keys."""
    if key.startswith(_HEADERS):
        return _header(key)
    if key.startswith(_CLAIMS):
        return _claim(_claim_path(key))
    found = _BY_KEY.get(key)
    return found(context) if found is not None else None
