"""What a request came by: routes, clusters and rules by name, and the headers that proxies set on its response."""

import pytest
from traced_mesh import SHOP, ask, told_otherwise, world_of

HOST = "server.web.svc.cluster.local"


def virtual_service(http: str) -> str:
    return f"""
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: routes, namespace: web}}
spec: {{hosts: [server], http: [{http}]}}
"""


POLICY = """
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: callers, namespace: web}
spec:
  selector: {matchLabels: {app: server}}
  rules:
  - to: [{operation: {methods: [PUT]}}]
  - from: [{source: {namespaces: [web]}}]
    to: [{operation: {methods: [GET]}}]
"""
NAMED_RULE = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: other, namespace: web}
spec:
  parentRefs: [{group: "", kind: Service, name: server}]
  rules: [{name: reads, backendRefs: [{name: server, port: 80}]}]
"""


def test_routes_clusters_and_rules_in_their_order():
    http = "{name: mine, match: [{name: all, uri: {prefix: /}}], route: [{destination: {host: server}}]}"
    found = ask(world_of(SHOP, virtual_service(http), POLICY), "http://server/")

    visited = [(visit.side, visit.kind, visit.name) for visit in found.visits]
    assert visited[:2] == [("client.web", "route", "mine.all"), ("client.web", "cluster", f"outbound|80||{HOST}")]
    assert ("server.web", "rule", "ns[web]-policy[callers]-rule[1]") in visited
    assert visited[-1] == ("server.web", "cluster", "inbound|8080||")
    assert found.visits[0].resource["match"]["prefix"] == "/"


def test_a_denied_request_came_by_its_route_but_by_no_rule():
    found = ask(world_of(SHOP, POLICY), "http://server/", method="POST")

    assert found.status == 403
    assert [visit.kind for visit in found.visits if visit.side == "server.web"] == ["route"]


def test_of_two_ways_those_of_the_likelier_are_told_and_whether_the_other_differs():
    split = "{route: [{destination: {host: server}, weight: 90}, {destination: {host: nobody}, weight: 10}]}"
    found = ask(world_of(SHOP, virtual_service(split)), "http://server/")

    clusters = [visit.name for visit in found.visits if visit.kind == "cluster" and visit.side == "client.web"]
    assert clusters == [f"outbound|80||{HOST}"]
    assert found.divides

    same = ask(world_of(SHOP, virtual_service(split.replace("nobody", HOST))), "http://server/")
    assert not same.divides


def test_a_rule_of_an_http_route_that_has_a_name_is_of_its_route():
    found = ask(world_of(SHOP, NAMED_RULE), "http://server/")

    (origin,) = (step.object for step in found.steps if step.object is not None and step.link == "route")
    assert (origin.kind, origin.namespace, origin.name) == ("HTTPRoute", "web", "other")


def response(headers: str, action: str = "route: [{destination: {host: server}}]") -> dict[str, str | None]:
    text = virtual_service(f"{{headers: {{response: {headers}}}, {action}}}")
    return dict(ask(world_of(SHOP, text), "http://server/").response)


@pytest.mark.parametrize(
    "action", ["route: [{destination: {host: server}}]", "directResponse: {status: 410}", "redirect: {uri: /x}"]
)
def test_headers_of_the_response_whoever_gives_it(action: str):
    assert response("{set: {X-A: one}, add: {x-b: two}, remove: [X-C]}", action) == {
        "x-a": "one", "x-b": "two", "x-c": None,
    }  # fmt: skip


def test_headers_of_the_one_destination_come_after_those_of_the_route():
    action = "route: [{destination: {host: server}, headers: {response: {set: {x-a: inner, x-d: '1'}}}}]"

    assert response("{set: {x-a: outer}}", action) == {"x-a": "inner", "x-d": "1"}


@pytest.mark.parametrize(("wins", "value"), [(False, "all"), (True, "own")])
def test_headers_of_all_routes_come_last_unless_the_most_specific_win(wins: bool, value: str):
    set_for_all = {"header": {"key": "x-a", "value": "all"}, "appendAction": "OVERWRITE_IF_EXISTS_OR_ADD"}
    change = {"responseHeadersToAdd": [set_for_all], "mostSpecificHeaderMutationsWins": wins}
    text = virtual_service("{headers: {response: {set: {x-a: own}}}, route: [{destination: {host: server}}]}")
    world = told_otherwise(world_of(SHOP, text), "routes", change)
    assert dict(ask(world, "http://server/").response) == {"x-a": value}


def test_the_proxy_names_itself_as_the_server_whatever_routes_say():
    assert response("{set: {server: shop}}") == {}


def test_headers_made_of_the_request():
    http = (
        "{headers: {request: {set: {x-was: '%REQ(:AUTHORITY)%', x-else: '%REQ(x-none?x-some)%', x-no: '%REQ(x-none)%'}}},"
        " route: [{destination: {host: server}}]}"
    )
    found = ask(world_of(SHOP, virtual_service(http)), "http://server/", headers={"x-some": "1"})

    assert [found.message.header(name) for name in ("x-was", "x-else", "x-no")] == ["server", "1", "-"]


@pytest.mark.parametrize(
    ("redirect", "location"),
    [
        ("{uri: /b}", "http://server:8080/b?q=1"),
        ("{uri: '/b?own=1'}", "http://server:8080/b?own=1"),
        ("{scheme: https}", "https://server:8080/a?q=1"),
        ("{port: 8443}", "http://server:8443/a?q=1"),
        ("{authority: other}", "http://other/a?q=1"),
    ],
)
def test_where_redirects_lead(redirect: str, location: str):
    found = ask(
        world_of(SHOP, virtual_service(f"{{redirect: {redirect}}}")),
        "http://server/a?q=1",
        headers={"host": "server:8080"},
    )

    assert found.destination == location


def test_a_redirect_to_https_drops_the_port_of_http():
    found = ask(
        world_of(SHOP, virtual_service("{redirect: {scheme: https}}")), "http://server/", headers={"host": "server:80"}
    )

    assert found.destination == "https://server/"


def test_a_rule_that_only_audits_decides_nothing():
    audit = POLICY.replace("spec:\n", "spec:\n  action: AUDIT\n")
    found = ask(world_of(SHOP, audit), "http://server/")

    assert found.policy == ""
    assert not [visit for visit in found.visits if visit.kind == "rule"]
