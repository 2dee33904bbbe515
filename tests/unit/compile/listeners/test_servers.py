"""Listeners of gateways: TLS, SNI, TCP routes and the mesh's own traffic."""

import listener_mesh
import yaml

from mizzen.compile.listeners import gateway
from mizzen.compile.listeners.server_tls import known_ciphers

SERVICES = """
apiVersion: v1
kind: Service
metadata: {name: pay, namespace: shop}
spec: {clusterIP: 10.96.0.1, ports: [{name: https, port: 443}, {name: udp-x, port: 53, protocol: UDP}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: pay, namespace: shop}
spec: {host: pay, subsets: [{name: v1}]}
"""
EDGE = {"kind": "router", "name": "edge-0", "namespace": "istio-system", "LABELS": {"istio": "edge"}}


def edge(*servers):
    return yaml.safe_dump(
        {
            "apiVersion": "networking.istio.io/v1",
            "kind": "Gateway",
            "metadata": {"name": "edge", "namespace": "istio-system"},
            "spec": {"selector": {"istio": "edge"}, "servers": list(servers)},
        }
    )


def server(number, protocol, hosts=("*",), **fields):
    return {"port": {"number": number, "protocol": protocol, "name": f"p{number}"}, "hosts": list(hosts), **fields}


def listeners(*documents, proxy=None, **mesh):
    db = listener_mesh.mesh_of("---\n".join((SERVICES, *documents)), **mesh)
    return listener_mesh.listeners_of(db, proxy or listener_mesh.proxy_at(**EDGE))


def routes(body, gateways="[istio-system/edge]", hosts='["*"]'):
    return f"""
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: r, namespace: shop}}
spec: {{hosts: {hosts}, gateways: {gateways}, {body}}}
"""


def test_http_is_served_even_without_routes():
    found = listeners(edge(server(80, "HTTP")))
    manager = listener_mesh.manager_of(found["0.0.0.0_80"]["filterChains"][0])
    assert manager["rds"]["routeConfigName"] == "http.80"
    assert "listenerFilters" not in found["0.0.0.0_80"]


def test_tls_is_chosen_by_name_unless_any_name_will_do():
    tls = {"mode": "SIMPLE", "credentialName": "c"}
    named = listeners(edge(server(443, "HTTPS", ["b.example", "a.example"], tls=tls)))["0.0.0.0_443"]
    assert named["filterChains"][0]["filterChainMatch"]["serverNames"] == ["a.example", "b.example"]
    anyone = listeners(edge(server(443, "HTTPS", ["a.example", "*"], tls=tls)))["0.0.0.0_443"]
    assert "filterChainMatch" not in anyone["filterChains"][0]
    assert [f["name"] for f in anyone["listenerFilters"]] == ["envoy.filters.listener.tls_inspector"]


def test_a_servers_name_is_what_its_tls_counts_under():
    tls = {"mode": "SIMPLE", "credentialName": "c"}
    found = listeners(edge(server(443, "HTTPS", tls=tls, name="mine"), server(80, "HTTP", name="plain")))
    assert listener_mesh.manager_of(found["0.0.0.0_443"]["filterChains"][0])["statPrefix"] == "mine"
    assert listener_mesh.manager_of(found["0.0.0.0_80"]["filterChains"][0])["statPrefix"] == "outbound_0.0.0.0_80;"


def test_a_tcp_server_nobody_routes_to_does_not_listen():
    assert listeners(edge(server(9000, "TCP"))) == {}
    body = "tcp: [{match: [{port: 9001}], route: [{destination: {host: pay}}]}]"
    assert listeners(edge(server(9000, "TCP")), routes(body)) == {}


def test_the_first_tcp_rule_for_the_server_gets_everything():
    body = """tcp:
  [{match: [{port: 9001}], route: [{destination: {host: no.example}}]},
   {match: [{port: 9000, sourceLabels: {ignored: "yes"}}], route: [{destination: {host: pay, port: {number: 443}}}]}]"""
    found = listeners(edge(server(9000, "TCP")), routes(body))
    (chain,) = found["0.0.0.0_9000"]["filterChains"]
    assert listener_mesh.tcp_of(chain)["cluster"] == "outbound|443||pay.shop.svc.cluster.local"


def test_a_tcp_rule_that_leads_nowhere_leaves_the_next():
    body = "tcp: [{}, {route: [{destination: {host: pay, port: {number: 443}}}]}]"
    (chain,) = listeners(edge(server(9000, "TCP")), routes(body))["0.0.0.0_9000"]["filterChains"]
    assert listener_mesh.tcp_of(chain)["cluster"] == "outbound|443||pay.shop.svc.cluster.local"


def test_gateways_of_a_match_are_those_of_the_routes_namespace():
    body = "tcp: [{match: [{gateways: [edge]}], route: [{destination: {host: pay}}]}]"
    assert listeners(edge(server(9000, "TCP")), routes(body)) == {}


def test_passed_through_names_are_served_once_a_listener():
    body = """tls:
  [{match: [{sniHosts: [a.example]}], route: [{destination: {host: pay, port: {number: 443}}}]},
   {match: [{sniHosts: [a.example, b.example]}], route: [{destination: {host: no.example}}]},
   {match: [{sniHosts: [c.example], port: 444}], route: [{destination: {host: no.example}}]}]"""
    found = listeners(edge(server(443, "TLS", tls={"mode": "PASSTHROUGH"})), routes(body))
    (chain,) = found["0.0.0.0_443"]["filterChains"]
    assert chain["filterChainMatch"]["serverNames"] == ["a.example"]
    assert "transportSocket" not in chain


def test_mesh_traffic_passes_by_its_sni_without_policies():
    deny = """
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: deny, namespace: istio-system}
spec: {action: DENY, rules: [{}]}
"""
    cross = server(15443, "TLS", ["*.shop.svc.cluster.local"], tls={"mode": "AUTO_PASSTHROUGH"})
    found = listeners(edge(cross), deny)["0.0.0.0_15443"]["filterChains"]
    names = [c["filterChainMatch"]["serverNames"][0] for c in found]
    assert names == [f"outbound_.443_.{subset}_.pay.shop.svc.cluster.local" for subset in ("", "v1")]
    assert all("rbac" not in name for c in found for name in listener_mesh.filters_of(c))


def test_policies_guard_tcp_servers():
    deny = """
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: deny, namespace: istio-system}
spec: {action: DENY, rules: [{}]}
"""
    body = "tcp: [{route: [{destination: {host: pay}}]}]"
    found = listeners(edge(server(9000, "TCP")), deny, routes(body))["0.0.0.0_9000"]["filterChains"][0]
    assert listener_mesh.filters_of(found)[0] == "envoy.filters.network.rbac"


def test_mesh_tls_is_terminated_with_the_workloads_certificate():
    body = "tcp: [{route: [{destination: {host: pay}}]}]"
    secure = server(443, "TLS", ["a.example"], tls={"mode": "ISTIO_MUTUAL"})
    (chain,) = listeners(edge(secure), routes(body))["0.0.0.0_443"]["filterChains"]
    common = chain["transportSocket"]["typedConfig"]["commonTlsContext"]
    assert common["alpnProtocols"] == ["istio-peer-exchange", "h2", "http/1.1"]
    assert common["tlsCertificateSdsSecretConfigs"][0]["name"] == "default"
    assert listener_mesh.filters_of(chain)[0] == "istio.metadata_exchange"


def test_a_bind_of_its_own_names_the_listener():
    assert set(listeners(edge(server(80, "HTTP", bind="10.0.0.9")))) == {"10.0.0.9_80"}


def test_settings_of_the_edge_fill_what_the_proxy_leaves_open():
    own = {"PROXY_CONFIG": {"connectionSettings": {"profile": "EDGE", "httpIdleTimeout": "7s"}}}
    found = listeners(edge(server(80, "HTTP")), proxy=listener_mesh.proxy_at(**EDGE, **own))["0.0.0.0_80"]
    assert found["perConnectionBufferLimitBytes"] == 32768
    manager = listener_mesh.manager_of(found["filterChains"][0])
    assert manager["commonHttpProtocolOptions"] == {
        "idleTimeout": "7s",
        "headersWithUnderscoresAction": "REJECT_REQUEST",
    }
    assert manager["mergeSlashes"] is True
    assert manager["pathWithEscapedSlashesAction"] == "UNESCAPE_AND_REDIRECT"


def test_the_proxy_protocol_is_read_first():
    own = {"PROXY_CONFIG": {"gatewayTopology": {"proxyProtocol": {}}}}
    tls = {"mode": "SIMPLE", "credentialName": "c"}
    found = listeners(edge(server(443, "HTTPS", tls=tls)), proxy=listener_mesh.proxy_at(**EDGE, **own))
    assert [f["name"].rpartition(".")[2] for f in found["0.0.0.0_443"]["listenerFilters"]] == [
        "proxy_protocol",
        "tls_inspector",
    ]


def test_secrets_named_sds_come_from_the_meshs_provider():
    provider = {"name": "vault", "sds": {"name": "vault", "service": "vault.example", "port": 8234}}
    tls = {"mode": "SIMPLE", "credentialName": "sds://edge-cert"}
    found = listeners(edge(server(443, "HTTPS", tls=tls)), extensionProviders=[provider])["0.0.0.0_443"]
    common = found["filterChains"][0]["transportSocket"]["typedConfig"]["commonTlsContext"]
    (secret,) = common["tlsCertificateSdsSecretConfigs"]
    assert secret["name"] == "edge-cert"
    grpc = secret["sdsConfig"]["apiConfigSource"]["grpcServices"][0]["envoyGrpc"]
    assert grpc == {"clusterName": "outbound|8234||vault.example", "authority": "vault.example"}


def test_routes_are_named_without_building_a_listener():
    db = listener_mesh.mesh_of(edge(server(80, "HTTP")))
    assert gateway.route_names(db, listener_mesh.proxy_at(**EDGE)) == ("http.80",)
    assert "gateway_listener" not in db.runs_by_query


def test_ciphers_that_envoy_would_refuse_are_left_out():
    assert known_ciphers(["AES128-SHA", "NO-SUCH", "AES128-SHA", "[A|B]", ""]) == ("AES128-SHA", "[A|B]")
