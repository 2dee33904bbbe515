"""Who is believed, in the form that streams ask for it."""

import json
import pathlib

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from mizzen import settings
from mizzen.api.mesh.merge import merge_mesh_config
from mizzen.ca import tokens
from mizzen.ca.revocations import Revocations
from mizzen.control import callers
from mizzen.errors import AuthorityError
from mizzen.model.spiffe import Identity
from mizzen.xds.identity import Credentials

NOW = 1_700_000_000.0
MESH, _ = merge_mesh_config(
    {
        "trustDomain": "mesh.example",
        "trustDomainAliases": ["old.example"],
        "caCertificates": [{"pem": "x", "trustDomains": ["partner.example"]}],
    }
)
KEY = tokens.generate_key()


def authenticator(tmp_path: pathlib.Path) -> callers.StreamAuthenticator:
    (tmp_path / "key.pem").write_bytes(tokens.encode_public_key(KEY.public_key()))
    verifier = callers.load_verifier([str(tmp_path / "key.pem")], "", ("istio-ca",), lambda: NOW)
    return callers.StreamAuthenticator(callers.build_authenticator(lambda: MESH, Revocations(enabled=True), verifier))


def test_former_domains_and_those_of_further_roots_are_trusted() -> None:
    assert callers.trusted_domains(MESH) == {"mesh.example", "old.example", "partner.example"}


async def test_token_gives_an_identity_of_the_mesh(tmp_path: pathlib.Path) -> None:
    token = tokens.TokenIssuer(KEY, lambda: NOW).issue(tokens.ServiceAccount(namespace="shop", name="cart"))
    credentials = Credentials(metadata={"authorization": f"Bearer {token}"})
    assert await authenticator(tmp_path).authenticate(credentials) == (Identity("mesh.example", "shop", "cart"),)


async def test_certificate_gives_its_identity(tmp_path: pathlib.Path) -> None:
    uri = "spiffe://old.example/ns/shop/sa/cart"
    credentials = Credentials(metadata={}, certificate_uris=(uri,))
    assert await authenticator(tmp_path).authenticate(credentials) == (Identity("old.example", "shop", "cart"),)


async def test_without_credentials_nobody_is_believed(tmp_path: pathlib.Path) -> None:
    with pytest.raises(AuthorityError, match="no client certificate; no bearer token"):
        await authenticator(tmp_path).authenticate(Credentials(metadata={}))


async def test_without_a_key_no_token_is_believed() -> None:
    token = tokens.TokenIssuer(KEY, lambda: NOW).issue(tokens.ServiceAccount(namespace="shop", name="cart"))
    found = callers.StreamAuthenticator(callers.build_authenticator(lambda: MESH, Revocations(enabled=True), None))
    with pytest.raises(AuthorityError):
        await found.authenticate(Credentials(metadata={"authorization": f"Bearer {token}"}))


def test_key_files_that_cannot_be_used_are_named(tmp_path: pathlib.Path) -> None:
    assert callers.load_verifier([], "", (), lambda: NOW) is None
    with pytest.raises(AuthorityError, match=r"missing\.pem: No such file"):
        callers.load_verifier([str(tmp_path / "missing.pem")], "", (), lambda: NOW)
    (tmp_path / "bad.pem").write_text("nothing")
    with pytest.raises(AuthorityError, match=r"bad\.pem: .*no PEM key"):
        callers.load_verifier([str(tmp_path / "bad.pem")], "", (), lambda: NOW)


async def test_an_outside_issuer_is_believed_beside_the_mesh_s_own() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    keys = {"keys": [json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key()))]}
    rule = {"issuer": "https://issuer.example", "jwks": json.dumps(keys)}
    issuer = callers.load_issuer(
        settings.Settings(authority=settings.Authority(jwt_rule=json.dumps(rule))), lambda: NOW
    )
    own = tokens.KeyTokenVerifier((KEY.public_key(),), lambda: NOW)
    found = callers.StreamAuthenticator(
        callers.build_authenticator(lambda: MESH, Revocations(enabled=True), issuer, own)
    )
    claims = {"iss": rule["issuer"], "sub": "system:serviceaccount:shop:cart", "aud": "istio-ca", "exp": NOW + 9}
    outside = jwt.encode(claims, key, algorithm="ES256")
    inside = tokens.TokenIssuer(KEY, lambda: NOW).issue(tokens.ServiceAccount(namespace="shop", name="cart"))
    for token in (outside, inside):
        credentials = Credentials(metadata={"authorization": f"Bearer {token}"})
        assert await found.authenticate(credentials) == (Identity("mesh.example", "shop", "cart"),)


def test_without_a_rule_there_is_no_outside_issuer() -> None:
    assert callers.load_issuer(settings.Settings(), lambda: NOW) is None
