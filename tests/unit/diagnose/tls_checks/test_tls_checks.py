"""Clients against ports: verdicts, and the objects behind both sides."""

from typing import Any

import pytest
from traced_mesh import BASE, pod, service, world_of

from mizzen.diagnose.tls_checks import checks, matrix, report
from mizzen.diagnose.tls_checks.checks import Check
from mizzen.diagnose.trace.world import Workload, World

MESH = (
    BASE
    + pod("client")
    + pod("server")
    + service("server")
    + pod("outer", namespace="bare")
    + pod("plain", namespace="bare", ports="8080, 8443")
    + service("plain", namespace="bare")
    + service("secure", namespace="bare", port="{name: https, port: 443, targetPort: 8443}", app="plain")
    + service("secret", namespace="bare", port="{name: http, port: 80, targetPort: 8443}", app="plain")
)


def peer(name: str, more: str, namespace: str = "web") -> str:
    return f"""
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{{more}}}
"""


def rule(name: str, host: str, tls: str) -> str:
    return f"""
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {{name: {name}, namespace: web}}
spec: {{host: {host}, trafficPolicy: {{tls: {{{tls}}}}}}}
"""


STRICT = peer("strict", "mtls: {mode: STRICT}")
OWN = peer("own", "selector: {matchLabels: {app: server}}, portLevelMtls: {8080: {mode: STRICT}}")
DISABLED = rule("plain", "server", "mode: DISABLE")


def of(world: World, client: str, host: str, port: int = 80) -> Check:
    """The check of one pair."""
    (pair,) = [(s, p) for s, p in matrix.all_ports(world) if s.host.startswith(f"{host}.") and p.number == port]
    return checks.check(world, world.find(client), *pair)


@pytest.mark.parametrize(
    ("texts", "client", "host", "verdict"),
    [
        ((), "client.web", "server", "OK"),
        ((), "outer.bare", "server", "PLAINTEXT"),
        ((STRICT,), "outer.bare", "server", "CONFLICT"),
        ((OWN,), "outer.bare", "server", "CONFLICT"),
        ((DISABLED,), "client.web", "server", "PLAINTEXT"),
        ((DISABLED, STRICT), "client.web", "server", "CONFLICT"),
        ((peer("away", "mtls: {mode: DISABLE}"),), "client.web", "server", "PLAINTEXT"),
        (
            (peer("away", "mtls: {mode: DISABLE}"), rule("m", "server", "mode: ISTIO_MUTUAL")),
            "client.web",
            "server",
            "CONFLICT",
        ),
        ((), "client.web", "plain", "PLAINTEXT"),
        ((rule("m", "plain.bare.svc.cluster.local", "mode: ISTIO_MUTUAL"),), "client.web", "plain", "CONFLICT"),
        ((), "client.web", "secret", "CONFLICT"),
        (
            (rule("s", "secret.bare.svc.cluster.local", "mode: SIMPLE, insecureSkipVerify: true"),),
            "client.web",
            "secret",
            "TLS",
        ),
    ],
)
def test_verdicts(texts: tuple[str, ...], client: str, host: str, verdict: str) -> None:
    found = of(world_of(MESH, *texts), client, host)
    assert (found.verdict, found.assumes) == (verdict, ""), found.reason
    assert found.conflicts == (verdict == "CONFLICT")


def test_programs_that_speak_tls_themselves() -> None:
    world = world_of(MESH)
    assert of(world, "client.web", "secure", 443).verdict == "TLS"
    assert of(world, "outer.bare", "secure", 443).verdict == "TLS"


def test_what_a_program_speaks_is_assumed_where_nothing_says_it() -> None:
    world = world_of(MESH, rule("s", "plain.bare.svc.cluster.local", "mode: SIMPLE, insecureSkipVerify: true"))
    found = of(world, "client.web", "plain")
    assert found.verdict == "TLS"
    assert "takes TLS on port 8080" in found.assumes


def test_both_sides_name_their_objects_with_their_lines() -> None:
    found = of(world_of(MESH, DISABLED, STRICT), "client.web", "server")
    assert (found.speaks.mode, found.speaks.speaks) == ("DISABLE", "plain text")
    assert found.speaks.rule is not None
    assert (found.speaks.rule.kind, found.speaks.rule.name, found.speaks.rule.file) == (
        "DestinationRule",
        "plain",
        "mesh.yaml",
    )
    (server,) = found.servers
    assert (server.pod, server.port, server.mode, server.takes) == ("server.web", 8080, "STRICT", ("mutual TLS",))
    assert server.policy is not None
    assert (server.policy.name, server.policy.line > 0) == ("strict", True)
    assert found.cause == found.speaks.rule


@pytest.mark.parametrize(
    ("texts", "mode", "policy", "takes"),
    [
        ((), "PERMISSIVE", "", ("plain text", "mutual TLS")),
        ((peer("mesh", "mtls: {mode: STRICT}", "istio-system"),), "STRICT", "mesh", ("mutual TLS",)),
        (
            (peer("mesh", "mtls: {mode: STRICT}", "istio-system"), peer("space", "mtls: {mode: DISABLE}")),
            "DISABLE",
            "space",
            ("plain text", "other TLS"),
        ),
        ((peer("space", "mtls: {mode: DISABLE}"), OWN), "STRICT", "own", ("mutual TLS",)),
        (
            (STRICT, peer("own", "selector: {matchLabels: {app: server}}, portLevelMtls: {9000: {mode: DISABLE}}")),
            "STRICT",
            "strict",
            ("mutual TLS",),
        ),
        (
            (STRICT, peer("own", "selector: {matchLabels: {app: server}}, mtls: {mode: PERMISSIVE}")),
            "PERMISSIVE",
            "own",
            ("plain text", "mutual TLS"),
        ),
    ],
)
def test_the_policy_that_decides_a_port(texts: tuple[str, ...], mode: str, policy: str, takes: tuple[str, ...]) -> None:
    (server,) = of(world_of(MESH, *texts), "client.web", "server").servers
    assert (server.mode, server.policy.name if server.policy else "") == (mode, policy)
    assert tuple(t for t in server.takes if t in takes) == takes
    assert ("plain text" in server.takes) == ("plain text" in takes)


def test_endpoints_that_differ_are_asked_one_by_one() -> None:
    mixed = (
        pod("one", tier="back")
        + pod("two", tier="back")
        + service("both", tier="back")
        + peer("one", "selector: {matchLabels: {app: one}}, mtls: {mode: STRICT}")
    )
    world = world_of(MESH, mixed)
    assert of(world, "client.web", "both").verdict == "OK"
    found = of(world, "outer.bare", "both")
    assert (found.verdict, found.conflicts) == ("DEPENDS", True)
    assert sorted(outcome.verdict for _, outcome in found.by_endpoint) == ["CONFLICT", "PLAINTEXT"]
    world = world_of(MESH, mixed, rule("away", "both", "mode: DISABLE"))
    found = of(world, "client.web", "both")
    assert sorted(outcome.verdict for _, outcome in found.by_endpoint) == ["CONFLICT", "PLAINTEXT"]


def test_gateways_are_clients_too() -> None:
    door = (
        pod("door", namespace="bare")
        .replace(
            "labels: {app: door}",
            'labels: {app: door, sidecar.istio.io/inject: "true"}, annotations: {inject.istio.io/templates: gateway}',
        )
        .replace("{name: app, image: app,", "{name: istio-proxy, image: auto,")
    )
    world = world_of(MESH, door, STRICT)
    assert world.find("door.bare").proxy == "router"
    found = of(world, "door.bare", "server")
    assert (found.verdict, found.client, found.speaks.mode) == ("OK", "door.bare", "auto mTLS")
    plain = rule("door", "server.web.svc.cluster.local", "mode: DISABLE").replace("namespace: web}", "namespace: bare}")
    found = of(world_of(MESH, door, STRICT, plain), "door.bare", "server")
    assert (found.verdict, found.speaks.mode) == ("CONFLICT", "DISABLE")
    assert found.cause is not None
    assert (found.cause.kind, found.cause.name) == ("DestinationRule", "door")


def test_a_service_without_pods_is_not_reached() -> None:
    found = of(world_of(MESH, service("empty", app="nobody")), "client.web", "empty")
    assert (found.verdict, found.conflicts, found.servers) == ("UNREACHABLE", False, ())


def test_all_pairs_are_asked_once_for_clients_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ask = checks.check_servers

    def count(world: World, client: Workload, *to: Any) -> Check:
        asked.append(client.reference)
        return ask(world, client, *to)

    monkeypatch.setattr(checks, "check_servers", count)
    world = world_of(MESH, *(pod(f"more-{n}") for n in range(20)), STRICT)
    found = list(matrix.check_all(world))
    clients, ports = len(world.pods), len(matrix.all_ports(world))
    assert sum(len(alike.clients) for alike in found) == clients * ports
    assert not [name for name in asked if name.startswith("more-")]
    assert len(asked) <= 3 * ports
    groups = matrix.group(found)
    assert len(groups) <= 3 * ports
    assert sum(len(group.clients) for group in groups) == clients * ports
    rows = report.build_table(groups).rows
    assert rows[0][0] == "CONFLICT"
    assert len(rows) == len(groups)
    assert report.count(found)["CONFLICT"] >= 1


def test_one_by_one_or_all_at_once_is_the_same() -> None:
    world = world_of(MESH, pod("twin"), DISABLED, OWN)
    for found in (check for alike in matrix.check_all(world) for check in alike.checks()):
        alone = of(world, found.client, found.host.partition(".")[0], found.port)
        assert alone == found


def store(*pods: str) -> tuple[str, ...]:
    """A headless Service of these pods that takes mutual TLS only, and a client."""
    headless = service("store", port="{name: tcp, port: 9000}", tier="store").replace(
        "spec: {", "spec: {clusterIP: None, "
    )
    return (BASE, pod("client"), *(pod(name, tier="store") for name in pods), headless, STRICT)


def test_a_pod_that_calls_itself_by_its_own_address_meets_no_tls():
    found = of(world_of(*store("only")), "only.web", "store", 9000)
    assert (found.verdict, found.speaks.mode, found.assumes) == ("PLAINTEXT", "not captured", "")


def test_a_pod_among_the_servers_of_a_headless_service_speaks_mutual_tls_to_the_others_only():
    world = world_of(*store("a", "b"))
    for pod_name in ("a.web", "b.web"):
        found = of(world, pod_name, "store", 9000)
        by_pod = {world.at(address.split(":")[0]).reference: o.verdict for address, o in found.by_endpoint}
        assert found.verdict == "DEPENDS"
        assert found.reason == "what a pod sends to its own address goes past its sidecar"
        assert by_pod == {name: "PLAINTEXT" if name == pod_name else "OK" for name in ("a.web", "b.web")}
        assert not found.conflicts
    assert of(world, "client.web", "store", 9000).verdict == "OK"
