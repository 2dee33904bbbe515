"""Configuration that changes while the mesh works."""

from concurrent.futures import ThreadPoolExecutor

from eventually import eventually_blocking
from traffic_manifests import behaviour, service, subsets
from traffic_programs import new_case, statuses

TAKEN_AWAY = """
kind: VirtualService
metadata: {name: taken-away}
spec:
  hosts: [taken-away]
  http:
    - headers: {request: {set: {x-route: there}}}
      route: [{destination: {host: taken-away}}]
---
"""


@behaviour(service("taken-away"))
def test_rules_come_and_go_while_the_mesh_runs(client, mesh):
    assert client.get("http://taken-away/").route == ""
    mesh.apply("taken-away", [TAKEN_AWAY])
    assert client.get("http://taken-away/").route == "there"
    mesh.apply("taken-away", [TAKEN_AWAY.replace("there", "changed")])
    assert client.get("http://taken-away/").route == "changed"
    mesh.apply("taken-away", [])
    assert client.get("http://taken-away/").route == ""


@behaviour(service("in-flight"))
def test_a_request_in_flight_survives_a_change(client, echoes, mesh):
    """Routes, clusters and listeners change while it waits."""
    change = TAKEN_AWAY.replace("taken-away", "in-flight") + service("newcomer", port=8123)
    case = new_case()
    with ThreadPoolExecutor(1) as threads:
        request = threads.submit(client.get, "http://in-flight/", headers={"x-hold": "yes"}, case=case, timeout=60)
        try:
            eventually_blocking(lambda: echoes.received(case))
            mesh.apply("in-flight", [change])
            assert client.get("http://in-flight/").route == "there"
            assert client.get("http://newcomer:8123/").status == 200
        finally:
            echoes.release(case)
        assert (request.result().status, request.result().route) == (200, "")
    mesh.apply("in-flight", [])


SPLIT = (
    subsets("reshaped")
    + """
kind: VirtualService
metadata: {name: reshaped}
spec:
  hosts: [reshaped]
  http:
    - route:
        - {destination: {host: reshaped, subset: v1}, weight: 50}
        - {destination: {host: reshaped, subset: v2}, weight: 50}
"""
)


@behaviour(service("reshaped"))
def test_no_request_fails_while_subsets_and_routes_to_them_come_and_go(client, mesh):
    with client.sending("http://reshaped/", workers=2) as answers:
        for _ in range(3):
            mesh.apply("reshaped", [SPLIT])
            mesh.apply("reshaped", [])
    assert set(statuses(answers)) == {200}
    assert len(answers) > 100
