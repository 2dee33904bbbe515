"""Whole requests through small meshes: which link breaks, with which status, flag and details."""

import pytest
from traced_mesh import BASE, SHOP, ask, blamed, pod, service, titles, told_otherwise, world_of

HOST = "server.web.svc.cluster.local"


def virtual_service(http: str, host: str = "server") -> str:
    return f"""
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: routes, namespace: web}}
spec: {{hosts: [{host}], http: [{http}]}}
"""


def destination_rule(spec: str) -> str:
    return f"""
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {{name: rule, namespace: web}}
spec: {{host: server, {spec}}}
"""


def strict(namespace: str = "web") -> str:
    return f"""
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {{name: strict, namespace: {namespace}}}
spec: {{mtls: {{mode: STRICT}}}}
"""


def verdict(found: object) -> tuple[object, ...]:
    return tuple(getattr(found, name) for name in ("outcome", "status", "flag", "details", "link"))


def test_a_healthy_request_passes_both_sides():
    found = ask(world_of(SHOP), "http://server/")
    assert verdict(found) == ("delivered", 200, "-", "via_upstream", "")
    assert found.certain
    assert found.destination == "server.web"
    assert list(dict.fromkeys(step.side for step in found.steps)) == ["client.web", "server.web"]
    assert titles(found, "cluster") == [f"cluster outbound|80||{HOST}", "cluster inbound|8080||"]
    assert "mutual TLS agrees" in titles(found, "tls")


def test_both_dialects_come_to_the_same():
    mine, theirs = (ask(world_of(SHOP, strict(), dialect=d), "http://server/") for d in ("envoy", "istio"))
    assert verdict(mine) == verdict(theirs) == ("delivered", 200, "-", "via_upstream", "")


def test_a_connection_of_another_protocol_passes_too():
    text = BASE + pod("client") + pod("server") + service("server", port="{name: tcp, port: 9000}")
    found = ask(world_of(text), "server:9000")
    assert verdict(found) == ("delivered", 0, "-", "", "")
    assert found.certain


def test_routes_passed_over_say_why():
    text = virtual_service(
        "{match: [{uri: {prefix: /a}, headers: {x: {exact: y}}}], route: [{destination: {host: server}}]},"
        "{match: [{uri: {exact: /b}}], route: [{destination: {host: server}}]}"
    )
    found = ask(world_of(SHOP, text), "http://server/a", headers={"x": "z"})
    assert verdict(found) == ("failed", 404, "NR", "route_not_found", "route")
    assert blamed(found) == "VirtualService/routes"
    (step,) = (s for s in found.steps if s.title == "no route matches")
    assert step.passed_over == ("#0 /a*: wants header x exact 'y', has 'z'", "#1 =/b: path '/a' is not '/b'")


def test_a_cause_has_its_place():
    found = ask(
        world_of(SHOP, virtual_service("{route: [{destination: {host: server, subset: v9}}]}")), "http://server/"
    )
    assert verdict(found) == ("failed", 503, "NC", "cluster_not_found", "cluster")
    assert found.cause is not None
    assert (found.cause.kind, found.cause.name, found.cause.file, found.cause.line) == (
        "VirtualService",
        "routes",
        "mesh.yaml",
        6,
    )
    assert "subset v9" in found.fix


def test_a_subset_whose_labels_nobody_has():
    rule = destination_rule("subsets: [{name: v2, labels: {version: v2}}]")
    routed = virtual_service("{route: [{destination: {host: server, subset: v2}}]}")
    found = ask(world_of(SHOP, rule, routed), "http://server/")
    assert verdict(found) == ("failed", 503, "UH", "no_healthy_upstream", "endpoint")
    assert blamed(found) == "DestinationRule/rule"
    assert "version=v2" in found.reason


def test_a_selector_that_matches_no_pod():
    found = ask(world_of(SHOP, service("other", app="nobody")), "http://other/")
    assert verdict(found) == ("failed", 503, "UH", "no_healthy_upstream", "endpoint")
    assert blamed(found) == "Service/other"


def test_plain_text_to_strict_is_closed_and_not_retried():
    found = ask(world_of(SHOP, strict(), destination_rule("trafficPolicy: {tls: {mode: DISABLE}}")), "http://server/")
    details = "upstream_reset_before_response_started{connection_termination}"
    assert verdict(found) == ("failed", 503, "UC", details, "tls")
    assert blamed(found) == "DestinationRule/rule"


def test_a_client_without_a_sidecar_meets_strict():
    text = SHOP + pod("outer", namespace="bare") + strict()
    found = ask(world_of(text), "http://server.web/", source="outer.bare")
    assert verdict(found) == ("failed", 0, "NR", "filter_chain_not_found", "tls")
    assert blamed(found) == "PeerAuthentication/strict"


def test_a_policy_that_is_strict_on_another_port_only_is_not_to_blame():
    own = (
        strict()
        .replace("name: strict", "name: own")
        .replace(
            "{mtls: {mode: STRICT}}", "{selector: {matchLabels: {app: server}}, portLevelMtls: {9000: {mode: STRICT}}}"
        )
    )
    found = ask(
        world_of(SHOP + pod("outer", namespace="bare"), strict(), own), "http://server.web/", source="outer.bare"
    )
    assert (found.link, blamed(found)) == ("tls", "PeerAuthentication/strict")


def test_mutual_tls_to_a_pod_without_a_sidecar():
    text = BASE + pod("client") + pod("server", namespace="bare") + service("server", namespace="bare")
    rule = destination_rule("trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}").replace(
        "host: server", "host: server.bare.svc.cluster.local"
    )
    found = ask(world_of(text, rule), "http://server.bare/")
    assert (found.status, found.flag, found.link) == (503, "URX,UF", "tls")
    assert "WRONG_VERSION_NUMBER" in found.details
    assert blamed(found) == "DestinationRule/rule"


def test_auto_mtls_leaves_pods_without_a_sidecar_alone():
    text = BASE + pod("client") + pod("server", namespace="bare") + service("server", namespace="bare")
    assert ask(world_of(text), "http://server.bare/").outcome == "delivered"


def test_a_wrong_name_in_the_servers_certificate():
    rule = destination_rule("trafficPolicy: {tls: {mode: ISTIO_MUTUAL, subjectAltNames: ['spiffe://a/b']}}")
    found = ask(world_of(SHOP, rule), "http://server/")
    assert (found.status, found.flag, found.link) == (503, "URX,UF", "tls")
    assert "SAN_matcher,_certificate_SANs_are_[spiffe://cluster.local/ns/web/sa/server]" in found.details


def test_weights_that_lead_to_different_ends_make_a_verdict_uncertain():
    split = virtual_service(
        "{route: [{destination: {host: server}, weight: 90}, {destination: {host: server, subset: v9}, weight: 10}]}"
    )
    found = ask(world_of(SHOP, split), "http://server/")
    assert (found.outcome, found.certain) == ("delivered", False)
    assert found.shares == ((f"outbound|80||{HOST}", 90), (f"outbound|80|v9|{HOST}", 10))
    (thing,) = found.depends_on
    assert thing.startswith("weights: ")
    assert "(10 %) → failed 503 NC" in thing


def test_weights_that_lead_to_the_same_end_leave_it_certain():
    rule = destination_rule("subsets: [{name: v1, labels: {version: v1}}]")
    split = virtual_service(
        "{route: [{destination: {host: server}, weight: 50}, {destination: {host: server, subset: v1}, weight: 50}]}"
    )
    assert ask(world_of(SHOP, rule, split), "http://server/").certain


@pytest.mark.parametrize(
    ("takes", "status", "flag", "details"),
    [(0.0, 200, "-", "via_upstream"), (1.0, 200, "-", "via_upstream"), (3.0, 504, "UT", "response_timeout")],
)
def test_a_slow_program_meets_the_timeout(takes, status, flag, details):
    world = world_of(SHOP, virtual_service("{timeout: 2s, route: [{destination: {host: server}}]}"))
    found = ask(world, "http://server/", takes=takes)
    assert (found.status, found.flag, found.details) == (status, flag, details)


def test_faults_end_requests_or_delay_them():
    abort = "{fault: {abort: {httpStatus: 418, percentage: {value: 100}}}, route: [{destination: {host: server}}]}"
    found = ask(world_of(SHOP, virtual_service(abort)), "http://server/")
    assert verdict(found) == ("aborted", 418, "FI", "fault_filter_abort", "filter")
    assert blamed(found) == "VirtualService/routes"
    delay = "{fault: {delay: {fixedDelay: 1s, percentage: {value: 100}}}, route: [{destination: {host: server}}]}"
    found = ask(world_of(SHOP, virtual_service(delay)), "http://server/")
    assert (found.outcome, found.status, found.flag) == ("delivered", 200, "DI")


def test_a_fault_for_a_part_of_the_requests_names_its_share():
    abort = "{fault: {abort: {httpStatus: 418, percentage: {value: 20}}}, route: [{destination: {host: server}}]}"
    found = ask(world_of(SHOP, virtual_service(abort)), "http://server/")
    assert (found.outcome, found.certain) == ("delivered", False)
    assert found.depends_on == ("the share of aborted requests, 20 %",)


def test_redirects_and_direct_responses_are_answers():
    found = ask(world_of(SHOP, virtual_service("{redirect: {uri: /b, authority: c}}")), "http://server/a?x=1")
    assert verdict(found) == ("redirected", 301, "-", "direct_response", "")
    assert found.destination == "http://c/b?x=1"
    found = ask(
        world_of(SHOP, virtual_service("{directResponse: {status: 451, body: {string: gone}}}")), "http://server/"
    )
    assert verdict(found) == ("responded", 451, "-", "direct_response", "")


def test_the_message_arrives_as_the_route_changed_it():
    route = (
        "{match: [{uri: {prefix: /a}}], rewrite: {uri: /c, authority: d},"
        " headers: {request: {set: {x: y}, remove: [z]}}, route: [{destination: {host: server}}]}"
    )
    found = ask(world_of(SHOP, virtual_service(route)), "http://server/a/b?q=1", headers={"z": "1"})
    assert (found.message.path, found.message.authority) == ("/c/b?q=1", "d")
    assert (found.message.header("x"), found.message.header("z")) == ("y", None)


SIDECAR = """
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: web}
spec: {outboundTrafficPolicy: {mode: REGISTRY_ONLY}, egress: [{hosts: ["./other.web.svc.cluster.local"]}]}
"""


def test_a_sidecar_that_hides_the_host_is_to_blame():
    found = ask(world_of(SHOP, service("other", app="server"), SIDECAR), "http://server/")
    assert verdict(found) == ("failed", 502, "-", "direct_response", "route")
    assert blamed(found) == "Sidecar/default"
    assert "web/server.web.svc.cluster.local" in found.fix


def test_hosts_that_nobody_knows_under_registry_only():
    found = ask(world_of(SHOP, service("other", app="server"), SIDECAR), "http://example.com/")
    assert (found.status, blamed(found)) == (502, "Sidecar/default")
    assert "ServiceEntry" in found.fix


def test_unknown_hosts_pass_to_the_outside_and_hang_on_it():
    found = ask(world_of(SHOP), "http://example.com/")
    assert (found.outcome, found.certain) == ("delivered", False)
    assert found.depends_on == ("what example.com:80 answers",)


def test_a_name_of_another_namespace_is_told():
    text = BASE + pod("client") + pod("server", namespace="bare") + service("server", namespace="bare")
    found = ask(world_of(text), "http://server/")
    assert (found.outcome, found.link, blamed(found)) == ("failed", "name", "Service/server")
    assert found.fix == "call server.bare"


def test_a_port_that_the_service_lacks():
    found = ask(world_of(SHOP), "http://server:81/")
    assert (found.link, blamed(found)) == ("endpoint", "Service/server")
    assert "has no port 81; it has 80 (http)" in found.reason


def test_a_target_port_that_nobody_declares_fails_for_all_that_is_known():
    text = BASE + pod("client") + pod("server") + service("server", port="{name: http, port: 80, targetPort: 7999}")
    found = ask(world_of(text), "http://server/")
    assert (found.status, found.flag, found.certain) == (503, "URX,UF", False)
    assert "Connection_refused" in found.details
    assert (found.side, found.seen_by_client) == ("server.web", (503, "-", "via_upstream"))
    assert blamed(found) == "Service/server"


def test_excluded_ports_go_past_the_sidecar():
    marked = pod("client").replace(
        "labels: {app: client}",
        'labels: {app: client}, annotations: {traffic.sidecar.istio.io/excludeOutboundPorts: "80"}',
    )
    found = ask(world_of(BASE + marked + pod("server") + service("server")), "http://server/")
    assert found.outcome == "delivered"
    (step,) = (s for s in found.steps if s.link == "capture" and s.side == "client.web")
    assert step.facts == (("why", "port 80 is in excludeOutboundPorts"),)
    assert "kube-proxy" in titles(found, "endpoint")[0]


@pytest.mark.parametrize(
    ("at_once", "flag", "certain"), [(1, "-", True), (2, "-", True), (3, "-", False), (5, "UO", False)]
)
def test_a_circuit_breaker_lets_so_many_through_at_once(at_once, flag, certain):
    rule = destination_rule(
        "trafficPolicy: {connectionPool: {tcp: {maxConnections: 1}, http: {http1MaxPendingRequests: 1}}}"
    )
    found = ask(world_of(SHOP, rule), "http://server/", at_once=at_once)
    assert (found.flag, found.certain) == (flag, certain)
    (step,) = (s for s in found.steps if s.title == f"cluster outbound|80||{HOST}")
    assert dict(step.facts)["limits"] == "connections 1, pending requests 1"
    if flag == "UO":
        assert (found.status, found.details) == (503, "upstream_reset_before_response_started{overflow}")
        assert blamed(found) == "DestinationRule/rule"


def test_errors_of_a_program_are_retried_where_a_route_says_so():
    retried = virtual_service("{retries: {attempts: 2, retryOn: 5xx}, route: [{destination: {host: server}}]}")
    found = ask(world_of(SHOP, retried), "http://server/", answers=500)
    assert (found.outcome, found.status, found.flag, found.side) == ("delivered", 500, "URX", "server.web")
    assert found.seen_by_client == (500, "URX", "via_upstream")
    assert ask(world_of(SHOP), "http://server/", answers=500).flag == "-"


HTTP_ROUTE = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cat, namespace: web}
spec:
  parentRefs: [{group: "", kind: Service, name: server, port: 80}]
  rules: [{matches: [{path: {type: PathPrefix, value: /x}}], backendRefs: [{name: server, port: 80}]}]
"""


def test_routes_of_the_gateway_api_are_named_as_their_users_wrote_them():
    world = world_of(SHOP, HTTP_ROUTE)
    found = ask(world, "http://server/x")
    assert found.outcome == "delivered"
    assert [str(s.object) for s in found.steps if s.object is not None] == ["HTTPRoute web/cat (mesh.yaml:6)"]
    found = ask(world, "http://server/y")
    assert (found.status, found.flag, blamed(found)) == (404, "NR", "HTTPRoute/cat")


ENTRY = """
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: outside, namespace: web}
spec:
  hosts: [outside.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: DNS
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: hidden, namespace: bare}
spec:
  hosts: [hidden.example.com]
  exportTo: ["."]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 192.0.2.9}]
"""


def test_a_host_outside_is_reached_by_its_name():
    found = ask(world_of(SHOP, ENTRY), "http://outside.example.com/")
    assert (found.outcome, found.certain) == ("delivered", False)
    assert titles(found, "cluster") == ["cluster outbound|80||outside.example.com"]
    assert found.depends_on == ("what outside.example.com:80 answers",)


def test_an_entry_that_is_not_exported_is_to_blame_under_registry_only():
    registry = {"outboundTrafficPolicy": {"mode": "REGISTRY_ONLY"}}
    found = ask(world_of(SHOP, ENTRY, config=registry), "http://hidden.example.com/")
    assert (found.status, found.details, blamed(found)) == (502, "direct_response", "ServiceEntry/hidden")
    assert found.fix == "add web to its exportTo"


def test_pods_that_are_not_ready_are_to_blame():
    unready = """
---
apiVersion: v1
kind: Pod
metadata: {name: late, namespace: web, labels: {app: late}}
spec: {containers: [{name: app, image: app}]}
status: {podIP: 10.9.0.1, conditions: [{type: Ready, status: "False"}]}
"""
    found = ask(world_of(SHOP, unready, service("late")), "http://late/")
    assert (found.status, found.flag, blamed(found)) == (503, "UH", "Pod/late")


def test_headless_services_lead_to_their_pods():
    headless = (
        service("server")
        .replace("spec: {selector", "spec: {clusterIP: None, selector")
        .replace("port: 80,", "port: 8080,")
    )
    found = ask(world_of(BASE, pod("client"), pod("server"), headless), "http://server:8080/")
    assert (found.outcome, found.certain) == ("delivered", True)
    assert "mutual TLS agrees" in titles(found, "tls")


def test_tls_of_a_program_to_a_port_for_http_is_not_taken():
    found = ask(world_of(SHOP), "https://server:80/")
    assert verdict(found) == ("failed", 0, "NR", "filter_chain_not_found", "tls")
    assert "takes plain text or the mesh's mutual TLS on port 8080, and the client speaks other TLS" in found.reason
    assert "plain text" in found.fix
    assert (blamed(found), found.seen_by_client) == ("", (0, "UR", ""))


def test_tls_of_a_program_to_a_port_for_tls_passes():
    text = BASE + pod("client") + pod("server") + service("server", port="{name: tls, port: 443, targetPort: 9000}")
    found = ask(world_of(text), "https://server/")
    assert (found.outcome, found.certain) == ("delivered", True)


@pytest.mark.parametrize("name", ["nowhere.invalid", "nobody.web.svc.cluster.local"])
def test_an_entry_whose_names_do_not_exist_has_no_host(name):
    entry = f"""
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {{name: aside, namespace: web}}
spec:
  hosts: [aside.example.com]
  ports: [{{number: 80, name: http, protocol: HTTP}}]
  resolution: DNS
  endpoints: [{{address: {name}}}]
"""
    found = ask(world_of(SHOP, entry), "http://aside.example.com/")
    assert verdict(found) == ("failed", 503, "UH", "no_healthy_upstream", "endpoint")
    assert (found.certain, blamed(found)) == (True, "ServiceEntry/aside")


def test_a_name_of_a_namespace_that_lacks_it_most_likely_does_not_exist():
    found = ask(world_of(SHOP), "http://nobody.web/")
    assert (found.outcome, found.status, found.link) == ("failed", 0, "name")
    assert found.depends_on == ("whether somebody outside has the name nobody.web",)


def test_retries_find_the_endpoint_that_listens():
    text = BASE + pod("client") + service("both", namespace="bare", tier="back")
    text += pod("deaf", namespace="bare", ports="9000", tier="back") + pod("awake", namespace="bare", tier="back")
    found = ask(world_of(text), "http://both.bare/")
    assert (found.outcome, found.side, found.certain) == ("delivered", "awake.bare", True)
    once = """
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: once, namespace: web}
spec:
  hosts: [both.bare.svc.cluster.local]
  http: [{retries: {attempts: 0}, route: [{destination: {host: both.bare.svc.cluster.local}}]}]
"""
    found = ask(world_of(text, once), "http://both.bare/")
    assert (found.certain, found.divides) == (False, True)


@pytest.mark.parametrize(
    ("percent", "outcome", "flag", "details", "hangs_on"),
    [
        (100, "failed", "UDO", "unconditional_drop_overload", ()),
        (25, "delivered", "-", "via_upstream", ("the endpoints' drop rate of 25 %",)),
    ],
)
def test_what_endpoints_are_told_to_drop(percent, outcome, flag, details, hangs_on):
    drop = {"dropOverloads": [{"category": "x", "dropPercentage": {"numerator": percent}}]}
    found = ask(told_otherwise(world_of(SHOP), "endpoints", {"policy": drop}), "http://server/")
    assert (found.outcome, found.flag, found.details, found.depends_on) == (outcome, flag, details, hangs_on)
