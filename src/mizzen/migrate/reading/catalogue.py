"""The catalogue of annotations that no settings come of: lost, or not needed."""

from mizzen.migrate.annotations import Annotations

_NOT_NEEDED = {
    "connection-proxy-header": "Envoy keeps connections to backends open by itself",
    "enable-access-log": "access logs are a Telemetry's affair",
    "enable-rewrite-log": "Envoy's own debug log tells of rewrites",
    "http2-push-preload": "no browser takes pushed responses any more",
    "service-upstream": "endpoints are reached directly and drained when they go",
    "ssl-prefer-server-ciphers": "Envoy's order of ciphers",
    "enable-opentelemetry": "tracing is a Telemetry's affair",
    "enable-opentracing": "tracing is a Telemetry's affair",
    "opentelemetry-trust-incoming-span": "tracing is a Telemetry's affair",
    "opentracing-trust-incoming-span": "tracing is a Telemetry's affair",
    "enable-global-auth": "there is no authentication for all hosts unless a policy says so",
    "use-port-in-redirects": "redirects name the port that they lead to where it is not the scheme's own",
}
_LOST = {
    "server-snippet": "a part of nginx's configuration",
    "stream-snippet": "a part of nginx's configuration",
    "modsecurity-snippet": "there is no ModSecurity; a WASM filter can be put in its place",
    "enable-modsecurity": "there is no ModSecurity; a WASM filter can be put in its place",
    "enable-owasp-core-rules": "there is no ModSecurity; a WASM filter can be put in its place",
    "modsecurity-transaction-id": "there is no ModSecurity; a WASM filter can be put in its place",
    "limit-rps": "limits for each client's address need a service that counts; see rate limits of Envoy",
    "limit-rpm": "limits for each client's address need a service that counts; see rate limits of Envoy",
    "limit-connections": "limits for each client's address need a service that counts; see rate limits of Envoy",
    "limit-burst-multiplier": "limits for each client's address need a service that counts; see rate limits of Envoy",
    "limit-whitelist": "limits for each client's address need a service that counts; see rate limits of Envoy",
    "limit-rate": "answers are sent as fast as the client takes them",
    "limit-rate-after": "answers are sent as fast as the client takes them",
    "global-rate-limit": "needs a rate limit service",
    "custom-http-errors": "answers of backends pass as they are",
    "default-backend": "a Service without endpoints is answered with 503",
    "disable-proxy-intercept-errors": "answers of backends pass as they are",
    "proxy-cookie-domain": "cookies of backends pass as they are",
    "proxy-cookie-path": "cookies of backends pass as they are",
    "proxy-redirect-from": "Location headers of backends pass as they are",
    "proxy-redirect-to": "Location headers of backends pass as they are",
    "satisfy": "all conditions have to hold",
    "ssl-ciphers": "Gateway listeners take them as gateway.istio.io/tls-cipher-suites, in Envoy's names",
    "fastcgi-index": "Envoy does not speak FastCGI",
    "fastcgi-params-configmap": "Envoy does not speak FastCGI",
    "relative-redirects": "redirects name scheme and host",
    "auth-proxy-set-headers": "the provider's own settings",
    "auth-always-set-cookie": "the provider's own settings",
    "auth-keepalive": "the provider's own settings",
    "auth-keepalive-requests": "the provider's own settings",
    "auth-keepalive-timeout": "the provider's own settings",
    "auth-keepalive-share-vars": "the provider's own settings",
}


def judge_rest(annotations: Annotations) -> None:
    """Judge everything that no reader did."""
    for name in annotations.unjudged:
        if name in _NOT_NEEDED:
            annotations.approximated(name, how=f"not needed: {_NOT_NEEDED[name]}")
        else:
            annotations.impossible(name, how=_LOST.get(name, "not an annotation of ingress-nginx that is known here"))
