"""Tokens: Envoy's `jwt_authn` filter, with real signatures where the key set is at hand.

In: the filter's providers, rules and requirements, and the request's token. Out: the denial, or None with the claims in
metadata. Expiry is held against the world's time only where one was handed in; key sets that Envoy fetches itself make
the verdict hang on them.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any

import jwt as pyjwt
import msgspec

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import routes
from mizzen.diagnose.trace.state import State
from mizzen.diagnose.trace.verdict import Answer

FILTER = "envoy.filters.http.jwt_authn"
_MISSING = "Jwt is missing"
_UNKNOWN = "Jwt issuer is not configured"
_MALFORMED = "Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections"
_BAD_ALGORITHM = "Jwt header [alg] is not supported"
_ALGORITHMS = ("EdDSA", *(f"{kind}{bits}" for kind in ("ES", "HS", "RS", "PS") for bits in (256, 384, 512)))
"""Those that Envoy knows; others are refused before anything else is looked at."""
_BAD_AUDIENCE = "Audiences in Jwt are not allowed"
_SKEW_SECONDS = 60
_FORBIDDEN = 403


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A token as it was found."""

    text: str
    header: str = ""
    """The header it stood in; empty for others."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What one requirement says."""

    problem: str = ""
    provider: str = ""
    token: Token | None = None
    claims: Any = None
    hangs_on: str = ""


def apply(state: State, name: str, config: Json, own: Json | None) -> Answer | None:
    """The filter for one request."""
    del name, own
    message, hop = state.message, state.hop
    is_preflight = message.method == "OPTIONS" and message.header("origin") and message.header(_PREFLIGHT)
    if config.get("bypassCorsPreflight") is True and is_preflight:
        return None
    requirement = _requirement(state, config)
    if requirement is None:
        return None
    checked = _check(state, config, requirement)
    if checked.problem:
        hop.journal.note(hop.side, "jwt", f"token refused: {checked.problem}", state="fails")
        details = f"jwt_authn_access_denied{{{checked.problem.replace(' ', '_')}}}"
        return Answer(
            outcome="denied",
            status=_FORBIDDEN if checked.problem == _BAD_AUDIENCE else 401,
            details=details,
            side=hop.side,
            link="jwt",
            reason=checked.problem,
            about=("jwt", *_issuers(config, checked.provider)),
        )
    if checked.hangs_on:
        hop.journal.hang_on(checked.hangs_on)
    if checked.token is None:
        hop.journal.note(hop.side, "jwt", "no token, which is allowed")
        return None
    _accept(state, dump.message(config, "providers", checked.provider), checked)
    return None


_PREFLIGHT = "access-control-request-method"


def _issuers(config: Json, first: str) -> Iterator[str]:
    """The issuers of all providers, that of the one that refused first."""
    providers = dump.message(config, "providers")
    for name in sorted(providers, key=lambda name: name != first):
        yield dump.text(providers, name, "issuer")


def _requirement(state: State, config: Json) -> Json | None:
    for rule in dump.items(config, "rules"):
        if not routes.mismatch(dump.message(rule, "match"), state.message, state.metadata, is_tls=False):
            named = dump.text(rule, "requirement_name")
            return dump.message(config, "requirement_map", named) if named else dump.message(rule, "requires")
    return None


def _check(state: State, config: Json, requirement: Json) -> Checked:
    if "providerName" in requirement:
        return _provider(state, config, dump.text(requirement, "provider_name"), ())
    if "providerAndAudiences" in requirement:
        named = dump.message(requirement, "provider_and_audiences")
        return _provider(state, config, dump.text(named, "provider_name"), tuple(dump.texts(named, "audiences")))
    if "requiresAny" in requirement:
        return _best([_check(state, config, r) for r in dump.items(requirement, "requires_any", "requirements")])
    if "requiresAll" in requirement:
        each = [_check(state, config, r) for r in dump.items(requirement, "requires_all", "requirements")]
        failed = [found for found in each if found.problem]
        return (failed or [found for found in each if found.token] or [Checked()])[0]
    if "allowMissing" in requirement:
        return _all_providers(state, config)
    return Checked()


def _all_providers(state: State, config: Json) -> Checked:
    """No token is fine; one that is there must satisfy the provider of its issuer."""
    each = [_provider(state, config, name, ()) for name in dump.message(config, "providers")]
    return Checked() if all(found.problem == _MISSING for found in each) else _best(each)


def _best(each: list[Checked]) -> Checked:
    """Of alternatives the one that holds, else the one whose problem says most."""
    good = [found for found in each if not found.problem]
    telling = [found for found in each if found.problem not in (_MISSING, _UNKNOWN)]
    unknown = [found for found in each if found.problem == _UNKNOWN]
    return (good or telling or unknown or each or [Checked()])[0]


def _provider(state: State, config: Json, name: str, audiences: tuple[str, ...]) -> Checked:
    provider = dump.message(config, "providers", name)
    token = next(_tokens(state, provider), None)
    if token is None:
        return Checked(problem=_MISSING, provider=name)
    claims = _claims(token.text)
    if claims is None:
        return Checked(problem=_MALFORMED, provider=name)
    if _header(token.text).get("alg") not in _ALGORITHMS:
        return Checked(problem=_BAD_ALGORITHM, provider=name)
    issuer = dump.text(provider, "issuer")
    if issuer and claims.get("iss") != issuer:
        return Checked(problem=_UNKNOWN, provider=name)
    problem = _times(state, claims) or _audience(claims, audiences or tuple(dump.texts(provider, "audiences")))
    if problem:
        return Checked(problem=problem, provider=name)
    problem, hangs_on = _signature(provider, token.text)
    return Checked(problem=problem, provider=name, token=token, claims=claims, hangs_on=hangs_on)


def _tokens(state: State, provider: Json) -> Iterator[Token]:
    """The tokens at the provider's places; without any the bearer token and `access_token`."""
    headers = [(dump.text(h, "name"), dump.text(h, "value_prefix")) for h in dump.items(provider, "from_headers")]
    params, cookies = dump.texts(provider, "from_params"), dump.texts(provider, "from_cookies")
    if not (headers or params or cookies):
        headers, params = [("authorization", "Bearer ")], ["access_token"]
    for name, prefix in headers:
        value = state.message.header(name)
        if value is not None and prefix in value:
            yield Token(text=value.partition(prefix)[2].strip() if prefix else value, header=name)
    for key, value in state.message.query:
        if key in params:
            yield Token(text=value)
    for part in (state.message.header("cookie") or "").split(";"):
        key, _, value = part.strip().partition("=")
        if key in cookies:
            yield Token(text=value)


def _claims(text: str) -> Mapping[str, Any] | None:
    parts = text.split(".")
    return _decoded(parts[1]) if len(parts) == 3 else None


def _header(text: str) -> Mapping[str, Any]:
    return _decoded(text.partition(".")[0]) or {}


def _decoded(part: str) -> Mapping[str, Any] | None:
    """A part of a token, which is an object as JSON."""
    try:
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, binascii.Error):
        return None
    return found if isinstance(found, dict) else None


def _times(state: State, claims: Mapping[str, Any]) -> str:
    now = state.hop.world.now
    expires, starts = claims.get("exp"), claims.get("nbf")
    if now is None:
        if isinstance(expires, int | float):
            state.hop.journal.hang_on("the time: the token expires, and no time was given")
        return ""
    if isinstance(starts, int | float) and now.timestamp() + _SKEW_SECONDS < starts:
        return "Jwt not yet valid"
    if isinstance(expires, int | float) and now.timestamp() > expires + _SKEW_SECONDS:
        return "Jwt is expired"
    return ""


def _audience(claims: Mapping[str, Any], wanted: tuple[str, ...]) -> str:
    stated = claims.get("aud", [])
    own = [stated] if isinstance(stated, str) else stated if isinstance(stated, list) else []
    bare = {_bare(str(audience)) for audience in own}
    return _BAD_AUDIENCE if wanted and not bare & {_bare(audience) for audience in wanted} else ""


def _bare(audience: str) -> str:
    """Envoy compares audiences without scheme and final slash."""
    return audience.removeprefix("https://").removeprefix("http://").rstrip("/")


def _signature(provider: Json, text: str) -> tuple[str, str]:
    """The problem of a signature, or what its validity hangs on."""
    issuer = dump.text(provider, "issuer")
    inline = dump.text(provider, "local_jwks", "inline_string")
    if not inline:
        return "", f"the keys of {issuer}, which Envoy fetches"
    try:
        keys = pyjwt.PyJWKSet.from_json(inline).keys
    except (pyjwt.PyJWTError, ValueError):
        return "Jwks is invalid", ""
    header = _header(text)
    kid = header.get("kid")
    fitting = [key for key in keys if not kid or not key.key_id or key.key_id == kid]
    if not fitting:
        return "Jwks doesn't have key to match kid or alg from Jwt", ""
    options: Any = {"verify_exp": False, "verify_nbf": False, "verify_aud": False, "verify_iat": False}
    for key in fitting:
        try:
            pyjwt.decode(text, key=key.key, algorithms=[str(header.get("alg"))], options=options)
        except (pyjwt.PyJWTError, ValueError, TypeError, NotImplementedError):
            continue
        return "", ""
    return "Jwt verification fails", ""


def _accept(state: State, provider: Json, checked: Checked) -> None:
    """What a good token leaves behind."""
    hop = state.hop
    claims = dict(checked.claims)
    hop.journal.note(
        hop.side,
        "jwt",
        "token accepted",
        ("issuer", claims.get("iss", "")),
        ("subject", claims.get("sub", "")),
    )
    spaced = dump.texts(provider, "normalize_payload_in_metadata", "space_delimited_claims")
    for name in spaced:
        if isinstance(claims.get(name), str):
            claims[name] = claims[name].split(" ")
    key = dump.text(provider, "payload_in_metadata")
    if key:
        state.metadata[FILTER] = {**state.metadata.get(FILTER, {}), key: claims}
    token = checked.token
    if token is not None and token.header and provider.get("forward") is not True:
        state.message = state.message.without_header(token.header)
    for entry in dump.items(provider, "claim_to_headers"):
        value = claims.get(dump.text(entry, "claim_name"))
        if isinstance(value, str | int | bool):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            state.message = state.message.with_header(dump.text(entry, "header_name"), text)
    if provider.get("clearRouteCache") is True:
        state.select()
