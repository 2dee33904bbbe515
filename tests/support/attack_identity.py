"""Attempts on who is calling: plaintext, forged certificates, others' identities, ways around the sidecar."""

from attack_attempts import Attempt, by_policy
from attack_calls import Captured, Line, Page, Request, Socket

_NO_CERTIFICATE = r"TLS: TLSV13_ALERT_CERTIFICATE_REQUIRED"
_RESET = r"ConnectionResetError|^closed$"
_UNVERIFIED = r"ssl\.fail_verify_error$"
_NO_CHAIN = r"listener\.0\.0\.0\.0_15006\.no_filter_chain_match$"
_BLACK_HOLE = r"^cluster\.BlackHoleCluster;?\.upstream_cx_none_healthy$"
_MUTUAL = Request(pod="strict", by="front")
_FRONT = Request(pod="allow", by="front", path="/front")
_NONE = r"rbac_access_denied_matched_policy\[none\]"
_DENIED = r"^403 RBAC: access denied"


_TRANSPORT = (
    Attempt(name="plaintext-to-strict", twin=_MUTUAL, forged={"by": ""}, answer=_RESET, counter=_NO_CHAIN),
    Attempt(
        name="plaintext-h2-to-strict",
        twin=Request(pod="strict", by="front", protocol="h2"),
        forged={"by": ""},
        answer=_RESET,
        counter=_NO_CHAIN,
    ),
    Attempt(
        name="plaintext-tcp-to-strict",
        twin=Line(pod="strict", port=9001, by="front"),
        forged={"by": ""},
        answer=r"closed|ConnectionResetError",
        counter=_NO_CHAIN,
    ),
    Attempt(
        name="plaintext-to-a-port-that-no-service-declares",
        twin=Request(pod="strict", by="front", port=8086),
        forged={"by": ""},
        answer=_RESET,
        counter=_NO_CHAIN,
    ),
    Attempt(
        name="plaintext-beside-a-port-without-mtls",
        twin=Request(pod="strict", port=8083),
        forged={"port": 8080},
        answer=_RESET,
        counter=_NO_CHAIN,
    ),
    Attempt(
        name="plaintext-to-the-one-strict-port",
        twin=Request(pod="allow", port=8084, by="front"),
        forged={"by": ""},
        answer=_RESET,
        counter=_NO_CHAIN,
    ),
    Attempt(
        name="plaintext-by-a-sidecar-to-the-pods-address",
        twin=Captured(source="other", url="http://strict.vault/", pod="strict"),
        forged={"url": "http://$(pod):8080/"},
        answer=r"^503 upstream connect error",
        counter=_NO_CHAIN,
    ),
)

_CERTIFICATES = tuple(
    Attempt(name=f"certificate-{forgery}", twin=_MUTUAL, forged={"by": forgery}, answer=answer, counter=counter)
    for forgery, answer, counter in (
        ("anonymous", _NO_CERTIFICATE, r"ssl\.fail_verify_no_cert$"),
        ("foreign-domain", r"TLS: .*CERTIFICATE_UNKNOWN", r"ssl\.fail_verify_san$"),
        ("lookalike-domain", r"TLS: .*CERTIFICATE_UNKNOWN", r"ssl\.fail_verify_san$"),
        ("nameless", r"TLS: .*CERTIFICATE_UNKNOWN", r"ssl\.fail_verify_san$"),
        ("expired", r"TLS: .*CERTIFICATE_EXPIRED", _UNVERIFIED),
        ("early", r"TLS: .*(BAD_CERTIFICATE|CERTIFICATE_EXPIRED)", _UNVERIFIED),
        ("self-signed", r"TLS: .*UNKNOWN_CA", _UNVERIFIED),
        ("foreign-root", r"TLS: .*(UNKNOWN_CA|BAD_CERTIFICATE|DECRYPT_ERROR)", _UNVERIFIED),
        ("leaf-signed", r"TLS: .*(UNKNOWN_CA|BAD_CERTIFICATE)", _UNVERIFIED),
    )
)

_ACCOUNTS = (
    Attempt(name="account-other", twin=_FRONT, forged={"by": "other"}, answer=_DENIED, details=_NONE),
    Attempt(name="account-plaintext", twin=_FRONT, forged={"by": ""}, answer=_DENIED, details=_NONE),
    Attempt(name="account-longer-name", twin=_FRONT, forged={"by": "front-longer"}, answer=_DENIED, details=_NONE),
    Attempt(
        name="account-same-name-elsewhere", twin=_FRONT, forged={"by": "front-elsewhere"}, answer=_DENIED, details=_NONE
    ),
    Attempt(
        name="account-of-a-list-elsewhere",
        twin=Request(pod="allow", by="front", path="/account"),
        forged={"by": "front-elsewhere"},
        answer=_DENIED,
        details=_NONE,
    ),
    Attempt(
        name="account-of-a-list-longer-name",
        twin=Request(pod="allow", by="front", path="/account"),
        forged={"by": "front-longer"},
        answer=_DENIED,
        details=_NONE,
    ),
    Attempt(
        name="namespace-elsewhere",
        twin=Request(pod="allow", by="other", path="/namespace"),
        forged={"by": "front-elsewhere"},
        answer=_DENIED,
        details=_NONE,
    ),
    Attempt(
        name="account-by-a-sidecar",
        twin=Captured(source="front", url="http://allow.vault/front", pod="allow"),
        forged={"source": "other"},
        answer=_DENIED,
        details=_NONE,
    ),
    Attempt(
        name="account-by-a-sidecar-to-the-pods-address",
        twin=Captured(source="front", url="http://allow.vault/front", pod="allow"),
        forged={"url": "http://$(pod):8080/front"},
        answer=_DENIED,
        details=_NONE,
    ),
    Attempt(
        name="not-principals-plaintext",
        twin=Request(pod="deny", by="front", path="/not-strangers"),
        forged={"by": ""},
        answer=_DENIED,
        details=by_policy("deny-strangers"),
    ),
    Attempt(
        name="not-principals-other",
        twin=Request(pod="deny", by="front", path="/not-strangers"),
        forged={"by": "other"},
        answer=_DENIED,
        details=by_policy("deny-strangers"),
    ),
)

_TCP = (
    Attempt(
        name="tcp-http-only-allow",
        twin=Line(pod="allow", port=9002),
        forged={"port": 9001},
        answer=r"closed|ConnectionResetError",
        counter=r"^tcp\.rbac\.denied$",
    ),
    Attempt(
        name="tcp-http-only-deny",
        twin=Line(pod="deny", port=9002),
        forged={"port": 9001},
        answer=r"closed|ConnectionResetError",
        counter=r"^tcp\.rbac\.denied$",
    ),
    Attempt(
        name="tcp-allow-nothing-fits",
        twin=Line(pod="allow", port=9002),
        forged={"port": 9003},
        answer=r"closed|ConnectionResetError",
        counter=r"^tcp\.rbac\.denied$",
    ),
)

_AROUND = (
    Attempt(
        name="listener-15006-itself",
        twin=Request(pod="deny"),
        forged={"port": 15006},
        answer=_RESET,
        counter=_BLACK_HOLE,
    ),
    Attempt(
        name="listener-15001-as-a-proxy",
        twin=Request(pod="deny"),
        forged={"port": 15001},
        answer=r"^503 upstream connect error",
        counter=_BLACK_HOLE,
    ),
    Attempt(
        name="envoy-admin-of-another-pod",
        twin=Page(pod="deny", port=15000, path="/config_dump", source="deny", address="127.0.0.1"),
        forged={"source": "mallory", "address": ""},
        answer=r"^503 upstream connect error",
    ),
    Attempt(
        name="envoy-admin-of-another-pod-with-mtls",
        twin=Page(pod="strict", port=15000, path="/config_dump", source="strict", address="127.0.0.1"),
        forged={"source": "mallory", "address": "", "by": "front"},
        answer=r"^503 upstream connect error",
    ),
    Attempt(
        name="agent-quit-from-another-pod",
        twin=Page(pod="deny", port=15020, path="/healthz/ready"),
        forged={"path": "/quitquitquit", "method": "POST"},
        answer=r"^403 only from within the pod",
    ),
    Attempt(
        name="agent-drain-from-another-pod",
        twin=Page(pod="deny", port=15020, path="/healthz/ready"),
        forged={"path": "/drain", "method": "POST"},
        answer=r"^403 only from within the pod",
    ),
    Attempt(
        name="agent-quit-with-forged-origin",
        twin=Page(pod="deny", port=15020, path="/healthz/ready"),
        forged={"path": "/quitquitquit", "method": "POST", "headers": (("X-Forwarded-For", "127.0.0.1"),)},
        answer=r"^403 only from within the pod",
    ),
)

_SOCKETS = tuple(
    Attempt(
        name=f"socket-{name}", twin=Socket(path="control/app.sock"), forged={"path": path}, answer=r"^PermissionError"
    )
    for name, path in (
        ("sds-of-another-pod", "var/run/secrets/workload-spiffe-uds/socket"),
        ("ads-relay-of-another-pod", "etc/istio/proxy/XDS"),
        ("admin-of-another-pod", "admin.sock"),
    )
)

ATTEMPTS = (*_TRANSPORT, *_CERTIFICATES, *_ACCOUNTS, *_TCP, *_AROUND, *_SOCKETS)
