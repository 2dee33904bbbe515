"""Faults of rarer fields: exclusions, dry runs, root policies, claims in routes, names that do not resolve, gRPC."""

from typing import Any

from fault_cases import HOME, entry, fault, of_family, serving
from fault_security import USERS

_HTTP = "{number: 80, name: http, protocol: HTTP, targetPort: 8080}"


def _policy(name: str, spec: str, namespace: str = "guarded", annotations: str = "") -> str:
    return f"""
kind: AuthorizationPolicy
metadata: {{name: {name}, namespace: {namespace}{annotations and f", annotations: {{{annotations}}}"}}}
spec: {{selector: {{matchLabels: {{app: guarded}}}}, {spec}}}
---
"""


def _ruled(name: str, rule: str, **more: object) -> dict[str, object]:
    """A denial at `guarded`; `OWN` in its rule is the operation of the fault's own path."""
    namespace = str(more.pop("namespace", "guarded"))
    own = f"to: [{{operation: {{paths: ['/{name}*'], ports: ['8080']}}}}]"
    text = _policy(name, f"action: DENY, rules: [{{{rule.replace('OWN', own)}}}]", namespace)
    given: dict[str, Any] = {
        "url": f"http://guarded.guarded/{name}",
        "cause": f"AuthorizationPolicy/{namespace}/{name}",
        **more,
    }
    return fault(name, text, **given)


_BEARER = {"authorization": f"Bearer {USERS.token()}"}
POLICIES = of_family(
    "RBAC",
    _ruled("more-root", "OWN", namespace="istio-system"),
    _ruled(
        "more-not-paths",
        "to: [{operation: {paths: ['/more-not-paths*'], notPaths: ['*/open'], ports: ['8080']}}]",
    ),
    _ruled(
        "more-not-methods",
        "to: [{operation: {paths: ['/more-not-methods'], notMethods: [GET], ports: ['8080']}}]",
        method="PUT",
    ),
    _ruled("more-not-ip", "OWN, from: [{source: {notIpBlocks: [192.0.2.0/24]}}]"),
    _ruled(
        "more-forwarded",
        "OWN, from: [{source: {remoteIpBlocks: [203.0.113.0/24]}}]",
        headers={"x-forwarded-for": "203.0.113.9"},
    ),
    _ruled("more-account", "OWN, from: [{source: {serviceAccounts: [traffic/client]}}]"),
    _ruled("more-request-principal", "OWN, from: [{source: {requestPrincipals: ['*/alice']}}]", headers=_BEARER),
    _ruled("more-audience", "OWN, when: [{key: request.auth.audiences, values: [vault]}]", headers=_BEARER),
    _ruled(
        "more-sni", "OWN, when: [{key: connection.sni, values: ['outbound_.80_._.guarded.guarded.svc.cluster.local']}]"
    ),
    _ruled(
        "more-spared",
        "to: [{operation: {paths: ['/more-spared*'], notPaths: ['/more-spared'], ports: ['8080']}}]",
        cause="",
    ),
    _ruled(
        "more-other-audience", "OWN, when: [{key: request.auth.audiences, values: [others]}]", headers=_BEARER, cause=""
    ),
    fault(
        "more-dry",
        _policy(
            "more-dry",
            "action: DENY, rules: [{to: [{operation: {paths: ['/more-dry'], ports: ['8080']}}]}]",
            annotations='istio.io/dry-run: "true"',
        ),
        url="http://guarded.guarded/more-dry",
    ),
    fault(
        "more-audit",
        _policy("more-audit", "action: AUDIT, rules: [{to: [{operation: {paths: ['/more-audit'], ports: ['8080']}}]}]"),
        url="http://guarded.guarded/more-audit",
    ),
)

NAMES = of_family(
    "DNS",
    fault(
        "name-nowhere",
        entry("name-nowhere", _HTTP, "endpoints: [{address: nowhere.invalid}]", "DNS"),
        url="http://name-nowhere.example.com/",
        cause=f"ServiceEntry/{HOME}/name-nowhere",
    ),
    fault(
        "name-of-a-service",
        serving("name-behind", "outside", selector="app: outer"),
        entry(
            "name-of-a-service",
            "{number: 80, name: http, protocol: HTTP}",
            "endpoints: [{address: name-behind.outside.svc.cluster.local}]",
            "DNS",
        ),
        url="http://name-of-a-service.example.com/",
    ),
    fault("name-unknown", url="http://name-unknown.traffic/"),
    fault(
        "name-short",
        serving("name-short", "outside", selector="app: outer"),
        url="http://name-short/",
        cause="Service/outside/name-short",
    ),
)


def _grpc(name: str, *more: str, selector: str = "app: echo", **options: object) -> dict[str, object]:
    namespace = str(options.pop("namespace", HOME))
    own = serving(name, namespace, port=9090, port_name="grpc", target=9090, selector=selector)
    return fault(name, own, *more, url=f"grpc://{name}.{namespace}:9090/traffic.Echo/Once", **options)


CALLS = of_family(
    "GRPC",
    _grpc("grpc-well"),
    _grpc("grpc-nobody", selector="app: nobody", cause=f"Service/{HOME}/grpc-nobody"),
    _grpc(
        "grpc-denied",
        _policy(
            "grpc-denied",
            "action: DENY, rules: [{to: [{operation: {paths: ['/traffic.Echo/Once'], ports: ['9090']}}]}]",
        ),
        namespace="guarded",
        selector="app: guarded",
        cause="AuthorizationPolicy/guarded/grpc-denied",
    ),
    _grpc(
        "grpc-unrouted",
        f"""
kind: VirtualService
metadata: {{name: grpc-unrouted}}
spec:
  hosts: [grpc-unrouted.{HOME}.svc.cluster.local]
  http: [{{match: [{{uri: {{prefix: /other.}}}}], route: [{{destination: {{host: grpc-unrouted}}}}]}}]
---
""",
        cause=f"VirtualService/{HOME}/grpc-unrouted",
    ),
)
FAULTS = (*POLICIES, *NAMES, *CALLS)
