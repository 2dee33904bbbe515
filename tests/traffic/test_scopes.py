"""What a proxy sees and lets through: Sidecars, outbound policies, visibility."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from eventually import eventually_blocking
from traffic_manifests import behaviour, routes, service
from traffic_programs import new_case, statuses

SHOWN = service("shown")


@behaviour(SHOWN, service("hidden"))
def test_a_sidecar_sees_only_what_its_scope_lists(client, scoped):
    assert scoped.get("http://shown.traffic/").status == 200
    hidden = scoped.get("http://hidden.traffic/")
    assert (hidden.status, hidden.body) == (502, "")
    assert client.get("http://hidden/").status == 200


@behaviour(SHOWN)
def test_registry_only_refuses_hosts_that_nobody_registered(scoped, outer):
    blocked = scoped.get("http://nobody.example.com/", address=f"{outer.address}:80")
    assert (blocked.status, blocked.body) == (502, "")
    (line,) = scoped.connect(f"{outer.address}:9000")
    assert (line.lines, bool(line.error)) == ((), True)


@behaviour()
def test_any_destination_is_let_through_where_no_policy_forbids_it(client, outer):
    answer = client.get("http://nobody.example.com:8080/", address=f"{outer.address}:8080")
    assert (answer.pod, answer.seen.caller) == ("outer", "")
    assert client.connect(f"{outer.address}:9000")[0].lines == ("HELLO outer ",)


@behaviour()
def test_tls_is_let_through_and_held_back_like_anything_else(client, scoped, outer):
    url, at = "https://anybody.example.com/", f"{outer.address}:8443"
    assert client.get(url, address=at).seen.sni == "anybody.example.com"
    blocked = scoped.get(url, address=at)
    assert (blocked.status, bool(blocked.error)) == (0, True)


@behaviour(SHOWN)
def test_a_host_on_a_port_that_others_use_is_let_through_by_its_address(client, outer):
    answer = client.get(f"http://{outer.address}:8080/")
    assert (answer.pod, answer.seen.peer) == ("outer", client.address)


SOLO = """
kind: Service
metadata: {name: solo}
spec:
  selector: {app: solo}
  ports:
    - {name: http, port: 80, targetPort: 9980}
    - {name: http-narrow, port: 81, targetPort: 9981}
    - {name: http-plain, port: 82, targetPort: 9982}
    - {name: tcp, port: 9000, targetPort: 9990}
---
kind: PeerAuthentication
metadata: {name: solo}
spec:
  selector: {matchLabels: {app: solo}}
  portLevelMtls: {9982: {mode: DISABLE}}
---
kind: Sidecar
metadata: {name: solo}
spec:
  workloadSelector: {labels: {app: solo}}
  ingress:
    - port: {number: 9980, protocol: HTTP, name: http}
      defaultEndpoint: 127.0.0.1:8080
    - port: {number: 9981, protocol: HTTP, name: http-narrow}
      defaultEndpoint: 127.0.0.1:8080
      connectionPool: {http: {http2MaxRequests: 1}}
    - port: {number: 9982, protocol: HTTP, name: http-plain}
      defaultEndpoint: 127.0.0.1:8080
    - port: {number: 9990, protocol: TCP, name: tcp}
      defaultEndpoint: 0.0.0.0:9000
  egress:
    - port: {number: 8888, protocol: HTTP, name: local}
      bind: 127.0.0.1
      captureMode: NONE
      hosts: ["./local.traffic.svc.cluster.local"]
    - port: {number: 15080, protocol: HTTP_PROXY, name: proxy}
      bind: 127.0.0.1
      captureMode: NONE
      hosts: ["./*"]
    - hosts: ["./*", "watched/*"]
"""


@behaviour(SOLO)
def test_a_sidecars_ingress_leads_a_port_to_where_the_program_listens(client):
    seen = client.get("http://solo/").seen
    assert (seen.pod, seen.address, seen.port) == ("solo", "127.0.0.1", 8080)
    assert seen.caller == "spiffe://cluster.local/ns/traffic/sa/client"


@behaviour(SOLO)
def test_a_sidecars_ingress_carries_tcp_too(client):
    assert client.connect("solo:9000")[0].lines == ("HELLO solo ",)


@behaviour(SOLO)
def test_a_sidecar_limits_what_it_lets_in(client, mesh):
    solo, case = mesh["solo"], new_case()
    with ThreadPoolExecutor(1) as threads:
        held = threads.submit(client.get, "http://solo:81/", headers={"x-hold": "yes"}, case=case)
        try:
            eventually_blocking(lambda: solo.received(case))
            assert statuses(client.send("http://solo:81/", count=2)) == {503: 2}
        finally:
            solo.release(case)
        assert held.result().status == 200


@behaviour(SOLO)
def test_callers_speak_plain_to_a_port_without_mutual_tls(client):
    assert client.get("http://solo:82/").seen.caller == ""


@behaviour(SOLO, service("local", port=8888))
def test_a_sidecars_egress_listener_is_bound_where_it_says(mesh):
    answer = mesh["solo"].get("http://127.0.0.1:8888/", headers={"host": "local.traffic.svc.cluster.local"})
    assert (answer.seen.caller, answer.pod != "solo") == ("spiffe://cluster.local/ns/traffic/sa/solo", True)


@behaviour(SOLO, SHOWN)
def test_a_sidecar_may_serve_as_an_http_proxy(mesh):
    headers = {"host": "shown.traffic.svc.cluster.local"}
    answer = mesh["solo"].get("http://127.0.0.1:15080/", headers=headers)
    assert answer.seen.caller == "spiffe://cluster.local/ns/traffic/sa/solo"


PRIVATE = """
kind: VirtualService
metadata: {name: shown-private, namespace: traffic}
spec:
  hosts: [shown.traffic.svc.cluster.local]
  exportTo: ["."]
  http:
    - headers: {request: {set: {x-route: private}}}
      route: [{destination: {host: shown.traffic.svc.cluster.local}}]
"""


@behaviour(SHOWN, PRIVATE)
def test_routes_that_are_not_exported_bind_only_their_own_namespace(client, scoped):
    assert client.get("http://shown/").route == "private"
    assert scoped.get("http://shown.traffic/").route == ""


@behaviour(
    """
kind: Service
metadata: {name: secret, annotations: {networking.istio.io/exportTo: "."}}
spec:
  selector: {app: echo}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
kind: Service
metadata: {name: for-scoped, namespace: scoped, annotations: {networking.istio.io/exportTo: "."}}
spec:
  selector: {app: scoped}
  ports: [{name: http, port: 80, targetPort: 8080}]
"""
)
@pytest.mark.parametrize(("host", "caller"), [("secret.traffic", "client"), ("for-scoped.scoped", "")])
def test_services_that_are_not_exported_are_plain_addresses_elsewhere(client, host, caller):
    answer = client.get(f"http://{host}/")
    assert answer.seen.caller == (f"spiffe://cluster.local/ns/traffic/sa/{caller}" if caller else "")


@behaviour(
    routes(
        "mesh-only",
        """
- match: [{gateways: [gateways/nothing]}]
  headers: {request: {set: {x-route: gateway}}}
  route: [{destination: {host: mesh-only}}]
- match: [{gateways: [mesh]}]
  headers: {request: {set: {x-route: mesh}}}
  route: [{destination: {host: mesh-only}}]
""",
    )
)
def test_a_match_may_be_for_sidecars_alone(client):
    assert client.get("http://mesh-only/").route == "mesh"


@behaviour(
    service("in-plain"),
    """
kind: DestinationRule
metadata: {name: in-plain, namespace: scoped}
spec:
  host: in-plain.traffic.svc.cluster.local
  exportTo: ["*"]
  trafficPolicy: {tls: {mode: DISABLE}}
---
kind: DestinationRule
metadata: {name: in-plain-shown, namespace: scoped}
spec:
  host: shown.traffic.svc.cluster.local
  trafficPolicy: {tls: {mode: DISABLE}}
""",
    SHOWN,
)
def test_the_rule_of_the_callers_namespace_goes_first(client, scoped):
    assert scoped.get("http://shown.traffic/").seen.caller == ""
    assert client.get("http://shown/").seen.caller == "spiffe://cluster.local/ns/traffic/sa/client"
    assert client.get("http://in-plain/").seen.caller == "spiffe://cluster.local/ns/traffic/sa/client"


@behaviour(
    service("some-callers"),
    """
kind: DestinationRule
metadata: {name: some-callers}
spec:
  host: some-callers
  workloadSelector: {matchLabels: {app: client}}
  trafficPolicy: {tls: {mode: DISABLE}}
""",
)
def test_a_rule_may_be_for_some_callers_only(client, visitor):
    assert client.get("http://some-callers/").seen.caller == ""
    assert visitor.get("http://some-callers/").seen.caller == "spiffe://cluster.local/ns/traffic/sa/visitor"
