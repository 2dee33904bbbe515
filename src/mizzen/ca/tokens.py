"""Service-account tokens for a mesh without Kubernetes: their issuer and their verifier.

In and out: JSON web tokens with the claims of a Kubernetes projected service-account token, so that pilot-agent's
and istioctl's ways of sending them work unchanged. The verifier takes public keys only, binds each to its one
algorithm, and refuses whatever lacks an expiry, an audience or a consistent subject. TokenReview against an API
server is another verifier.
"""

import base64
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import jwt
import msgspec
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from mizzen.errors import AuthorityError

AUDIENCE = "istio-ca"
ISSUER = "https://mizzen.local"
LIFETIME = 43_200.0
"""Seconds; the expiry that Istio's injected volume asks for."""

_SUBJECT = "system:serviceaccount:"
_LEEWAY = 10.0
_LARGEST_TOKEN = 16 * 1024
_SMALLEST_RSA = 2048

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey


class ServiceAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a token speaks for, and the pod it was made for."""

    namespace: str
    name: str
    pod: str = ""
    pod_uid: str = ""
    node: str = ""


def generate_key() -> PrivateKey:
    """A new signing key (P-256)."""
    return ec.generate_private_key(ec.SECP256R1())


def encode_private_key(key: PrivateKey) -> bytes:
    """The key as unencrypted PKCS #8 PEM; write it to files of mode 0600 only."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def encode_public_key(key: PublicKey) -> bytes:
    """The key as PEM."""
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def decode_private_key(pem: bytes) -> PrivateKey:
    """A P-256 or RSA private key from PEM."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise AuthorityError("the token key is not an unencrypted PEM private key") from error
    if not isinstance(key, (ec.EllipticCurvePrivateKey, rsa.RSAPrivateKey)):
        raise AuthorityError("the token key is neither P-256 nor RSA")
    _algorithm(key.public_key())
    return key


def decode_public_keys(pem: bytes) -> tuple[PublicKey, ...]:
    """The public keys of a PEM file: public keys as they are, of private ones the public half."""
    found: list[PublicKey] = []
    for block in pem.split(b"-----BEGIN ")[1:]:
        text = b"-----BEGIN " + block
        if b"PRIVATE KEY-----" in block.splitlines()[0]:
            key: Any = decode_private_key(text).public_key()
        else:
            try:
                key = serialization.load_pem_public_key(text)
            except ValueError as error:
                raise AuthorityError("a block of the token key file is no PEM public key") from error
        _algorithm(key)
        found.append(key)
    if not found:
        raise AuthorityError("the token key file holds no PEM key")
    return tuple(found)


def _algorithm(key: Any) -> str:
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return "ES256"
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= _SMALLEST_RSA:
        return "RS256"
    raise AuthorityError("a token key must be P-256, or RSA of at least 2048 bits")


def key_id(key: PublicKey) -> str:
    """A name for the key, made of its content."""
    return _fingerprint(key).hex()[:32]


def kubernetes_key_id(key: PublicKey) -> str:
    """The name that an API server of Kubernetes gives the key in its tokens."""
    return base64.urlsafe_b64encode(_fingerprint(key)).rstrip(b"=").decode()


def _fingerprint(key: PublicKey) -> bytes:
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    digest = hashes.Hash(hashes.SHA256())
    digest.update(der)
    return digest.finalize()


class TokenIssuer:
    """Makes tokens with one key."""

    def __init__(self, key: PrivateKey, clock: Callable[[], float], issuer: str = ISSUER) -> None:
        self._key = key
        self._clock = clock
        self._issuer = issuer
        self._headers = {"kid": key_id(key.public_key())}
        self._algorithm = _algorithm(key.public_key())

    def issue(
        self,
        account: ServiceAccount,
        audiences: Sequence[str] = (AUDIENCE,),
        lifetime: float = LIFETIME,
    ) -> str:
        """A token for the account, good from now on for `lifetime` seconds."""
        now = int(self._clock())
        claims = {
            "aud": list(audiences),
            "exp": now + int(lifetime),
            "iat": now,
            "iss": self._issuer,
            "jti": secrets.token_hex(16),
            "kubernetes.io": _kubernetes_claims(account),
            "nbf": now,
            "sub": f"{_SUBJECT}{account.namespace}:{account.name}",
        }
        return jwt.encode(claims, self._key, algorithm=self._algorithm, headers=self._headers)


def _kubernetes_claims(account: ServiceAccount) -> dict[str, Any]:
    claims: dict[str, Any] = {"namespace": account.namespace, "serviceaccount": {"name": account.name}}
    if account.pod:
        claims["pod"] = {"name": account.pod, "uid": account.pod_uid}
    if account.node:
        claims["node"] = {"name": account.node}
    return claims


class KeyTokenVerifier:
    """Verifies tokens of one issuer against a set of public keys."""

    def __init__(
        self,
        keys: Sequence[PublicKey],
        clock: Callable[[], float],
        audiences: Sequence[str] = (AUDIENCE,),
        issuer: str = ISSUER,
    ) -> None:
        self._keys: Mapping[str, PublicKey] = {name(key): key for key in keys for name in (key_id, kubernetes_key_id)}
        self._only = keys[0] if len(keys) == 1 else None
        self._clock = clock
        self._audiences = frozenset(audiences)
        self._issuer = issuer

    async def verify(self, token: str) -> ServiceAccount:
        """Whom a good token speaks for; raises AuthorityError for any other."""
        key = self._select_key(read_key_id(token))
        claims = check_signature(token, key, _algorithm(key))
        check_claims(claims, self._issuer, self._audiences, self._clock())
        account = read_account(claims)
        check_kubernetes_claims(claims, account)
        return account

    def _select_key(self, name: str | None) -> PublicKey:
        if name is None and self._only is not None:
            return self._only
        key = self._keys.get(name) if name is not None else None
        if key is None:
            raise AuthorityError("the token is signed by an unknown key")
        return key


def read_key_id(token: str) -> str | None:
    """The id of the key that a token says it is signed with; raises AuthorityError for what is no token."""
    if len(token) > _LARGEST_TOKEN:
        raise AuthorityError("the token is too long")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError) as error:
        raise AuthorityError("the token is malformed") from error
    if "crit" in header:
        raise AuthorityError("the token has critical headers that are not known here")
    name = header.get("kid")
    if name is not None and not isinstance(name, str):
        raise AuthorityError("the token is signed by an unknown key")
    return name


def peek_issuer(token: str) -> object:
    """The issuer that a token claims, before anything is believed of it."""
    return peek_claims(token).get("iss")


def peek_claims(token: str) -> Mapping[str, Any]:
    """What a token claims, none of it to be believed; for whoever holds it."""
    try:
        claims: Any = jwt.decode(token, options=_NOTHING)
    except (jwt.PyJWTError, ValueError) as error:
        raise AuthorityError("the token is malformed") from error
    return claims if isinstance(claims, dict) else {}


def check_signature(token: str, key: PublicKey, *algorithms: str) -> dict[str, Any]:
    """The claims of a token that this key has signed, by one of these algorithms."""
    try:
        claims = jwt.decode(token, key, algorithms=list(algorithms), options=_SIGNATURE_ONLY)
    except (jwt.PyJWTError, ValueError) as error:
        raise AuthorityError("the token's signature does not verify") from error
    if not isinstance(claims, dict):
        raise AuthorityError("the token is malformed")
    return claims


def check_claims(claims: Mapping[str, Any], issuer: str, audiences: frozenset[str], now: float) -> None:
    """Raise AuthorityError for a token that is not of this issuer, for one of these audiences, and good now."""
    _check_times(claims, now)
    if claims.get("iss") != issuer:
        raise AuthorityError("the token is of another issuer")
    audience = claims.get("aud")
    named = [audience] if isinstance(audience, str) else audience
    if not isinstance(named, list) or not audiences.intersection(map(str, named)):
        raise AuthorityError("the token is for another audience")


def _check_times(claims: Mapping[str, Any], now: float) -> None:
    expiry = claims.get("exp")
    if not _is_number(expiry):
        raise AuthorityError("the token has no expiry")
    if now >= expiry:
        raise AuthorityError("the token has expired")
    for name in ("nbf", "iat"):
        start = claims.get(name, 0)
        if not _is_number(start) or start > now + _LEEWAY:
            raise AuthorityError("the token is not valid yet")


# Times, issuer and audience are checked here, against the clock that was passed in.
_SIGNATURE_ONLY: Any = {
    "verify_signature": True,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}


_NOTHING: Any = {**_SIGNATURE_ONLY, "verify_signature": False}


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def read_account(claims: Mapping[str, Any]) -> ServiceAccount:
    """The subject, with the pod that Kubernetes' own claims bind the token to.

    Raises AuthorityError where the subject is no service account.
    """
    subject = claims.get("sub")
    parts = subject.removeprefix(_SUBJECT).split(":") if isinstance(subject, str) else []
    if len(parts) != 2 or not str(subject).startswith(_SUBJECT) or not all(parts):
        raise AuthorityError("the token's subject is no service account")
    pod, node = _bound_to(claims, "pod"), _bound_to(claims, "node")
    return ServiceAccount(
        namespace=parts[0],
        name=parts[1],
        pod=pod.get("name", ""),
        pod_uid=pod.get("uid", ""),
        node=node.get("name", ""),
    )


def _bound_to(claims: Mapping[str, Any], what: str) -> dict[str, str]:
    details = claims.get("kubernetes.io")
    found = details.get(what) if isinstance(details, dict) else None
    return {key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}


def check_kubernetes_claims(claims: Mapping[str, Any], account: ServiceAccount) -> None:
    """Raise AuthorityError where Kubernetes' own claims do not say the same as the subject."""
    details = claims.get("kubernetes.io")
    if not isinstance(details, dict) or details.get("namespace") != account.namespace:
        raise AuthorityError("the token's claims disagree about its namespace")
    found = details.get("serviceaccount")
    if not isinstance(found, dict) or found.get("name") != account.name:
        raise AuthorityError("the token's claims disagree about its service account")
