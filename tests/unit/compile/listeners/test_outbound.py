"""Per-port listeners of a sidecar: which there are, their chains and their default."""

import listener_mesh
import yaml

from mizzen.compile.listeners import sidecar

SERVICES = """
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80}, {name: tcp-x, port: 9000}, {name: any, port: 7000}]}
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: web}
spec: {clusterIP: 10.96.0.2, ports: [{name: http, port: 80}]}
"""


def listeners(*documents, proxy=None, **mesh):
    db = listener_mesh.mesh_of("---".join(documents), **mesh)
    return listener_mesh.listeners_of(db, proxy or listener_mesh.proxy_at())


def headless(*addresses):
    endpoints = [{"addresses": [a], "conditions": {"ready": True}} for a in addresses]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"clusterIP": "None", "selector": {"app": "db"}, "ports": [{"name": "tcp-db", "port": 5432}]},
    }
    piece = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "db-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "db"}},
        "addressType": "IPv4",
        "ports": [{"name": "tcp-db", "port": 5432}],
        "endpoints": endpoints,
    }
    return yaml.safe_dump_all([service, piece])


def test_http_of_a_port_shares_the_wildcard_and_tcp_has_the_address():
    assert set(listeners(SERVICES)) == {
        "0.0.0.0_80",
        "10.96.0.1_9000",
        "10.96.0.1_7000",
        "virtualOutbound",
        "virtualInbound",
    }


def test_what_is_not_http_on_an_http_port_passes_through():
    found = listeners(SERVICES)["0.0.0.0_80"]
    (chain,) = found["filterChains"]
    assert chain["filterChainMatch"] == {
        "transportProtocol": "raw_buffer",
        "applicationProtocols": ["http/1.1", "h2c"],
    }
    assert found["defaultFilterChain"]["name"] == "PassthroughFilterChain"
    assert listener_mesh.tcp_of(found["defaultFilterChain"])["cluster"] == "PassthroughCluster"


def test_a_port_that_is_looked_at_has_tcp_as_its_default():
    found = listeners(SERVICES)["10.96.0.1_7000"]
    (chain,) = found["filterChains"]
    assert listener_mesh.manager_of(chain)["rds"]["routeConfigName"] == "cart.shop.svc.cluster.local:7000"
    cluster = listener_mesh.tcp_of(found["defaultFilterChain"])["cluster"]
    assert cluster == "outbound|7000||cart.shop.svc.cluster.local"


def test_routes_are_named_without_building_a_listener():
    db = listener_mesh.mesh_of(SERVICES)
    proxy = listener_mesh.proxy_at()
    assert sidecar.route_names(db, proxy) == ("80", "cart.shop.svc.cluster.local:7000")
    assert "outbound_listener" not in db.runs_by_query


def test_a_headless_service_has_a_listener_for_each_endpoint_but_oneself():
    found = listeners(headless("10.0.0.1", "10.0.0.2", "10.0.0.3"))
    assert {n for n in found if n.endswith("_5432")} == {"10.0.0.2_5432", "10.0.0.3_5432"}


def test_a_headless_service_without_endpoints_has_none():
    assert not [n for n in listeners(headless()) if n.endswith("_5432")]


def test_only_proxies_that_are_endpoints_have_listeners_of_their_own():
    db = listener_mesh.mesh_of(headless("10.0.0.1", "10.0.0.2"))
    for ip in ("10.0.0.1", "10.0.0.7", "10.0.0.8"):
        sidecar.listeners(db, listener_mesh.proxy_at(ip, name=f"p{ip}"))
    assert db.runs_by_query["outbound_plans"] == 2


def test_unknown_destinations_of_a_closed_mesh_end_in_the_black_hole():
    found = listeners(SERVICES, outboundTrafficPolicy={"mode": "REGISTRY_ONLY"})
    assert listener_mesh.tcp_of(found["virtualOutbound"]["filterChains"][-1])["cluster"] == "BlackHoleCluster"
    assert listener_mesh.tcp_of(found["0.0.0.0_80"]["defaultFilterChain"])["cluster"] == "BlackHoleCluster"


def test_the_egress_proxy_of_a_sidecar_takes_what_is_unknown():
    own = """
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: s, namespace: shop}
spec: {outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {host: cart, port: {number: 9000}, subset: v1}}}
"""
    found = listeners(SERVICES, own)
    cluster = "outbound|9000|v1|cart.shop.svc.cluster.local"
    assert listener_mesh.tcp_of(found["virtualOutbound"]["filterChains"][-1])["cluster"] == cluster


def test_without_capture_listeners_are_bound_to_localhost():
    found = listeners(SERVICES, proxy=listener_mesh.proxy_at(INTERCEPTION_MODE="NONE"))
    assert set(found) == {"127.0.0.1_80", "127.0.0.1_9000", "127.0.0.1_7000"}
    assert all("bindToPort" not in f for f in found.values())


def test_unprivileged_proxies_bind_no_low_port():
    proxy = listener_mesh.proxy_at(INTERCEPTION_MODE="NONE", UNPRIVILEGED_POD="true")
    assert set(listeners(SERVICES, proxy=proxy)) == {"127.0.0.1_9000", "127.0.0.1_7000"}


def test_ports_that_envoy_itself_uses_are_left_alone():
    taken = SERVICES.replace("port: 80}", "port: 15021}")
    proxy = listener_mesh.proxy_at(ENVOY_STATUS_PORT="15021")
    assert "0.0.0.0_15021" in listeners(taken)
    assert "0.0.0.0_15021" not in listeners(taken, proxy=proxy)


def test_a_mesh_without_a_listening_port_has_no_listeners():
    assert listeners(SERVICES, proxyListenPort=0) == {}


def test_the_http_proxy_speaks_absolute_urls():
    found = listeners(SERVICES, proxyHttpPort=15002)["127.0.0.1_15002"]
    manager = listener_mesh.manager_of(found["filterChains"][0])
    assert manager["httpProtocolOptions"] == {"allowAbsoluteUrl": True}
    assert manager["rds"]["routeConfigName"] == "http_proxy"


def test_exact_balance_is_the_nodes_wish():
    found = listeners(SERVICES, proxy=listener_mesh.proxy_at(OUTBOUND_LISTENER_EXACT_BALANCE="true"))
    assert found["0.0.0.0_80"]["connectionBalanceConfig"] == {"exactBalance": {}}
    assert "connectionBalanceConfig" not in found["virtualOutbound"]
