"""The inbound chains of a workload by mutual TLS mode, and where its listeners look at connections."""

import listener_mesh
import pytest

from mizzen.compile.filters import alpn
from mizzen.compile.listeners.inbound import chain_shapes, global_address

PLAIN = ("http/1.1", "h2c")

WORKLOAD = """
apiVersion: v1
kind: Service
metadata: {name: app, namespace: shop}
spec:
  clusterIP: 10.96.0.1
  selector: {app: app}
  ports:
  - {name: http, port: 80, targetPort: 8080}
  - {name: tcp-db, port: 5432}
  - {name: grpc, port: 9090}
---
apiVersion: v1
kind: Pod
metadata: {name: app-0, namespace: shop, labels: {app: app}}
spec: {containers: [{name: app, image: app}]}
status: {podIP: 10.0.0.1, phase: Running}
"""


def peers(mode, ports=""):
    return f"""
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {{name: app, namespace: shop}}
spec: {{selector: {{matchLabels: {{app: app}}}}, mtls: {{mode: {mode}}}{ports}}}
"""


def inbound(*documents, proxy=None, **mesh):
    db = listener_mesh.mesh_of("---".join((WORKLOAD, *documents)), **mesh)
    return listener_mesh.listeners_of(db, proxy or listener_mesh.proxy_at())["virtualInbound"]


def by_port(listener):
    found = {}
    for chain in listener["filterChains"]:
        found.setdefault(chain["filterChainMatch"].get("destinationPort", 0), []).append(chain)
    return found


def disabled(listener, name):
    (found,) = [f for f in listener["listenerFilters"] if f["name"] == f"envoy.filters.listener.{name}"]
    predicate = found.get("filterDisabled", {})
    negated = "notMatch" in predicate
    predicate = predicate.get("notMatch", predicate)
    rules = predicate.get("orMatch", {}).get("rules", [predicate] if predicate else [])
    return negated, [r["destinationPortRange"].get("start", 0) for r in rules]


@pytest.mark.parametrize("speaks", ["auto", "http", "tcp"])
def test_strict_takes_only_mutual_tls(speaks):
    shapes = chain_shapes("STRICT", speaks, PLAIN)
    assert shapes
    assert all(s.transport == "tls" and s.terminates for s in shapes)


@pytest.mark.parametrize("speaks", ["auto", "http", "tcp"])
def test_disable_terminates_nothing(speaks):
    assert not any(s.terminates or s.transport == "tls" for s in chain_shapes("DISABLE", speaks, PLAIN))


@pytest.mark.parametrize("speaks", ["auto", "http", "tcp"])
def test_permissive_tells_the_meshs_tls_by_its_alpn(speaks):
    for shape in chain_shapes("PERMISSIVE", speaks, PLAIN):
        assert shape.terminates == bool(set(shape.alpn) & set(alpn.MESH_ALL))


def test_a_declared_http_port_serves_nothing_else():
    assert all(s.http for mode in ("STRICT", "PERMISSIVE", "DISABLE") for s in chain_shapes(mode, "http", PLAIN))


def test_ports_come_in_ascending_order_after_the_undeclared_ones():
    ports = [c["filterChainMatch"].get("destinationPort", 0) for c in inbound()["filterChains"]]
    assert list(dict.fromkeys(ports)) == [15006, 0, 5432, 8080, 9090]


def test_a_port_with_a_mode_of_its_own_that_nobody_declares_has_chains():
    found = by_port(inbound(peers("STRICT", ", portLevelMtls: {7000: {mode: DISABLE}, 8080: {mode: DISABLE}}")))
    assert [c["filterChainMatch"]["transportProtocol"] for c in found[7000]] == ["raw_buffer", "raw_buffer"]
    assert {c["name"] for c in found[7000]} == {"virtualInbound-catchall-http", "virtualInbound"}
    assert [c["filterChainMatch"]["transportProtocol"] for c in found[8080]] == ["raw_buffer"]


def test_every_terminating_chain_asks_for_a_certificate():
    for chain in inbound(peers("STRICT"))["filterChains"]:
        if chain["name"] != "virtualInbound-blackhole":
            assert chain["transportSocket"]["typedConfig"]["requireClientCertificate"] is True


def test_tls_is_not_looked_for_where_it_cannot_be():
    assert disabled(inbound(), "tls_inspector") == (False, [15006])
    plain_port = inbound(peers("STRICT", ", portLevelMtls: {8080: {mode: DISABLE}}"))
    assert disabled(plain_port, "tls_inspector") == (False, [8080, 15006])
    only_one = inbound(peers("DISABLE", ", portLevelMtls: {8080: {mode: STRICT}}"))
    assert disabled(only_one, "tls_inspector") == (True, [8080])


def test_http_is_looked_for_only_where_it_may_be():
    assert disabled(inbound(), "http_inspector") == (False, [5432, 8080, 9090, 15006])
    strict = inbound(peers("STRICT"))
    assert [f["name"].rpartition(".")[2] for f in strict["listenerFilters"]] == ["original_dst", "tls_inspector"]


def test_retries_towards_the_application_except_for_grpc():
    def retry(port):
        manager = listener_mesh.manager_of(by_port(inbound())[port][0])
        (host,) = manager["routeConfig"]["virtualHosts"]
        return host["routes"][0]["route"].get("retryPolicy")

    assert retry(8080) == {"retryOn": "reset-before-request", "numRetries": 2}
    assert retry(9090) is None


def test_an_ingress_listener_replaces_those_of_services_and_may_really_listen():
    sidecar = """
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: app, namespace: shop}
spec:
  ingress:
  - {port: {number: 7070, protocol: HTTP, name: http}}
  - {port: {number: 7071, protocol: TCP, name: tcp}, bind: 10.0.0.1, captureMode: NONE}
"""
    db = listener_mesh.mesh_of("---".join((WORKLOAD, sidecar)))
    found = listener_mesh.listeners_of(db, listener_mesh.proxy_at())
    chains = by_port(found["virtualInbound"])
    assert set(chains) == {0, 15006, 7070}
    assert chains[7070][0]["name"] == "10.0.0.1_7070"
    origin = "/apis/networking.istio.io/v1/namespaces/shop/sidecar/app"
    assert chains[7070][0]["metadata"]["filterMetadata"]["istio"]["config"] == origin
    assert {c["filterChainMatch"]["destinationPort"] for c in found["10.0.0.1_7071"]["filterChains"]} == {7071}
    assert "bindToPort" not in found["10.0.0.1_7071"]


def test_without_capture_there_is_no_virtual_listener():
    db = listener_mesh.mesh_of(WORKLOAD)
    found = listener_mesh.listeners_of(db, listener_mesh.proxy_at(INTERCEPTION_MODE="NONE"))
    assert not {"virtualInbound", "virtualOutbound"} & set(found)


def test_transparent_proxies_keep_the_clients_address():
    found = inbound(proxy=listener_mesh.proxy_at(INTERCEPTION_MODE="TPROXY"))
    assert found["transparent"] is True
    assert [f["name"].rpartition(".")[2] for f in found["listenerFilters"]][:2] == ["original_dst", "original_src"]


def test_the_address_that_names_ingress_chains_is_reachable():
    assert global_address(["127.0.0.1", "fe80::1", "10.0.0.1"]) == "10.0.0.1"
    assert global_address(["::1"]) == ""
