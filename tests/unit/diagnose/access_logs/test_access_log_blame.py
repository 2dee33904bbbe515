"""The object behind a group: by names alone, and with its file and line."""

import pytest
from traced_mesh import SHOP, world_of

from mizzen.diagnose.access_logs import blame, groups
from mizzen.diagnose.access_logs.lines import Entry
from mizzen.diagnose.trace import names
from mizzen.diagnose.trace.world import World

HOST = "server.web.svc.cluster.local"
RULES = """
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: limits, namespace: web}
spec:
  host: server
  trafficPolicy: {connectionPool: {http: {http2MaxRequests: 1}}}
  subsets: [{name: v1, labels: {version: v1}}, {name: v9, labels: {version: v9}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: routes, namespace: web}
spec:
  hosts: [server]
  http:
    - {match: [{uri: {prefix: /v9}}], route: [{destination: {host: server, subset: v9}}]}
    - {match: [{uri: {prefix: /slow}}], timeout: 1s, route: [{destination: {host: server}}]}
    - {route: [{destination: {host: server, subset: v7}}]}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: never, namespace: web}
spec: {action: DENY, rules: [{to: [{operation: {paths: [/never]}}]}]}
"""


def entry(world: World, **fields: object) -> Entry:
    """A request that the client sent to the server, with the addresses that the pods have."""
    client, server = world.find("client.web"), world.find("server.web")
    usual = {
        "method": "GET",
        "path": "/",
        "protocol": "HTTP/1.1",
        "status": 503,
        "authority": "server",
        "cluster": f"outbound|80||{HOST}",
        "upstream": f"{server.addresses[0]}:8080",
        "remote": f"{client.addresses[0]}:41000",
    }
    return Entry(**{**usual, **fields})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def world() -> World:
    return world_of(SHOP, RULES)


def accused(world: World, *entries: Entry) -> tuple[blame.Blame, blame.Blame]:
    """By names, and by objects."""
    (group,), _ = groups.group(entries)
    return blame.by_names(group), blame.by_objects(world, group)


def test_a_subset_without_a_rule_is_confirmed_by_a_trace(world: World) -> None:
    """The line names neither cluster nor route; configuration says which route led there."""
    missing = entry(world, flags=frozenset({"NC"}), details="cluster_not_found", cluster="", local=address(world))
    named, found = accused(world, missing)
    assert str(named) == "VirtualService for server"
    assert found.confirmed
    assert (found.kind, found.namespace, found.name, found.file) == ("VirtualService", "web", "routes", "mesh.yaml")
    assert found.line > 0
    assert "v7" in found.reason


def test_a_subset_of_nobody(world: World) -> None:
    empty = entry(
        world,
        path="/v9",
        flags=frozenset({"UH"}),
        details="no_healthy_upstream",
        cluster=f"outbound|80|v9|{HOST}",
        local=address(world),
    )
    named, found = accused(world, empty)
    assert str(named) == "DestinationRule for server.web, subset v9"
    assert (found.kind, found.name, found.confirmed) == ("DestinationRule", "limits", True)


def test_what_no_configuration_foretells_is_looked_up_by_the_host(world: World) -> None:
    over = entry(
        world, flags=frozenset({"UO"}), details="upstream_reset_before_response_started{overflow}", local=address(world)
    )
    named, found = accused(world, over)
    assert str(named) == "DestinationRule for server.web"
    assert (found.kind, found.name, found.confirmed, found.line > 0) == ("DestinationRule", "limits", False, True)
    slow = entry(world, status=504, flags=frozenset({"UT"}), details="response_timeout", path="/slow")
    _, found = accused(world, slow)
    assert (found.kind, found.name) == ("VirtualService", "routes")


def test_rbac_names_its_policy(world: World) -> None:
    denied = entry(world, status=403, details="rbac_access_denied_matched_policy[ns[web]-policy[never]-rule[0]]")
    named, found = accused(world, denied)
    assert str(named) == "AuthorizationPolicy web/never, rule 0"
    assert (found.file, found.line > 0) == ("mesh.yaml", True)


def test_routes_of_the_gateway_api_are_named_in_the_line(world: World) -> None:
    slow = entry(
        world,
        status=504,
        flags=frozenset({"UT"}),
        details="response_timeout",
        route="web.shop-routes.2",
        remote="",
        local="",
    )
    named, found = accused(world, slow)
    assert str(named) == "HTTPRoute web/shop-routes, rule 2"
    assert (found.kind, found.name) == ("VirtualService", "routes"), "there is no such HTTPRoute in this world"


def test_policies_that_decide_together_are_all_named() -> None:
    allowing = "".join(
        f"""
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {{name: {name}, namespace: web}}
spec: {{selector: {{matchLabels: {{app: server}}}}, rules: [{{to: [{{operation: {{paths: [/{name}]}}}}]}}]}}
"""
        for name in ("first", "second")
    )
    world = world_of(SHOP, RULES, allowing)
    server = world.find("server.web").addresses[0]
    denied = entry(
        world,
        path="/first",
        status=403,
        details="rbac_access_denied_matched_policy[none]",
        cluster="inbound|8080||",
        local=f"{server}:8080",
        sni=f"outbound_.80_._.{HOST}",
    )
    _, found = accused(world, denied)
    assert (str(found).partition(" (")[0], found.also) == (
        "AuthorizationPolicy web/first",
        ("AuthorizationPolicy web/second",),
    )


def test_addresses_of_another_mesh_leave_what_the_names_say(world: World) -> None:
    stranger = entry(world, flags=frozenset({"UH"}), details="no_healthy_upstream", remote="172.16.0.9:1", local="")
    _, found = accused(world, stranger)
    assert (found.kind, found.namespace, found.name, found.confirmed) == ("Service", "web", "server", False)
    unknown = entry(
        world,
        flags=frozenset({"UH"}),
        details="no_healthy_upstream",
        cluster="outbound|80||gone.elsewhere.svc.cluster.local",
        authority="gone.elsewhere",
        remote="172.16.0.9:1",
    )
    _, found = accused(world, unknown)
    assert (str(found), found.file) == ("Service elsewhere/gone", "")


def address(world: World) -> str:
    """The Service's own address and port."""
    service = next(value for key, value in names.services(world) if key.name == "server")
    return f"{service.spec.cluster_ip}:80"


OTHERS = """
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: aside, namespace: web}
spec: {hosts: [server], http: [{match: [{uri: {prefix: /aside}}], route: [{destination: {host: server}}]}]}
"""


def limit(name: str, app: str, namespace: str = "web") -> str:
    """An EnvoyFilter that limits the inbound requests of an app."""
    value = "{name: envoy.filters.http.local_ratelimit, typed_config: {}}"
    patch = f"{{applyTo: HTTP_FILTER, match: {{context: SIDECAR_INBOUND}}, patch: {{operation: ADD, value: {value}}}}}"
    return f"""
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{workloadSelector: {{labels: {{app: {app}}}}}, configPatches: [{patch}]}}
"""


def test_of_several_objects_for_the_host_it_is_the_one_that_says_something_of_it() -> None:
    world = world_of(SHOP, RULES, OTHERS)
    slow = entry(world, status=504, flags=frozenset({"UT"}), details="response_timeout", remote="172.16.0.9:1")
    _, found = accused(world, slow)
    assert (found.kind, found.name, found.confirmed) == ("VirtualService", "routes", False)


def test_an_envoy_filter_is_meant_that_is_for_the_proxy_which_wrote_the_line() -> None:
    limits = (limit("a-client", "client"), limit("b-elsewhere", "server", "bare"), limit("c-server", "server"))
    world = world_of(SHOP, *limits)
    server = world.find("server.web").addresses[0]
    limited = entry(
        world, status=429, details="local_rate_limited", cluster="inbound|8080||", local=f"{server}:8080", path="/"
    )
    _, found = accused(world, limited)
    assert (found.kind, found.name) == ("EnvoyFilter", "c-server")


def test_a_request_from_outside_is_sent_to_the_port_of_the_service_before_the_gateway() -> None:
    """The line has the port of the pod."""
    world = world_of(SHOP, DOOR, ROUTED)
    door = world.find("door.web").addresses[0]
    lost = entry(
        world,
        path="/nowhere",
        status=404,
        flags=frozenset({"NR"}),
        details="route_not_found",
        authority="shop.example.com",
        cluster="",
        upstream="",
        local=f"{door}:8080",
        remote="192.0.2.1:40000",
        forwarded="192.0.2.1",
    )
    _, found = accused(world, lost)
    assert (found.kind, found.name, found.confirmed) == ("VirtualService", "shop", True)


DOOR = """
---
apiVersion: v1
kind: Pod
metadata:
  name: door
  namespace: web
  labels: {gateway: door, sidecar.istio.io/inject: "true"}
  annotations: {inject.istio.io/templates: gateway}
spec: {serviceAccountName: door, containers: [{name: istio-proxy, image: auto}]}
---
apiVersion: v1
kind: Service
metadata: {name: door, namespace: web}
spec: {type: LoadBalancer, selector: {gateway: door}, ports: [{name: http, port: 80, targetPort: 8080}]}
"""
ROUTED = """
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: web}
spec:
  selector: {gateway: door}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [shop.example.com]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop, namespace: web}
spec:
  hosts: [shop.example.com]
  gateways: [front]
  http: [{match: [{uri: {prefix: /shop}}], route: [{destination: {host: server}}]}]
"""
