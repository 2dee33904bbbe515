"""What is no plain request: TCP, TLS by its name, WebSocket, HTTP/2 and gRPC, declared and sniffed."""

import re

import pytest
from traffic_manifests import behaviour, policy, routes, service, subsets
from traffic_programs import count_pods, new_case

NEAR = "app: echo, place: near"
CLIENT = "spiffe://cluster.local/ns/traffic/sa/client"


def tcp_routes(name: str, kind: str, rules: str, *, port: int, port_name: str, target: int) -> str:
    lines = "\n".join(f"  {line}" for line in rules.strip("\n").splitlines())
    return f"""
{service(name, port=port, port_name=port_name, target=target)}
{subsets(name)}
kind: VirtualService
metadata: {{name: {name}}}
spec:
  hosts: [{name}]
  {kind}:
{lines}
"""


@behaviour(service("greeting", port=9000, port_name="tcp", target=9000))
def test_a_server_may_speak_first(client):
    (line,) = client.connect("greeting:9000", say="and you\n", lines=2)
    greeting, echo = line.lines
    assert greeting.startswith("HELLO ")
    assert echo.endswith(" and you")


@behaviour(service("client-first", port=9001, port_name="tcp", target=9001))
def test_a_tcp_connection_carries_bytes_both_ways_in_mutual_tls(client, mesh):
    case = new_case()
    (line,) = client.connect("client-first:9001", say=f"{case}\n")
    assert line.lines[0].endswith(case)
    (seen,) = mesh.echoes.received(case)
    assert seen.peer == "127.0.0.6"


@behaviour(
    tcp_routes(
        "tcp-weights",
        "tcp",
        """
- match: [{port: 9000}]
  route:
    - {destination: {host: tcp-weights, subset: v2}, weight: 100}
""",
        port=9000,
        port_name="tcp",
        target=9000,
    )
)
def test_a_tcp_route_chooses_a_subset(client):
    assert {line.lines for line in client.connect("tcp-weights:9000", count=10)} == {("HELLO far v2",)}


@behaviour(
    tcp_routes(
        "tcp-split",
        "tcp",
        """
- route:
    - {destination: {host: tcp-split, subset: v1}, weight: 50}
    - {destination: {host: tcp-split, subset: v2}, weight: 50}
""",
        port=9000,
        port_name="tcp",
        target=9000,
    )
)
def test_a_tcp_route_splits_connections(client):
    versions = [line.lines[0].split()[2] for line in client.connect("tcp-split:9000", count=100)]
    assert 25 <= versions.count("v2") <= 75


@behaviour(
    tcp_routes(
        "tcp-labels",
        "tcp",
        """
- match: [{sourceLabels: {team: blue}}]
  route: [{destination: {host: tcp-labels, subset: v2}}]
- route: [{destination: {host: tcp-labels, subset: v1}}]
""",
        port=9000,
        port_name="tcp",
        target=9000,
    )
)
def test_a_tcp_route_may_depend_on_the_caller(client, visitor):
    assert {line.lines[0].split()[2] for line in client.connect("tcp-labels:9000", count=8)} == {"v1"}
    assert {line.lines[0].split()[2] for line in visitor.connect("tcp-labels:9000", count=8)} == {"v2"}


@behaviour(
    tcp_routes(
        "sni",
        "tls",
        """
- match: [{port: 8443, sniHosts: [new.sni.example.com]}]
  route: [{destination: {host: sni, subset: v2}}]
- match: [{port: 8443, sniHosts: ["*.sni.example.com", other.example.com]}]
  route: [{destination: {host: sni, subset: v1}}]
""",
        port=8443,
        port_name="tls",
        target=8443,
    ).replace("hosts: [sni]", 'hosts: [sni, "*.sni.example.com", other.example.com]'),
)
@pytest.mark.parametrize(
    ("name", "version"),
    [("new.sni.example.com", "v2"), ("old.sni.example.com", "v1"), ("other.example.com", "v1")],
)
def test_a_tls_connection_is_routed_by_its_name(client, name, version):
    answer = client.get(f"https://{name}/", address="sni:8443")
    assert (answer.seen.version, answer.seen.sni) == (version, name)


@behaviour(service("half-closed", port=9001, port_name="tcp", target=9001))
def test_an_end_of_the_callers_side_is_passed_on_and_the_answer_still_comes(client):
    (line,) = client.connect("half-closed:9001", say="one\ntwo\n", lines=3, finish=True)
    assert [text.split()[-1] for text in line.lines[:2]] == ["one", "two"]
    assert line.lines[2].startswith("END ")


@behaviour(service("tcp-on-80", port_name="tcp", target=9000), service("http-on-80"))
def test_tcp_and_http_services_share_a_port_number(client):
    assert client.connect("tcp-on-80:80")[0].lines[0].startswith("HELLO ")
    assert client.get("http://http-on-80/").seen.caller == CLIENT


@behaviour(
    service("idle", port=9001, port_name="tcp", target=9001),
    policy("idle", "connectionPool: {tcp: {idleTimeout: 1s}}"),
    service("short-lived", port=9001, port_name="tcp", target=9001),
    policy("short-lived", "connectionPool: {tcp: {maxConnectionDuration: 1s}}"),
)
@pytest.mark.parametrize("name", ["idle", "short-lived"])
def test_tcp_connections_end_when_their_time_is_over(client, name):
    (line,) = client.connect(f"{name}:9001", say="hello\n", lines=9, timeout=30)
    assert (len(line.lines), line.error) == (1, "closed")
    assert line.seconds > 0.9


@behaviour(
    """
kind: ServiceEntry
metadata: {name: subnets}
spec:
  hosts: [subnets.example.com]
  addresses: [240.0.1.1, 240.0.1.2]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{number: 9000, name: tcp, protocol: TCP}]
  endpoints: [{address: "$(outer)"}]
---
kind: VirtualService
metadata: {name: subnets}
spec:
  hosts: [subnets.example.com]
  tcp:
    - match: [{destinationSubnets: [240.0.1.2/32]}]
      route: [{destination: {host: subnets-inside, port: {number: 9000}}}]
    - route: [{destination: {host: subnets.example.com, port: {number: 9000}}}]
---
""",
    service("subnets-inside", port=9000, port_name="tcp", target=9000, selector=NEAR),
)
def test_a_tcp_route_may_depend_on_the_address_that_was_called(client):
    assert client.connect("240.0.1.1:9000")[0].lines == ("HELLO outer ",)
    assert client.connect("240.0.1.2:9000")[0].lines == ("HELLO near v1",)


def plain_outside(name: str, port: int, policy: str) -> str:
    """An outside host with one TCP port, and a rule for it."""
    return f"""
kind: ServiceEntry
metadata: {{name: {name}}}
spec:
  hosts: [{name}.example.com]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{{number: {port}, name: tcp, protocol: TCP}}]
  endpoints: [{{address: "$(outer)"}}]
---
kind: DestinationRule
metadata: {{name: {name}}}
spec: {{host: {name}.example.com, trafficPolicy: {{{policy}}}}}
---
"""


@behaviour(plain_outside("proxy-protocol", 9001, "proxyProtocol: {version: V1}"))
def test_the_proxy_protocol_tells_the_server_who_called(client):
    (line,) = client.connect("proxy-protocol.example.com:9001", say="hello\n", lines=2)
    announced, hello = line.lines
    assert re.fullmatch(rf"outer  PROXY TCP4 {re.escape(client.address)} \S+ \d+ 9001\r?", announced), announced
    assert hello == "outer  hello"


@behaviour(
    plain_outside("tunnel-proxy", 8080, "loadBalancer: {simple: RANDOM}"),
    """
kind: ServiceEntry
metadata: {name: tunnelled}
spec:
  hosts: [tunnelled.example.com]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{number: 9001, name: tcp, protocol: TCP}]
  endpoints: [{address: 192.0.2.1}]
---
kind: VirtualService
metadata: {name: tunnelled}
spec:
  hosts: [tunnelled.example.com]
  tcp: [{route: [{destination: {host: tunnel-proxy.example.com, port: {number: 8080}, subset: tunnelled}}]}]
---
kind: DestinationRule
metadata: {name: tunnelled}
spec:
  host: tunnel-proxy.example.com
  subsets:
    - name: tunnelled
      trafficPolicy: {tunnel: {protocol: CONNECT, targetHost: tunnelled.example.com, targetPort: 9001}}
""",
)
def test_connections_are_tunnelled_through_a_proxy(client):
    (line,) = client.connect("tunnelled.example.com:9001", say="hello\n", lines=2)
    assert line.lines == ("TUNNEL outer tunnelled.example.com:9001", "outer  hello")


@behaviour(service("old-http"))
def test_http_1_0_is_told_to_upgrade(client):
    (line,) = client.connect("old-http:80", say="GET / HTTP/1.0\r\nHost: old-http\r\n\r\n")
    assert line.lines[0].startswith("HTTP/1.1 426 Upgrade Required")


@behaviour(service("websocket"))
def test_a_websocket_goes_through(client):
    opened = client.websocket("websocket:80", "websocket", ["one", "two"])
    assert opened["status"] == 101
    pods = {answer.split()[0] for answer in opened["answers"]}
    assert len(pods) == 1
    assert [answer.split()[1] for answer in opened["answers"]] == ["one", "two"]


GRPC = {"port": 9090, "port_name": "grpc", "target": 9090}


@behaviour(service("grpc-echo", **GRPC))
def test_grpc_streams_go_both_ways_message_by_message(client, mesh):
    case = new_case()
    (call,) = client.grpc("grpc-echo:9090", ["a", "b", "c"], method="Stream", metadata=[("x-case", case)])
    assert call.code == "OK"
    assert [answer.split()[1] for answer in call.answers] == ["a", "b", "c"]
    (seen,) = mesh.echoes.received(case)
    assert f"URI={CLIENT}" in seen.metadata["x-forwarded-client-cert"]


@behaviour(service("grpc-balanced", **GRPC))
def test_calls_on_one_grpc_connection_are_balanced(client):
    calls = client.grpc("grpc-balanced:9090", count=60)
    assert {call.answers[0].split()[0] for call in calls} == {"near", "mid", "far"}


@behaviour(
    """
kind: Service
metadata: {name: sniffed}
spec:
  selector: {app: echo}
  ports:
    - {name: one, port: 9090, targetPort: 9091}
    - {name: two, port: 8080, targetPort: 8081}
    - {name: three, port: 9001, targetPort: 9002}
""",
)
def test_on_ports_without_a_protocol_it_is_sniffed(client, mesh):
    case = new_case()
    (call,) = client.grpc("sniffed:9090", ["a", "b"], method="Stream", metadata=[("x-case", case)])
    assert (call.code, len(call.answers)) == ("OK", 2)
    (seen,) = mesh.echoes.received(case)
    assert f"URI={CLIENT}" in seen.metadata["x-forwarded-client-cert"]
    assert client.get("http://sniffed:8080/").seen.caller == CLIENT
    assert client.connect("sniffed:9001", say="neither\n")[0].lines[0].endswith("neither")


@behaviour(service("upgraded", selector=NEAR), policy("upgraded", "connectionPool: {http: {h2UpgradePolicy: UPGRADE}}"))
def test_http_1_is_upgraded_between_the_sidecars(client, mesh):
    answers = client.send("http://upgraded/", count=12, workers=4, headers={"x-delay": "0.2"})
    assert count_pods(answers) == {"near": 12}
    hosts = mesh.hosts("client", "outbound|80||upgraded.traffic.svc.cluster.local")
    assert hosts["near"]["cx_total"] == 1, "four connections of HTTP/1.1 share one of HTTP/2"


@behaviour(
    """
kind: ServiceEntry
metadata: {name: as-spoken}
spec:
  hosts: [as-spoken.example.com]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{number: 8084, name: http, protocol: HTTP, targetPort: 9090}, {number: 8085, name: http-1, protocol: HTTP}]
  endpoints: [{address: "$(outer)", ports: {http: 9090, http-1: 8080}}]
---
kind: DestinationRule
metadata: {name: as-spoken}
spec:
  host: as-spoken.example.com
  trafficPolicy: {connectionPool: {http: {useClientProtocol: true}}}
"""
)
def test_a_destination_may_be_spoken_to_as_the_caller_speaks(client):
    assert client.grpc("as-spoken.example.com:8084", method="Stream")[0].answers == ("outer hello",)
    assert client.get("http://as-spoken.example.com:8085/").pod == "outer"


@behaviour(
    routes(
        "grpc-routes",
        """
- match: [{uri: {exact: /traffic.Echo/Stream}}]
  route: [{destination: {host: grpc-routes, subset: v2}}]
- match: [{headers: {x-version: {exact: two}}}]
  route: [{destination: {host: grpc-routes, subset: v2}}]
- route: [{destination: {host: grpc-routes, subset: v1}}]
""",
        **GRPC,
    ),
    subsets("grpc-routes"),
)
def test_grpc_calls_are_routed_by_method_and_metadata(client):
    (stream,) = client.grpc("grpc-routes:9090", ["a"], method="Stream")
    (asked,) = client.grpc("grpc-routes:9090", metadata=[("x-version", "two")])
    assert stream.answers[0].split()[0] == asked.answers[0].split()[0] == "far"
    assert {call.answers[0].split()[0] for call in client.grpc("grpc-routes:9090", count=40)} == {"near", "mid"}


@behaviour(service("grpc-status", **GRPC))
def test_grpc_statuses_come_back_as_they_are(client):
    (call,) = client.grpc("grpc-status:9090", metadata=[("x-code", "NOT_FOUND")])
    assert (call.code, call.details) == ("NOT_FOUND", "as asked")
