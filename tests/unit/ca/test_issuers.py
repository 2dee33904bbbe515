"""Tokens of an outside issuer: what the rule believes, and everything that it does not."""

import json

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from mizzen.ca import issuers, tokens
from mizzen.errors import AuthorityError

NOW = 1_700_000_000
CART = tokens.ServiceAccount(namespace="shop", name="cart")
ISSUER = "https://issuer.example"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP384R1())
OTHER = ec.generate_private_key(ec.SECP384R1())
CLAIMS = {
    "iss": ISSUER,
    "sub": "system:serviceaccount:shop:cart",
    "aud": ["mesh"],
    "exp": NOW + 60,
    "iat": NOW,
}


def jwk(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, kid: str) -> dict[str, object]:
    algorithm = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": kid}


KEYS = json.dumps({"keys": [jwk(RSA, "r"), jwk(EC, "e"), {"kty": "oct", "kid": "o", "k": "c2VjcmV0"}]})


def verifier(keys: str = KEYS, **rule: object) -> issuers.IssuerTokenVerifier:
    told = issuers.parse_rule(json.dumps({"issuer": ISSUER, "audiences": ["mesh"], "jwks": keys, **rule}))
    return issuers.IssuerTokenVerifier(told, issuers.KnownKeys(issuers.decode_key_set(told.jwks)), lambda: NOW)


def token(key: object = EC, algorithm: str = "ES384", kid: str | None = "e", **changes: object) -> str:
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": kid} if kid else {})  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", ["RS256", "PS512"])
async def test_token_of_an_rsa_key_gives_its_account(algorithm: str) -> None:
    assert await verifier().verify(token(RSA, algorithm, "r")) == CART


async def test_token_of_a_curve_gives_its_account() -> None:
    assert await verifier().verify(token(aud="mesh")) == CART


async def test_the_only_key_needs_no_name() -> None:
    one = json.dumps({"keys": [jwk(EC, "e")]})
    assert await verifier(one).verify(token(kid=None)) == CART
    with pytest.raises(AuthorityError, match="does not publish"):
        await verifier().verify(token(kid=None))


async def test_without_audiences_those_of_the_mesh_hold() -> None:
    assert await verifier(audiences=[]).verify(token(aud=["istio-ca"])) == CART
    with pytest.raises(AuthorityError, match="another audience"):
        await verifier(audiences=[]).verify(token())


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def unsigned() -> str:
    return jwt.encode(CLAIMS, None, algorithm="none", headers={"kid": "e"})


def tampered() -> str:
    head, _, signature = token().split(".")
    _, body, _ = token(sub="system:serviceaccount:bank:vault").split(".")
    return f"{head}.{body}.{signature}"


def symmetric() -> str:
    """Signed with the text of the public key, for verifiers that let the token choose."""
    head = jwt.utils.base64url_encode(json.dumps({"alg": "HS256", "kid": "e"}).encode())
    body = jwt.utils.base64url_encode(json.dumps(CLAIMS).encode())
    signed = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(head + b"." + body, public_pem(EC))
    return b".".join((head, body, jwt.utils.base64url_encode(signed))).decode()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (token(exp=NOW - 1), "has expired"),
        (token(exp=None), "no expiry"),
        (token(nbf=NOW + 60), "not valid yet"),
        (token(iss="https://else.example"), "another issuer"),
        (token(aud=["else"]), "another audience"),
        (token(aud=None), "another audience"),
        (token(sub="cart"), "no service account"),
        (token(sub="system:serviceaccount:shop"), "no service account"),
        (token(sub="system:serviceaccount::cart"), "no service account"),
        (token(kid="x"), "does not publish"),
        (token(kid="o"), "does not publish"),
        (token(OTHER), "does not verify"),
        (token(RSA, "RS256"), "does not verify"),
        (unsigned(), "does not verify"),
        (tampered(), "does not verify"),
        (symmetric(), "does not verify"),
        ("x.y.z", "malformed"),
        ("", "malformed"),
        ("a" * 100_000, "too long"),
    ],
)
async def test_other_tokens_are_refused_without_being_shown(text: str, reason: str) -> None:
    with pytest.raises(AuthorityError, match=reason) as caught:
        await verifier().verify(text)
    assert not text or text not in str(caught.value)


async def test_tokens_of_strangers_make_nobody_look_for_keys() -> None:
    class Forbidden:
        async def find(self, name: str | None) -> ec.EllipticCurvePublicKey:
            raise AssertionError(name)

    strict = issuers.IssuerTokenVerifier(issuers.Rule(issuer=ISSUER), Forbidden(), lambda: NOW)
    with pytest.raises(AuthorityError, match="another issuer"):
        await strict.verify(token(iss="https://else.example"))


@pytest.mark.parametrize("name", ["jwks_uri", "jwksUri"])
def test_a_rule_says_where_its_keys_are(name: str) -> None:
    assert issuers.parse_rule(json.dumps({"issuer": ISSUER, name: "https://x/k"})).key_set_uri == "https://x/k"
    discovery = f"{ISSUER}/.well-known/openid-configuration"
    assert issuers.parse_rule(json.dumps({"issuer": f"{ISSUER}/", "audiences": None})).key_set_uri == discovery


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"issuer": 3}', '{"issuer": "a", "jwks": "{}"}'])
def test_a_rule_of_no_use_is_refused(text: str) -> None:
    with pytest.raises(AuthorityError):
        issuers.parse_rule(text)


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [{"kty": "oct", "k": "c2VjcmV0"}],
        [{"kty": "RSA", "e": "AQAB", "n": "AQAB"}],
        [{**jwk(EC, "e"), "use": "enc"}],
        [{**jwk(EC, "e"), "crv": "P-000"}],
        ["text", 3],
    ],
)
def test_key_sets_without_a_usable_key_are_refused(keys: list[object]) -> None:
    with pytest.raises(AuthorityError, match="holds no"):
        issuers.decode_key_set(json.dumps({"keys": keys}))
