"""What is shared between proxies, and what a change costs. The counts are query runs, not time."""

import listener_mesh
import pytest

from mizzen.compile.listeners import sidecar

NAMESPACES, SERVICES = 4, 20


def many():
    return "---\n".join(
        f"""
apiVersion: v1
kind: Service
metadata: {{name: s-{i}, namespace: ns-{i % NAMESPACES}}}
spec: {{clusterIP: 10.96.0.{i}, ports: [{{name: tcp, port: {9000 + i}}}, {{name: http, port: {8000 + i}}}]}}
"""
        for i in range(SERVICES)
    )


@pytest.fixture
def mesh():
    return listener_mesh.mesh_of(many())


def proxies(dialect="istio", *, copies=3):
    return [
        listener_mesh.proxy_at(f"10.1.{n}.{c + 1}", namespace=f"ns-{n}", name=f"p-{c}", MIZZEN_DIALECT=dialect)
        for n in range(NAMESPACES)
        for c in range(copies)
    ]


def runs_after(mesh, manifest):
    """Runs of each query that has run before, for the listeners of all once this is added."""
    for proxy in proxies():
        sidecar.listeners(mesh, proxy)
    before = dict(mesh.runs_by_query)
    listener_mesh.add(mesh, manifest)
    for proxy in proxies():
        sidecar.listeners(mesh, proxy)
    return {name: mesh.runs_by_query[name] - runs for name, runs in before.items()}


def test_copies_of_a_workload_share_every_listener(mesh):
    first, *others = [sidecar.listeners(mesh, p) for p in proxies()[:3]]
    assert all(a is b for other in others for a, b in zip(first, other, strict=True))


def test_namespaces_share_listeners_without_http(mesh):
    all_of_them = [{r.name: r for r in sidecar.listeners(mesh, p)} for p in proxies(copies=1)]
    for name in ("10.96.0.0_9000", "virtualOutbound"):
        assert len({id(found[name]) for found in all_of_them}) == 1
    assert len({id(found["0.0.0.0_8000"]) for found in all_of_them}) == NAMESPACES


def test_upstream_sidecars_share_http_too(mesh):
    all_of_them = [{r.name: r for r in sidecar.listeners(mesh, p)} for p in proxies("envoy", copies=1)]
    assert len({id(found["0.0.0.0_8000"]) for found in all_of_them}) == 1
    assert mesh.runs_by_query["outbound_listener"] == 2 * SERVICES


def test_a_change_of_routes_reaches_no_listener(mesh):
    runs = runs_after(
        mesh,
        """
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: r, namespace: ns-0}
spec: {hosts: [s-0], http: [{route: [{destination: {host: s-0}}]}]}
""",
    )
    assert runs["outbound_listener"] == 0


def test_a_change_of_one_service_builds_only_its_listeners(mesh):
    runs = runs_after(
        mesh,
        """
apiVersion: v1
kind: Service
metadata: {name: s-1, namespace: ns-1}
spec: {clusterIP: 10.96.9.9, ports: [{name: tcp, port: 9001}]}
""",
    )
    assert runs["outbound_listener"] == 1
    assert runs["asked_places"] == 1


def test_another_service_at_a_port_of_http_is_looked_at_once_for_all(mesh):
    runs = runs_after(
        mesh,
        """
apiVersion: v1
kind: Service
metadata: {name: young, namespace: ns-1}
spec: {clusterIP: 10.96.9.9, ports: [{name: http, port: 8003}]}
""",
    )
    assert runs["_listener_places"] == 1
    assert runs["outbound_plans"] == 0


def test_a_rule_of_one_host_asks_only_for_that_host(mesh):
    runs = runs_after(
        mesh,
        """
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: r, namespace: ns-2}
spec: {host: s-2, trafficPolicy: {connectionPool: {tcp: {idleTimeout: 7s}}}}
""",
    )
    assert runs["outbound_listener"] == 1
    assert runs["tcp_policy"] == NAMESPACES


def test_a_policy_of_one_workload_rebuilds_only_its_inbound_listener(mesh):
    runs = runs_after(
        mesh,
        """
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: deny, namespace: ns-3}
spec: {action: DENY, rules: [{}]}
""",
    )
    assert runs["inbound_listener"] == 1
    assert runs["outbound_listener"] == 0
