"""What a sidecar on demand holds."""

import random

import meshes
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen import protos
from mizzen.compile import snapshot
from mizzen.compile.on_demand import named_clusters
from mizzen.compile.resource import CLUSTER, EXTENSION, LISTENER, ROUTE, VIRTUAL_HOST, Resource, encode_resource
from mizzen.incremental import Engine

_route_v3 = protos.package("envoy.config.route.v3")


def service(name: str, port: str = "{name: http, port: 80}", address: str = "") -> str:
    return f"""
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: web}}
spec: {{clusterIP: {address or f"10.96.0.{len(name)}"}, ports: [{port}]}}
---
"""


ROUTED = """
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: web}
spec:
  hosts: [cart]
  http:
  - route:
    - {destination: {host: cart, subset: old}, weight: 90}
    - {destination: {host: shelf}, weight: 10}
    mirror: {host: mirrored}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: web}
spec: {host: cart, subsets: [{name: old, labels: {v: a}}, {name: new, labels: {v: b}}]}
---
"""
ABROAD = """
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: abroad, namespace: web}
spec: {hosts: [abroad.example.com], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}
---
"""
MESH = (
    service("cart"),
    service("shelf"),
    service("mirrored"),
    service("unused"),
    service("store", "{name: tcp, port: 5432}"),
    service("sniffed", "{port: 8081}"),
    ROUTED,
    ABROAD,
)


@pytest.fixture
def db() -> Engine:
    return meshes.mesh_of(*MESH)


WHO = msgspec.structs.replace(meshes.proxy(dialect="envoy"), on_demand=True)


def clusters(db: Engine, *hosts: str) -> set[str]:
    names = snapshot.resources(db, WHO, CLUSTER, frozenset(hosts)).names
    return {name.removesuffix(".web.svc.cluster.local") for name in names if name.startswith("outbound|")}


STANDING = {"outbound|5432||store", "outbound|8081||sniffed", "outbound|80||abroad.example.com"}


def test_clusters_of_tcp_and_by_dns_stand_and_others_come_with_a_host(db):
    assert clusters(db) == STANDING
    assert clusters(db, "80/unused") == {*STANDING, "outbound|80||unused"}


def test_a_host_brings_every_cluster_of_its_routes(db):
    routed = {"outbound|80|old|cart", "outbound|80||shelf", "outbound|80||mirrored"}
    assert clusters(db, "80/cart.web") == {*STANDING, *routed}


def test_clusters_may_be_named_as_well(db):
    """By who comes back and has not named its virtual hosts yet."""
    assert clusters(db, "outbound|80||unused.web.svc.cluster.local", "nonsense") == {*STANDING, "outbound|80||unused"}


def test_who_asks_for_very_many_hosts_gets_all_and_asks_no_more(db):
    many = frozenset(f"80/{number}.example.com" for number in range(500)) | {"80"}
    assert "*" not in domains(db, many)
    assert clusters(db, *many) == STANDING
    more = many | {"80/cart"}
    found = domains(db, more)
    assert {"cart", "cart.web", "cart:80", "shelf", "*"} <= set(found)
    assert len(found) == len(set(found))
    assert {"outbound|80||unused", "outbound|80||mirrored"} <= clusters(db, *more)


def domains(db: Engine, names: frozenset[str]) -> list[str]:
    return [domain for found in hosts(db, *names).values() for domain in found["domains"]]


def test_what_is_no_service_stands(db):
    names = set(snapshot.resources(db, WHO, CLUSTER, None).names)
    assert {"BlackHoleCluster", "PassthroughCluster", "InboundPassthroughCluster"} <= names


def hosts(db: Engine, *names: str) -> dict[str, dict]:
    return {name: found for name, found in meshes.told(db, WHO, VIRTUAL_HOST, *names).items()}


def cluster_of(found: dict) -> str:
    return found["routes"][0]["route"]["cluster"]


def test_an_unknown_host_is_met_as_the_policy_says(db):
    assert cluster_of(hosts(db, "80/nobody")["80/nobody"]) == "PassthroughCluster"
    strict = meshes.mesh_of(*MESH, config={"outboundTrafficPolicy": {"mode": "REGISTRY_ONLY"}})
    assert hosts(strict, "80/nobody")["80/nobody"]["routes"][0]["directResponse"] == {"status": 502}


def test_a_configuration_alone_has_a_host_that_nobody_means(db):
    assert list(hosts(db, "80", "80/_", "sniffed.web.svc.cluster.local:8081", "http_proxy")) == ["80/_"]


def test_a_service_that_comes_takes_its_host_and_leaves_it_again(db):
    assert cluster_of(hosts(db, "80/late")["80/late"]) == "PassthroughCluster"
    meshes.apply(db, service("late"))
    assert cluster_of(hosts(db, "80/late")["80/late"]) == "outbound|80||late.web.svc.cluster.local"
    assert clusters(db, "80/late") == {*STANDING, "outbound|80||late"}
    meshes.delete(db, service("late"))
    assert cluster_of(hosts(db, "80/late")["80/late"]) == "PassthroughCluster"
    assert clusters(db, "80/late") == STANDING


PATCH = """
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: patch, namespace: web}
spec:
  configPatches:
  - applyTo: VIRTUAL_HOST
    match: {context: SIDECAR_OUTBOUND, routeConfiguration: {vhost: {name: "unused.web.svc.cluster.local:80"}}}
    patch: {operation: MERGE, value: {request_headers_to_remove: [x-secret]}}
  - applyTo: ROUTE_CONFIGURATION
    match: {context: SIDECAR_OUTBOUND}
    patch: {operation: MERGE, value: {response_headers_to_remove: [server]}}
  - applyTo: VIRTUAL_HOST
    match: {context: SIDECAR_OUTBOUND, routeConfiguration: {name: "80"}}
    patch: {operation: ADD, value: {name: added, domains: [added.example.com, "*.added.example.com"], routes: [
      {match: {prefix: /}, route: {cluster: "outbound|80||shelf.web.svc.cluster.local"}}]}}
---
"""


def test_patches_change_hosts_on_demand_and_their_configuration(db):
    meshes.apply(db, PATCH)
    found = hosts(db, "80/unused", "80/shelf", "80/added.example.com", "80/a.added.example.com")
    assert found["80/unused"]["requestHeadersToRemove"] == ["x-secret"]
    assert "requestHeadersToRemove" not in found["80/shelf"]
    assert cluster_of(found["80/added.example.com"]) == cluster_of(found["80/a.added.example.com"])
    configuration = meshes.told(db, WHO, ROUTE, "80")["80"]
    assert configuration["responseHeadersToRemove"] == ["server"]
    assert "virtualHosts" not in configuration
    assert "outbound|80||shelf" in clusters(db, "80/added.example.com")


NAMES_A_CLUSTER = """
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: asks, namespace: web}
spec:
  configPatches:
  - applyTo: HTTP_FILTER
    match: {context: SIDECAR_OUTBOUND}
    patch:
      operation: INSERT_FIRST
      value:
        name: ask
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
          default_source_code:
            inline_string: "function envoy_on_request(h) h:httpCall('outbound|80||unused.web.svc.cluster.local') end"
---
"""


def test_a_cluster_that_a_filter_names_stands():
    db = meshes.mesh_of(*MESH, NAMES_A_CLUSTER)
    assert clusters(db) == {*STANDING, "outbound|80||unused"}


def test_the_connection_managers_of_ports_wait_for_hosts_and_no_others(db):
    waiting = {}
    for listener in snapshot.resources(db, WHO, LISTENER, None):
        for manager in snapshot._managers(listener.message()):
            filters = [each.name for each in manager.http_filters]
            waiting[manager.rds.route_config_name] = filters[0] == "envoy.filters.http.on_demand"
            assert "envoy.filters.http.on_demand" not in filters[1:]
    assert {name for name, waits in waiting.items() if waits} == {"80"}


def test_who_is_not_on_demand_gets_no_virtual_host(db):
    whole = msgspec.structs.replace(WHO, on_demand=False)
    assert not len(snapshot.resources(db, whole, VIRTUAL_HOST, frozenset({"80/cart"})))


def test_a_root_that_another_asks_about_still_counts_as_stale(db):
    """Who follows a root learns of a change only from its being stale."""
    held = frozenset({"80/cart"})
    roots = [db.root(snapshot.resources, WHO, kind, names) for kind, names in
             ((LISTENER, None), (VIRTUAL_HOST, held), (ROUTE, frozenset({"80"})), (EXTENSION, frozenset()))]  # fmt: skip
    used = db.root(snapshot.resources, WHO, CLUSTER, held)
    for root in (*roots, used):
        root.value()
    before = [root.value().version for root in roots]
    meshes.apply(db, service("late", "{name: tcp, port: 6000}"))
    meshes.apply(db, ROUTED.replace("weight: 90", "weight: 80").replace("weight: 10", "weight: 20"))
    used.value()
    stale = [root.stale for root in roots]
    after = [root.value().version for root in roots]
    assert before[:2] != after[:2]
    assert all(stale[:2])


STEPS = (*MESH, PATCH, service("late"), ROUTED.replace("mirrored", "unused"), service("cart", "{name: tcp, port: 80}"))


@pytest.mark.parametrize("seed", range(6))
def test_incremental_equals_from_scratch(seed):
    rng = random.Random(seed)
    asked = frozenset({"80/cart", "80/cart.web:80", "80/late", "80/shelf", "80/nobody", "80"})
    db = meshes.mesh_of(*MESH)
    held = list(MESH)
    for _ in range(12):
        text = rng.choice(STEPS)
        if text in held and rng.random() < 0.5:
            meshes.delete(db, text)
            held.remove(text)
        else:
            meshes.apply(db, text)
            held = [*(each for each in held if each != text), text]
        fresh = Engine()
        for key, value in db.inputs().items():
            fresh.set(key, value)
        for kind, names in ((CLUSTER, asked), (VIRTUAL_HOST, asked), (ROUTE, frozenset({"80"})), (LISTENER, None)):
            now = snapshot.resources(db, WHO, kind, names)
            assert now.version == snapshot.resources(fresh, WHO, kind, names).version


HOST_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_*"


@given(st.lists(st.text(HOST_LETTERS, min_size=1, max_size=240), min_size=1, max_size=5), st.integers(1, 65535))
def test_names_of_clusters_are_found_whatever_stands_around_them(hosts, port):
    wanted = [f"outbound|{port}||{host}" for host in hosts]
    weighted = {"clusters": [{"name": name, "weight": {"value": 1}} for name in wanted]}
    mirrors = [{"cluster": name} for name in wanted]
    route = {"match": {"prefix": "/"}, "route": {"weighted_clusters": weighted, "request_mirror_policies": mirrors}}
    plain = [{"match": {"prefix": "/"}, "route": {"cluster": name}} for name in wanted]
    message = _route_v3.VirtualHost(name="x", domains=["x"], routes=[route, *plain])
    engine = Engine()
    assert named_clusters(engine, encode_resource("x", message)) >= set(wanted)


def test_a_name_in_a_text_ends_with_its_last_letter():
    text = b'{"call": "outbound|80|v1|cart.web.svc.cluster.local", "other": 1}'
    assert "outbound|80|v1|cart.web.svc.cluster.local" in named_clusters(Engine(), Resource("x", text))


@pytest.mark.parametrize("letters", [20, 114, 115, 200])
def test_a_name_before_what_could_be_a_letter_of_it_ends_by_its_length(letters):
    name = "outbound|80||" + letters * "a"
    tcp_v3 = protos.package("envoy.extensions.filters.network.tcp_proxy.v3")
    found = encode_resource("x", tcp_v3.TcpProxy(cluster=name, access_log=[{"name": "x"}]))
    assert f"{name}*".encode() in found.data
    assert name in named_clusters(Engine(), found)
