"""Faults of policies: denials, tokens, authorizers and rate limits, each under a path of its own."""

import time
from typing import Any

from attack_material import Users
from fault_cases import fault, of_family, serving

USERS = Users("https://users.example.com", "u1")
PARTNERS = Users("https://partners.example.com", "p1")
NOBODY = Users("https://nobody.example.com", "n1")
FORGER = Users("https://users.example.com", "u1")
"""Somebody who signs in the name of the first with a key of their own."""

_GUARDED = "http://guarded.guarded"
_WALLED = "http://walled.walled"
DOORS = (
    serving("guarded", "guarded", selector="app: guarded")
    + serving("guarded-two", "guarded", selector="app: guarded", port=81, target=8083, port_name="http-two")
    + serving("guarded-tcp", "guarded", selector="app: guarded", port=9002, port_name="tcp", target=9002)
    + serving("guarded-echo", "guarded", selector="app: guarded", port=9001, port_name="tcp", target=9001)
    + serving("walled", "walled", selector="app: walled")
    + serving("walled-tcp", "walled", selector="app: walled", port=9000, port_name="tcp", target=9000)
    + serving("walled-echo", "walled", selector="app: walled", port=9001, port_name="tcp", target=9001)
)
"""The Services over both pods."""


def _policy(name: str, action: str, rules: str, namespace: str = "guarded") -> str:
    return f"""
kind: AuthorizationPolicy
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: {namespace}}}}}
  action: {action}
  rules: {rules}
---
"""


def _denied(
    name: str, operation: str = "", rest: str = "", path: str = "", url: str = "", **more: object
) -> dict[str, object]:
    """A denial of requests under the policy's own name; of connections only where it says so by their port."""
    own = operation or f"paths: ['/{name}*']"
    own += "" if "ports" in own or "hosts" in own else ", ports: ['8080']"
    manifests = _policy(name, "DENY", f"[{{to: [{{operation: {{{own}}}}}]{rest and ', ' + rest}}}]")
    return fault(
        name,
        manifests,
        url=url or f"{_GUARDED}{path or '/' + name}",
        cause=f"AuthorizationPolicy/guarded/{name}",
        **more,
    )


_CLIENT = "cluster.local/ns/traffic/sa/client"
DENIALS = of_family(
    "RBAC",
    _denied("deny-path"),
    _denied("deny-below", path="/deny-below/very/deep"),
    _denied("deny-suffix", "paths: ['*/deny-suffix']", path="/any/deny-suffix"),
    _denied("deny-exact", "paths: ['/deny-exact']", path="/deny-exact?with=query"),
    _denied("deny-dots", "paths: ['/deny-dots/x']", path="/a/../deny-dots/./x"),
    _denied("deny-encoded", path="/%64eny%2Dencoded"),
    _denied("deny-backslash", "paths: ['/deny-backslash/x']", path="/deny-backslash\\x"),
    _denied("deny-method", "paths: ['/deny-method'], methods: [DELETE]", method="DELETE"),
    _denied("deny-principal", rest=f"from: [{{source: {{principals: ['{_CLIENT}']}}}}]"),
    _denied("deny-namespace", rest="from: [{source: {namespaces: [traffic]}}]"),
    _denied("deny-not-namespace", rest="from: [{source: {notNamespaces: [blind]}}]"),
    _denied(
        "deny-header",
        rest="when: [{key: 'request.headers[x-role]', values: [intruder]}]",
        headers={"x-role": "intruder"},
    ),
    _denied(
        "deny-not-header",
        rest="when: [{key: 'request.headers[x-role]', notValues: [owner]}]",
        headers={"x-role": "guest"},
    ),
    _denied("deny-template", "paths: ['/deny-template/{*}/x']", path="/deny-template/7/x"),
    _denied(
        "deny-host",
        "hosts: ['guarded-two.guarded:81'], paths: ['/deny-host'], ports: ['8083']",
        url="http://guarded-two.guarded:81/deny-host",
    ),
    _denied("deny-port", "ports: ['8083'], paths: ['/deny-port']", url="http://guarded-two.guarded:81/deny-port"),
    _denied("deny-ip", rest="from: [{source: {ipBlocks: [$(client)]}}]"),
    _denied("deny-plaintext", rest="from: [{source: {notPrincipals: ['*']}}]", source="outer"),
    _denied("deny-tcp", "ports: ['9002']", url="tcp://guarded-tcp.guarded:9002"),
    _denied(
        "deny-tcp-principal",
        "ports: ['9001']",
        rest=f"from: [{{source: {{principals: ['{_CLIENT}']}}}}]",
        url="tcp://guarded-echo.guarded:9001",
    ),
)


def _unallowed(
    name: str, operation: str = "", rest: str = "", path: str = "", url: str = "", **more: object
) -> dict[str, object]:
    """A permission that nearly fits."""
    own = operation or f"paths: ['/{name}*']"
    manifests = _policy(name, "ALLOW", f"[{{to: [{{operation: {{{own}}}}}]{rest and ', ' + rest}}}]", "walled")
    return fault(
        name, manifests, url=url or f"{_WALLED}{path or '/' + name}", cause=f"AuthorizationPolicy/walled/{name}", **more
    )


PERMISSIONS = of_family(
    "RBAC",
    _unallowed("allow-principal", rest="from: [{source: {principals: ['cluster.local/ns/traffic/sa/other']}}]"),
    _unallowed("allow-namespace", rest="from: [{source: {namespaces: [elsewhere]}}]"),
    _unallowed("allow-method", "paths: ['/allow-method'], methods: [GET]", method="POST"),
    _unallowed("allow-header", rest="when: [{key: 'request.headers[x-pass]', values: [yes-please]}]"),
    _unallowed("allow-claim", rest="when: [{key: 'request.auth.claims[role]', values: [admin]}]"),
    _unallowed("allow-plaintext", rest=f"from: [{{source: {{principals: ['{_CLIENT}']}}}}]", source="outer"),
    _unallowed("allow-port", "ports: ['8084'], paths: ['/allow-port']"),
    _unallowed(
        "allow-tcp",
        "ports: ['9001']",
        rest="from: [{source: {principals: ['cluster.local/ns/traffic/sa/other']}}]",
        url="tcp://walled-echo.walled:9001",
    ),
)


def _authenticated(name: str, users: Users, more: str = "") -> str:
    return f"""
kind: RequestAuthentication
metadata: {{name: {name}, namespace: guarded}}
spec:
  selector: {{matchLabels: {{app: guarded}}}}
  jwtRules: [{{issuer: '{users.issuer}', jwks: '{users.jwks}'{more and ", " + more}}}]
---
"""


AUTHENTICATED = (
    _authenticated("users", USERS)
    + _authenticated("partners", PARTNERS, "audiences: [mesh], fromHeaders: [{name: x-partner, prefix: 'Pass '}]")
    + _policy(
        "token-required",
        "DENY",
        "[{from: [{source: {notRequestPrincipals: ['*']}}], to: [{operation: {paths: ['/token*'], ports: ['8080']}}]}]",
    )
    + _policy(
        "token-admins",
        "DENY",
        "[{to: [{operation: {paths: ['/admins*'], ports: ['8080']}}], when: [{key: 'request.auth.claims[role]', notValues: [admin]}]}]",
    )
)


def _token(
    name: str,
    token: str,
    header: str = "authorization",
    prefix: str = "Bearer ",
    path: str = "/token",
    cause: str = "RequestAuthentication/guarded/users",
) -> dict[str, object]:
    headers = {header: prefix + token} if token else {}
    return fault(name, url=f"{_GUARDED}{path}-{name}", headers=headers, cause=cause)


_REQUIRED = "AuthorizationPolicy/guarded/token-required"
TOKENS = of_family(
    "JWT",
    _token("jwt-missing", "", cause=_REQUIRED),
    _token("jwt-other-scheme", USERS.token(), prefix="Basic ", cause=_REQUIRED),
    _token("jwt-expired", USERS.token(exp=int(time.time()) - 3600)),
    _token("jwt-early", USERS.token(nbf=int(time.time()) + 7200)),
    _token("jwt-forged", FORGER.token()),
    _token("jwt-cut", USERS.cut()),
    _token("jwt-unknown-key", Users(USERS.issuer, "u9").token()),
    _token("jwt-unsigned", USERS.unsigned("none", "AAAA")),
    _token("jwt-malformed", "not-a-token"),
    _token("jwt-issuer", NOBODY.token()),
    _token(
        "jwt-audience",
        PARTNERS.token(aud="elsewhere"),
        "x-partner",
        "Pass ",
        cause="RequestAuthentication/guarded/partners",
    ),
    _token("jwt-claim", USERS.token(role="user"), path="/admins", cause="AuthorizationPolicy/guarded/token-admins"),
)


def _asked(name: str, provider: str, pod: str, **more: object) -> dict[str, object]:
    """A path of a pod for which an authorizer is to be asked; a workload has one provider."""
    manifests = _policy(name, "CUSTOM", f"[{{to: [{{operation: {{paths: ['/{name}*']}}}}]}}]", pod)
    manifests = manifests.replace("action: CUSTOM", f"action: CUSTOM\n  provider: {{name: {provider}}}")
    given: dict[str, Any] = {"cause": f"AuthorizationPolicy/{pod}/{name}", "url": f"http://asking.{pod}/{name}", **more}
    return fault(name, manifests, **given)


AUTHORIZERS = of_family(
    "UAEX",
    _asked("authz-denies", "asks", "ported", authorizer=403),
    _asked("authz-unauthorized", "asks", "ported", authorizer=401),
    _asked("authz-allows", "asks", "ported", authorizer=200, cause=""),
    _asked("authz-fails", "gone-closed", "locked", cause="Service/outside/authorizer-gone"),
    _asked("authz-fails-open", "gone-open", "guarded", cause=""),
    _asked("authz-lost", "lost", "scoped"),
    _asked("authz-unnamed", "never", "blind"),
)


def limiting(name: str, context: str, labels: str, namespace: str, port: int, tokens: int = 1) -> str:
    """A local rate limit at one port of some workloads."""
    return f"""
kind: EnvoyFilter
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  workloadSelector: {{labels: {{{labels}}}}}
  configPatches:
    - applyTo: HTTP_FILTER
      match:
        context: {context}
        listener:
          portNumber: {port}
          filterChain: {{filter: {{name: envoy.filters.network.http_connection_manager}}}}
      patch:
        operation: INSERT_BEFORE
        value:
          name: envoy.filters.http.local_ratelimit
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
            stat_prefix: {name}
            token_bucket: {{max_tokens: {tokens}, tokens_per_fill: {tokens}, fill_interval: 3600s}}
            filter_enabled: {{default_value: {{numerator: 100}}}}
            filter_enforced: {{default_value: {{numerator: 100}}}}
---
"""


def _route_limit(name: str) -> str:
    return f"""
kind: EnvoyFilter
metadata: {{name: {name}}}
spec:
  workloadSelector: {{labels: {{app: client}}}}
  configPatches:
    - applyTo: HTTP_FILTER
      match:
        context: SIDECAR_OUTBOUND
        listener: {{portNumber: 86, filterChain: {{filter: {{name: envoy.filters.network.http_connection_manager}}}}}}
      patch:
        operation: INSERT_BEFORE
        value:
          name: envoy.filters.http.ratelimit
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
            domain: shop
            failure_mode_deny: true
            rate_limit_service:
              transport_api_version: V3
              grpc_service: {{envoy_grpc: {{cluster_name: never-there}}}}
    - applyTo: VIRTUAL_HOST
      match: {{context: SIDECAR_OUTBOUND, routeConfiguration: {{vhost: {{name: "{name}.traffic.svc.cluster.local:86"}}}}}}
      patch:
        operation: MERGE
        value: {{rate_limits: [{{actions: [{{generic_key: {{descriptor_value: x}}}}]}}]}}
---
"""


LIMITS = of_family(
    "RL",
    fault(
        "limit-inbound",
        serving("limit-inbound", "guarded", selector="app: guarded", target=8084),
        limiting("limit-inbound", "SIDECAR_INBOUND", "app: guarded", "guarded", 8084),
        url="http://limit-inbound.guarded/",
        earlier=1,
        cause="EnvoyFilter/guarded/limit-inbound",
    ),
    fault(
        "limit-inbound-burst",
        serving("limit-inbound-burst", "guarded", selector="app: guarded", target=8085),
        limiting("limit-inbound-burst", "SIDECAR_INBOUND", "app: guarded", "guarded", 8085, 3),
        url="http://limit-inbound-burst.guarded/",
        earlier=3,
        cause="EnvoyFilter/guarded/limit-inbound-burst",
    ),
    fault(
        "limit-outbound",
        serving("limit-outbound", port=85, port_name="http"),
        limiting("limit-outbound", "SIDECAR_OUTBOUND", "app: client", "traffic", 85),
        url="http://limit-outbound:85/",
        earlier=1,
        cause="EnvoyFilter/traffic/limit-outbound",
    ),
    fault(
        "limit-service",
        serving("limit-service", port=86, port_name="http"),
        _route_limit("limit-service"),
        url="http://limit-service:86/",
        cause="EnvoyFilter/traffic/limit-service",
    ),
    fault(
        "limit-not-reached",
        serving("limit-not-reached", "guarded", selector="app: guarded", target=8086),
        limiting("limit-not-reached", "SIDECAR_INBOUND", "app: guarded", "guarded", 8086, 5),
        url="http://limit-not-reached.guarded/",
        earlier=2,
    ),
)

SHARED = (
    DOORS,
    AUTHENTICATED,
    _policy("open", "ALLOW", "[{to: [{operation: {paths: ['/open*']}}]}]", "walled"),
    *(serving("asking", pod, selector=f"app: {pod}") for pod in ("ported", "locked", "guarded", "scoped", "blind")),
    serving("authorizer", "outside", selector="app: outer"),
    serving("authorizer-gone", "outside", selector="app: nobody"),
)
"""What several of these faults stand on."""
FAULTS = (*DENIALS, *PERMISSIONS, *TOKENS, *AUTHORIZERS, *LIMITS)
