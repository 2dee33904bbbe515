"""Backends: their protocol and TLS, how endpoints are chosen, timeouts and second tries."""

import re
from collections.abc import Mapping
from typing import Any

from mizzen.migrate.annotations import Annotations
from mizzen.migrate.settings import Balancer, Hash, Retry, Upstream

_HTTP_CODE = re.compile(r"http_(\d{3})")
_DEFAULT_COOKIE = "INGRESSCOOKIE"
_COOKIE_ATTRIBUTES = (
    "session-cookie-samesite",
    "session-cookie-conditional-samesite-none",
    "session-cookie-secure",
    "session-cookie-domain",
    "session-cookie-change-on-failure",
)
_TUNING = (
    "proxy-buffer-size",
    "proxy-buffers-number",
    "proxy-busy-buffers-size",
    "proxy-max-temp-file-size",
    "client-body-buffer-size",
)
_HASH_KEY = re.compile(r"\$(?:(?P<kind>http|cookie|arg)_(?P<name>\w+)|(?P<variable>[a-z_]+))")
_HASHED: Mapping[str, Hash] = {
    "remote_addr": Hash(source_address=True),
    "binary_remote_addr": Hash(source_address=True),
    "request_uri": Hash(header=":path"),
    "uri": Hash(header=":path"),
    "host": Hash(header=":authority"),
    "http_host": Hash(header=":authority"),
}


def read_upstream(annotations: Annotations) -> dict[str, Any]:
    """The fields of `Settings` that speak of backends."""
    _tuning(annotations)
    protocol = _protocol(annotations)
    annotations.exact("proxy-connect-timeout")
    upstream = Upstream(
        tls=protocol in ("HTTPS", "GRPCS"),
        http2=protocol in ("GRPC", "GRPCS"),
        connect_seconds=annotations.number("proxy-connect-timeout"),
        hash=_hash(annotations),
        balancer=_balancer(annotations),
        **_tls(annotations),
    )
    return {"upstream": upstream, "timeout_seconds": _timeout(annotations), "retry": _retry(annotations)}


def _protocol(annotations: Annotations) -> str:
    protocol = annotations.text("backend-protocol", "HTTP").upper()
    if protocol in ("HTTP", "HTTPS", "GRPC", "GRPCS"):
        annotations.exact("backend-protocol")
    elif protocol == "AUTO_HTTP":
        annotations.approximated("backend-protocol", how="plain HTTP; name the port of the Service https if it is that")
    else:
        annotations.impossible("backend-protocol", how=f"Envoy does not speak {protocol} to backends")
    return protocol


def _tls(annotations: Annotations) -> dict[str, Any]:
    """TLS towards backends; without a Secret there is nothing to verify them with."""
    name = annotations.text("proxy-ssl-name")
    annotations.exact("proxy-ssl-name", "proxy-ssl-server-name")
    annotations.approximated("proxy-ssl-verify-depth", how="chains of any depth are verified")
    annotations.approximated("proxy-ssl-ciphers", "proxy-ssl-protocols", how="Envoy's own ciphers and protocols")
    verified = annotations.text("proxy-ssl-verify") == "on"
    secret = annotations.text("proxy-ssl-secret")
    if not secret:
        if verified:
            annotations.impossible("proxy-ssl-verify", how="nothing to verify with: there is no proxy-ssl-secret")
        annotations.exact("proxy-ssl-verify")
        return {"server_name": name}
    annotations.exact("proxy-ssl-verify")
    annotations.approximated("proxy-ssl-secret", how="the Secret has to be in the namespace of the gateway too")
    namespace, _, own = secret.rpartition("/")
    credential = (namespace or annotations.ingress.namespace, own)
    return {"server_name": name, "verified": verified, "credential": credential}


# -- choice of endpoints ----------------------------------------------------------------------------------------------


def _hash(annotations: Annotations) -> Hash | None:
    if annotations.text("affinity") == "cookie":
        return _cookie(annotations)
    annotations.impossible("affinity", how="only cookie is a kind of affinity")
    text = annotations.text("upstream-hash-by")
    if not text:
        return None
    key = _HASH_KEY.fullmatch(text.replace("${", "$").replace("}", ""))
    found = _hash_of(key) if key is not None else None
    if found is None:
        annotations.impossible("upstream-hash-by", how="only one variable of the request can be hashed")
        return None
    annotations.approximated("upstream-hash-by", how="a consistent hash of the same value, by another ring")
    annotations.impossible("upstream-hash-by-subset", "upstream-hash-by-subset-size", how="no subsets of a ring")
    return found


def _hash_of(key: re.Match[str]) -> Hash | None:
    known = _HASHED.get(key[0].removeprefix("$"))
    if known is not None:
        return known
    match key["kind"]:
        case "http":
            return Hash(header=key["name"].replace("_", "-"))
        case "cookie":
            return Hash(cookie=key["name"])
        case "arg":
            return Hash(query=key["name"])
    return None


def _cookie(annotations: Annotations) -> Hash:
    how = "a cookie of this name whose value is hashed to an endpoint; those that nginx gave out lead elsewhere once"
    seconds = annotations.number("session-cookie-max-age") or annotations.number("session-cookie-expires")
    annotations.approximated(
        "affinity",
        "session-cookie-name",
        "session-cookie-path",
        "session-cookie-max-age",
        "session-cookie-expires",
        how=how,
    )
    if annotations.text("affinity-mode", "balanced") == "balanced":
        annotations.exact("affinity-mode")
    annotations.approximated("affinity-mode", how="balanced: when endpoints come and go, some sessions move")
    annotations.approximated("affinity-canary-behavior", how="legacy: a canary's share is drawn for each request")
    annotations.impossible(*_COOKIE_ATTRIBUTES, how="the cookie has a name, a path and an age")
    return Hash(
        cookie=annotations.text("session-cookie-name", _DEFAULT_COOKIE),
        cookie_path=annotations.text("session-cookie-path", "/"),
        cookie_seconds=seconds or 0,
    )


def _balancer(annotations: Annotations) -> Balancer:
    balancer = annotations.text("load-balance")
    if balancer == "round_robin":
        annotations.exact("load-balance")
        return "ROUND_ROBIN"
    if balancer in ("ewma", "least_conn"):
        annotations.approximated("load-balance", how="the less busy of two endpoints")
        return "LEAST_REQUEST"
    annotations.impossible("load-balance", how="not a way of balancing that Envoy has under this name")
    return ""


# -- time and second tries --------------------------------------------------------------------------------------------


def _timeout(annotations: Annotations) -> int | None:
    seconds = annotations.number("proxy-read-timeout")
    annotations.approximated(
        "proxy-read-timeout", how="the whole answer has to come in this time, not each next part of it"
    )  # fmt: skip
    annotations.impossible("proxy-send-timeout", how="there is no limit on the time between two writes to a backend")
    return seconds


def _retry(annotations: Annotations) -> Retry | None:
    names = ("proxy-next-upstream", "proxy-next-upstream-tries", "proxy-next-upstream-timeout")
    conditions = annotations.text("proxy-next-upstream").split()
    tries = annotations.number("proxy-next-upstream-tries")
    if not any(name in annotations for name in names):
        return None
    if conditions == ["off"] or tries == 1:
        annotations.exact("proxy-next-upstream", "proxy-next-upstream-tries", how="no second try")
        annotations.exact("proxy-next-upstream-timeout", how="no second try")
        return Retry(attempts=0)
    codes = tuple(int(found[1]) for word in conditions if (found := _HTTP_CODE.fullmatch(word)))
    how = "failed connections and refused streams are tried again, for any method, and these codes"
    annotations.approximated("proxy-next-upstream", "proxy-next-upstream-tries", how=how)
    annotations.impossible("proxy-next-upstream-timeout", how="the timeout of the route is the limit of all tries")
    return Retry(attempts=(tries or 3) - 1, codes=codes)


def _tuning(annotations: Annotations) -> None:
    """What nginx needs buffers for; Envoy streams with bounded buffers of its own."""
    for name in ("proxy-buffering", "proxy-request-buffering"):
        if annotations.text(name) == "off":
            annotations.exact(name, how="Envoy streams always")
        annotations.approximated(name, how="Envoy streams and holds a slow peer back; nothing waits on disk")
    annotations.approximated(*_TUNING, how="Envoy streams with bounded buffers of its own")
    if annotations.text("proxy-body-size") == "0":
        annotations.exact("proxy-body-size", how="bodies of any size are taken")
    annotations.approximated("proxy-body-size", how="bodies of any size are taken; nginx answers larger ones with 413")
    if annotations.text("proxy-http-version") == "1.1":
        annotations.exact("proxy-http-version")
    annotations.approximated("proxy-http-version", how="HTTP/1.1")
