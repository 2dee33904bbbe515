"""The patches of one proxy on what it is told."""

from typing import Any

from envoy_patches import add_filter, resource_of, write_patch
from listener_mesh import mesh_of, proxy_at

from mizzen.compile import resource
from mizzen.compile.patches import application
from mizzen.compile.resource import ResourceSet
from mizzen.incremental import Engine
from mizzen.model.proxy import Proxy

SERVICES = """
apiVersion: v1
kind: Service
metadata: {name: app, namespace: shop}
spec: {selector: {app: a}, ports: [{port: 80, targetPort: 8080, name: http}]}
---
apiVersion: v1
kind: Service
metadata: {name: same, namespace: shop}
spec: {selector: {app: a}, ports: [{port: 81, targetPort: 8080, name: http}]}
---
apiVersion: v1
kind: Pod
metadata: {name: app-0, namespace: shop, labels: {app: a}}
spec: {}
status: {podIP: 10.0.0.1, phase: Running}
"""
SIDECAR = """
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: own, namespace: shop}
spec:
  ingress:
  - {port: {number: 8080, protocol: HTTP, name: http}, defaultEndpoint: "127.0.0.1:1"}
  - {port: {number: 7777, protocol: TCP, name: tcp}, defaultEndpoint: "127.0.0.1:2"}
"""
GATEWAY = """
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  servers:
  - {port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}
  - {port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: c}}
  - {port: {number: 90, name: tcp, protocol: TCP}, hosts: ["*"]}
"""


def _set(kind: str, type_url: str, *names: str, **fields: Any) -> ResourceSet:
    return ResourceSet(type_url, [resource_of(kind, name=name, **fields) for name in names])


def _patched(db: Engine, proxy: Proxy, pristine: ResourceSet) -> ResourceSet:
    return application.patched(db, proxy, pristine)


def test_a_proxy_without_patches_shares_the_pristine_set():
    db = mesh_of("")
    for kind, type_url in (("cluster", resource.CLUSTER), ("listener", resource.LISTENER), ("route", resource.ROUTE)):
        pristine = _set(kind, type_url, "a")
        assert _patched(db, proxy_at(), pristine) is pristine


def test_a_set_that_the_patches_are_not_for_is_shared_too():
    db = mesh_of("")
    add_filter(db, write_patch("CLUSTER", "REMOVE"))
    for kind, type_url in (("listener", resource.LISTENER), ("route", resource.ROUTE)):
        pristine = _set(kind, type_url, "a")
        assert _patched(db, proxy_at(), pristine) is pristine
    endpoints = ResourceSet(resource.ENDPOINT, ())
    assert _patched(db, proxy_at(), endpoints) is endpoints


def test_each_type_has_its_patches():
    db = mesh_of("")
    add_filter(
        db, write_patch("CLUSTER", "REMOVE"), write_patch("LISTENER", "REMOVE"), write_patch("VIRTUAL_HOST", "REMOVE")
    )
    assert _patched(db, proxy_at(), _set("cluster", resource.CLUSTER, "a")).names == ()
    assert _patched(db, proxy_at(), _set("listener", resource.LISTENER, "a")).names == ()
    routes = _patched(db, proxy_at(), _set("route", resource.ROUTE, "80", virtualHosts=[{"name": "v"}]))
    assert len(next(iter(routes)).message().virtual_hosts) == 0


def test_the_hosts_behind_inbound_clusters():
    assert application.inbound_hosts(mesh_of(SERVICES), proxy_at()) == (
        (8080, ("app.shop.svc.cluster.local", "same.shop.svc.cluster.local")),
    )


def test_a_sidecars_own_port_stands_for_the_sidecar():
    found = dict(application.inbound_hosts(mesh_of(SERVICES + SIDECAR), proxy_at()))
    assert found[8080] == ("app.shop.svc.cluster.local", "same.shop.svc.cluster.local")
    assert found[7777] == ("own.shop",)


def test_an_inbound_cluster_is_meant_by_its_services():
    db = mesh_of(SERVICES)
    add_filter(db, write_patch("CLUSTER", "REMOVE", cluster={"service": "same.shop.svc.cluster.local"}))
    assert _patched(db, proxy_at(), _set("cluster", resource.CLUSTER, "inbound|8080||", "inbound|9090||")).names == (
        "inbound|9090||",
    )


def test_the_ports_behind_a_gateways_routes():
    db = mesh_of(GATEWAY)
    assert application.served_ports(db, proxy_at(kind="router")) == ((80, (80,)), (443, (443,)))


def test_a_gateways_routes_are_meant_by_the_servers_port():
    service = """
---
apiVersion: v1
kind: Service
metadata: {name: edge, namespace: shop}
spec: {selector: {app: a}, ports: [{port: 80, targetPort: 8080, name: http}]}
---
apiVersion: v1
kind: Pod
metadata: {name: app-0, namespace: shop, labels: {app: a}}
spec: {}
status: {podIP: 10.0.0.1, phase: Running}
"""
    db = mesh_of(GATEWAY + service)
    add_filter(db, write_patch("VIRTUAL_HOST", "REMOVE", context="GATEWAY", routeConfiguration={"portNumber": 80}))
    pristine = _set("route", resource.ROUTE, "http.8080", "http.90", virtualHosts=[{"name": "v"}])
    found = _patched(db, proxy_at(kind="router"), pristine)
    assert {r.name: len(r.message().virtual_hosts) for r in found} == {"http.8080": 0, "http.90": 1}


def test_extensions_are_those_of_the_proxy():
    plugin = """
apiVersion: extensions.istio.io/v1alpha1
kind: WasmPlugin
metadata: {name: p, namespace: shop}
spec: {url: "https://x"}
"""
    db = mesh_of(plugin)
    add_filter(db, write_patch("EXTENSION_CONFIG", "ADD", {"name": "a"}))
    name = "extensions.istio.io/trafficextension/shop.p~istio-translated-wasmplugin"
    asked = frozenset([name, "a"])
    assert application.extension_configurations(db, proxy_at(), asked).names == ("a", name)
    other = proxy_at(namespace="pay")
    assert application.extension_configurations(db, other, asked).names == ()
