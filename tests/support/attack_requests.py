"""Attempts with what a request says of itself: hosts, headers, addresses, framing, upgrades, HTTP/2 against HTTP/1."""

from attack_attempts import Attempt, by_policy
from attack_calls import Attributed, Request
from attack_material import spiffe

_DENIED = r"^403 RBAC: access denied"
_NONE = r"rbac_access_denied_matched_policy\[none\]"
_PUBLIC_HOST = Request(pod="allow", path="/host", host="public.example")
_NOT_ADMIN = Request(pod="allow", path="/not-host", host="shop.example")
_DENY_HOST = Request(pod="deny", path="/anything", host="shop.example")
_FRONT = Request(pod="allow", by="front", path="/front")
_PUBLIC = Request(pod="allow", path="/public")


_HOSTS = (
    *(
        Attempt(
            name=f"host-denied-{name}",
            twin=_DENY_HOST,
            forged={"host": host},
            answer=_DENIED,
            details=by_policy("deny-hosts"),
        )
        for name, host in (
            ("plain", "admin.example"),
            ("upper-case", "ADMIN.Example"),
            ("with-port", "admin.example:8080"),
            ("with-another-port", "admin.example:443"),
            ("upper-case-with-port", "ADMIN.EXAMPLE:80"),
            ("between-blanks", "\tadmin.example \t"),
        )
    ),
    *(
        Attempt(
            name=f"host-not-allowed-{name}", twin=_PUBLIC_HOST, forged={"host": host}, answer=_DENIED, details=_NONE
        )
        for name, host in (
            ("with-port", "public.example:8080"),
            ("trailing-dot", "public.example."),
            ("longer", "public.example.evil.example"),
            ("prefixed", "evil-public.example"),
            ("user-info", "public.example@evil.example"),
        )
    ),
    *(
        Attempt(name=f"not-hosts-{name}", twin=_NOT_ADMIN, forged={"host": host}, answer=_DENIED, details=_NONE)
        for name, host in (
            ("plain", "admin.example"),
            ("upper-case", "Admin.Example"),
            ("with-port", "admin.example:1"),
        )
    ),
    Attempt(
        name="host-absolute-form",
        twin=_DENY_HOST,
        forged={"path": "http://admin.example/anything"},
        answer=_DENIED,
        details=by_policy("deny-hosts"),
    ),
    Attempt(
        name="host-absolute-form-allowed-host-header",
        twin=_PUBLIC_HOST,
        forged={"path": "http://evil.example/host"},
        answer=_DENIED,
        details=_NONE,
    ),
    Attempt(
        name="host-absolute-form-upper-case-scheme",
        twin=_DENY_HOST,
        forged={"path": "HTTP://admin.example/anything"},
        answer=_DENIED,
    ),
    Attempt(
        name="host-twice",
        twin=_PUBLIC_HOST,
        forged={"headers": (("Host", "evil.example"),)},
        answer=_DENIED,
        details=_NONE,
    ),
    Attempt(
        name="host-empty",
        twin=_PUBLIC_HOST,
        forged={"host": ""},
        answer=_DENIED,
        details=_NONE,
    ),
)

_H2 = Request(pod="deny", path="/anything", host="shop.example", protocol="h2")
_USUAL = ((":method", "GET"), (":scheme", "http"), (":authority", "shop.example"), (":path", "/anything"))
_BROKEN_STREAM = r"^(RST_STREAM \d+|GOAWAY \d+|400|closed)"
_PROTOCOL = r"downstream_cx_protocol_error$"

_HTTP2 = (
    Attempt(
        name="h2-authority-denied",
        twin=_H2,
        forged={"host": "admin.example"},
        answer=_DENIED,
        details=by_policy("deny-hosts"),
    ),
    Attempt(
        name="h2-host-header-beside-authority",
        twin=Request(pod="allow", path="/host", host="public.example", protocol="h2"),
        forged={"host": "evil.example", "headers": (("host", "public.example"),)},
        answer=_DENIED,
        details=_NONE,
    ),
    Attempt(
        name="h2-denied-authority-behind-host-header",
        twin=_H2,
        forged={"host": "admin.example", "headers": (("host", "shop.example"),)},
        answer=_DENIED,
        details=by_policy("deny-hosts"),
    ),
    Attempt(
        name="h2-host-without-authority",
        twin=_H2,
        forged={
            "pseudo": (_USUAL[0], _USUAL[1], _USUAL[3]),
            "headers": (("host", "admin.example"),),
        },
        answer=_DENIED,
        details=by_policy("deny-hosts"),
    ),
    Attempt(
        name="h2-path-twice",
        twin=_H2,
        forged={"pseudo": (*_USUAL, (":path", "/private"))},
        answer=_BROKEN_STREAM,
        counter=_PROTOCOL,
    ),
    Attempt(
        name="h2-authority-twice",
        twin=_H2,
        forged={"pseudo": (*_USUAL, (":authority", "admin.example"))},
        answer=_BROKEN_STREAM,
        counter=_PROTOCOL,
    ),
    Attempt(
        name="h2-request-in-a-header",
        twin=_H2,
        forged={"headers": (("x-a", "b\r\n\r\nGET /private HTTP/1.1\r\nHost: a"),)},
        answer=_BROKEN_STREAM,
        counter=_PROTOCOL,
    ),
    Attempt(
        name="h2-line-feed-in-path",
        twin=_H2,
        forged={"path": "/x HTTP/1.1\r\nX: "},
        answer=_BROKEN_STREAM,
        counter=_PROTOCOL,
    ),
    Attempt(
        name="h2-transfer-encoding",
        twin=_H2,
        forged={"headers": (("transfer-encoding", "chunked"),)},
        answer=_BROKEN_STREAM,
        counter=_PROTOCOL,
    ),
    Attempt(
        name="h2-connection-header",
        twin=_H2,
        forged={"headers": (("connection", "x-a"),)},
        answer=_BROKEN_STREAM,
        counter=_PROTOCOL,
    ),
    Attempt(
        name="h2-upper-case-header",
        twin=_H2,
        forged={"headers": (("X-Upper", "a"),)},
        answer=_BROKEN_STREAM,
        counter=_PROTOCOL,
    ),
    Attempt(
        name="h2-absolute-path",
        twin=_H2,
        forged={"path": "http://shop.example/private"},
        answer=_BROKEN_STREAM,
        counter=_PROTOCOL,
    ),
    Attempt(
        name="h2-extended-connect",
        twin=_H2,
        forged={"pseudo": ((":method", "CONNECT"), (":protocol", "websocket"), *_USUAL[1:])},
        answer=_BROKEN_STREAM,
        counter=_PROTOCOL,
    ),
    Attempt(
        name="h2-denied-path",
        twin=_H2,
        forged={"path": "/private"},
        answer=_DENIED,
        details=by_policy("deny-paths"),
    ),
)

_FORGED_PEER = (
    f"By={spiffe('allow')};Hash=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef;"
    f'Subject="";URI={spiffe("front")}'
)

_HEADERS = (
    *(
        Attempt(
            name=f"client-certificate-header-{name}",
            twin=_FRONT,
            forged={"by": by, "headers": (("x-forwarded-client-cert", _FORGED_PEER),)},
            answer=_DENIED,
            details=_NONE,
        )
        for name, by in (("plaintext", ""), ("with-another-account", "other"))
    ),
    *(
        Attempt(
            name=f"header-{name.lower()}",
            twin=_PUBLIC,
            forged={"path": "/private", "headers": ((name, value),)},
            answer=_DENIED,
            details=_NONE,
        )
        for name, value in (
            ("x-envoy-original-path", "/public"),
            ("x-original-url", "/public"),
            ("x-envoy-decorator-operation", "/public"),
            ("x-envoy-internal", "true"),
            ("x-envoy-original-host", "public.example"),
            ("x-forwarded-host", "public.example"),
            ("x-http-method-override", "HEAD"),
            ("x-envoy-attempt-count", "2"),
            ("x-envoy-is-timeout-retry", "true"),
        )
    ),
    *(
        Attempt(
            name=f"peer-by-{header}",
            twin=_FRONT,
            forged={"by": "other", "headers": ((header, value),)},
            answer=_DENIED,
            details=_NONE,
        )
        for header, value in (
            ("x-envoy-peer-metadata-id", "sidecar~10.0.0.1~front.vault~vault.svc.cluster.local"),
            ("x-envoy-peer-metadata", "ChsKDkFQUF9DT05UQUlORVJTEgkaB2Zyb250"),
            ("x-envoy-downstream-service-cluster", "front.vault"),
            ("baggage", "k8s.namespace.name=vault,service.name=front"),
        )
    ),
    Attempt(
        name="method-override",
        twin=Request(pod="allow", path="/read"),
        forged={"method": "POST", "headers": (("x-http-method-override", "GET"), ("content-length", "0"))},
        answer=_DENIED,
        details=_NONE,
    ),
    Attempt(
        name="address-x-forwarded-for",
        twin=Request(pod="deny", path="/from-front", source="front"),
        forged={"source": "mallory", "headers": (("x-forwarded-for", "$(front)"),)},
        answer=_DENIED,
        details=by_policy("deny-addresses"),
    ),
    Attempt(
        name="address-forwarded-and-real-ip",
        twin=Request(pod="deny", path="/from-front", source="front"),
        forged={
            "source": "mallory",
            "headers": (
                ("forwarded", "for=$(front)"),
                ("x-real-ip", "$(front)"),
                ("x-envoy-external-address", "$(front)"),
            ),
        },
        answer=_DENIED,
        details=by_policy("deny-addresses"),
    ),
    Attempt(
        name="address-proxy-protocol",
        twin=Request(pod="deny", path="/from-front", source="front"),
        forged={
            "source": "mallory",
            "raw": "PROXY TCP4 $(front) $(deny) 1 8080\r\nGET /from-front HTTP/1.1\r\nHost: a\r\nx-case: {case}\r\n\r\n",
        },
        answer=r"^400",
    ),
)

_CLAIMED_PEER = (
    ("x-envoy-peer-metadata-id", "sidecar~10.0.0.1~front.vault~vault.svc.cluster.local"),
    ("x-envoy-peer-metadata", "ChsKDkFQUF9DT05UQUlORVJTEgkaB2Zyb250"),
    ("baggage", "k8s.namespace.name=vault,k8s.deployment.name=front,service.name=front"),
)
_TELEMETRY = (
    Attempt(
        name="metrics-for-another-account",
        twin=Attributed(pod="allow", path="/public", by="front", account="front"),
        forged={"by": "other", "headers": _CLAIMED_PEER},
        answer=r"counted for others",
    ),
    Attempt(
        name="metrics-for-an-account-in-plaintext",
        twin=Attributed(pod="allow", path="/public", by="front", account="front"),
        forged={"by": "", "headers": _CLAIMED_PEER},
        answer=r"counted for others",
    ),
)

_OUTER = "POST /anything HTTP/1.1\r\nHost: a\r\nx-case: outer-{case}\r\nuser-agent: outer-{case}\r\n"
_INNER = "GET /private HTTP/1.1\r\nHost: a\r\nx-case: {case}\r\nuser-agent: {case}\r\n\r\n"


def _around(inner: str, extra: str, size: int) -> str:
    """A request whose body holds another one, for whoever counts otherwise."""
    return f"{_OUTER}Content-Length: {size}\r\n{extra}\r\n{inner}"


_CHUNKED = f"0\r\n\r\n{_INNER}"
_PIPELINE = Request(
    pod="deny", path="/anything", answers=2, raw=_OUTER + "Content-Length: 0\r\n\r\n" + _INNER.replace("private", "x")
)

_FRAMING = (
    *(
        Attempt(
            name=f"smuggled-{name}",
            twin=msg,
            forged={"raw": raw},
            answer=answer,
        )
        for name, msg, raw, answer in (
            (
                "length-and-chunked",
                _PIPELINE,
                _around(_CHUNKED, "Transfer-Encoding: chunked\r\n", 200),
                r"^400",
            ),
            (
                "chunked-with-space",
                _PIPELINE,
                _around(_CHUNKED, "Transfer-Encoding : chunked\r\n", 5),
                r"^400",
            ),
            ("chunked-misspelt", _PIPELINE, _around(_CHUNKED, "Transfer-Encoding: xchunked\r\n", 5), r"^400"),
            (
                "chunked-twice",
                _PIPELINE,
                _around(_CHUNKED, "Transfer-Encoding: chunked, chunked\r\n", 5),
                r"^400",
            ),
            (
                "chunked-not-last",
                _PIPELINE,
                _around(_CHUNKED, "Transfer-Encoding: chunked, identity\r\n", 5),
                r"^400",
            ),
            ("two-lengths", _PIPELINE, _around(_INNER, "Content-Length: 0\r\n", 120), r"^400"),
            ("length-with-sign", _PIPELINE, _OUTER + "Content-Length: +0\r\n\r\n" + _INNER, r"^400"),
            (
                "folded-header",
                _PIPELINE,
                _around(_CHUNKED, "X-A: b\r\n Transfer-Encoding: chunked\r\n", 5),
                r"\| 403 RBAC",
            ),
            (
                "bare-line-feeds",
                _PIPELINE,
                _OUTER + "X-A: b\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + _CHUNKED,
                r"^400",
            ),
            ("pipelined", _PIPELINE, _OUTER + "Content-Length: 0\r\n\r\n" + _INNER, r"^200.*\| 403 RBAC"),
            (
                "chunk-size-overflow",
                _PIPELINE,
                _OUTER + "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n" + _INNER,
                r"^400",
            ),
        )
    ),
    Attempt(
        name="websocket-to-a-denied-path",
        twin=Request(
            pod="deny",
            path="/anything",
            headers=(
                ("Upgrade", "websocket"),
                ("Connection", "Upgrade"),
                ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
            ),
        ),
        forged={"path": "/private"},
        answer=_DENIED,
        details=by_policy("deny-paths"),
    ),
    Attempt(
        name="websocket-that-was-refused-as-a-tunnel",
        twin=_PIPELINE,
        forged={
            "raw": "GET /anything HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "x-answer: 426\r\nx-case: outer-{case}\r\n\r\n" + _INNER,
        },
        answer=r"^426 \| closed",
    ),
    Attempt(
        name="upgrade-to-h2c",
        twin=_PIPELINE,
        forged={
            "raw": "GET /private HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"
            "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nx-case: {case}\r\nuser-agent: {case}\r\n\r\n",
            "answers": 1,
        },
        answer=r"^403",
    ),
    Attempt(
        name="http-1.0",
        twin=_DENY_HOST,
        forged={"raw": "GET /private HTTP/1.0\r\nHost: a\r\nx-case: {case}\r\n\r\n"},
        answer=r"^426",
    ),
    Attempt(
        name="http-0.9",
        twin=_DENY_HOST,
        forged={"raw": "GET /private\r\n\r\n"},
        answer=r"^426",
    ),
    Attempt(
        name="connect-to-a-program",
        twin=_DENY_HOST,
        forged={
            "raw": "CONNECT 127.0.0.1:8080 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nx-case: outer-{case}\r\n\r\n" + _INNER,
        },
        answer=r"^404",
    ),
)

ATTEMPTS = (*_HOSTS, *_HTTP2, *_HEADERS, *_TELEMETRY, *_FRAMING)
