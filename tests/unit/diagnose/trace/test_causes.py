"""Reasoning backwards: the object behind what is missing, and what mends it."""

import pytest
from traced_mesh import BASE, SHOP, ask, blamed, pod, service, world_of

ROUTED = """
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: routes, namespace: web}}
spec: {{hosts: [server], http: [{{route: [{{destination: {{{destination}}}}}]}}]}}
"""


def routed(destination: str) -> str:
    return ROUTED.format(destination=destination)


def rule(namespace: str, more: str = "") -> str:
    return f"""
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {{name: versions, namespace: {namespace}}}
spec: {{host: server.web.svc.cluster.local, subsets: [{{name: v1, labels: {{version: v1}}}}] {more}}}
"""


@pytest.mark.parametrize(
    ("objects", "cause", "fix"),
    [
        (routed("host: server, subset: v1"), "VirtualService/routes", "add subset v1 to a DestinationRule"),
        (routed("host: server, subset: v2") + rule("web"), "VirtualService/routes", "route to a subset that exists"),
        (
            routed("host: server, subset: v1") + rule("bare"),
            "DestinationRule/versions",
            "move the DestinationRule to namespace web",
        ),
        (routed("host: nowhere"), "VirtualService/routes", "name a host that exists"),
        (routed("host: server, port: {number: 81}"), "VirtualService/routes", "send to port 80"),
    ],
)
def test_clusters_that_do_not_exist(objects, cause, fix):
    found = ask(world_of(SHOP, objects), "http://server/")
    assert (found.status, found.flag, found.details, found.link) == (503, "NC", "cluster_not_found", "cluster")
    assert blamed(found) == cause
    assert fix in found.fix


def test_a_rule_that_is_kept_home():
    client = pod("caller", namespace="bare").replace(
        "labels: {app: caller}", 'labels: {app: caller, sidecar.istio.io/inject: "true"}'
    )
    routes = routed("host: server.web.svc.cluster.local, subset: v1").replace(
        "hosts: [server]", "hosts: [server.web.svc.cluster.local]"
    )
    world = world_of(SHOP, client, routes, rule("web", ', exportTo: ["."]'))
    found = ask(world, "http://server.web/", source="caller.bare")
    assert (found.flag, blamed(found), found.fix) == ("NC", "DestinationRule/versions", "add bare to its exportTo")


def test_a_service_in_another_namespace_than_its_pods():
    text = BASE + pod("client") + pod("server") + service("server", namespace="bare")
    found = ask(world_of(text), "http://server.bare/")
    assert (found.flag, blamed(found)) == ("UH", "Service/server")
    assert "server.web has these labels" in found.reason
    assert found.fix == "move the Service to namespace web"


def test_a_named_port_that_no_container_has():
    text = BASE + pod("client") + pod("server") + service("server", port="{name: http, port: 80, targetPort: web}")
    found = ask(world_of(text), "http://server/")
    assert (found.flag, blamed(found)) == ("UH", "Service/server")
    assert "the named port 'web'" in found.reason


def test_a_service_that_is_not_exported():
    hidden = service("server").replace(
        "namespace: web}", 'namespace: web, annotations: {networking.istio.io/exportTo: "~"}}'
    )
    registry = {"outboundTrafficPolicy": {"mode": "REGISTRY_ONLY"}}
    found = ask(
        world_of(BASE, pod("client"), pod("server"), hidden, service("other"), config=registry), "http://server/"
    )
    assert (found.outcome, blamed(found)) == ("failed", "Service/server")
    assert found.fix == "add web to its exportTo"


def test_registry_only_of_the_mesh_is_the_mesh_configs():
    registry = {"outboundTrafficPolicy": {"mode": "REGISTRY_ONLY"}}
    found = ask(world_of(SHOP, config=registry), "http://nobody.example.com/")
    assert (found.status, blamed(found)) == (502, "ConfigMap/istio")


def test_a_virtual_service_that_the_gateways_namespace_does_not_see():
    text = """
---
apiVersion: v1
kind: Pod
metadata:
  name: door
  namespace: bare
  labels: {gateway: door, sidecar.istio.io/inject: "true"}
  annotations: {inject.istio.io/templates: gateway}
spec: {containers: [{name: istio-proxy, image: auto}]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: web}
spec: {selector: {gateway: door}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [a.example.com]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: routes, namespace: web}
spec:
  hosts: [a.example.com]
  gateways: [front]
  exportTo: ["."]
  http: [{route: [{destination: {host: server}}]}]
"""
    found = ask(world_of(SHOP, text), "http://a.example.com/", source="outside")
    assert (found.status, found.flag, blamed(found)) == (404, "NR", "VirtualService/routes")
    assert found.fix == "add bare to its exportTo"


def test_healthy_requests_blame_nobody():
    found = ask(world_of(SHOP), "http://server/")
    assert (found.cause, found.fix, found.link) == (None, "", "")


def slice_of(ready: bool) -> str:
    return f"""
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: by-hand-1, namespace: web, labels: {{kubernetes.io/service-name: by-hand}}}}
addressType: IPv4
ports: [{{name: http, port: 8080}}]
endpoints: [{{addresses: [10.9.9.9], conditions: {{ready: {str(ready).lower()}}}}}]
"""


def test_endpoints_by_hand_that_are_not_ready():
    by_hand = service("by-hand").replace("selector: {app: by-hand}, ", "")
    assert blamed(ask(world_of(SHOP, by_hand), "http://by-hand/")) == "Service/by-hand"
    found = ask(world_of(SHOP, by_hand, slice_of(False)), "http://by-hand/")
    assert (found.flag, blamed(found)) == ("UH", "EndpointSlice/by-hand-1")


STRICT = """
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: web}
spec: {mtls: {mode: STRICT}}
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: narrow, namespace: web}
spec: {workloadSelector: {labels: {app: client}}, egress: [{hosts: ["istio-system/*"]}]}
"""


def test_a_sidecar_that_hides_a_strict_server_is_behind_the_plain_text():
    found = ask(world_of(SHOP, STRICT), "http://server/")
    assert (found.outcome, found.link, blamed(found)) == ("failed", "tls", "Sidecar/narrow")
    assert "PeerAuthentication web/strict" in found.reason


def test_a_strict_server_that_is_called_by_its_address():
    world = world_of(SHOP, STRICT.partition("---\napiVersion: networking")[0])
    server = next(p for p in world.pods if p.name == "server")
    found = ask(world, "http://elsewhere.example.com:8080/", address=server.addresses[0])
    assert (found.outcome, found.link, blamed(found)) == ("failed", "tls", "PeerAuthentication/strict")


def test_an_entry_that_leads_to_a_port_where_nobody_listens():
    world = world_of(SHOP)
    address = next(p for p in world.pods if p.name == "server").addresses[0]
    entry = f"""
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {{name: aside, namespace: web}}
spec:
  hosts: [aside.example.com]
  ports: [{{number: 80, name: http, protocol: HTTP, targetPort: 7999}}]
  resolution: STATIC
  endpoints: [{{address: {address}}}]
"""
    found = ask(world_of(SHOP, entry), "http://aside.example.com/")
    assert (found.certain, blamed(found)) == (False, "ServiceEntry/aside")
