"""What comes in from outside: hosts, redirects, TLS in all its modes, TCP, and certificates from Secrets."""

import pytest
from eventually import eventually_blocking
from traffic_certificates import OTHER, ROOT, secret
from traffic_manifests import behaviour, service
from traffic_programs import new_case

GATEWAY = "spiffe://cluster.local/ns/gateways/sa/ingress"
TRUSTING = {"ca": ROOT.pem}


def certified(name: str, authority=ROOT) -> dict[str, str]:
    """The TLS settings of a caller who shows a certificate."""
    certificate, key = authority.issue(name)
    return {**TRUSTING, "certificate": certificate, "key": key}


def gateway(name: str, server: str, *, routes: str = "") -> str:
    """A Gateway with one server for NAME.example.com, a Service behind it, and a route to it."""
    rules = routes or f"http: [{{route: [{{destination: {{host: {name}}}}}]}}]"
    return (
        service(name)
        + f"""
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
  {rules}
---
"""
    )


HTTP = "port: {number: 80, name: http, protocol: HTTP}"
HTTPS = "port: {number: 443, name: https, protocol: HTTPS}"


@pytest.fixture
def door(mesh):
    """The gateway's address."""
    return mesh.pod("ingress").address


@behaviour(gateway("plain-in", HTTP))
def test_a_host_is_led_to_its_service_and_another_is_not_found(outer, door):
    answer = outer.get("http://plain-in.example.com/path", address=f"{door}:8080")
    assert (answer.seen.caller, answer.seen.target) == (GATEWAY, "/path")
    assert answer.seen.header("x-forwarded-for") == outer.address
    assert outer.get("http://nobody.example.com/", address=f"{door}:8080").status == 404


@behaviour(gateway("plain-in", HTTP))
def test_the_gateways_service_leads_there_too(outer):
    assert outer.get("http://plain-in.example.com/", address="ingress.gateways.svc:80").seen.caller == GATEWAY


@behaviour(gateway("redirected", f"{HTTP}\n      tls: {{httpsRedirect: true}}"))
def test_plain_requests_are_redirected_to_https(outer, echoes, door):
    answer = outer.get("http://redirected.example.com/a?b=c", address=f"{door}:8080")
    assert (answer.status, answer.header("location")) == (301, "https://redirected.example.com/a?b=c")
    assert echoes.received(answer.case) == []


@behaviour(
    secret("simple-cert", "simple.example.com"),
    gateway("simple", f"{HTTPS}\n      tls: {{mode: SIMPLE, credentialName: simple-cert}}"),
    secret("second-cert", "second.example.com"),
    gateway(
        "second",
        "port: {number: 443, name: https-second, protocol: HTTPS}\n      tls: {mode: SIMPLE, credentialName: second-cert}",
    ),
)
@pytest.mark.parametrize("name", ["simple", "second"])
def test_tls_ends_at_the_gateway_with_the_certificate_of_the_host(outer, door, name):
    """The caller verifies chain and name."""
    answer = outer.get(f"https://{name}.example.com/", address=f"{door}:8443", tls=TRUSTING)
    assert answer.seen.caller == GATEWAY
    assert answer.seen.header("x-forwarded-proto") == "https"


@behaviour(
    secret("mutual-cert", "mutual.example.com", ca=True),
    gateway("mutual", f"{HTTPS}\n      tls: {{mode: MUTUAL, credentialName: mutual-cert}}"),
)
def test_mutual_tls_lets_in_only_whom_the_secret_trusts(outer, door):
    url, at = "https://mutual.example.com/", f"{door}:8443"
    answer = outer.get(url, address=at, tls=certified("friend.example.com"))
    assert answer.status == 200
    assert 'Subject="CN=friend.example.com"' in answer.seen.header("x-forwarded-client-cert")
    assert outer.get(url, address=at, tls=TRUSTING).status == 0
    assert outer.get(url, address=at, tls=certified("stranger.example.com", OTHER)).status == 0


@behaviour(
    secret("optional-cert", "optional.example.com", ca=True),
    gateway("optional", f"{HTTPS}\n      tls: {{mode: OPTIONAL_MUTUAL, credentialName: optional-cert}}"),
)
def test_optional_mutual_tls_lets_in_who_shows_nothing_or_something_good(outer, door):
    url, at = "https://optional.example.com/", f"{door}:8443"
    known = outer.get(url, address=at, tls=certified("friend.example.com"))
    assert 'Subject="CN=friend.example.com"' in known.seen.header("x-forwarded-client-cert")
    unknown = outer.get(url, address=at, tls=TRUSTING)
    assert (unknown.status, "friend" in unknown.seen.header("x-forwarded-client-cert")) == (200, False)
    assert outer.get(url, address=at, tls=certified("stranger.example.com", OTHER)).status == 0


SPLIT_CA = """
kind: Secret
metadata: {name: apart-cert-cacert, namespace: gateways}
stringData: {ca.crt: CA}
---
"""


@behaviour(
    secret("apart-cert", "apart.example.com"),
    SPLIT_CA.replace("CA}", f"{OTHER.pem!r}}}".replace("'", '"')),
    gateway("apart", f"{HTTPS}\n      tls: {{mode: MUTUAL, credentialName: apart-cert}}"),
)
def test_the_trusted_roots_may_be_a_secret_of_their_own(outer, door):
    url, at = "https://apart.example.com/", f"{door}:8443"
    assert outer.get(url, address=at, tls=certified("friend.example.com", OTHER)).status == 200
    assert outer.get(url, address=at, tls=certified("stranger.example.com")).status == 0


@behaviour(
    gateway("rotated", f"{HTTPS}\n      tls: {{mode: SIMPLE, credentialName: rotated-cert}}"),
)
def test_a_secret_may_come_later_and_change(mesh, outer, door):
    def shown() -> str:
        (line,) = outer.connect(
            f"{door}:8443", tls={**TRUSTING, "sni": "rotated.example.com"}, say="GET / HTTP/1.1\r\n\r\n"
        )
        return line.peer.get("commonName", "")

    assert shown() == ""
    for first in ("one.example.com", "two.example.com"):
        mesh.apply("rotated", [secret("rotated-cert", first, "rotated.example.com")])
        eventually_blocking(lambda first=first: shown() == first)


@behaviour(
    gateway(
        "passed",
        "port: {number: 443, name: tls-passed, protocol: TLS}\n      tls: {mode: PASSTHROUGH}",
        routes="tls: [{match: [{port: 443, sniHosts: [passed.example.com]}],"
        " route: [{destination: {host: passed-tls, port: {number: 8443}}}]}]",
    ),
    service("passed-tls", port=8443, port_name="tls", target=8443),
)
def test_tls_may_pass_through_to_the_server(outer, echoes, door):
    answer = outer.get("https://passed.example.com/", address=f"{door}:8443", tls=TRUSTING)
    assert (answer.seen.kind, answer.seen.sni, answer.pod in echoes.names) == ("https", "passed.example.com", True)


@behaviour(
    service("tcp-in", port=9000, port_name="tcp", target=9000, selector="app: echo, place: near"),
    """
kind: Gateway
metadata: {name: tcp-in}
spec:
  selector: {gateway: ingress}
  servers: [{hosts: ["*"], port: {number: 9000, name: tcp, protocol: TCP}}]
---
kind: VirtualService
metadata: {name: tcp-in}
spec:
  hosts: ["*"]
  gateways: [tcp-in]
  tcp: [{match: [{port: 9000}], route: [{destination: {host: tcp-in, port: {number: 9000}}}]}]
""",
)
def test_tcp_comes_in_too(outer, door):
    assert outer.connect(f"{door}:9000")[0].lines == ("HELLO near v1",)


@behaviour(
    service("grpc-in-tls", port=9090, port_name="grpc", target=9090),
    secret("grpc-in-cert", "grpc-in.example.com"),
    gateway(
        "grpc-in",
        f"{HTTPS}\n      tls: {{mode: SIMPLE, credentialName: grpc-in-cert}}".replace("https,", "https-grpc,"),
        routes="http: [{route: [{destination: {host: grpc-in-tls}}]}]",
    ),
)
def test_grpc_streams_come_in_over_tls(mesh, outer, door):
    case = new_case()
    (call,) = outer.grpc(
        f"{door}:8443",
        ["a", "b"],
        method="Stream",
        authority="grpc-in.example.com",
        ca=ROOT.pem,
        metadata=[("x-case", case)],
    )
    assert (call.code, [answer.split()[1] for answer in call.answers]) == ("OK", ["a", "b"])
    (seen,) = mesh.echoes.received(case)
    assert f"URI={GATEWAY}" in seen.metadata["x-forwarded-client-cert"]


@behaviour(gateway("socket-in", HTTP))
def test_websockets_come_in(outer, door):
    opened = outer.websocket(f"{door}:8080", "socket-in.example.com", ["one"])
    assert (opened["status"], opened["answers"][0].split()[1]) == (101, "one")


@behaviour(
    secret("modern-cert", "modern.example.com"),
    gateway(
        "modern",
        f"{HTTPS}\n      tls: {{mode: SIMPLE, credentialName: modern-cert, minProtocolVersion: TLSV1_3}}".replace(
            "https,", "https-modern,"
        ),
    ),
)
def test_old_tls_versions_are_refused_where_the_server_says_so(outer, door):
    url, at = "https://modern.example.com/", f"{door}:8443"
    assert outer.get(url, address=at, tls={**TRUSTING, "max": "TLSv1_2"}).status == 0
    assert outer.get(url, address=at, tls={**TRUSTING, "max": "TLSv1_3"}).status == 200


@behaviour(
    service("routed-in"),
    """
kind: Gateway
metadata: {name: routed-in}
spec:
  selector: {gateway: ingress}
  servers: [{hosts: ["traffic/*.routed.example.com"], port: {number: 80, name: http, protocol: HTTP}}]
---
kind: VirtualService
metadata: {name: routed-in}
spec:
  hosts: [a.routed.example.com]
  gateways: [routed-in, mesh]
  http:
    - match: [{gateways: [routed-in], uri: {prefix: /}}]
      headers: {request: {set: {x-route: gateway}}}
      route: [{destination: {host: routed-in}}]
---
kind: VirtualService
metadata: {name: routed-elsewhere, namespace: scoped}
spec:
  hosts: [b.routed.example.com]
  gateways: [traffic/routed-in]
  http: [{route: [{destination: {host: routed-in.traffic.svc.cluster.local}}]}]
""",
)
def test_a_server_takes_routes_only_from_the_namespaces_it_names(outer, door):
    assert outer.get("http://a.routed.example.com/", address=f"{door}:8080").route == "gateway"
    assert outer.get("http://b.routed.example.com/", address=f"{door}:8080").status == 404


@behaviour(
    service("crossed", selector="app: echo, place: near"),
    """
kind: Gateway
metadata: {name: crossed}
spec:
  selector: {gateway: ingress}
  servers:
    - hosts: ["*.traffic.svc.cluster.local"]
      port: {number: 15443, name: tls, protocol: TLS}
      tls: {mode: AUTO_PASSTHROUGH}
---
kind: ServiceEntry
metadata: {name: crossed}
spec:
  hosts: [crossed.example.com]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: "$(ingress)", ports: {http: 15443}}]
---
kind: DestinationRule
metadata: {name: crossed-by-name}
spec:
  host: crossed.example.com
  trafficPolicy:
    tls:
      mode: ISTIO_MUTUAL
      sni: outbound_.80_._.crossed.traffic.svc.cluster.local
      subjectAltNames: [spiffe://cluster.local/ns/traffic/sa/echo]
""",
)
def test_mutual_tls_of_the_mesh_crosses_a_gateway_unopened(client):
    seen = client.get("http://crossed.example.com/").seen
    assert (seen.pod, seen.caller) == ("near", "spiffe://cluster.local/ns/traffic/sa/client")


@behaviour(
    service("joined"),
    """
kind: Gateway
metadata: {name: joined}
spec:
  selector: {gateway: ingress}
  servers: [{hosts: ["*.joined.example.com"], port: {number: 80, name: http, protocol: HTTP}}]
---
kind: VirtualService
metadata: {name: joined-a}
spec:
  hosts: [shop.joined.example.com]
  gateways: [joined]
  http:
    - match: [{uri: {prefix: /a}}]
      headers: {request: {set: {x-route: a}}}
      route: [{destination: {host: joined}}]
---
kind: VirtualService
metadata: {name: joined-b}
spec:
  hosts: [shop.joined.example.com]
  gateways: [joined]
  http:
    - match: [{uri: {prefix: /b}}]
      headers: {request: {set: {x-route: b}}}
      route: [{destination: {host: joined}}]
---
kind: VirtualService
metadata: {name: joined-others}
spec:
  hosts: ["*.joined.example.com"]
  gateways: [joined]
  http:
    - headers: {request: {set: {x-route: others}}}
      route: [{destination: {host: joined}}]
""",
)
def test_routes_of_several_objects_for_one_host_are_joined_and_the_closest_host_wins(outer, door):
    for host, path, route in (("shop", "/a", "a"), ("shop", "/b", "b"), ("other", "/a", "others")):
        assert outer.get(f"http://{host}.joined.example.com{path}", address=f"{door}:8080").route == route
    assert outer.get("http://shop.joined.example.com/c", address=f"{door}:8080").status == 404


@behaviour(
    service("opened", port=9000, port_name="tcp", target=9000, selector="app: echo, place: near"),
    secret("opened-cert", "opened.example.com"),
    """
kind: Gateway
metadata: {name: opened}
spec:
  selector: {gateway: ingress}
  servers:
    - hosts: [opened.example.com]
      port: {number: 443, name: tls-opened, protocol: TLS}
      tls: {mode: SIMPLE, credentialName: opened-cert}
---
kind: VirtualService
metadata: {name: opened}
spec:
  hosts: [opened.example.com]
  gateways: [opened]
  tcp: [{match: [{port: 443}], route: [{destination: {host: opened, port: {number: 9000}}}]}]
""",
)
def test_tls_may_end_at_the_gateway_for_what_is_not_http(outer, door):
    (line,) = outer.connect(f"{door}:8443", tls={**TRUSTING, "sni": "opened.example.com"})
    assert line.lines == ("HELLO near v1",)
