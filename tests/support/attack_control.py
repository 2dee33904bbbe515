"""Attempts on control planes: discovery and certificates with stolen or forged credentials, ports without any."""

from attack_attempts import Attempt
from attack_calls import DEBUG, Discovery, Page, Signing
from attack_material import spiffe

_STREAM = Discovery()
_UNAUTHENTICATED = r"^UNAUTHENTICATED authentication failure"
_FORGED_TOKENS = {
    "none": "no bearer token",
    "expired": "the token has expired",
    "early": "the token is not valid yet",
    "wrong-audience": "the token is for another audience",
    "wrong-issuer": "the token is of another issuer",
    "unknown-key": "the token is signed by an unknown key",
    "stolen-key-id": "the token's signature does not verify",
    "alg-none": "the token's signature does not verify",
    "public-key-as-secret": "the token's signature does not verify",
    "tampered": "the token's signature does not verify",
}

_TOKENS = (
    *(
        Attempt(name=f"ads-token-{kind}", twin=_STREAM, forged={"token": kind}, answer=rf"{_UNAUTHENTICATED}.*{why}")
        for kind, why in _FORGED_TOKENS.items()
    ),
    *(
        Attempt(
            name=f"csr-token-{kind}",
            twin=Signing(wanted=spiffe("front")),
            forged={"token": kind},
            answer=r"^UNAUTHENTICATED request authenticate failure",
        )
        for kind in _FORGED_TOKENS
    ),
)

_NODES = tuple(
    Attempt(name=f"ads-{name}", twin=_STREAM, forged=forged, answer=r"^PERMISSION_DENIED authorization failed")
    for name, forged in (
        ("stolen-node-id", {"token_of": ("outside", "mallory")}),
        ("stolen-node-id-same-namespace", {"token_of": ("vault", "other")}),
        ("stolen-node-id-same-account-elsewhere", {"token_of": ("outside", "front")}),
        ("proxy-id-elsewhere", {"node": ("ingress", "gateways", "front")}),
        ("other-account-in-node", {"node": ("front", "vault", "other")}),
        ("stolen-node-id-without-metadata", {"token_of": ("outside", "mallory"), "says_namespace": False}),
    )
)

_STATE = (
    Attempt(
        name="ads-stolen-node-id-state-of-the-world",
        twin=Discovery(delta=False),
        forged={"token_of": ("outside", "mallory")},
        answer=r"^PERMISSION_DENIED authorization failed",
    ),
    Attempt(
        name="ads-expired-token-state-of-the-world",
        twin=Discovery(delta=False),
        forged={"token": "expired"},
        answer=rf"{_UNAUTHENTICATED}.*the token has expired",
    ),
)

_FRONT = Signing(wanted=spiffe("front"))
_OTHER = {"wanted": spiffe("other")}
_SIGNED = r"^OK a certificate for spiffe://cluster\.local/ns/vault/sa/front$"
_REQUESTS = (
    Attempt(
        name="csr-other-name-in-request",
        twin=_FRONT,
        forged={"asked": (spiffe("other"),), **_OTHER},
        answer=_SIGNED,
    ),
    Attempt(
        name="csr-other-name-beside-own",
        twin=_FRONT,
        forged={"asked": (spiffe("front"), spiffe("other")), **_OTHER},
        answer=_SIGNED,
    ),
    Attempt(
        name="csr-control-planes-name",
        twin=_FRONT,
        forged={"asked": ("https://istiod.istio-system.svc",), "wanted": "https://istiod.istio-system.svc"},
        answer=_SIGNED,
    ),
    Attempt(
        name="csr-impersonation",
        twin=_FRONT,
        forged={"impersonated": spiffe("other"), **_OTHER},
        answer=r"^UNAUTHENTICATED request impersonation authentication failure",
    ),
    Attempt(
        name="csr-impersonation-of-oneself",
        twin=_FRONT,
        forged={"impersonated": spiffe("front")},
        answer=r"^UNAUTHENTICATED request impersonation authentication failure",
    ),
    Attempt(
        name="csr-life-of-a-century",
        twin=_FRONT,
        forged={"life": 100 * 365 * 24 * 3600},
        answer=r"^INVALID_ARGUMENT CSR signing error .*TTL",
    ),
    Attempt(
        name="csr-that-is-none",
        twin=_FRONT,
        forged={"csr": "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"},
        answer=r"^INVALID_ARGUMENT CSR signing error",
    ),
)

_CLUSTERS = Discovery(plane="mutual", papers="front")
_CERTIFICATES = (
    *(
        Attempt(
            name=f"ads-certificate-{papers}",
            twin=_CLUSTERS,
            forged={"papers": papers},
            answer=r"^UNAVAILABLE TLS closed$",
        )
        for papers in ("anonymous", "expired", "self-signed", "foreign-root", "leaf-signed")
    ),
    Attempt(
        name="ads-certificate-foreign-domain",
        twin=_CLUSTERS,
        forged={"papers": "foreign-domain"},
        answer=rf"{_UNAUTHENTICATED}.*trust domain 'evil.example' is not trusted",
    ),
    Attempt(
        name="ads-certificate-nameless",
        twin=_CLUSTERS,
        forged={"papers": "nameless"},
        answer=_UNAUTHENTICATED,
    ),
    Attempt(
        name="ads-certificate-of-another-account",
        twin=_CLUSTERS,
        forged={"papers": "other"},
        answer=r"^PERMISSION_DENIED authorization failed",
    ),
    Attempt(
        name="ads-certificate-of-another-namespace",
        twin=_CLUSTERS,
        forged={"papers": "front-elsewhere"},
        answer=r"^PERMISSION_DENIED authorization failed",
    ),
    Attempt(
        name="csr-certificate-of-another-account",
        twin=Signing(plane="mutual", papers="front", wanted=spiffe("front")),
        forged={"papers": "other"},
        answer=r"^OK a certificate for spiffe://cluster\.local/ns/vault/sa/other$",
    ),
    Attempt(
        name="ads-mesh-token-at-another-control-plane",
        twin=Discovery(plane="token"),
        forged={"token": "unknown-key"},
        answer=_UNAUTHENTICATED,
    ),
)

_CONSOLE = Discovery(
    node=("admin", "istio-system", "admin"), token_of=("istio-system", "admin"), type_url=DEBUG, names=("syncz",)
)
_WORKLOAD = {"node": ("front", "vault", "front"), "token_of": ("vault", "front")}
_STREAMS = (
    *(
        Attempt(
            name=f"debug-stream-{page}-by-a-workload",
            twin=_CONSOLE,
            forged={"names": (page,), **_WORKLOAD},
            answer=r"^PERMISSION_DENIED the debug info is not available",
        )
        for page in ("syncz", "adsz", "connections")
    ),
    Attempt(
        name="debug-stream-dump-of-another-namespace",
        twin=Discovery(type_url=f"{DEBUG}/config_dump", names=("front.vault",)),
        forged={"names": ("ingress.gateways",)},
        answer=r"^OK 0 resources",
    ),
    Attempt(
        name="debug-stream-expired-token",
        twin=_CONSOLE,
        forged={"token": "expired"},
        answer=_UNAUTHENTICATED,
    ),
)

_REFUSED = r"ConnectionRefusedError"
_DEBUG = Page(pod="plane", port=15014, path="/debug/syncz", token="good")
_PAGES = (
    *(
        Attempt(
            name=f"debug-{page}-without-credentials",
            twin=_DEBUG,
            forged={"path": path, "token": "none"},
            answer=r"^401$",
        )
        for page, path in (
            ("index", "/debug/"),
            ("syncz", "/debug/syncz"),
            ("config-dump", "/debug/config_dump?proxyID=front"),
            ("adsz", "/debug/adsz"),
            ("problems", "/debug/problems"),
            ("unknown", "/debug/nothing"),
        )
    ),
    Attempt(
        name="debug-on-8080-without-credentials", twin=_DEBUG, forged={"port": 8080, "token": "none"}, answer=r"^401$"
    ),
    *(
        Attempt(name=f"debug-token-{kind}", twin=_DEBUG, forged={"token": kind}, answer=r"^401$")
        for kind in ("expired", "unknown-key", "alg-none", "wrong-audience")
    ),
    Attempt(
        name="debug-forged-origin",
        twin=_DEBUG,
        forged={"token": "none", "headers": (("X-Forwarded-For", "127.0.0.1"), ("Forwarded", "for=127.0.0.1"))},
        answer=r"^401$",
    ),
    Attempt(
        name="debug-token-of-a-workload",
        twin=_DEBUG,
        forged={"token_of": ("vault", "front")},
        answer=r"^403$",
    ),
    Attempt(
        name="debug-path-around-the-check",
        twin=_DEBUG,
        forged={"token": "none", "path": "//debug/syncz"},
        answer=r"^(401|404)",
    ),
    Attempt(
        name="debug-path-below-metrics",
        twin=_DEBUG,
        forged={"token": "none", "path": "/metrics/../debug/syncz"},
        answer=r"^(401|404)",
    ),
    Attempt(
        name="discovery-15010-of-another-pod",
        twin=Discovery(plane="token"),
        forged={"plane": "plain"},
        answer=r"^UNAVAILABLE.*Connection refused",
    ),
    *(
        Attempt(
            name=f"mesh-control-plane-{port}-from-a-pod",
            twin=_DEBUG,
            forged={"address": "10.44.0.1", "port": port, "path": path, "token": "none"},
            answer=_REFUSED,
        )
        for port, path in ((15010, "/"), (15014, "/debug/syncz"), (8080, "/debug/syncz"))
    ),
)

ATTEMPTS = (*_TOKENS, *_NODES, *_STATE, *_REQUESTS, *_CERTIFICATES, *_STREAMS, *_PAGES)
