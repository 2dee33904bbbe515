"""Which routes and rules tests reach, by the objects that users wrote; and what a verdict comes to in their words."""

from collections.abc import Sequence

import pytest
from traced_mesh import SHOP, pod, world_of

from mizzen.diagnose.expectations import coverage
from mizzen.diagnose.expectations.seen import Seen, look
from mizzen.diagnose.trace.request import Request, parse_target
from mizzen.diagnose.trace.walk import trace
from mizzen.diagnose.trace.world import World

ROUTES = """
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: routes, namespace: web}
spec:
  hosts: [server]
  http:
  - name: both
    match: [{uri: {prefix: /a}}, {uri: {prefix: /b}, headers: {x-a: {exact: "1"}}}]
    route: [{destination: {host: server}}]
  - match: [{uri: {prefix: /c}}]
    delegate: {name: leaf, namespace: web}
  - route: [{destination: {host: server}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: leaf, namespace: web}
spec:
  http:
  - {match: [{uri: {prefix: /c/d}}], directResponse: {status: 418}}
  - {timeout: 3s, retries: {attempts: 4, retryOn: 5xx}, route: [{destination: {host: server}}]}
"""
POLICIES = """
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: callers, namespace: web}
spec:
  selector: {matchLabels: {app: server}}
  rules:
  - to: [{operation: {methods: [PUT]}}]
  - to: [{operation: {methods: [GET]}}]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: watched, namespace: web}
spec: {action: AUDIT, rules: [{}]}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: tried, namespace: web, annotations: {istio.io/dry-run: "true"}}
spec: {action: DENY, rules: [{}]}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: tried-too, namespace: web, annotations: {istio.io/dry-run: "1"}}
spec: {action: DENY, rules: [{}]}
"""
HTTP_ROUTES = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: plain, namespace: web}
spec:
  parentRefs: [{group: "", kind: Service, name: server}]
  rules:
  - {matches: [{path: {value: /a}}], backendRefs: [{name: server, port: 80}]}
  - {name: b, matches: [{path: {value: /b}}], backendRefs: [{name: server, port: 80}]}
  - {matches: [{path: {value: /c}}], backendRefs: [{name: server, port: 80}]}
"""


def see(world: World, url: str, **options: object) -> Seen:
    scheme, host, port, path = parse_target(url)
    asked = Request(source="client.web", scheme=scheme, host=host, port=port, path=path, **options)  # type: ignore[arg-type]
    return look(world, asked, trace(world, asked))


def reached(world: World, *urls: str, **options: object) -> Sequence[str]:
    found = coverage.measure(world, [see(world, url, **options) for url in urls])
    return sorted(f"{item.object.name} {item.path}" for item in found.reached)


def test_all_that_could_be_reached() -> None:
    found = coverage.measure(world_of(SHOP, ROUTES, POLICIES), [])

    assert [f"{item.object.name} {item.path}" for item in found.of("route").items] == [
        "routes http[0].match[0]", "routes http[0].match[1]", "routes http[1].match[0]", "routes http[2].match[0]",
        "routes http[3]",
    ]  # fmt: skip
    assert [f"{item.object.name} {item.path}" for item in found.of("rule").items] == [
        "callers rules[0]", "callers rules[1]",
    ]  # fmt: skip
    assert found.percentage == 0
    assert coverage.measure(world_of(SHOP), []).percentage == 100


@pytest.mark.parametrize(
    ("url", "headers", "path"),
    [
        ("http://server/a", (), "http[0].match[0]"),
        ("http://server/b", (("x-a", "1"),), "http[0].match[1]"),
        ("http://server/b", (), "http[3]"),
        ("http://server/c/d", (), "http[1].match[0]"),
        ("http://server/c/x", (), "http[2].match[0]"),
    ],
)
def test_the_route_that_a_request_takes_is_reached(url: str, headers: tuple[tuple[str, str], ...], path: str) -> None:
    assert reached(world_of(SHOP, ROUTES), url, headers=headers) == [f"routes {path}"]


def test_a_rule_is_reached_where_it_decides() -> None:
    world = world_of(SHOP, POLICIES)

    assert reached(world, "http://server/") == ["callers rules[1]"]
    assert reached(world, "http://server/", method="PUT") == ["callers rules[0]"]
    assert reached(world, "http://server/", method="POST") == []


def test_rules_of_http_routes_with_names_and_without() -> None:
    world = world_of(SHOP, HTTP_ROUTES)

    assert reached(world, "http://server/a") == ["plain rules[0]"]
    assert reached(world, "http://server/b", "http://server/c") == ["plain rules[1]", "plain rules[2]"]


def test_what_two_files_reach_counts_together() -> None:
    world = world_of(SHOP, ROUTES)
    each = [coverage.measure(world, [see(world, url)]) for url in ("http://server/a", "http://server/")]
    found = coverage.merge(each)

    assert len(found.items) == 5
    assert found.percentage == 40
    assert len(found.missed) == 3


def test_a_verdict_in_the_words_of_expectations() -> None:
    found = see(world_of(SHOP, ROUTES, POLICIES), "http://server/c/x")

    assert (str(found.target), found.workloads, found.policy) == ("server.web", ("server.web",), "web/callers[1]")
    assert (found.timeout, found.retries) == ("3s", 4)
    assert found.changes == {}


def test_denied_by_no_rule_is_told_from_by_one() -> None:
    world = world_of(SHOP, POLICIES)

    assert see(world, "http://server/", method="POST").policy == "none"
    assert see(world, "http://nobody/").policy == ""


def test_every_workload_that_may_be_reached_is_told() -> None:
    found = see(world_of(SHOP + pod("server-2", app="server")), "http://server/")

    assert set(found.workloads) == {"server.web", "server-2.web"}
    assert len(found.workloads) == 2
