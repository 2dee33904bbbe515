"""Tokens of an issuer outside the mesh: the rule that trusts one, its key set, and the verifier.

In: the rule of `JWT_RULE`, as istiod takes it (an issuer, audiences, and a key set or where it is), and key sets as
text. Out: the service account of a good token, whose subject must spell one as Kubernetes does. Key sets are
fetched elsewhere (`KeySource`). Only asymmetric keys are taken, each for the algorithms of its own type.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from mizzen.ca import tokens
from mizzen.errors import AuthorityError

KeySet = Mapping[str, tokens.PublicKey]
"""Public keys by id; one without an id has the empty one."""

_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_SMALLEST_RSA = 2048
_MOST_KEYS = 100


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Which tokens are believed."""

    issuer: str
    audiences: tuple[str, ...] = ()
    """None given means those that tokens of the mesh have."""
    jwks_uri: str = ""
    """Where the key set is; empty means where the issuer's discovery document says."""
    jwks: str = ""
    """The key set itself, in place of all that."""

    @property
    def key_set_uri(self) -> str:
        """What to fetch."""
        return self.jwks_uri or f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"


def parse_rule(text: str) -> Rule:
    """The rule in JSON with Istio's field names, in either spelling; raises AuthorityError for one of no use."""
    try:
        found = json.loads(text)
        fields = {name: value for name, value in found.items() if value}
        spelled = {{"jwksUri": "jwks_uri"}.get(name, name): value for name, value in fields.items()}
        rule = msgspec.convert(spelled, Rule)
    except (ValueError, AttributeError, msgspec.ValidationError) as error:
        raise AuthorityError(f"JWT_RULE is not the JSON of a rule with an issuer: {error}") from error
    if rule.jwks:
        decode_key_set(rule.jwks)
    return rule


def decode_key_set(text: str) -> KeySet:
    """The keys of a key set that can verify tokens; others in it are passed over."""
    try:
        listed = json.loads(text)["keys"]
        keys = [each for each in listed if isinstance(each, dict)]
    except (ValueError, KeyError, TypeError) as error:
        raise AuthorityError("the issuer's key set is not the JSON of one") from error
    found: dict[str, tokens.PublicKey] = {}
    for each in keys[:_MOST_KEYS]:
        key = _decode_key(each)
        if key is not None:
            found.setdefault(str(each.get("kid", "")), key)
    if not found:
        raise AuthorityError("the issuer's key set holds no RSA or elliptic-curve key")
    return found


def _decode_key(document: dict[str, Any]) -> tokens.PublicKey | None:
    if document.get("kty") not in ("RSA", "EC") or document.get("use", "sig") != "sig" or "d" in document:
        return None
    try:
        key: Any = jwt.PyJWK(document, algorithm="RS256" if document["kty"] == "RSA" else None).key
    except (jwt.PyJWTError, ValueError, KeyError, TypeError):
        return None
    usable = isinstance(key, ec.EllipticCurvePublicKey) or (
        isinstance(key, rsa.RSAPublicKey) and key.key_size >= _SMALLEST_RSA
    )
    return key if usable else None


def _algorithms(key: tokens.PublicKey) -> Sequence[str]:
    if isinstance(key, rsa.RSAPublicKey):
        return _RSA
    algorithm = _CURVES.get(key.curve.name)
    return (algorithm,) if algorithm else ()


class KeySource(Protocol):
    """Whoever has the issuer's keys."""

    async def find(self, name: str | None) -> tokens.PublicKey:
        """The key of that id, or the only one there is; raises AuthorityError where there is none."""
        ...


class KnownKeys:
    """A key set that never changes."""

    def __init__(self, keys: KeySet) -> None:
        self._keys = keys

    async def find(self, name: str | None) -> tokens.PublicKey:
        """The key of that id, or the only one there is."""
        return select_key(self._keys, name)


def select_key(keys: KeySet, name: str | None) -> tokens.PublicKey:
    """The key of that id, or the only one for a token that names none; raises AuthorityError for others."""
    found = keys.get(name or "")
    if found is None and name is None and len(keys) == 1:
        found = next(iter(keys.values()))
    if found is None:
        raise AuthorityError("the token is signed by a key that its issuer does not publish")
    return found


class IssuerTokenVerifier:
    """Verifies the tokens that a rule trusts."""

    def __init__(
        self, rule: Rule, keys: KeySource, clock: Callable[[], float], audiences: Sequence[str] = (tokens.AUDIENCE,)
    ) -> None:
        self._issuer = rule.issuer
        self._audiences = frozenset(rule.audiences or audiences)
        self._keys = keys
        self._clock = clock

    async def verify(self, token: str) -> tokens.ServiceAccount:
        """Whom a good token speaks for; raises AuthorityError for any other."""
        name = tokens.read_key_id(token)
        if tokens.peek_issuer(token) != self._issuer:
            # Before its key is looked for: strangers' tokens must not make anybody fetch.
            raise AuthorityError("the token is of another issuer")
        key = await self._keys.find(name)
        claims = tokens.check_signature(token, key, *_algorithms(key))
        tokens.check_claims(claims, self._issuer, self._audiences, self._clock())
        return tokens.read_account(claims)
