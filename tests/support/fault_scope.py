"""Faults of what a caller may see, and requests to which nothing was done."""

from fault_cases import HOME, entry, fault, of_family, routing, rule, serving
from traffic_manifests import subsets

_ENTRY = "{number: 80, name: http, protocol: HTTP, targetPort: 8080}"
_OUTER = "endpoints: [{address: $(outer)}]"

SCOPES = of_family(
    "SCOPE",
    fault(
        "scope-hidden",
        serving("scope-hidden"),
        url="http://scope-hidden.traffic/",
        source="scoped",
        cause="Sidecar/scoped/default",
    ),
    fault(
        "scope-hidden-tcp",
        serving("scope-hidden-tcp", port=9000, port_name="tcp", target=9000),
        url="tcp://scope-hidden-tcp.traffic:9000",
        source="scoped",
        cause="Sidecar/scoped/default",
    ),
    fault(
        "scope-unknown",
        url="http://scope-unknown.example.com/",
        source="scoped",
        address="outer",
        cause="Sidecar/scoped/default",
    ),
    fault(
        "scope-unknown-tcp",
        url="tcp://scope-unknown-tcp.example.com:9000",
        source="scoped",
        address="outer",
        cause="Sidecar/scoped/default",
    ),
    fault(
        "scope-unknown-tls",
        url="https://scope-unknown-tls.example.com:8443/",
        source="scoped",
        address="outer",
        cause="Sidecar/scoped/default",
    ),
    fault(
        "scope-entry",
        entry("scope-entry", _ENTRY, _OUTER),
        url="http://scope-entry.example.com/",
        source="scoped",
        address="outer",
        cause="Sidecar/scoped/default",
    ),
    fault(
        "scope-entry-kept",
        entry("scope-entry-kept", _ENTRY, _OUTER, more='exportTo: ["."]'),
        url="http://scope-entry-kept.example.com/",
        source="scoped",
        address="outer",
        cause=f"ServiceEntry/{HOME}/scope-entry-kept",
    ),
    fault(
        "scope-strict",
        serving("scope-strict", "locked", selector="app: locked"),
        url="http://scope-strict.locked/",
        source="blind",
        cause="Sidecar/blind/default",
    ),
    fault(
        "scope-strict-tcp",
        serving("scope-strict-tcp", "locked", selector="app: locked", port=9001, port_name="tcp", target=9001),
        url="tcp://scope-strict-tcp.locked:9001",
        source="blind",
        cause="Sidecar/blind/default",
    ),
    fault("scope-shown", serving("scope-shown"), url="http://scope-shown.traffic/"),
    fault("scope-shown-to-scoped", url="http://scope-shown.traffic/", source="scoped"),
    fault("scope-past", serving("scope-past"), url="http://scope-past.traffic/", source="blind"),
)


def _well(name: str, route: str, *more: str, **options: object) -> dict[str, object]:
    return fault(name, routing(name, f"{{{route}}}"), *more, **options)


HEALTHY = of_family(
    "healthy",
    fault("well-http", serving("well-http")),
    fault("well-tcp", serving("well-tcp", port=9000, port_name="tcp", target=9000), url="tcp://well-tcp:9000"),
    fault("well-echo", serving("well-echo", port=9001, port_name="tcp", target=9001), url="tcp://well-echo:9001"),
    fault("well-sniffed", serving("well-sniffed", port_name="web", target=8081)),
    fault(
        "well-headless",
        serving("well-headless", port=8080).replace("spec:", "spec:\n  clusterIP: None", 1),
        url="http://well-headless:8080/",
    ),
    fault("well-strict", serving("well-strict", "locked", selector="app: locked"), url="http://well-strict.locked/"),
    fault(
        "well-strict-tcp",
        serving("well-strict-tcp", "locked", selector="app: locked", port=9000, port_name="tcp", target=9000),
        url="tcp://well-strict-tcp.locked:9000",
    ),
    fault(
        "well-port-off",
        serving("well-port-off", "ported", selector="app: ported", target=8084),
        url="http://well-port-off.ported/",
    ),
    fault(
        "well-mutual",
        serving("well-mutual"),
        rule("well-mutual", "well-mutual", "tls: {mode: ISTIO_MUTUAL}"),
    ),
    fault(
        "well-outside", serving("well-outside", "outside", selector="app: outer"), url="http://well-outside.outside/"
    ),
    fault("well-entry", entry("well-entry", _ENTRY, _OUTER), url="http://well-entry.example.com/"),
    fault("well-self", url="tcp://well-self.example.com:9000", source="near", address="near"),
    fault("well-self-http", url="http://well-self-http.example.com:8080/", source="near", address="near"),
    fault("well-self-strict", url="tcp://well-self-strict.example.com:9000", source="locked", address="locked"),
    fault(
        "well-self-strict-http", url="http://well-self-strict-http.example.com:8080/", source="locked", address="locked"
    ),
    fault(
        "well-self-service",
        serving("well-self-service", "locked", selector="app: locked"),
        url="http://well-self-service.locked/",
        source="locked",
    ),
    fault("well-address", url="http://well-address.example.com:8080/", address="near"),
    fault("well-from-outside", serving("well-from-outside"), url="http://well-from-outside.traffic/", source="outer"),
    fault("well-guarded", url="http://guarded.guarded/nothing-is-said-of-this"),
    fault("well-slashes", url="http://guarded.guarded//deny-path"),
    fault("well-escaped-slash", url="http://guarded.guarded/x/..%2Fdeny-path"),
    _well("well-dots", "match: [{uri: {exact: /only}}], TO", url="http://well-dots/x/../%6Fnly"),
    fault("well-malformed", serving("well-malformed"), url="http://well-malformed/a%00b"),
    fault("well-allowed", url="http://walled.walled/open/door"),
    fault(
        "well-subset",
        routing("well-subset", "route: [{destination: {host: well-subset, subset: v1}}]"),
        subsets("well-subset"),
    ),
    fault(
        "well-weights",
        routing(
            "well-weights",
            "route: [{destination: {host: well-weights}, weight: 50},"
            " {destination: {host: well-weights-too}, weight: 50}]",
        ),
        serving("well-weights-too"),
    ),
    _well("well-matched", "match: [{uri: {prefix: /a}}], TO", url="http://well-matched/a/b"),
    _well("well-rewritten", "match: [{uri: {prefix: /a}}], rewrite: {uri: /c}, TO", url="http://well-rewritten/a/b"),
    _well("well-redirected", "redirect: {uri: /elsewhere}"),
    _well("well-answered", "directResponse: {status: 451, body: {string: sorry}}"),
    _well("well-mirrored", "TO, mirror: {host: never-there}"),
    _well("well-in-time", "timeout: 3s, TO", takes=0.2),
    _well("well-delayed", "fault: {delay: {fixedDelay: 20ms, percentage: {value: 100}}}, TO"),
    _well("well-headers", "headers: {request: {set: {x-a: b}}}, TO"),
    _well(
        "well-preflight",
        "corsPolicy: {allowOrigins: [{exact: 'http://a.example'}], allowMethods: [GET]}, TO",
        method="OPTIONS",
        headers={"origin": "http://a.example", "access-control-request-method": "GET"},
    ),
    fault(
        "well-no-upgrade",
        serving("well-no-upgrade"),
        headers={"connection": "upgrade", "upgrade": "odd"},
    ),
    fault("well-raw", serving("well-raw", port_name="tcp")),
    fault("well-missing-page", serving("well-missing-page"), answers=404),
    fault(
        "well-own-tls",
        serving("well-own-tls", port=443, port_name="tls", target=8443),
        url="https://well-own-tls.traffic.svc.cluster.local/",
        is_wary=False,
    ),
)
SHARED = (serving("settled"), serving("settled", "locked", selector="app: locked"))
FAULTS = (*SCOPES, *HEALTHY)
