"""Tokens with real signatures: which are accepted, and what each fault is called."""

import datetime
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from traced_mesh import SHOP, ask, blamed, world_of

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
NOW = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)


def key_set() -> str:
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
    return json.dumps({"keys": [{**public, "kid": "one", "alg": "RS256", "use": "sig"}]})


def policies(more: str = "") -> str:
    return f"""
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {{name: tokens, namespace: web}}
spec:
  selector: {{matchLabels: {{app: server}}}}
  jwtRules: [{{issuer: issuer.example.com, jwks: '{key_set()}' {more}}}]
"""


def token(key: Any = KEY, kid: str = "one", **claims: Any) -> dict[str, str]:
    content = {"iss": "issuer.example.com", "sub": "somebody", **claims}
    text = jwt.encode(content, key, algorithm="RS256", headers={"kid": kid})
    return {"authorization": f"Bearer {text}"}


def seconds(days: int) -> int:
    return int((NOW + datetime.timedelta(days=days)).timestamp())


@pytest.mark.parametrize(
    ("headers", "status", "details"),
    [
        ({}, 200, "via_upstream"),
        (token(), 200, "via_upstream"),
        (token(exp=seconds(1)), 200, "via_upstream"),
        (token(exp=seconds(-1)), 401, "jwt_authn_access_denied{Jwt_is_expired}"),
        (token(nbf=seconds(1)), 401, "jwt_authn_access_denied{Jwt_not_yet_valid}"),
        (token(key=OTHER), 401, "jwt_authn_access_denied{Jwt_verification_fails}"),
        (token(iss="stranger"), 401, "jwt_authn_access_denied{Jwt_issuer_is_not_configured}"),
        (
            {"authorization": "Bearer no-token"},
            401,
            "jwt_authn_access_denied{Jwt_is_not_in_the_form_of_Header.Payload.Signature_with_two_dots_and_3_sections}",
        ),
        (
            token(kid="two"),
            401,
            "jwt_authn_access_denied{Jwks_doesn't_have_key_to_match_kid_or_alg_from_Jwt}",
        ),
        ({"authorization": "Basic abc"}, 200, "via_upstream"),
    ],
)
def test_tokens(headers, status, details):
    found = ask(world_of(SHOP, policies(), now=NOW), "http://server/", headers=headers)
    assert (found.status, found.details) == (status, details)
    if status != 200:
        assert (found.link, blamed(found)) == ("jwt", "RequestAuthentication/tokens")


def test_audiences():
    world = world_of(SHOP, policies(", audiences: [us]"), now=NOW)
    assert ask(world, "http://server/", headers=token(aud=["others", "https://us/"])).status == 200
    found = ask(world, "http://server/", headers=token(aud="others"))
    assert (found.status, found.details) == (403, "jwt_authn_access_denied{Audiences_in_Jwt_are_not_allowed}")


def test_claims_reach_policies():
    wanted = """
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: members, namespace: web}
spec:
  selector: {matchLabels: {app: server}}
  rules: [{when: [{key: "request.auth.claims[groups]", values: [admins]}]}]
"""
    world = world_of(SHOP, policies(), wanted, now=NOW)
    assert ask(world, "http://server/", headers=token(groups=["users", "admins"])).outcome == "delivered"
    assert ask(world, "http://server/", headers=token(groups=["users"])).outcome == "denied"
    assert ask(world, "http://server/").outcome == "denied"


def test_a_token_is_taken_off_unless_it_is_forwarded():
    found = ask(world_of(SHOP, policies(), now=NOW), "http://server/", headers=token())
    assert found.message.header("authorization") is None
    found = ask(world_of(SHOP, policies(", forwardOriginalToken: true"), now=NOW), "http://server/", headers=token())
    assert found.message.header("authorization") is not None


def test_without_a_time_expiry_is_something_the_verdict_hangs_on():
    found = ask(world_of(SHOP, policies()), "http://server/", headers=token(exp=seconds(-1)))
    assert (found.outcome, found.certain) == ("delivered", False)


PARTNERS = """
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: a-partner, namespace: web}
spec:
  selector: {matchLabels: {app: server}}
  jwtRules: [{issuer: partner.example.com, jwks: '{"keys": []}', fromHeaders: [{name: x-partner}]}]
"""


@pytest.mark.parametrize(
    "headers", [token(key=OTHER), token(iss="stranger"), {"authorization": "Bearer no-token"}, token(exp=seconds(-1))]
)
def test_the_policy_is_blamed_that_looked_at_the_token(headers):
    found = ask(world_of(SHOP, policies(), PARTNERS, now=NOW), "http://server/", headers=headers)
    assert (found.status, blamed(found)) == (401, "RequestAuthentication/tokens")


def test_algorithms_that_nobody_knows_are_refused_first():
    head, payload, signature = token()["authorization"].split(".")
    unsigned = jwt.utils.base64url_encode(b'{"alg": "none"}').decode()
    for text in (f"Bearer {unsigned}.{payload}.{signature}", f"Bearer {unsigned}.{payload}."):
        found = ask(world_of(SHOP, policies(), now=NOW), "http://server/", headers={"authorization": text})
        assert found.details == "jwt_authn_access_denied{Jwt_header_[alg]_is_not_supported}"
    assert head.startswith("Bearer ")


def test_preflights_need_no_good_token():
    world = world_of(SHOP, policies(), now=NOW)
    bad = {**token(key=OTHER), "origin": "http://a.example", "access-control-request-method": "GET"}
    assert ask(world, "http://server/", headers=bad, method="OPTIONS").outcome == "delivered"
    assert ask(world, "http://server/", headers=bad).status == 401
