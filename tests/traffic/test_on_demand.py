"""A sidecar that knows hosts on demand: the first request to each succeeds, and it holds nothing that nobody called."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from eventually import eventually_blocking
from traffic_manifests import WORLD, behaviour, routes, service, subsets
from traffic_programs import count_pods, new_case, statuses

from mizzen.local import observer


def held_hosts(mesh) -> set[str]:
    """The virtual hosts on demand that the Envoy of `asker` holds."""
    answer = observer.ask_envoy(mesh.pod("asker"), "/config_dump?resource=dynamic_route_configs")
    configurations = [each["route_config"] for each in json.loads(answer)["configs"]]
    return {host["name"] for each in configurations for host in each.get("virtual_hosts", ()) if "/" in host["name"]}


def held_clusters(mesh) -> set[str]:
    answer = observer.ask_envoy(mesh.pod("asker"), "/clusters")
    return {line.partition("::")[0] for line in answer.splitlines()}


def cluster(name: str, subset: str = "", port: int = 80) -> str:
    return f"outbound|{port}|{subset}|{name}.traffic.svc.cluster.local"


@behaviour(service("asked"), service("unasked"))
def test_a_host_and_its_cluster_come_with_the_first_request(asker, mesh):
    assert "80/asked" not in held_hosts(mesh)
    assert cluster("asked") not in held_clusters(mesh)
    assert asker.get("http://asked/").status == 200
    assert "80/asked" in held_hosts(mesh)
    assert cluster("asked") in held_clusters(mesh)
    assert cluster("unasked") not in held_clusters(mesh)


@behaviour(service("spelled"))
@pytest.mark.parametrize(
    "authority", ["spelled", "spelled:80", "SPELLED", "spelled.traffic", "spelled.traffic.svc.cluster.local", "address"]
)
def test_every_spelling_of_a_name_is_known(asker, authority):
    host = asker.resolve("spelled")[0] if authority == "address" else authority
    assert asker.get(f"http://{host}/").status == 200


@behaviour(*(service(f"crowd-{number}") for number in range(5)))
def test_all_of_many_first_requests_at_once_succeed(asker):
    with ThreadPoolExecutor(5) as threads:
        answers = threads.map(
            lambda number: asker.send(f"http://crowd-{number}/", count=50, workers=50, reuse=False), range(5)
        )
        assert [statuses(each) for each in answers] == [{200: 50}] * 5


@behaviour(service("posted"), service("posted-much"))
def test_the_body_of_a_first_request_arrives(asker):
    assert asker.get("http://posted/", method="POST", body="told").seen.body == "told"
    body = "much" * 1_000_000
    assert len(asker.get("http://posted-much/", method="POST", body=body, timeout=60).seen.body) == len(body)


@behaviour(
    service("called", port=9090, port_name="grpc", target=9090),
    service("streamed", port=9090, port_name="grpc", target=9090),
)
def test_the_first_grpc_call_succeeds_even_if_it_ends_only_after_an_answer(asker):
    (call,) = asker.grpc("called:9090", ["a"], method="Once")
    assert call.code == "OK"
    (call,) = asker.grpc("streamed:9090", ["a", "b"], method="Stream")
    assert (call.code, len(call.answers)) == ("OK", 2)


@behaviour(
    service("split"),
    subsets("split"),
    """
kind: VirtualService
metadata: {name: split}
spec:
  hosts: [split]
  http:
    - match: [{uri: {prefix: /old}}]
      headers: {request: {set: {x-route: old}}}
      route: [{destination: {host: split, subset: v1}}]
    - route:
        - {destination: {host: split, subset: v1}, weight: 50}
        - {destination: {host: split, subset: v2}, weight: 50}
""",
)
def test_all_clusters_of_a_virtual_service_are_there_for_its_first_requests(asker):
    answers = asker.send("http://split/", count=60, workers=20)
    assert statuses(answers) == {200: 60}
    assert {answer.seen.version for answer in answers} == {"v1", "v2"}
    assert asker.get("http://split/old").route == "old"


@behaviour(
    service("doubled", selector="app: echo, place: near"),
    service("double", selector="app: echo, place: far"),
    """
kind: VirtualService
metadata: {name: doubled}
spec:
  hosts: [doubled]
  http: [{route: [{destination: {host: doubled}}], mirror: {host: double}}]
""",
)
def test_the_first_request_is_mirrored(asker, mesh):
    answer = asker.get("http://doubled/")
    assert answer.pod == "near"
    eventually_blocking(lambda: mesh["far"].received(answer.case))


@behaviour(
    service("originated-on-demand"),
    """
kind: ServiceEntry
metadata: {name: tls-on-demand}
spec:
  hosts: [tls-on-demand.example.com]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8443}]
  endpoints: [{address: "$(outer)"}]
---
kind: DestinationRule
metadata: {name: tls-on-demand}
spec:
  host: tls-on-demand.example.com
  trafficPolicy: {tls: {mode: SIMPLE, sni: outer.example.com, insecureSkipVerify: true}}
""",
)
def test_the_first_request_out_of_the_mesh_does_not_speak_as_the_mesh_does(asker):
    seen = asker.get("http://tls-on-demand.example.com/").seen
    assert (seen.kind, seen.alpn in (None, "http/1.1")) == ("https", True)


@behaviour(
    WORLD,
    """
kind: ServiceEntry
metadata: {name: by-dns}
spec:
  hosts: [by-dns.example.com]
  location: MESH_EXTERNAL
  resolution: DNS
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]
  endpoints: [{address: world.example.net}]
""",
)
def test_a_host_whose_addresses_are_resolved_is_ready_before_it_is_called(asker, mesh):
    assert "outbound|80||by-dns.example.com" in held_clusters(mesh)
    assert asker.get("http://by-dns.example.com/").pod == "outer"


@behaviour(WORLD, service("beside-unknown", port=8080))
def test_an_unknown_host_is_passed_through(asker, mesh):
    answer = asker.get("http://world.example.net:8080/")
    assert (answer.status, answer.pod) == (200, "outer")
    assert "8080/world.example.net:8080" in held_hosts(mesh)


@behaviour(service("pattern"))
def test_an_authority_that_is_a_pattern_takes_nothing_from_others(asker):
    address = asker.resolve("pattern")[0]
    assert asker.get("http://*/", address=f"{address}:80").status == 404
    assert asker.get("http://pattern/").status == 200


@behaviour(service("once-logged"))
def test_a_first_request_is_one_request(asker, mesh):
    case = new_case()
    assert asker.get(f"http://once-logged/{case}", case=case).status == 200
    assert asker.get(f"http://once-logged/after-{case}").status == 200
    mesh.logged("asker", f"/after-{case}")
    assert len(mesh.logged("asker", f"/{case}")) == 1
    assert len(mesh.echoes.received(case)) == 1


@behaviour(service("explained"))
def test_what_is_not_held_is_explained_and_no_difference(asker, mesh):
    words = ("trace", "--mesh", mesh.local.name, "--from", "asker.traffic", "http://explained/")
    before = mesh.local.run(*words).stdout
    assert "on demand: not held yet" in before
    assert "DELIVERED 200" in before
    assert asker.get("http://explained/").status == 200
    assert "on demand: held" in mesh.local.run(*words).stdout

    def kinds_that_match() -> list[str]:
        difference = mesh.local.run("proxy-status", "--mesh", mesh.local.name, "asker.traffic").stdout
        return [line.partition(" (")[0] for line in difference.splitlines()]

    eventually_blocking(lambda: kinds_that_match() == ["Clusters Match", "Listeners Match", "Routes Match"])


ROUTE = """
kind: VirtualService
metadata: {name: held}
spec:
  hosts: [held]
  http:
    - headers: {request: {set: {x-route: first}}}
      route: [{destination: {host: held}}]
---
"""


@behaviour(service("held"), service("held-too", selector="app: echo, place: far"))
def test_a_change_of_a_held_host_takes_effect(asker, mesh):
    assert asker.get("http://held/").route == ""
    mesh.apply("held", [ROUTE])
    assert asker.get("http://held/").route == "first"
    mesh.apply("held", [ROUTE.replace("{host: held}", "{host: held-too}")])
    assert count_pods(asker.send("http://held/", count=20)) == {"far": 20}
    eventually_blocking(lambda: cluster("held") not in held_clusters(mesh))
    mesh.apply("held", [])
    assert asker.get("http://held/").route == ""
    eventually_blocking(lambda: cluster("held-too") not in held_clusters(mesh))


@behaviour()
def test_a_service_comes_and_goes_under_its_callers(asker, mesh):
    case = new_case()
    mesh.apply("coming", [service("coming")])
    address = asker.resolve("coming")[0]
    assert asker.get("http://coming/").status == 200
    mesh.apply("coming", [])
    eventually_blocking(lambda: cluster("coming") not in held_clusters(mesh))
    assert asker.get("http://coming/", address=f"{address}:80", timeout=1, case=case).status != 200
    assert not mesh.echoes.received(case)
    mesh.apply("coming", [service("coming")])
    assert asker.get("http://coming/").status == 200


@behaviour(routes("many-ports", "- route: [{destination: {host: many-ports}}]"))
def test_a_port_that_is_new_to_the_mesh_has_its_hosts_too(asker, mesh):
    mesh.apply("new-port", [service("new-port", port=8123)])
    assert asker.get("http://new-port:8123/").status == 200
    mesh.apply("new-port", [])
    mesh.apply("new-port", [service("new-port", port=8123)])
    assert asker.get("http://new-port:8123/").status == 200
    mesh.apply("new-port", [])


@behaviour(service("no-first-failure"))
def test_requests_go_on_while_the_mesh_changes(asker, mesh):
    with asker.sending("http://no-first-failure/", workers=4) as answers:
        for number in range(3):
            change = ROUTE.replace("held", "no-first-failure").replace("first", f"r{number}")
            mesh.apply("no-first-failure", [change, service(f"beside-{number}", port=8200 + number)])
    assert set(statuses(answers)) == {200}
    mesh.apply("no-first-failure", [])
