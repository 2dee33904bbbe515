"""RequestAuthentications as one JWT filter: which issuers are known, and where their tokens are found.

In: the keys of the policies that apply to a workload, in their order, and fetched key sets, which are inputs like any
other. Out: the encoded filter. A request without a token passes; a token whose keys are not known never does.
Golden cases: security/jwt-* .
"""

import re
from collections.abc import Iterable
from typing import Any

from mizzen import protos
from mizzen.api.meta import Key
from mizzen.api.policy import JWTRule, RequestAuthentication
from mizzen.compile.security import key_sets
from mizzen.compile.security.principals import JWT_FILTER
from mizzen.incremental import Engine, query
from mizzen.model.patterns import UNSPEAKABLE

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_jwt_v3 = protos.package("envoy.extensions.filters.http.jwt_authn.v3")

KEY_SET = "JsonWebKeySet"
"""The table of fetched key sets: `Key(KEY_SET, "", URI)` holds the text of the set."""

_SPACE_DELIMITED = ("permission", "scope")
_HEADER = re.compile(r":?[0-9a-zA-Z!#$%&'*+\-.^_|~`]+")

UNKNOWN_KEYS = (
    '{"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "nobody", "e": "AQAB", "n": "'
    "tN1_ovtBeA4AGKQva_xV_rTnuTKVErN023wnQ1YVW3q1gSbFrVuG_zOY3pgkdDSeuK4vNGgmSNSlttvnA2FE6Z9w7MFyiUE8bqwN9gk2m4S3hj7an7z7"
    "UAcLKkrFFG4-NbpLYOxStOhs4TFs9pweOyVObhWEhBMByE6Jbdw7HN1A7BwCg0Oi21GM0JMaqrL_8xJRL1RUOoItyKY6FsuWk5wmikkYVjHJjtN-Hfbo"
    'rBH00MINad8rahwlomlFSLt0DN0JvUv8Z0tHtRFzSfTy_4rIGlBYr-ef8ox4KAND1Q9N8nwh8pQIQTeyFVFJ5lQ3_yw05jpH8dt3NDxqxXUiXQ"}]}'
)
"""The key set of an issuer whose keys are not known: a public key whose private half was thrown away."""


def key_set_uri(rule: JWTRule) -> str:
    """Where the keys of a rule are fetched; without `jwksUri` the issuer's discovery document says where."""
    return rule.jwks_uri or f"{rule.issuer.rstrip('/')}/.well-known/openid-configuration"


@query
def http_filters(db: Engine, keys: tuple[Key, ...], router: bool) -> tuple[bytes, ...]:
    """The encoded HTTP filter of these policies; none where they hold no rule."""
    found: list[JWTRule] = []
    for key in keys:
        policy: RequestAuthentication | None = db.input(key)
        if policy is not None:
            found.extend(policy.spec.jwt_rules)
    found.sort(key=lambda rule: rule.issuer.encode())
    if not found:
        return ()
    config = _jwt_v3.JwtAuthentication(
        bypass_cors_preflight=True,
        rules=[{"match": {"prefix": "/"}, "requires": _requirement([f"origins-{i}" for i in range(len(found))])}],
    )
    for i, rule in enumerate(found):
        config.providers[f"origins-{i}"].MergeFrom(_provider(db, rule, router=router))
    return (protos.encode(_hcm_v3.HttpFilter(name=JWT_FILTER, typed_config=protos.pack(config))),)


def _requirement(names: list[str]) -> dict[str, Any]:
    """Any valid token, or none at all; with several issuers a bad token of one is not excused by missing others."""
    named: list[dict[str, Any]] = [{"provider_name": name} for name in names]
    missing: dict[str, Any] = {"allow_missing": {}}
    if len(names) == 1:
        return _any_of([*named, missing])
    each = [_any_of([one, missing]) for one in named]
    return _any_of([*named, {"requires_all": {"requirements": each}}])


def _any_of(requirements: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"requires_any": {"requirements": list(requirements)}}


def _provider(db: Engine, rule: JWTRule, *, router: bool) -> Any:
    """One issuer. Places where no token can be are left out: for one of those Envoy would refuse the listener."""
    claims = sorted({*rule.space_delimited_claims, *_SPACE_DELIMITED})
    return _jwt_v3.JwtProvider(
        issuer=rule.issuer,
        audiences=rule.audiences,
        forward=rule.forward_original_token,
        forward_payload_header=rule.output_payload_to_header if _is_header(rule.output_payload_to_header) else "",
        claim_to_headers=[
            {"header_name": c.header, "claim_name": c.claim}
            for c in rule.output_claim_to_headers
            if _is_header(c.header) and c.claim
        ],
        from_headers=[
            {"name": h.name, "value_prefix": h.prefix}
            for h in rule.from_headers
            if _is_header(h.name) and UNSPEAKABLE.search(h.prefix) is None
        ],
        from_params=[name for name in rule.from_params if name],
        from_cookies=[name for name in rule.from_cookies if name],
        payload_in_metadata="payload",
        normalize_payload_in_metadata={"space_delimited_claims": claims},
        clear_route_cache=router,
        local_jwks={"inline_string": _key_set(db, rule)},
    )


def _is_header(name: str) -> bool:
    return _HEADER.fullmatch(name) is not None


def _key_set(db: Engine, rule: JWTRule) -> str:
    text: str | None = rule.jwks or db.input(Key(KEY_SET, "", key_set_uri(rule)))
    return text if text and key_sets.is_readable(text) else UNKNOWN_KEYS
