"""Forged papers: workload certificates that are wrong in one point each, and tokens that are.

`Keyring` signs with the mesh's own root, as only somebody could who had stolen it: what such certificates are refused
for is then the point itself and nothing else. Tokens of end users come from `USERS`, tokens of service accounts from a
`Stamp` over the key of the local mesh's issuer. All keys are made for one run.
"""

import base64
import datetime
import functools
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from traffic_certificates import ROOT as TRUSTED

from mizzen.ca import certificates, tokens
from mizzen.ca.certificates import Signer

DOMAIN = "cluster.local"
_DAY = 24 * 3600.0
_SETTLE = "3"
"""Seconds that a client with forged papers gives the server to say what it thinks of them."""
_ISTIO_ALPN = {"h1": "istio-http/1.1,istio,http/1.1", "h2": "istio-h2,istio,h2", "tcp": "istio-peer-exchange,istio"}

Papers = Mapping[str, str]
"""Certificate chain and key as PEM; empty for none."""


def spiffe(account: str, namespace: str = "vault", domain: str = DOMAIN) -> str:
    return f"spiffe://{domain}/ns/{namespace}/sa/{account}"


class Keyring:
    """Certificates by name: `front` and `other` are good ones of those accounts, the rest is forged."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._made: dict[str, Papers] = {}

    def papers(self, name: str) -> Papers:
        if name not in self._made:
            forge = _FORGERIES.get(name) or _OTHERS.get(name)
            self._made[name] = forge(self._signer) if forge else issue(self._signer, spiffe(name))
        return self._made[name]

    def tls(self, name: str, protocol: str = "h1") -> dict[str, str]:
        """What a client shows to a sidecar."""
        shown = {"alpn": _ISTIO_ALPN[protocol], "sni": "outbound_.80_._.target.vault.svc.cluster.local"}
        settled = {"settle": _SETTLE} if name in _FORGERIES else {}
        return shown | settled | dict(self.papers(name))


def issue(signer: Signer, *names: str, start: float = 0.0, life: float = _DAY) -> Papers:
    """A certificate for these names, good from `start` seconds from now on."""
    key = ec.generate_private_key(ec.SECP256R1())
    begin = time.time() + start
    leaf = certificates.build_leaf(signer, key.public_key(), names, begin + life, begin)
    return _papers(key, leaf, *signer.intermediates)


def _papers(key: ec.EllipticCurvePrivateKey, *chain: x509.Certificate) -> Papers:
    return {"certificate": certificates.encode(*chain).decode(), "key": certificates.encode_key(key).decode()}


def _self_signed(_: Signer) -> Papers:
    """The right name, vouched for by nobody."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    name = x509.Name([])
    uris = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(spiffe("front"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(hours=1))
    builder = builder.not_valid_after(now + datetime.timedelta(hours=1)).add_extension(uris, critical=True)
    return _papers(key, builder.sign(key, hashes.SHA256()))


def _foreign_root(_: Signer) -> Papers:
    """The right name from a root that bears the mesh's own subject."""
    return issue(certificates.build_root(DOMAIN, 10 * _DAY, 2048, time.time()), spiffe("front"))


def _leaf_signed(signer: Signer) -> Papers:
    """A certificate that a workload signed with its own: the chain leads to the root, through no authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = time.time()
    own = certificates.build_leaf(signer, key.public_key(), (spiffe("other"),), now + _DAY, now)
    pretender = Signer(certificate=own, key=key, intermediates=(own,), roots=signer.roots)
    return issue(pretender, spiffe("front"))


def _named(*names: str, **times: float) -> Callable[[Signer], Papers]:
    return lambda signer: issue(signer, *names, **times)


_OTHERS: Mapping[str, Callable[[Signer], Papers]] = {
    "front-elsewhere": _named(spiffe("front", namespace="outside")),
    "front-longer": _named(spiffe("frontier")),
    "edge-client": lambda _: dict(zip(("certificate", "key"), TRUSTED.issue("client.example"), strict=True)),
}
"""Good papers whose names do not follow from their holder's; the last are of a client outside the mesh."""
_FORGERIES: Mapping[str, Callable[[Signer], Papers]] = {
    "anonymous": lambda _: {},
    "foreign-domain": _named(spiffe("front", domain="evil.example")),
    "lookalike-domain": _named(spiffe("front", domain=f"{DOMAIN}.evil.example")),
    "nameless": _named("front.vault.svc.cluster.local"),
    "expired": _named(spiffe("front"), start=-7200.0, life=3600.0),
    "early": _named(spiffe("front"), start=7200.0),
    "self-signed": _self_signed,
    "foreign-root": _foreign_root,
    "leaf-signed": _leaf_signed,
    "gateway": _named(spiffe("ingress", namespace="gateways")),
}
"""What TLS is to refuse; the last is good inside the mesh."""


# -- tokens of end users ----------------------------------------------------------------------------------------------

ISSUER = "https://users.example"
AUDIENCE = "vault"
_ALGORITHM = "ES256"


def _encode(content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def _decode(part: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def _sign(secret: bytes, text: str) -> str:
    digest = hmac.new(secret, text.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class Users:
    """One issuer of tokens."""

    def __init__(self, issuer: str = ISSUER, kid: str = "k1") -> None:
        self.issuer = issuer
        self.kid = kid
        self._key = ec.generate_private_key(ec.SECP256R1())

    @functools.cached_property
    def jwks(self) -> str:
        public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self._key.public_key()))
        return json.dumps({"keys": [{**public, "kid": self.kid, "alg": _ALGORITHM, "use": "sig"}]})

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.issuer, "sub": "alice", "aud": AUDIENCE, "iat": now, "exp": now + 3600, "role": "user"}
        return {name: value for name, value in (claims | changes).items() if value is not None}

    def token(self, headers: Mapping[str, Any] | None = None, **changes: Any) -> str:
        """A good token, but for what is changed."""
        return jwt.encode(
            self.claims(**changes), self._key, algorithm=_ALGORITHM, headers={"kid": self.kid, **(headers or {})}
        )

    def tampered(self, **changes: Any) -> str:
        """The signature of one payload under another."""
        head, payload, signature = self.token().split(".")
        return ".".join((head, _encode(_decode(payload) | changes), signature))

    def cut(self) -> str:
        """A token whose signature ends early."""
        return self.token()[:-16]

    def bent(self) -> str:
        """A token with one bit of its signature turned."""
        head, payload, signature = self.token().split(".")
        turned = "A" if signature[20] != "A" else "B"
        return ".".join((head, payload, signature[:20] + turned + signature[21:]))

    def unsigned(self, algorithm: str, signature: str = "") -> str:
        return f"{_encode({'alg': algorithm, 'typ': 'JWT', 'kid': self.kid})}.{_encode(self.claims())}.{signature}"

    def keyed_by_public_half(self) -> str:
        """HS256 with the issuer's public key, which everybody has, as the secret."""
        secret = tokens.encode_public_key(self._key.public_key())
        signed = f"{_encode({'alg': 'HS256', 'typ': 'JWT', 'kid': self.kid})}.{_encode(self.claims())}"
        return f"{signed}.{_sign(secret, signed)}"

    def self_keyed(self) -> str:
        """A token that brings the key that it is to be verified with."""
        stranger = Users(self.issuer, self.kid)
        return stranger.token({"jwk": json.loads(stranger.jwks)["keys"][0]})


USERS = Users()
STRANGERS = Users()
"""Somebody who claims to be the same issuer."""
FETCHED = Users("https://fetched.example", "k2")
"""An issuer whose keys the control plane fetches."""
UNREACHABLE = Users("https://unreachable.example", "k3")
"""An issuer whose keys cannot be fetched."""


# -- tokens of service accounts ---------------------------------------------------------------------------------------


_ODD: Mapping[str, Mapping[str, Any]] = {
    "good": {},
    "expired": {"start": -7200.0, "lifetime": 3600.0},
    "early": {"start": 7200.0},
    "wrong-audience": {"audiences": ("somebody-else",)},
    "wrong-issuer": {"issuer": "https://evil.example"},
}
"""Tokens that the right key signs."""


class Stamp:
    """Tokens as the issuer of a local mesh makes them, and forged ones, by name."""

    def __init__(self, key: tokens.PrivateKey) -> None:
        self._key = key
        self._stranger = tokens.generate_key()

    def token(self, kind: str, namespace: str, account: str) -> str:
        """`good`, `none`, or what is wrong with it."""
        if kind == "none":
            return ""
        if kind in _ODD:
            return self._issue(namespace, account, **_ODD[kind])
        head, payload, _ = self._issue(namespace, account).split(".")
        forge = {
            "unknown-key": lambda: self._signed_by_stranger({}, payload),
            "stolen-key-id": lambda: self._signed_by_stranger({"kid": _decode(head)["kid"]}, payload),
            "alg-none": lambda: f"{_encode(_decode(head) | {'alg': 'none'})}.{payload}.",
            "public-key-as-secret": lambda: self._keyed_by_public_half(_decode(head), payload),
            "tampered": lambda: f"{head}.{payload}.{self._issue('outside', 'mallory').split('.')[2]}",
        }
        return forge[kind]()

    def _signed_by_stranger(self, headers: Mapping[str, str], payload: str) -> str:
        named = {"kid": tokens.key_id(self._stranger.public_key()), **headers}
        return jwt.encode(_decode(payload), self._stranger, algorithm="ES256", headers=named)

    def _keyed_by_public_half(self, head: Mapping[str, Any], payload: str) -> str:
        """HS256 with the issuer's public key, which everybody has, as the secret."""
        signed = f"{_encode({**head, 'alg': 'HS256'})}.{payload}"
        return f"{signed}.{_sign(tokens.encode_public_key(self._key.public_key()), signed)}"

    def _issue(
        self, namespace: str, account: str, *, start: float = 0.0, issuer: str = tokens.ISSUER, **options: Any
    ) -> str:
        issuing = tokens.TokenIssuer(self._key, lambda: time.time() + start, issuer)
        return issuing.issue(tokens.ServiceAccount(namespace=namespace, name=account), **options)
