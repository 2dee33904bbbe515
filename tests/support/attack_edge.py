"""Attempts at gateways: what clients outside say of themselves, and certificates of other namespaces."""

import msgspec
from attack_attempts import Attempt, by_policy
from attack_calls import SECRET, Discovery, Handshake, Observed, Request
from attack_material import spiffe
from traffic_certificates import ROOT as TRUSTED

_DENIED = r"^403 RBAC: access denied"
_EDGE = Request(pod="ingress", path="/anything", host="edge.example", program="deny")
_FORGED = f"By={spiffe('deny')};URI={spiffe('front')}"
_REMOTE = Request(
    pod="ingress",
    path="/remote",
    host="edge.example",
    program="deny",
    headers=(("x-forwarded-for", "198.51.100.9,203.0.113.7"),),
)
_HERE = Request(pod="thief", path="/remote", host="edge.example", program="deny")

_HOSTS = tuple(
    Attempt(name=f"gateway-host-{name}", twin=_EDGE, forged={"host": host}, answer=answer, details=details)
    for name, host, answer, details in (
        ("denied", "admin.example", _DENIED, by_policy("edge-deny", 0, "gateways")),
        ("upper-case", "Admin.EXAMPLE", _DENIED, by_policy("edge-deny", 0, "gateways")),
        ("with-port", "admin.example:8080", _DENIED, by_policy("edge-deny", 0, "gateways")),
        ("with-another-port", "admin.example:99", _DENIED, by_policy("edge-deny", 0, "gateways")),
        ("trailing-dot", "admin.example.", r"^404", r"route_not_found"),
        ("unknown", "deny.vault.svc.cluster.local", r"^404", r"route_not_found"),
        ("of-an-address", "$(ingress)", r"^404", r"route_not_found"),
    )
)


def _dropped(name: str, value: str, gateway: str = "ingress") -> Attempt:
    """A header that speaks to Envoys is taken away; one of the client's own arrives."""
    return Attempt(
        name=f"gateway-header-{name}",
        twin=Observed(
            pod=gateway,
            host="edge.example",
            program="deny",
            headers=(("x-own", value),),
            forged=value,
            watched=("x-own", name),
        ),
        forged={"headers": ((name, value),)},
        answer=rf"arrived with .*'{name}': '(?!{value})",
    )


_HEADERS = (
    _dropped("x-forwarded-client-cert", _FORGED),
    _dropped("x-forwarded-proto", "forged", "thief"),
    *(
        _dropped(name, value)
        for name, value in (
            ("x-envoy-internal", "true-forged"),
            ("x-envoy-external-address", "203.0.113.99"),
            ("x-envoy-upstream-rq-timeout-ms", "54321"),
            ("x-envoy-upstream-rq-per-try-timeout-ms", "54321"),
            ("x-envoy-expected-rq-timeout-ms", "54321"),
            ("x-envoy-retry-on", "forged-5xx"),
            ("x-envoy-retry-grpc-on", "forged"),
            ("x-envoy-max-retries", "54321"),
            ("x-envoy-upstream-alt-stat-name", "forged"),
            ("x-envoy-decorator-operation", "forged"),
            ("x-envoy-force-trace", "forged"),
            ("x-envoy-downstream-service-cluster", "forged"),
            ("x-envoy-downstream-service-node", "forged"),
            ("x-envoy-original-path", "/forged"),
            ("x-envoy-ip-tags", "forged"),
            ("x-envoy-attempt-count", "54321"),
        )
    ),
)

_ADDRESSES = (
    Attempt(
        name="gateway-address-before-the-trusted-proxy",
        twin=_REMOTE,
        forged={"headers": (("x-forwarded-for", "203.0.113.7,198.51.100.9"),)},
        answer=_DENIED,
        details=by_policy("edge-deny", 2, "gateways"),
    ),
    Attempt(
        name="gateway-address-in-two-headers",
        twin=_REMOTE,
        forged={"headers": (("x-forwarded-for", "203.0.113.7"), ("x-forwarded-for", "198.51.100.9"))},
        answer=_DENIED,
        details=by_policy("edge-deny", 2, "gateways"),
    ),
    Attempt(
        name="gateway-address-without-header",
        twin=_REMOTE,
        forged={"headers": ()},
        answer=_DENIED,
        details=by_policy("edge-deny", 2, "gateways"),
    ),
    Attempt(
        name="gateway-address-of-the-connection",
        twin=_REMOTE,
        forged={"path": "/direct"},
        answer=_DENIED,
        details=by_policy("edge-deny", 3, "gateways"),
    ),
    Attempt(
        name="gateway-address-without-trusted-proxies",
        twin=_HERE,
        forged={"path": "/remote-elsewhere", "headers": (("x-forwarded-for", "203.0.113.7"),)},
        answer=_DENIED,
        details=by_policy("thief-remote", 1, "thieves"),
    ),
    Attempt(
        name="gateway-address-of-loopback",
        twin=_HERE,
        forged={"source": "deny", "headers": (("x-forwarded-for", "$(mallory)"),)},
        answer=_DENIED,
        details=by_policy("thief-remote", 0, "thieves"),
    ),
)

_CERTIFICATE = Request(
    pod="ingress", port=8443, host="edge.example", by="edge-client", sni="edge.example", program="deny"
)
_CLIENTS = (
    Attempt(
        name="gateway-without-client-certificate",
        twin=_CERTIFICATE,
        forged={"by": "anonymous"},
        answer=r"TLS: TLSV13_ALERT_CERTIFICATE_REQUIRED",
        counter=r"ssl\.fail_verify_no_cert$",
    ),
    Attempt(
        name="gateway-with-a-workloads-certificate",
        twin=_CERTIFICATE,
        forged={"by": "gateway"},
        answer=r"TLS: TLSV1_ALERT_UNKNOWN_CA",
        counter=r"ssl\.fail_verify_error$",
    ),
    Attempt(
        name="gateway-tls-for-another-name",
        twin=_CERTIFICATE,
        forged={"sni": "admin.example"},
        answer=r"ConnectionResetError|^closed|TLS: ",
        counter=r"no_filter_chain_match$",
    ),
    Attempt(
        name="gateway-tls-host-of-another-server",
        twin=_CERTIFICATE,
        forged={"host": "admin.example"},
        answer=_DENIED,
        details=by_policy("edge-deny", 0, "gateways"),
    ),
    Attempt(
        name="gateway-plaintext-on-the-tls-port",
        twin=_CERTIFICATE,
        forged={"by": ""},
        answer=r"ConnectionResetError|^closed",
        counter=r"no_filter_chain_match$",
    ),
)

_OWN = Handshake(pod="thief", port=8443, name="thief.example", roots=TRUSTED.pem)
_SECRET = Discovery(
    node=("ingress", "gateways", "ingress"),
    kind="router",
    labels=(("gateway", "ingress"),),
    token_of=("gateways", "ingress"),
    type_url=SECRET,
    names=("kubernetes://edge-tls",),
)
_THIEF = Discovery(
    node=("thief", "thieves", "thief"),
    kind="router",
    labels=(("gateway", "thief"),),
    token_of=("thieves", "thief"),
    type_url=SECRET,
    names=("kubernetes://thief-tls",),
)
_SECRETS = (
    *(
        Attempt(
            name=f"secret-of-another-namespace-by-{name}",
            twin=_OWN,
            forged={"port": port, "name": "edge.example"},
            answer=r"ConnectionResetError|SSLEOFError|closed",
            counter=r"downstream_context_secrets_not_ready$",
        )
        for name, port in (("its-path", 8444), ("its-url", 8445), ("its-bare-name", 8446))
    ),
    *(
        Attempt(name=f"sds-{name}", twin=_THIEF, forged={"names": (wanted,)}, answer=r"^OK 0 resources, absent: \S+$")
        for name, wanted in (
            ("another-namespace", "kubernetes://gateways/edge-tls"),
            ("another-namespace-by-gateway-api", "kubernetes-gateway://gateways/edge-tls"),
            ("another-namespace-roots", "kubernetes://gateways/edge-tls-cacert"),
            ("bare-name-of-another-namespace", "kubernetes://edge-tls"),
            ("path-out-of-the-namespace", "kubernetes://thieves/../gateways/edge-tls"),
            ("configmap-as-key", "configmap://outside/plane-objects"),
            ("workloads-own-key", "default"),
            ("file", "file-cert:/etc/passwd~/etc/passwd"),
        )
    ),
    Attempt(
        name="sds-stolen-node-id",
        twin=_SECRET,
        forged={"token_of": ("thieves", "thief")},
        answer=r"^PERMISSION_DENIED authorization failed",
    ),
    Attempt(
        name="sds-stolen-node-id-same-namespace",
        twin=_SECRET,
        forged={"token_of": ("gateways", "somebody")},
        answer=r"^PERMISSION_DENIED authorization failed",
    ),
    Attempt(
        name="sds-node-id-without-namespace",
        twin=_SECRET,
        forged={"token_of": ("thieves", "thief"), "node": ("ingress", "", "")},
        answer=r"^OK 0 resources, absent: \S+$",
    ),
    Attempt(
        name="sds-stolen-node-id-state-of-the-world",
        twin=msgspec.structs.replace(_SECRET, delta=False),
        forged={"token_of": ("thieves", "thief")},
        answer=r"^PERMISSION_DENIED authorization failed",
    ),
    Attempt(
        name="sds-stolen-node-id-without-metadata",
        twin=_SECRET,
        forged={"token_of": ("thieves", "thief"), "says_namespace": False},
        answer=r"^PERMISSION_DENIED authorization failed",
    ),
    Attempt(
        name="sds-id-of-another-namespace-than-metadata",
        twin=_SECRET,
        forged={
            "token_of": ("thieves", "thief"),
            "node": ("ingress", "thieves", "thief"),
            "id_namespace": "gateways",
            "names": ("kubernetes://gateways/edge-tls",),
        },
        answer=r"^OK 0 resources, absent: \S+$",
    ),
    Attempt(
        name="sds-expired-token",
        twin=_SECRET,
        forged={"token": "expired"},
        answer=r"^UNAUTHENTICATED",
    ),
    Attempt(
        name="sds-sidecar-of-the-namespace",
        twin=_SECRET,
        forged={"kind": "sidecar", "node": ("app", "gateways", "app"), "token_of": ("gateways", "app"), "labels": ()},
        answer=r"^OK 0 resources, absent: \S+$",
    ),
    Attempt(
        name="sds-workload-that-says-it-is-a-gateway",
        twin=_SECRET,
        forged={"node": ("app", "gateways", "app"), "token_of": ("gateways", "app")},
        answer=r"^OK 0 resources, absent: \S+$",
    ),
)

ATTEMPTS = (*_HOSTS, *_HEADERS, *_ADDRESSES, *_CLIENTS, *_SECRETS)
