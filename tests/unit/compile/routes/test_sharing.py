"""What a change of routes or services looks at again. The counts are query runs, not time."""

import listener_mesh
import pytest

from mizzen.compile import resource, snapshot
from mizzen.incremental import Engine

NAMESPACES, SERVICES = 3, 12


@pytest.fixture
def mesh() -> Engine:
    return listener_mesh.mesh_of(
        "---".join(
            f"""
apiVersion: v1
kind: Service
metadata: {{name: s-{i}, namespace: ns-{i % NAMESPACES}}}
spec: {{clusterIP: 10.96.0.{i}, ports: [{{name: http, port: 80}}]}}
"""
            for i in range(SERVICES)
        )
    )


def ask(mesh: Engine) -> dict[str, int]:
    """Everybody's routes; how often each query has run."""
    for n in range(NAMESPACES):
        proxy = listener_mesh.proxy_at(f"10.1.{n}.1", namespace=f"ns-{n}")
        snapshot.resources(mesh, proxy, resource.ROUTE, frozenset({"80"}))
    return dict(mesh.runs_by_query)


def test_a_new_virtual_service_leaves_hosts_of_other_groups_alone(mesh: Engine) -> None:
    before = ask(mesh)
    listener_mesh.add(
        mesh,
        """
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: r, namespace: ns-0}
spec: {hosts: [s-0], http: [{route: [{destination: {host: s-0}}]}]}
""",
    )
    # Its host is taken out of one group for each client; nothing else was looked at.
    assert ask(mesh)["_default_hosts"] - before["_default_hosts"] == NAMESPACES


def test_a_new_service_is_sorted_in_once_for_all(mesh: Engine) -> None:
    before = ask(mesh)
    listener_mesh.add(
        mesh,
        """
apiVersion: v1
kind: Service
metadata: {name: young, namespace: ns-1}
spec: {clusterIP: 10.96.9.9, ports: [{name: http, port: 80}]}
""",
    )
    after = ask(mesh)
    assert after["_listed_groups"] - before["_listed_groups"] == 1
    assert after["_default_hosts"] - before["_default_hosts"] == NAMESPACES
