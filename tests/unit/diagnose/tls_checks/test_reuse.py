"""What is found of a client in one namespace, and for whom else it holds."""

import json
from typing import Any

import msgspec
import pytest
from traced_mesh import BASE, pod, service, world_of

from mizzen.diagnose.tls_checks import checks, matrix
from mizzen.diagnose.trace.verdict import Trace
from mizzen.diagnose.trace.world import Workload, World

SPACES = ("a", "b", "c")
_TCP = "{name: tcp, port: 9000}"


def space(name: str) -> str:
    return f"""
---
apiVersion: v1
kind: Namespace
metadata: {{name: {name}, labels: {{istio-injection: enabled}}}}
"""


def istio(kind: str, name: str, namespace: str, spec: str, group: str = "networking") -> str:
    version = "v1alpha3" if kind == "EnvoyFilter" else "v1"
    return f"""
---
apiVersion: {group}.istio.io/{version}
kind: {kind}
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{{spec}}}
"""


def peer(mode: str) -> str:
    return istio("PeerAuthentication", "default", "web", f"mtls: {{mode: {mode}}}", "security")


SERVED = "server.web.svc.cluster.local"
MESH = (
    BASE,
    *(space(name) + pod("client", namespace=name) for name in SPACES),
    pod("server") + service("server") + service("raw", port=_TCP, app="server"),
    pod("away", namespace="b") + service("away", namespace="b"),
    pod("plain", namespace="bare") + service("plain", namespace="bare"),
)
OWN_RULE = istio(
    "DestinationRule", "own", "b", f"host: {SERVED}, exportTo: ['.'], trafficPolicy: {{tls: {{mode: DISABLE}}}}"
)
RAW_RULE = istio("DestinationRule", "raw", "web", "host: raw, trafficPolicy: {tls: {mode: DISABLE}}")
OWN_ROUTE = istio(
    "VirtualService",
    "own",
    "c",
    f"hosts: [{SERVED}], exportTo: ['.'], http: [{{route: [{{destination: {{host: plain.bare.svc.cluster.local}}}}]}}]",
)
_SCOPE = "outboundTrafficPolicy: {mode: REGISTRY_ONLY}, egress: [{hosts: ['./*']}]"
OWN_SCOPE = istio("Sidecar", "default", "c", _SCOPE)
OTHER_SCOPE = istio("Sidecar", "default", "b", _SCOPE)
DENIED = istio(
    "AuthorizationPolicy", "a", "web", "action: DENY, rules: [{from: [{source: {namespaces: [a]}}]}]", "security"
)
SHAPED = istio(
    "EnvoyFilter",
    "shaped",
    "b",
    f"""configPatches: [{{applyTo: CLUSTER, match: {{context: SIDECAR_OUTBOUND, cluster: {{service: {SERVED}}}}},
  patch: {{operation: MERGE, value: {{eds_cluster_config: {{service_name: nobody}}}}}}}}]""",
)
TRUST_DOMAIN = '{"prefix": "spiffe://cluster.local/"}'
ONE_NAME = '{"exact": "spiffe://cluster.local/ns/a/sa/client"}'


@pytest.mark.parametrize(
    "more",
    [
        (),
        (OWN_RULE,),
        (OWN_RULE, peer("STRICT")),
        (RAW_RULE,),
        (RAW_RULE, DENIED),
        (DENIED, peer("STRICT")),
        (OWN_ROUTE,),
        (OWN_SCOPE, peer("STRICT")),
        (OWN_SCOPE, OTHER_SCOPE),
        (SHAPED,),
        (SHAPED, peer("STRICT")),
        (OWN_RULE, OWN_ROUTE, OWN_SCOPE, SHAPED, DENIED),
    ],
)
def test_every_client_is_told_what_it_would_be_told_alone(more: tuple[str, ...]) -> None:
    world = world_of(*MESH, *more)
    alone = {
        (pod.reference, host.host, port.number): checks.check(world, pod, host, port)
        for pod in world.pods
        for host, port in matrix.all_ports(world)
    }
    found = [check for group in matrix.check_all(world) for check in group.checks()]
    assert {(each.client, each.host, each.port): each for each in found} == alone


def test_the_cases_above_tell_clients_apart() -> None:
    """So that they show something."""

    def verdicts(*more: str, host: str = SERVED) -> dict[str, str]:
        found = (check for group in matrix.check_all(world_of(*MESH, *more)) for check in group.checks())
        clients = {f"client.{name}": name for name in SPACES}
        return {clients[each.client]: each.verdict for each in found if each.client in clients and each.host == host}

    assert verdicts() == {"a": "OK", "b": "OK", "c": "OK"}
    assert verdicts(OWN_RULE) == {"a": "OK", "b": "PLAINTEXT", "c": "OK"}
    assert verdicts(OWN_ROUTE) == {"a": "OK", "b": "OK", "c": "PLAINTEXT"}
    assert verdicts(OWN_SCOPE)["c"] == "UNREACHABLE"
    assert verdicts(SHAPED)["b"] == "UNREACHABLE"


def test_policies_by_address_decide_whether_a_plain_port_is_reached() -> None:
    address = world_of(*MESH).find("client.a").addresses[0]
    denied = istio(
        "AuthorizationPolicy",
        "address",
        "web",
        f"action: DENY, rules: [{{from: [{{source: {{ipBlocks: [{address}]}}}}]}}]",
        "security",
    )
    world = world_of(*MESH, RAW_RULE, denied)
    found = [check for group in matrix.check_all(world) for check in group.checks() if check.host.startswith("raw.")]
    assumed = {each.client: bool(each.assumes) for each in found}
    assert (assumed["client.a"], assumed["client.b"], assumed["client.c"]) == (False, True, True)


def traced_clients(monkeypatch: pytest.MonkeyPatch, world: World) -> list[tuple[str, str]]:
    """Who was traced to which Service."""
    asked: list[tuple[str, str]] = []
    connect = checks.connect

    def count(world: World, client: Workload, service: Any, port: Any) -> Trace:
        asked.append((client.reference, service.host))
        return connect(world, client, service, port)

    monkeypatch.setattr(checks, "connect", count)
    list(matrix.check_all(world))
    return asked


def test_namespaces_that_are_told_the_same_of_a_service_are_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = traced_clients(monkeypatch, world_of(*MESH, OWN_RULE))
    clients = [(client, host.partition(".")[0]) for client, host in asked if client.startswith(("client.", "away."))]
    assert [client for client, host in clients if host == "server"] == ["client.a", "away.b"]
    assert [client for client, host in clients if host == "raw"] == ["client.a"]


def test_a_server_that_takes_the_certificates_of_some_only_is_asked_by_each() -> None:
    world = world_of(*MESH, peer("STRICT"))
    own = world.holdings(world.find("server.web"))
    written = json.dumps(dict(own.listeners))
    assert TRUST_DOMAIN in written
    changed = msgspec.structs.replace(own, listeners=json.loads(written.replace(TRUST_DOMAIN, ONE_NAME)))
    choosy = world.held_by(lambda pod: changed if pod.reference == "server.web" else world.holdings(pod))
    found = [check for group in matrix.check_all(choosy) for check in group.checks() if check.host == SERVED]
    assert {each.client: each.verdict for each in found if each.client.endswith((".a", ".b", ".c"))} == {
        "client.a": "OK",
        "client.b": "CONFLICT",
        "client.c": "CONFLICT",
        "away.b": "CONFLICT",
    }
