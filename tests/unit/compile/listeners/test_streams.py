"""TLS and TCP routes of VirtualServices as chains."""

import listener_mesh
import pytest

from mizzen.compile.listeners import sidecar

SERVICES = """
apiVersion: v1
kind: Service
metadata: {name: pay, namespace: shop}
spec: {clusterIP: 10.96.0.1, ports: [{name: https, port: 443}, {name: tcp, port: 9000}]}
---
apiVersion: v1
kind: Service
metadata: {name: other, namespace: shop}
spec: {clusterIP: 10.96.0.2, ports: [{name: tcp, port: 9001}]}
"""


def routes(name, body, hosts="[pay]"):
    return f"""
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: {name}, namespace: shop}}
spec:
  hosts: {hosts}
  {body}
"""


def chains(listener, *documents, proxy=None):
    db = listener_mesh.mesh_of("---".join((SERVICES, *documents)))
    found = listener_mesh.listeners_of(db, proxy or listener_mesh.proxy_at())[listener]
    return [*found["filterChains"], *([found["defaultFilterChain"]] if "defaultFilterChain" in found else [])]


def destination(chain):
    return listener_mesh.tcp_of(chain).get("cluster")


def names(chain):
    return chain.get("filterChainMatch", {}).get("serverNames")


def test_a_tls_port_without_routes_goes_to_its_service():
    (only,) = chains("10.96.0.1_443")
    assert destination(only) == "outbound|443||pay.shop.svc.cluster.local"
    assert "filterChainMatch" not in only


def test_each_tls_match_is_a_chain_by_sni():
    body = """tls:
  - match: [{sniHosts: [b.example, a.example]}, {sniHosts: [c.example], port: 8443}]
    route: [{destination: {host: other}}]"""
    found = chains("10.96.0.1_443", routes("r", body))
    assert [names(c) for c in found] == [["a.example", "b.example"], None]
    assert found[0]["metadata"]["filterMetadata"]["istio"]["config"].endswith("/virtual-service/r")
    assert destination(found[0]) == "outbound|9001||other.shop.svc.cluster.local"
    assert found[1]["name"] == "PassthroughFilterChain"


def test_a_repeated_sni_is_the_first_routes():
    body = """tls:
  - match: [{sniHosts: [a.example]}]
    route: [{destination: {host: other}}]
  - match: [{sniHosts: [a.example]}]
    route: [{destination: {host: pay, port: {number: 9000}}}]"""
    first, passthrough = chains("10.96.0.1_443", routes("r", body))
    assert destination(first) == "outbound|9001||other.shop.svc.cluster.local"
    assert passthrough["name"] == "PassthroughFilterChain"


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ("{port: 9000}", True),
        ("{port: 9001}", False),
        ("{gateways: [mesh]}", True),
        ("{gateways: [edge]}", False),
        ("{sourceNamespace: shop}", True),
        ("{sourceNamespace: web}", False),
        ("{sourceLabels: {app: a}}", True),
        ("{sourceLabels: {app: b}}", False),
    ],
)
def test_what_the_proxy_knows_decides_at_once(match, fits):
    body = f"tcp: [{{match: [{match}], route: [{{destination: {{host: other}}}}]}}]"
    proxy = listener_mesh.proxy_at(LABELS={"app": "a", "unused": "x"})
    (only,) = chains("10.96.0.1_9000", routes("r", body), proxy=proxy)
    want = "outbound|9001||other.shop.svc.cluster.local" if fits else "outbound|9000||pay.shop.svc.cluster.local"
    assert destination(only) == want


def test_subnets_become_a_match_beside_the_default():
    body = "tcp: [{match: [{destinationSubnets: [10.1.0.0/16, 10.0.0.1]}], route: [{destination: {host: other}}]}]"
    subnets, default = chains("10.96.0.1_9000", routes("r", body))
    ranges = [(r["addressPrefix"], r["prefixLen"]) for r in subnets["filterChainMatch"]["prefixRanges"]]
    assert ranges == [("10.0.0.1", 32), ("10.1.0.0", 16)]
    assert "metadata" not in subnets
    assert destination(default) == "outbound|9000||pay.shop.svc.cluster.local"


def test_shares_leave_out_what_gets_nothing():
    body = """tcp:
  - route:
    - {destination: {host: pay, port: {number: 9000}}, weight: 70}
    - {destination: {host: other}, weight: 30}
    - {destination: {host: gone.example}, weight: 0}"""
    (only,) = chains("10.96.0.1_9000", routes("r", body))
    weighted = listener_mesh.tcp_of(only)["weightedClusters"]["clusters"]
    assert [w["weight"] for w in weighted] == [70, 30]
    assert listener_mesh.tcp_of(only)["statPrefix"] == "r.shop"


@pytest.mark.parametrize(
    "rule",
    [
        "{}",
        "{match: [{port: 9000}]}",
        "{route: [{destination: {host: other}, weight: 0}, {destination: {host: other}, weight: 0}]}",
    ],
)
def test_a_route_that_leads_nowhere_leaves_the_others(rule):
    (only,) = chains("10.96.0.1_9000", routes("r", f"tcp: [{rule}]"))
    assert destination(only) == "outbound|9000||pay.shop.svc.cluster.local"
    (only,) = chains("10.96.0.1_9000", routes("r", f"tcp: [{rule}, {{route: [{{destination: {{host: other}}}}]}}]"))
    assert destination(only) == "outbound|9001||other.shop.svc.cluster.local"


def test_the_destination_rule_shapes_the_tcp_proxy():
    rule = """
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: r, namespace: shop}
spec:
  host: pay
  trafficPolicy:
    loadBalancer: {consistentHash: {useSourceIp: true}}
    connectionPool: {tcp: {idleTimeout: 7s, maxConnectionDuration: 1h}}
    tunnel: {protocol: POST, targetHost: proxy.example, targetPort: 3128}
"""
    (only,) = chains("10.96.0.1_9000", rule)
    tcp = listener_mesh.tcp_of(only)
    assert (tcp["idleTimeout"], tcp["maxDownstreamConnectionDuration"]) == ("7s", "3600s")
    assert tcp["hashPolicy"] == [{"sourceIp": {}}]
    assert tcp["tunnelingConfig"] == {"hostname": "proxy.example:3128", "usePost": True}


def test_workloads_with_labels_that_no_route_asks_for_share_their_plans():
    body = "tcp: [{match: [{sourceLabels: {app: a}}], route: [{destination: {host: other}}]}]"
    db = listener_mesh.mesh_of("---".join((SERVICES, routes("r", body))))
    for i in range(4):
        labels = {"app": "a" if i < 2 else "b", "pod": str(i)}
        sidecar.listeners(db, listener_mesh.proxy_at(f"10.0.0.{i + 1}", name=f"p-{i}", LABELS=labels))
    ports_of_the_host, kinds_of_client = 2, 2
    assert db.runs_by_query["routed_chains"] == ports_of_the_host * kinds_of_client


def test_clients_may_ask_a_tls_service_without_an_address_by_every_spelling_of_its_aliases():
    nameless = """
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: vault, namespace: shop}
spec: {hosts: [vault.example.com], ports: [{name: tls, number: 8200, protocol: TLS}], resolution: NONE}
"""
    alias = """
apiVersion: v1
kind: Service
metadata: {name: safe, namespace: shop}
spec: {type: ExternalName, externalName: vault.example.com, ports: [{name: tls, port: 8200}]}
"""
    names = chains("0.0.0.0_8200", nameless, alias)[0]["filterChainMatch"]["serverNames"]
    full = {"vault.example.com", "safe.shop.svc.cluster.local", "safe.shop.svc.cluster.local."}
    assert set(names) == full | {"safe", "safe.shop", "safe.shop.svc"}
    elsewhere = listener_mesh.proxy_at(namespace="web")
    other = chains("0.0.0.0_8200", nameless, alias, proxy=elsewhere)[0]["filterChainMatch"]["serverNames"]
    assert set(other) == full | {"safe.shop", "safe.shop.svc"}
