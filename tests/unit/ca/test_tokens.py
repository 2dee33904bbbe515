"""Tokens of the local mesh: good ones name their account, everything else is refused."""

import base64
import hashlib
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from mizzen.ca import tokens
from mizzen.ca.tokens import KeyTokenVerifier, ServiceAccount, TokenIssuer
from mizzen.errors import AuthorityError

NOW = 1_700_000_000.0
KEY = tokens.generate_key()
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CART = ServiceAccount(namespace="shop", name="cart", pod="cart-0", pod_uid="u1", node="n1")


def issuer(key: Any = KEY, name: str = tokens.ISSUER) -> TokenIssuer:
    return TokenIssuer(key, lambda: NOW, name)


def verifier(*keys: Any, now: float = NOW) -> KeyTokenVerifier:
    return KeyTokenVerifier([key.public_key() for key in keys or (KEY,)], lambda: now)


def claims(**changes: Any) -> dict[str, Any]:
    found = jwt.decode(issuer().issue(CART), options={"verify_signature": False})
    found.update(changes)
    return {name: value for name, value in found.items() if value is not None}


def sign(payload: dict[str, Any], **headers: Any) -> str:
    headers = {"kid": tokens.key_id(KEY.public_key()), **headers}
    return jwt.encode(payload, KEY, algorithm="ES256", headers=headers)


@pytest.mark.parametrize("key", [KEY, RSA_KEY])
async def test_issued_token_names_its_account(key: Any) -> None:
    assert await verifier(key).verify(issuer(key).issue(CART)) == CART


def test_token_has_the_claims_of_a_projected_service_account_token() -> None:
    found = claims()
    assert found["sub"] == "system:serviceaccount:shop:cart"
    assert found["aud"] == ["istio-ca"]
    assert found["exp"] - found["iat"] == 43_200
    assert found["kubernetes.io"] == {
        "namespace": "shop",
        "serviceaccount": {"name": "cart"},
        "pod": {"name": "cart-0", "uid": "u1"},
        "node": {"name": "n1"},
    }


def test_every_token_is_another() -> None:
    assert issuer().issue(CART) != issuer().issue(CART)


async def test_token_lives_to_its_last_second() -> None:
    token = issuer().issue(CART, lifetime=60)
    assert await verifier(now=NOW + 59.9).verify(token) == CART
    with pytest.raises(AuthorityError, match="expired"):
        await verifier(now=NOW + 60).verify(token)


async def test_clock_a_little_behind_is_forgiven() -> None:
    token = issuer().issue(CART)
    assert await verifier(now=NOW - 5).verify(token) == CART
    with pytest.raises(AuthorityError, match="not valid yet"):
        await verifier(now=NOW - 60).verify(token)


async def test_keys_overlap_while_they_rotate() -> None:
    newer = tokens.generate_key()
    both = verifier(KEY, newer)
    assert await both.verify(issuer().issue(CART)) == CART
    assert await both.verify(issuer(newer).issue(CART)) == CART


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"aud": ["other"]}, "audience"),
        ({"aud": "other"}, "audience"),
        ({"aud": None}, "audience"),
        ({"aud": {"istio-ca": 1}}, "audience"),
        ({"iss": "https://evil"}, "issuer"),
        ({"iss": None}, "issuer"),
        ({"exp": None}, "no expiry"),
        ({"exp": NOW - 1}, "expired"),
        ({"sub": None}, "no service account"),
        ({"sub": "system:serviceaccount:shop"}, "no service account"),
        ({"sub": "system:serviceaccount:shop:"}, "no service account"),
        ({"sub": "system:serviceaccount:a:b:c"}, "no service account"),
        ({"sub": "shop:cart"}, "no service account"),
        ({"sub": "system:serviceaccount:bank:cart"}, "namespace"),
        ({"sub": "system:serviceaccount:shop:payments"}, "service account"),
        ({"kubernetes.io": None}, "namespace"),
        ({"kubernetes.io": {"namespace": "shop"}}, "service account"),
    ],
)
async def test_wrong_claims_are_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(AuthorityError, match=reason):
        await verifier().verify(sign(claims(**changes)))


@pytest.mark.parametrize("expiry", ["tomorrow", True])
async def test_expiry_that_is_no_number_is_refused(expiry: Any) -> None:
    text = base64.urlsafe_b64encode(json.dumps({**claims(), "exp": expiry}).encode()).rstrip(b"=")
    header = base64.urlsafe_b64encode(json.dumps({"alg": "ES256"}).encode()).rstrip(b"=")
    signature = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256).sign(header + b"." + text, KEY)
    token = b".".join((header, text, base64.urlsafe_b64encode(signature).rstrip(b"="))).decode()
    with pytest.raises(AuthorityError, match="no expiry"):
        await verifier().verify(token)


def tampered(token: str) -> str:
    header, payload, signature = token.split(".")
    decoded = json.loads(base64.urlsafe_b64decode(payload + "=="))
    decoded["sub"] = "system:serviceaccount:shop:payments"
    payload = base64.urlsafe_b64encode(json.dumps(decoded).encode()).rstrip(b"=").decode()
    return f"{header}.{payload}.{signature}"


async def test_tampered_token_is_refused() -> None:
    with pytest.raises(AuthorityError, match="signature"):
        await verifier().verify(tampered(issuer().issue(CART)))


async def test_unsigned_token_is_refused() -> None:
    with pytest.raises(AuthorityError):
        await verifier().verify(jwt.encode(claims(), None, algorithm="none"))


async def test_public_key_used_as_a_shared_secret_is_refused() -> None:
    secret = base64.b64encode(tokens.encode_public_key(KEY.public_key())).decode()
    token = jwt.encode(claims(), secret, algorithm="HS256", headers={"kid": tokens.key_id(KEY.public_key())})
    with pytest.raises(AuthorityError, match="signature"):
        await verifier().verify(token)


async def test_token_of_an_unknown_key_is_refused() -> None:
    stranger = tokens.generate_key()
    with pytest.raises(AuthorityError, match="unknown key"):
        await verifier().verify(issuer(stranger).issue(CART))
    forged = jwt.encode(claims(), stranger, algorithm="ES256")
    with pytest.raises(AuthorityError, match="signature"):
        await verifier().verify(forged)


@pytest.mark.parametrize(("key", "algorithm"), [(KEY, "ES256"), (RSA_KEY, "RS256")])
async def test_an_api_server_names_its_key_otherwise(key: Any, algorithm: str) -> None:
    name = base64.urlsafe_b64encode(
        hashlib.sha256(
            key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        ).digest()
    )
    token = jwt.encode(claims(), key, algorithm=algorithm, headers={"kid": name.decode().rstrip("=")})
    assert await verifier(KEY, RSA_KEY).verify(token) == CART


async def test_token_without_key_id_needs_a_single_key() -> None:
    token = jwt.encode(claims(), KEY, algorithm="ES256")
    assert await verifier().verify(token) == CART
    with pytest.raises(AuthorityError, match="unknown key"):
        await verifier(KEY, RSA_KEY).verify(token)


async def test_critical_headers_are_refused() -> None:
    with pytest.raises(AuthorityError, match=r"critical|malformed"):
        await verifier().verify(sign(claims(), crit=["exp"], exp=1))


@pytest.mark.parametrize("token", ["", "a.b.c", "....", "x" * 20_000, "\ud800", "eyJ.é.x"])
async def test_rubbish_is_refused(token: str) -> None:
    with pytest.raises(AuthorityError):
        await verifier().verify(token)


def test_key_files_hold_public_or_private_keys() -> None:
    text = tokens.encode_private_key(KEY) + tokens.encode_public_key(RSA_KEY.public_key())
    assert [tokens.key_id(key) for key in tokens.decode_public_keys(text)] == [
        tokens.key_id(KEY.public_key()),
        tokens.key_id(RSA_KEY.public_key()),
    ]
    assert tokens.key_id(tokens.decode_private_key(tokens.encode_private_key(KEY)).public_key()) == tokens.key_id(
        KEY.public_key()
    )


@pytest.mark.parametrize("text", [b"", b"nothing", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_broken_key_files_are_refused(text: bytes) -> None:
    with pytest.raises(AuthorityError):
        tokens.decode_public_keys(text)


def test_weak_and_odd_keys_are_refused() -> None:
    odd = ec.generate_private_key(ec.SECP384R1())
    with pytest.raises(AuthorityError, match="P-256"):
        tokens.decode_public_keys(tokens.encode_public_key(odd.public_key()))


@pytest.mark.parametrize("pod", [None, "cart-0", ["cart-0"], {}, {"name": 5, "uid": None}])
async def test_a_pod_that_cannot_be_read_is_none(pod: Any) -> None:
    details = {"namespace": "shop", "serviceaccount": {"name": "cart"}, "pod": pod}
    found = await verifier().verify(sign(claims(**{"kubernetes.io": details})))
    assert found == ServiceAccount(namespace="shop", name="cart")
