"""Pairs that agree about TLS, and pairs that do not."""

from traced_mesh import BASE, pod, service, world_of

from mizzen.diagnose.trace import pairs

MESH = BASE + pod("client") + pod("server") + service("server") + pod("outer", namespace="bare")
STRICT = """
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: web}
spec: {mtls: {mode: STRICT}}
"""
DISABLED = """
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: plain, namespace: web}
spec: {host: server, trafficPolicy: {tls: {mode: DISABLE}}}
"""


def agree(*texts: str, client: str = "client.web", host: str = "server.web.svc.cluster.local") -> pairs.Pair:
    world = world_of(MESH, *texts)
    return pairs.agree_on_tls(world, world.find(client), world.find("server.web"), 80, host)


def test_two_sidecars_speak_mutual_tls():
    found = agree()
    assert (found.client_mode, found.server_mode, found.agrees) == ("mutual TLS", "mutual TLS", True)


def test_a_rule_may_take_tls_away_where_the_server_permits_it():
    found = agree(DISABLED)
    assert (found.client_mode, found.server_mode, found.agrees) == ("plain text", "plain text", True)


def test_a_strict_server_refuses_it():
    found = agree(DISABLED, STRICT)
    assert (found.client_mode, found.agrees) == ("plain text", False)
    assert found.cause is not None
    assert (found.cause.kind, found.cause.name) == ("DestinationRule", "plain")


def test_a_client_without_a_sidecar():
    assert agree(client="outer.bare").agrees
    found = agree(STRICT, client="outer.bare")
    assert (found.client_mode, found.agrees) == ("plain text", False)
    assert found.cause is not None
    assert (found.cause.kind, found.cause.name) == ("PeerAuthentication", "strict")
