"""Predictions of `trace`, made from the objects alone, against the same requests through real Envoys."""

import json
import pathlib
import re

import pytest
from traced import Situation, load_world, observe, predict
from traffic_certificates import secret
from traffic_manifests import policy, routes, service, subsets
from traffic_mesh import TrafficMesh

from mizzen.diagnose.trace.world import World
from mizzen.local import observer

HTTP = "port: {number: 80, name: http, protocol: HTTP}"
HTTPS = "port: {number: 443, name: https, protocol: HTTPS}"
PLAIN, SECURE = "ingress:8080", "ingress:8443"
NEAR = "app: echo, place: near"
KEPT = "app: kept"


def kept(name: str, target: int, **more: str) -> str:
    """A Service over the guarded pod, in its namespace."""
    return service(name, target=target, selector=KEPT, **more).replace(
        f"{{name: {name}}}", f"{{name: {name}, namespace: kept}}"
    )


GUARDS = """
kind: PeerAuthentication
metadata: {name: kept, namespace: kept}
spec:
  selector: {matchLabels: {app: kept}}
  portLevelMtls: {8083: {mode: STRICT}, 9000: {mode: STRICT}}
---
kind: AuthorizationPolicy
metadata: {name: kept-deny, namespace: kept}
spec:
  selector: {matchLabels: {app: kept}}
  action: DENY
  rules: [{to: [{operation: {ports: ["8084"], paths: ["/secret*"]}}]}, {to: [{operation: {ports: ["9001"]}}]}]
---
kind: AuthorizationPolicy
metadata: {name: kept-allow, namespace: kept}
spec:
  selector: {matchLabels: {app: kept}}
  rules:
    - to: [{operation: {notPorts: ["8085"]}}]
    - from: [{source: {principals: ["cluster.local/ns/traffic/sa/visitor"]}}]
      to: [{operation: {ports: ["8085"]}}]
---
kind: RequestAuthentication
metadata: {name: kept-tokens, namespace: kept}
spec:
  selector: {matchLabels: {app: kept}}
  jwtRules:
    - issuer: someone@example.com
      jwks: '{"keys":[{"kty":"RSA","kid":"k","alg":"RS256","e":"AQAB","n":"tN1_ovtBeA4AGKQva_xV_rTnuTKVErN023wnQ1YVW3q1gSbFrVuG_zOY3pgkdDSeuK4vNGgmSNSlttvnA2FE6Z9w7MFyiUE8bqwN9gk2m4S3hj7an7z7UAcLKkrFFG4-NbpLYOxStOhs4TFs9pweOyVObhWEhBMByE6Jbdw7HN1A7BwCg0Oi21GM0JMaqrL_8xJRL1RUOoItyKY6FsuWk5wmikkYVjHJjtN-HfborBH00MINad8rahwlomlFSLt0DN0JvUv8Z0tHtRFzSfTy_4rIGlBYr-ef8ox4KAND1Q9N8nwh8pQIQTeyFVFJ5lQ3_yw05jpH8dt3NDxqxXUiXQ"}]}'
"""
"""One pod whose ports are guarded in different ways."""


def gateway(name: str, server: str) -> str:
    """A Gateway with one server for NAME.example.com, and a route to a Service of that name."""
    return f"""
{service(name, selector=NEAR)}
kind: Gateway
metadata: {{name: {name}}}
spec:
  selector: {{gateway: ingress}}
  servers:
    - hosts: [{name}.example.com]
      {server}
---
kind: VirtualService
metadata: {{name: {name}}}
spec:
  hosts: [{name}.example.com]
  gateways: [{name}]
  http: [{{route: [{{destination: {{host: {name}}}}}]}}]
---
"""


def entry(name: str, what: str, resolution: str, more: str = "exportTo: ['*']") -> str:
    """A ServiceEntry for NAME.example.com with a port for HTTP."""
    return f"""
kind: ServiceEntry
metadata: {{name: {name}}}
spec:
  hosts: [{name}.example.com]
  location: MESH_EXTERNAL
  ports: [{{number: 80, name: http, protocol: HTTP, targetPort: 8080}}]
  resolution: {resolution}
  {more}
  {what}
---
"""


def in_kept(host: str, traffic_policy: str) -> str:
    text = policy(f"{host}-rule", traffic_policy)
    return text.replace(f"host: {host}-rule", f"host: {host}.kept.svc.cluster.local")


def situation(name: str, url: str, *manifests: str, **more: object) -> Situation:
    return Situation(name=name, url=url, manifests=manifests, **more)  # type: ignore[arg-type]


def entering(name: str, url: str, *manifests: str, **more: object) -> Situation:
    """A situation from outside the mesh, through a gateway."""
    return situation(name, url, *manifests, source="outer", **more)


_TOKEN = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.eyJpc3MiOiJzb21lb25lQGV4YW1wbGUuY29tIiwic3ViIjoieCJ9.c2ln"
_STRANGER = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.eyJpc3MiOiJzdHJhbmdlciIsInN1YiI6IngifQ.c2ln"

SITUATIONS = (
    situation("healthy", "http://trace-ok/", service("trace-ok", selector=NEAR)),
    situation(
        "healthy-tcp",
        "tcp://trace-tcp:9000",
        service("trace-tcp", port=9000, port_name="tcp", target=9000, selector=NEAR),
    ),
    situation(
        "no-route",
        "http://trace-nr/other",
        routes("trace-nr", "- {match: [{uri: {exact: /only}}], route: [{destination: {host: trace-nr}}]}"),
        link="route",
        cause="VirtualService/trace-nr",
    ),
    situation(
        "no-cluster",
        "http://trace-nc/",
        routes("trace-nc", "- route: [{destination: {host: trace-nc, subset: v9}}]"),
        link="cluster",
        cause="VirtualService/trace-nc",
    ),
    situation(
        "no-endpoint",
        "http://trace-uh/",
        service("trace-uh", selector="app: nobody"),
        link="endpoint",
        cause="Service/trace-uh",
    ),
    situation(
        "subset-of-nobody",
        "http://trace-subset/",
        routes("trace-subset", "- route: [{destination: {host: trace-subset, subset: v7}}]"),
        subsets("trace-subset").replace("{name: v2, labels: {version: v2}}", "{name: v7, labels: {version: v7}}"),
        link="endpoint",
        cause="DestinationRule/trace-subset",
    ),
    situation(
        "wrong-port",
        "http://trace-port/",
        service("trace-port", target=7999, selector=NEAR),
        link="application",
        cause="Service/trace-port",
        certain=False,
    ),
    situation(
        "tls-to-a-plain-server",
        "http://trace-simple.outside/",
        service("trace-simple", selector="app: outer").replace(
            "{name: trace-simple}", "{name: trace-simple, namespace: outside}"
        ),
        policy("trace-simple", "tls: {mode: ISTIO_MUTUAL}").replace(
            "host: trace-simple", "host: trace-simple.outside.svc.cluster.local"
        ),
        link="tls",
        certain=False,
        foretold=False,
        cause="DestinationRule/trace-simple",
    ),
    situation(
        "plain-text-to-strict",
        "http://trace-strict.kept/",
        kept("trace-strict", 8083),
        in_kept("trace-strict", "tls: {mode: DISABLE}"),
        link="tls",
        cause="DestinationRule/trace-strict-rule",
    ),
    situation(
        "wrong-san",
        "http://trace-san/",
        service("trace-san", selector=NEAR),
        policy("trace-san", "tls: {mode: ISTIO_MUTUAL, subjectAltNames: [spiffe://cluster.local/ns/x/sa/y]}"),
        link="tls",
        cause="DestinationRule/trace-san",
    ),
    situation(
        "simple-tls-to-a-sidecar",
        "http://trace-simple2/",
        service("trace-simple2", selector=NEAR),
        policy("trace-simple2", "tls: {mode: SIMPLE, sni: trace}"),
        link="tls",
        cause="DestinationRule/trace-simple2",
    ),
    situation(
        "outside-to-strict",
        "http://trace-strict.kept/",
        kept("trace-strict", 8083),
        GUARDS,
        source="outer",
        link="tls",
        cause="PeerAuthentication/kept",
    ),
    situation(
        "denied",
        "http://trace-deny.kept/secret/x",
        kept("trace-deny", 8084),
        GUARDS,
        link="policy",
        cause="AuthorizationPolicy/kept-deny",
    ),
    situation("not-denied", "http://trace-deny.kept/open", kept("trace-deny", 8084), GUARDS),
    situation(
        "not-allowed",
        "http://trace-allow.kept/",
        kept("trace-allow", 8085),
        GUARDS,
        link="policy",
        cause="AuthorizationPolicy/kept-allow",
    ),
    situation("allowed", "http://trace-allow.kept/", kept("trace-allow", 8085), GUARDS, source="visitor"),
    situation(
        "bad-signature",
        "http://trace-jwt.kept/",
        kept("trace-jwt", 8086),
        GUARDS,
        headers={"authorization": f"Bearer {_TOKEN}"},
        link="jwt",
        cause="RequestAuthentication/kept-tokens",
    ),
    situation(
        "unknown-issuer",
        "http://trace-jwt.kept/",
        kept("trace-jwt", 8086),
        GUARDS,
        headers={"authorization": f"Bearer {_STRANGER}"},
        link="jwt",
        cause="RequestAuthentication/kept-tokens",
    ),
    situation(
        "tcp-denied",
        "tcp://trace-tcp-deny.kept:9001",
        kept("trace-tcp-deny", 9001, port=9001, port_name="tcp"),
        GUARDS,
        link="policy",
        cause="AuthorizationPolicy/kept-deny",
    ),  # type: ignore[arg-type]
    situation(
        "tcp-plain-to-strict",
        "tcp://trace-tcp-strict.kept:9000",
        kept("trace-tcp-strict", 9000, port=9000, port_name="tcp"),  # type: ignore[arg-type]
        in_kept("trace-tcp-strict", "tls: {mode: DISABLE}"),
        GUARDS,
        link="tls",
        cause="DestinationRule/trace-tcp-strict-rule",
    ),
    situation(
        "tcp-no-endpoint",
        "tcp://trace-tcp-uh:9000",
        service("trace-tcp-uh", port=9000, port_name="tcp", target=9000, selector="app: nobody"),
        link="endpoint",
        cause="Service/trace-tcp-uh",
    ),
    situation(
        "tcp-wrong-port",
        "tcp://trace-tcp-port.outside:9000",
        service("trace-tcp-port", port=9000, port_name="tcp", target=7998, selector="app: outer").replace(
            "{name: trace-tcp-port}", "{name: trace-tcp-port, namespace: outside}"
        ),
        link="application",
        cause="Service/trace-tcp-port",
        certain=False,
    ),
    situation(
        "fault",
        "http://trace-fi/",
        routes(
            "trace-fi",
            "- {fault: {abort: {httpStatus: 418, percentage: {value: 100}}}, route: [{destination: {host: trace-fi}}]}",
        ),
        link="filter",
        cause="VirtualService/trace-fi",
    ),
    situation("redirect", "http://trace-redirect/", routes("trace-redirect", "- {redirect: {uri: /elsewhere}}")),
    situation(
        "direct",
        "http://trace-direct/",
        routes("trace-direct", "- {directResponse: {status: 451, body: {string: sorry}}}"),
    ),
    situation(
        "rewritten",
        "http://trace-rewrite/a/b",
        routes(
            "trace-rewrite",
            "- {match: [{uri: {prefix: /a}}], rewrite: {uri: /c}, route: [{destination: {host: trace-rewrite}}]}",
            selector=NEAR,
        ),
    ),
    situation(
        "registry-only",
        "http://nobody.example.com/",
        source="scoped",
        address="outer",
        link="listener|route",
        cause="Sidecar/default",
    ),
    situation(
        "registry-only-tcp",
        "tcp://trace-tcp.traffic:9000",
        service("trace-tcp", port=9000, port_name="tcp", target=9000, selector=NEAR),
        source="scoped",
        link="listener|route",
        cause="Sidecar/default",
    ),
    situation(
        "hidden-by-scope",
        "http://trace-ok.traffic/",
        service("trace-ok", selector=NEAR),
        source="scoped",
        link="listener|route",
        cause="Sidecar/default",
    ),
    situation(
        "no-pending-requests",
        "http://trace-uo/",
        service("trace-uo", selector=NEAR),
        policy("trace-uo", "connectionPool: {http: {http1MaxPendingRequests: 1, http2MaxRequests: 1}}"),
    ),
)


ELSEWHERE = (
    situation(
        "no-such-port",
        "http://trace-ok:81/",
        service("trace-ok", selector=NEAR),
        link="endpoint",
        cause="Service/trace-ok",
        certain=False,
    ),
    situation(
        "headless",
        "http://trace-heads:8080/",
        service("trace-heads", port=8080, selector=NEAR).replace("spec:", "spec:\n  clusterIP: None", 1),
    ),
    situation(
        "tls-of-the-program",
        "https://trace-own-tls.traffic.svc.cluster.local/",
        service("trace-own-tls", port=443, port_name="tls", target=8443, selector=NEAR),
    ),
    situation(
        "delayed",
        "http://trace-di/",
        routes(
            "trace-di",
            "- {fault: {delay: {fixedDelay: 10ms, percentage: {value: 100}}}, route: [{destination: {host: trace-di}}]}",
            selector=NEAR,
        ),
    ),
    situation(
        "grpc-status-of-a-fault",
        "http://trace-grpc-fi/",
        routes(
            "trace-grpc-fi",
            "- {fault: {abort: {grpcStatus: UNAVAILABLE, percentage: {value: 100}}},"
            " route: [{destination: {host: trace-grpc-fi}}]}",
        ),
        link="filter",
        cause="VirtualService/trace-grpc-fi",
    ),
    situation(
        "by-the-pods-address",
        "http://trace-nobody.example.com:8080/",
        address="kept",
    ),
    situation(
        "by-the-pods-address-to-strict",
        "http://trace-nobody.example.com:8083/",
        address="kept",
        link="tls",
        cause="PeerAuthentication/kept",
    ),
    situation(
        "from-a-pod-without-a-sidecar",
        "http://trace-ok.traffic/",
        service("trace-ok", selector=NEAR),
        source="outer",
    ),
    situation(
        "preflight",
        "http://trace-cors/",
        routes(
            "trace-cors",
            "- {corsPolicy: {allowOrigins: [{exact: 'http://a.example'}], allowMethods: [GET]},"
            " route: [{destination: {host: trace-cors}}]}",
            selector=NEAR,
        ),
        method="OPTIONS",
        headers={"origin": "http://a.example", "access-control-request-method": "GET"},
    ),
)
BEYOND = (
    situation(
        "timeout",
        "http://trace-ut/",
        routes("trace-ut", "- {timeout: 200ms, route: [{destination: {host: trace-ut}}]}", selector=NEAR),
        takes=1.5,
        link="route",
        cause="VirtualService/trace-ut",
    ),
    situation("in-time", "http://trace-ok/", service("trace-ok", selector=NEAR), takes=0.2),
    situation(
        "retries-used-up",
        "http://trace-urx/",
        routes(
            "trace-urx",
            "- {retries: {attempts: 1, retryOn: 5xx}, route: [{destination: {host: trace-urx}}]}",
            selector=NEAR,
        ),
        answers=500,
    ),
    situation("an-error-of-the-program", "http://trace-ok/", service("trace-ok", selector=NEAR), answers=500),
    situation(
        "sniffed-port",
        "http://trace-sniffed/",
        service("trace-sniffed", port_name="web", target=8081, selector=NEAR),
    ),
    situation(
        "http-over-a-tcp-port",
        "http://trace-raw/",
        service("trace-raw", port_name="tcp", target=8080, selector=NEAR),
    ),
    situation(
        "static-entry",
        "http://trace-static.example.com/",
        entry("trace-static", "endpoints: [{address: $(outer)}]", "STATIC"),
    ),
    situation(
        "static-entry-of-nobody",
        "http://trace-gone.example.com/",
        entry("trace-gone", "workloadSelector: {labels: {app: gone}}", "STATIC"),
        link="endpoint",
        cause="ServiceEntry/trace-gone",
    ),
    situation(
        "route-to-an-unknown-host",
        "http://trace-lost/",
        routes("trace-lost", "- route: [{destination: {host: never-there}}]"),
        link="cluster",
        cause="VirtualService/trace-lost",
    ),
    situation(
        "route-to-an-unknown-port",
        "http://trace-lost-port/",
        routes("trace-lost-port", "- route: [{destination: {host: trace-lost-port, port: {number: 81}}}]"),
        link="cluster",
        cause="VirtualService/trace-lost-port",
    ),
    situation(
        "hidden-entry",
        "http://trace-hidden.example.com/",
        entry("trace-hidden", "endpoints: [{address: $(outer)}]", "STATIC", 'exportTo: ["."]'),
        source="scoped",
        address="outer",
        link="listener|route",
        cause="ServiceEntry/trace-hidden",
    ),
    situation(
        "weights-to-the-same-end",
        "http://trace-weights/",
        routes(
            "trace-weights",
            "- route: [{destination: {host: trace-weights, subset: v1}, weight: 60},"
            " {destination: {host: trace-weights, subset: v2}, weight: 40}]",
        ),
        subsets("trace-weights"),
    ),
    situation(
        "all-the-weight-on-a-missing-subset",
        "http://trace-half/",
        routes(
            "trace-half",
            "- route: [{destination: {host: trace-half, subset: v9}, weight: 100},"
            " {destination: {host: trace-half, subset: v2}, weight: 0}]",
        ),
        subsets("trace-half"),
        link="cluster",
        cause="VirtualService/trace-half",
    ),
    situation(
        "tls-of-the-program-to-a-port-for-http",
        "https://trace-ok.traffic.svc.cluster.local:80/",
        service("trace-ok", selector=NEAR),
        link="tls",
    ),
    situation(
        "an-upgrade-that-nobody-allows",
        "http://trace-ok/",
        service("trace-ok", selector=NEAR),
        headers={"connection": "upgrade", "upgrade": "odd"},
        link="listener",
    ),
)
LIMIT = """
kind: EnvoyFilter
metadata: {name: kept-limit, namespace: kept}
spec:
  workloadSelector: {labels: {app: kept}}
  configPatches:
    - applyTo: HTTP_FILTER
      match:
        context: SIDECAR_INBOUND
        listener:
          portNumber: 8081
          filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}
      patch:
        operation: INSERT_BEFORE
        value:
          name: envoy.filters.http.local_ratelimit
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
            stat_prefix: kept
            token_bucket: {max_tokens: 2, tokens_per_fill: 2, fill_interval: 3600s}
            filter_enabled: {default_value: {numerator: 100}}
            filter_enforced: {default_value: {numerator: 100}}
"""
LIMITS = (
    situation(
        "beyond-a-rate-limit",
        "http://trace-limited.kept/",
        kept("trace-limited", 8081),
        LIMIT,
        earlier=2,
        link="filter",
        cause="EnvoyFilter/kept-limit",
    ),
    entering(
        "gateway-without-its-secret",
        "https://trace-secretless.example.com:15444/",
        gateway(
            "trace-secretless",
            "port: {number: 15444, name: https-15444, protocol: HTTPS}\n"
            "      tls: {mode: SIMPLE, credentialName: trace-nowhere}",
        ),
        door="ingress:15444",
        link="secret",
        cause="Gateway/trace-secretless",
    ),
)
TERMINATING = (
    secret("trace-tls", "trace-tls.example.com"),
    gateway("trace-tls", f"{HTTPS}\n      tls: {{mode: SIMPLE, credentialName: trace-tls}}"),
)
DOORS = (
    entering("gateway", "http://trace-gw.example.com/", gateway("trace-gw", HTTP), door=PLAIN),
    entering("gateway-no-host", "http://nobody.example.org/", gateway("trace-gw", HTTP), door=PLAIN, link="route"),
    entering(
        "gateway-not-bound",
        "http://trace-unbound.example.com/",
        gateway("trace-unbound", HTTP).replace("gateways: [trace-unbound]", "gateways: [mesh]"),
        door=PLAIN,
        link="route",
        cause="VirtualService/trace-unbound",
    ),
    entering(
        "gateway-other-host",
        "http://trace-host.example.com/",
        gateway("trace-host", HTTP).replace("- hosts: [trace-host.example.com]", "- hosts: [other.example.com]"),
        door=PLAIN,
        link="route",
        cause="Gateway/trace-host",
    ),
    entering(
        "gateway-redirect",
        "http://trace-redirected.example.com/a",
        gateway("trace-redirected", f"{HTTP}\n      tls: {{httpsRedirect: true}}"),
        door=PLAIN,
    ),
    entering(
        "gateway-tls",
        "https://trace-tls.example.com/",
        *TERMINATING,
        door=SECURE,
    ),
    entering(
        "gateway-no-client-certificate",
        "https://trace-mutual.example.com/",
        secret("trace-mutual", "trace-mutual.example.com", ca=True),
        gateway("trace-mutual", f"{HTTPS}\n      tls: {{mode: MUTUAL, credentialName: trace-mutual}}"),
        door=SECURE,
        link="tls",
        cause="Gateway/trace-mutual",
    ),
    entering(
        "gateway-unknown-name",
        "https://trace-nobody.example.com/",
        *TERMINATING,
        door=SECURE,
        link="filter_chain",
    ),
    entering(
        "gateway-no-port",
        "http://trace-gw.example.com:8123/",
        gateway("trace-gw", HTTP),
        door="ingress:8123",
        link="listener",
        cause="Gateway/trace-gw",
    ),
)


def _without_further_names(details: str) -> str:
    """Of a certificate's names the first only: agents may add others, of which no object says."""
    return re.sub(r"(SANs_are_\[[^],]*)[^]]*", r"\1", details)


@pytest.fixture(scope="session")
def world(mesh: TrafficMesh) -> World:
    return load_world(mesh)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(s, marks=pytest.mark.behaviour(*s.manifests, GUARDS), id=s.name)
        for s in (*SITUATIONS, *ELSEWHERE, *BEYOND, *LIMITS, *DOORS)
    ],
)
def test_a_prediction_comes_true(mesh: TrafficMesh, world: World, case: Situation) -> None:
    predicted = predict(mesh, world, case)
    met = observe(mesh, case)
    status, flag, details = predicted.seen_by_client
    print(f"{met.line}\n{predicted.reason} {predicted.depends_on}")
    assert predicted.certain == case.certain, predicted.depends_on
    if not case.foretold:
        pass
    elif met.line:
        assert (status, frozenset(flag.split(",")) - {"-"}) == (met.status, met.flags)
        assert _without_further_names(details) == _without_further_names(met.details)
    else:
        assert status == met.status
    assert predicted.link in case.link.split("|")
    blamed = f"{predicted.cause.kind}/{predicted.cause.name}" if predicted.cause is not None else ""
    assert blamed == case.cause


@pytest.mark.behaviour(service("trace-live", selector=NEAR))
def test_a_running_mesh_is_asked_itself(mesh: TrafficMesh) -> None:
    done = mesh.local.run(
        "trace", "--mesh", mesh.local.name, "--from", "client.traffic", "http://trace-live/", "-o", "json"
    )
    found = json.loads(done.stdout)
    assert (found["outcome"], found["status"], found["certain"]) == ("delivered", 200, True)
    warned = [line for line in done.stderr.splitlines() if line.startswith("warning: client.traffic: ")]
    assert [line for line in warned if ": endpoint " not in line and ": and " not in line] == []
    sides = list(dict.fromkeys(step["side"] for step in found["steps"]))
    assert sides == ["client.traffic", "near.traffic"]


@pytest.mark.behaviour(service("trace-dumped", selector=NEAR))
def test_dumps_of_both_sides_are_enough(mesh: TrafficMesh, tmp_path: pathlib.Path) -> None:
    files = []
    for name in ("client", "near"):
        path = tmp_path / f"{name}.json"
        path.write_text(observer.ask_envoy(mesh.pod(name), "/config_dump?include_eds"))
        files += ["--file", str(path)]
    (address,) = mesh["client"].resolve("trace-dumped")
    asked = ("--from", "client.traffic", "--connect-to", address, "http://trace-dumped/", "-o", "json")
    found = json.loads(mesh.local.run("trace", *files, *asked).stdout)
    assert (found["outcome"], found["status"]) == ("delivered", 200)
    assert [step["title"] for step in found["steps"] if step["link"] == "cluster"] == [
        "cluster outbound|80||trace-dumped.traffic.svc.cluster.local",
        "cluster inbound|8080||",
    ]
    assert any(step["title"] == "mutual TLS agrees" for step in found["steps"])
