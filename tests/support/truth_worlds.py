"""Meshes of the truth table: trust domains, path handling, external authorizers, and what callers there look like.

A world is one mesh config. All callers of all worlds share one root certificate and one pair of token issuers; who
calls is told by the certificate's name, as in a real mesh.
"""

import functools
import json
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from traffic_certificates import ROOT

from mizzen.diagnose.authorization.paths import Normalization
from mizzen.diagnose.authorization.workload import Workload

NAMESPACE = "shop"
LABELS = {"app": "till", "tier": "front.one"}
HTTP_PORTS, TCP_PORTS, AUTO_PORTS = (8080, 8081), (9000, 9001), (7000, 6000)
"""Workload ports: 8080 to 9001 are declared with their protocols, 7000 without one, 6000 is in no Service."""

ISSUERS = ("https://issuer.example", "https://other.example/realms/one")
FILTER = "envoy.filters.http.truth"
METADATA = {FILTER: {"zone": "east-1", "tiers": ["gold", "silver"], "count": 3}}
"""What a filter in front of all policies leaves."""

PROVIDERS = ("yes-http", "no-http", "yes-grpc", "no-grpc")
"""External authorizers by what they answer to everything and how they are asked."""


class World(msgspec.Struct, frozen=True, kw_only=True):
    """One mesh config."""

    name: str
    trust_domain: str
    aliases: tuple[str, ...]
    root_namespace: str
    paths: str

    @property
    def domains(self) -> tuple[str, ...]:
        return (self.trust_domain, *sorted(self.aliases))

    @property
    def mesh_config(self) -> dict[str, Any]:
        return {
            "trustDomain": self.trust_domain,
            "trustDomainAliases": list(self.aliases),
            "rootNamespace": self.root_namespace,
            "pathNormalization": {"normalization": self.paths},
            "extensionProviders": [_provider(name) for name in (*PROVIDERS, "absent")],
        }

    @property
    def workload(self) -> Workload:
        return Workload(
            namespace=NAMESPACE,
            labels=LABELS,
            root_namespace=self.root_namespace,
            trust_domains=self.domains,
            normalization=Normalization.of_mesh(self.paths),
            providers={name: "http" if name.endswith("http") else "grpc" for name in PROVIDERS},
        )

    @property
    def identities(self) -> tuple[str, ...]:
        """The callers whose certificates servers of this world accept."""
        return tuple(f"spiffe://{domain}/{account}" for domain in self.domains for account in ACCOUNTS)


ACCOUNTS = ("ns/shop/sa/web", "ns/front/sa/web", "ns/front/sa/robot", "ns/shop/sa/robot-2", "ns/ops/x/sa/robot")


def _provider(name: str) -> dict[str, Any]:
    kind = "envoyExtAuthzGrpc" if name.endswith("grpc") else "envoyExtAuthzHttp"
    return {"name": name, kind: {"service": f"{name}.auth.svc.cluster.local", "port": 8000, "timeout": "30s"}}


WORLDS = (
    World(name="plain", trust_domain="cluster.local", aliases=(), root_namespace="istio-system", paths="DEFAULT"),
    World(
        name="aliases",
        trust_domain="new.shop.example",
        aliases=("old.shop.example", "legacy"),
        root_namespace="mesh",
        paths="NONE",
    ),
    World(
        name="merging",
        trust_domain="shop.example",
        aliases=("cluster.local",),
        root_namespace="istio-system",
        paths="MERGE_SLASHES",
    ),
    World(
        name="decoding",
        trust_domain="cluster.local",
        aliases=("shop.example",),
        root_namespace="istio-system",
        paths="DECODE_AND_MERGE_SLASHES",
    ),
)

# -- what callers bring -----------------------------------------------------------------------------------------------

_EXAMPLE = ISSUERS[0]
CLAIMS: tuple[dict[str, Any] | None, ...] = (
    None,
    {
        "iss": _EXAMPLE, "sub": "ann", "aud": ["shop", "api.shop"], "azp": "web-client", "groups": ["dev", "ops"],
        "scope": "read write", "age": 42, "vip": True, "realm": {"roles": ["admin", "user"], "level": "gold"},
        "https://shop.example/role": "admin",
    },
    {
        "iss": _EXAMPLE, "sub": "bob", "aud": "shop", "azp": "cli", "groups": [], "scope": "read",
        "realm": {"level": "silver"}, "permission": "pay refund", "team": "red",
    },
    {"iss": ISSUERS[1], "sub": "svc/robot", "aud": "api.shop", "groups": "dev", "realm": "gold", "team": ["red", 7]},
    {"iss": _EXAMPLE, "sub": "", "aud": "other", "azp": "", "team": ""},
    {"iss": ISSUERS[1], "aud": [], "groups": ["ops-team", 3], "age": "42"},
)  # fmt: skip
"""The payloads of all tokens; None for a caller without one."""


@functools.cache
def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@functools.cache
def token(number: int) -> str:
    """The signed token with these claims."""
    claims = CLAIMS[number]
    return jwt.encode(claims, _key(), algorithm="RS256", headers={"kid": "truth"}) if claims is not None else ""


def request_authentication(world: World) -> dict[str, Any]:
    """Both issuers' tokens are accepted everywhere."""
    public = {**json.loads(RSAAlgorithm.to_jwk(_key().public_key())), "kid": "truth", "alg": "RS256"}
    rules = [{"issuer": issuer, "jwks": json.dumps({"keys": [public]})} for issuer in ISSUERS]
    return {
        "apiVersion": "security.istio.io/v1",
        "kind": "RequestAuthentication",
        "metadata": {"name": "tokens", "namespace": world.root_namespace},
        "spec": {"jwtRules": rules},
    }


@functools.cache
def certificate(identity: str) -> tuple[str, str]:
    """The chain and key of a caller."""
    return ROOT.issue(identity)
