"""Faults between proxies and programs: connections, TLS, circuit breakers, retries, timeouts, injected faults."""

from fault_cases import HOME, entry, fault, of_family, routing, rule, serving
from traffic_certificates import OTHER, ROOT, Authority, secret

_OUTER = "app: outer"


def _ruled(name: str, policy: str, *more: str, target: int = 8080, **options: object) -> dict[str, object]:
    """A DestinationRule that is wrong, for a Service over `near`."""
    manifests = (serving(name, target=target), rule(name, name, policy), *more)
    return fault(name, *manifests, cause=f"DestinationRule/{HOME}/{name}", **options)


def _to_ported(name: str, target: int, policy: str, *, tcp: bool = False) -> dict[str, object]:
    """A DestinationRule against the mode of one port of `ported`."""
    own = {"port": target, "port_name": "tcp"} if tcp else {}
    return fault(
        name,
        serving(name, "ported", target=target, selector="app: ported", **own),
        rule(name, f"{name}.ported.svc.cluster.local", policy),
        url=f"tcp://{name}.ported:{target}" if tcp else f"http://{name}.ported/",
        cause=f"DestinationRule/{HOME}/{name}",
    )


# A gateway is a TLS server of which everything is known: clients inside the mesh call it over these entries.


def _server(name: str, mode: str = "SIMPLE") -> str:
    return f"""
kind: Gateway
metadata: {{name: {name}}}
spec:
  selector: {{gateway: ingress}}
  servers:
    - hosts: [{name}.example.com]
      port: {{number: 443, name: https-{name}, protocol: HTTPS}}
      tls: {{mode: {mode}, credentialName: {name}}}
---
kind: VirtualService
metadata: {{name: {name}-inside}}
spec:
  hosts: [{name}.example.com]
  gateways: [{name}]
  http: [{{route: [{{destination: {{host: settled.traffic.svc.cluster.local}}}}]}}]
---
"""


def _secured(
    name: str,
    tls: str,
    *secrets: str,
    mode: str = "SIMPLE",
    cause: str = "",
    server: str = "",
) -> dict[str, object]:
    ports = "{number: 80, name: http, protocol: HTTP, targetPort: 8443}"
    return fault(
        name,
        entry(name, ports, "endpoints: [{address: $(ingress)}]"),
        rule(name, f"{name}.example.com", f"tls: {{{tls}}}", "workloadSelector: {matchLabels: {app: client}}"),
        _server(name, mode),
        server or secret(name, f"{name}.example.com", ca=mode == "MUTUAL"),
        *secrets,
        url=f"http://{name}.example.com/",
        cause=cause if cause != "rule" else f"DestinationRule/{HOME}/{name}",
    )


def trusting(name: str, authority: Authority = ROOT) -> str:
    """A Secret beside the client with whom it trusts."""
    return secret(name, "unused.example.com", authority=authority, ca=True, namespace=HOME)


TLS = of_family(
    "TLS",
    _ruled("tls-simple-to-mesh", "tls: {mode: SIMPLE, sni: tls-simple-to-mesh}"),
    _ruled("tls-wrong-name", "tls: {mode: ISTIO_MUTUAL, subjectAltNames: [spiffe://cluster.local/ns/x/sa/y]}"),
    fault(
        "tls-no-credential",
        serving("tls-no-credential"),
        rule(
            "tls-no-credential",
            "tls-no-credential",
            "tls: {mode: MUTUAL, credentialName: never}",
            "workloadSelector: {matchLabels: {app: client}}",
        ),
        cause=f"DestinationRule/{HOME}/tls-no-credential",
    ),
    _to_ported("tls-to-disabled", 8084, "tls: {mode: ISTIO_MUTUAL}"),
    _to_ported("tls-tcp-to-disabled", 9002, "tls: {mode: ISTIO_MUTUAL}", tcp=True),
    _secured(
        "tls-untrusted",
        "mode: SIMPLE, credentialName: tls-untrusted-roots, sni: tls-untrusted.example.com",
        trusting("tls-untrusted-roots", OTHER),
        cause="rule",
    ),
    _secured(
        "tls-wrong-sni",
        "mode: SIMPLE, credentialName: tls-wrong-sni-roots, sni: nobody.example.org",
        trusting("tls-wrong-sni-roots"),
        cause="rule",
    ),
    _secured(
        "tls-server-name",
        "mode: SIMPLE, credentialName: tls-server-name-roots, sni: tls-server-name.example.com,"
        " subjectAltNames: [other.example.com]",
        trusting("tls-server-name-roots"),
        cause="rule",
    ),
    _secured(
        "tls-expired",
        "mode: SIMPLE, credentialName: tls-expired-roots, sni: tls-expired.example.com",
        trusting("tls-expired-roots"),
        cause="Secret/gateways/tls-expired",
        server=secret("tls-expired", "tls-expired.example.com", lapsed=True),
    ),
    _secured(
        "tls-uncertified",
        "mode: SIMPLE, credentialName: tls-uncertified-roots, sni: tls-uncertified.example.com",
        trusting("tls-uncertified-roots"),
        mode="MUTUAL",
        cause="rule",
    ),
    _secured(
        "tls-strange-client",
        "mode: MUTUAL, credentialName: tls-strange-client-own, sni: tls-strange-client.example.com,"
        " insecureSkipVerify: true",
        trusting("tls-strange-client-own", OTHER),
        mode="MUTUAL",
        cause="rule",
    ),
    fault(
        "tls-of-its-own",
        serving("tls-of-its-own"),
        url="https://tls-of-its-own.traffic.svc.cluster.local:80/",
        is_wary=False,
    ),
    _secured(
        "tls-plain",
        "mode: DISABLE",
        cause="rule",
    ),
)

STRICT = of_family(
    "STRICT",
    _to_ported("strict-port", 8083, "tls: {mode: DISABLE}"),
    _to_ported("strict-simple", 8083, "tls: {mode: SIMPLE}"),
    _to_ported("strict-tcp", 9001, "tls: {mode: DISABLE}", tcp=True),
    fault(
        "strict-space",
        serving("strict-space", "locked", selector="app: locked"),
        rule("strict-space", "strict-space.locked.svc.cluster.local", "tls: {mode: DISABLE}"),
        url="http://strict-space.locked/",
        cause=f"DestinationRule/{HOME}/strict-space",
    ),
    fault(
        "strict-space-tcp",
        serving("strict-space-tcp", "locked", selector="app: locked", port=9001, port_name="tcp", target=9001),
        rule("strict-space-tcp", "strict-space-tcp.locked.svc.cluster.local", "tls: {mode: DISABLE}"),
        url="tcp://strict-space-tcp.locked:9001",
        cause=f"DestinationRule/{HOME}/strict-space-tcp",
    ),
    fault(
        "strict-outsider",
        serving("strict-outsider", "locked", selector="app: locked"),
        url="http://strict-outsider.locked/",
        source="outer",
        cause="PeerAuthentication/locked/all-strict",
    ),
    fault(
        "strict-outsider-port",
        serving("strict-outsider-port", "ported", selector="app: ported", target=8083),
        url="http://strict-outsider-port.ported/",
        source="outer",
        cause="PeerAuthentication/ported/by-port",
    ),
    fault(
        "strict-outsider-tcp",
        serving("strict-outsider-tcp", "locked", selector="app: locked", port=9001, port_name="tcp", target=9001),
        url="tcp://strict-outsider-tcp.locked:9001",
        source="outer",
        cause="PeerAuthentication/locked/all-strict",
    ),
    fault(
        "strict-by-address",
        url="http://strict-by-address.example.com:8080/",
        address="locked",
        cause="PeerAuthentication/locked/all-strict",
    ),
    fault(
        "strict-by-port-level",
        serving("strict-by-port-level", "locked", selector="app: locked"),
        rule(
            "strict-by-port-level",
            "strict-by-port-level.locked.svc.cluster.local",
            "portLevelSettings: [{port: {number: 80}, tls: {mode: DISABLE}}]",
        ),
        url="http://strict-by-port-level.locked/",
        cause=f"DestinationRule/{HOME}/strict-by-port-level",
    ),
)


def _limit(name: str, pool: str, at_once: int, **more: object) -> dict[str, object]:
    return _ruled(name, f"connectionPool: {{{pool}}}", at_once=at_once, takes=1.0, **more)


OVERFLOW = of_family(
    "UO",
    _limit("uo-requests", "http: {http2MaxRequests: 1}", 5),
    _limit("uo-pending", "tcp: {maxConnections: 1}, http: {http1MaxPendingRequests: 1}", 8),
    fault(
        "uo-subset",
        routing("uo-subset", "route: [{destination: {host: uo-subset, subset: v1}}]"),
        rule(
            "uo-subset",
            "uo-subset",
            "connectionPool: {http: {http2MaxRequests: 100}}",
            "subsets: [{name: v1, labels: {version: v1},"
            " trafficPolicy: {connectionPool: {http: {http2MaxRequests: 1}}}}]",
        ),
        at_once=6,
        takes=1.0,
        cause=f"DestinationRule/{HOME}/uo-subset",
    ),
    _limit("uo-not-reached", "http: {http2MaxRequests: 10}", 3) | {"cause": ""},
)

UNREACHED = of_family(
    "UF",
    fault("uf-target", serving("uf-target", target=7999), cause=f"Service/{HOME}/uf-target"),
    fault(
        "uf-target-outside",
        serving("uf-target-outside", "outside", target=7998, selector=_OUTER),
        url="http://uf-target-outside.outside/",
        cause="Service/outside/uf-target-outside",
    ),
    fault(
        "uf-target-tcp",
        serving("uf-target-tcp", "outside", port=9000, port_name="tcp", target=7997, selector=_OUTER),
        url="tcp://uf-target-tcp.outside:9000",
        cause="Service/outside/uf-target-tcp",
    ),
    fault(
        "uf-entry",
        entry(
            "uf-entry", "{number: 80, name: http, protocol: HTTP, targetPort: 7996}", "endpoints: [{address: $(outer)}]"
        ),
        url="http://uf-entry.example.com/",
        cause=f"ServiceEntry/{HOME}/uf-entry",
    ),
    fault("uf-port", serving("uf-port"), url="http://uf-port:81/", cause=f"Service/{HOME}/uf-port"),
    fault(
        "uc-closes",
        serving("uc-closes"),
        answers=0,
    ),
    fault(
        "uc-closes-outside",
        serving("uc-closes-outside", "outside", selector=_OUTER),
        url="http://uc-closes-outside.outside/",
        answers=0,
    ),
)


def _routed(name: str, route: str, **more: object) -> dict[str, object]:
    return fault(name, routing(name, f"{{{route}, TO}}"), cause=f"VirtualService/{HOME}/{name}", **more)


TIMEOUTS = of_family(
    "UT",
    _routed("ut-route", "timeout: 200ms", takes=1.0),
    _routed("ut-try", "retries: {attempts: 1, perTryTimeout: 200ms, retryOn: 5xx}", takes=1.0),
    _routed("ut-retried", "timeout: 600ms, retries: {attempts: 5, perTryTimeout: 250ms, retryOn: 5xx}", takes=1.5),
    _routed("ut-second", "match: [{uri: {prefix: /}}], timeout: 100ms", takes=0.8),
    fault("ut-header", serving("ut-header"), headers={"x-envoy-upstream-rq-timeout-ms": "150"}, takes=1.0),
    fault("dc-leaves", serving("dc-leaves"), takes=1.5, gives_up=0.3),
    fault("dc-leaves-late", routing("dc-leaves-late", "{timeout: 1s, TO}"), takes=2.0, gives_up=0.4),
    _routed("ut-before-dc", "timeout: 200ms", takes=1.5, gives_up=1.0),
)

RETRIES = of_family(
    "URX",
    fault("urx-5xx", routing("urx-5xx", "{retries: {attempts: 1, retryOn: 5xx}, TO}"), answers=500),
    fault(
        "urx-gateway-error",
        routing("urx-gateway-error", "{retries: {attempts: 2, retryOn: gateway-error}, TO}"),
        answers=502,
    ),
    fault("urx-status", routing("urx-status", "{retries: {attempts: 1, retryOn: '418'}, TO}"), answers=418),
    fault(
        "urx-not-retried",
        routing("urx-not-retried", "{retries: {attempts: 1, retryOn: gateway-error}, TO}"),
        answers=500,
    ),
    fault("urx-none", routing("urx-none", "{retries: {attempts: 0}, TO}"), answers=503),
    fault("urx-default", serving("urx-default"), answers=503),
    fault("urx-reset", routing("urx-reset", "{retries: {attempts: 1, retryOn: reset}, TO}"), answers=0),
)

_ABORT = "percentage: {value: 100}"
INJECTED = of_family(
    "FI",
    _routed("fi-abort", f"fault: {{abort: {{httpStatus: 418, {_ABORT}}}}}"),
    _routed("fi-abort-503", f"fault: {{abort: {{httpStatus: 503, {_ABORT}}}}}"),
    _routed(
        "fi-header",
        f"match: [{{headers: {{x-test: {{exact: 'on'}}}}}}], fault: {{abort: {{httpStatus: 429, {_ABORT}}}}}",
        headers={"x-test": "on"},
    ),
    _routed("fi-grpc", f"fault: {{abort: {{grpcStatus: UNAVAILABLE, {_ABORT}}}}}"),
    _routed(
        "fi-delay-abort", f"fault: {{delay: {{fixedDelay: 20ms, {_ABORT}}}, abort: {{httpStatus: 500, {_ABORT}}}}}"
    ),
    _routed("fi-share", "fault: {abort: {httpStatus: 500, percentage: {value: 99.99}}}"),
)

FAULTS = (*TLS, *STRICT, *OVERFLOW, *UNREACHED, *TIMEOUTS, *RETRIES, *INJECTED)
