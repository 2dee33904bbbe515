"""Routes of the Gateway API inside the mesh: Services and ServiceEntries as parents, followed by the clients' sidecars."""

from eventually import eventually_blocking
from traffic_certificates import ROOT
from traffic_gateway_api import choice, marked, route, to
from traffic_manifests import behaviour, service
from traffic_programs import Program, new_case, statuses
from traffic_shares import assert_share

NEAR, FAR = "app: echo, place: near", "app: echo, place: far"


def parent(name: str, more: str = "") -> str:
    return f"{{group: '', kind: Service, name: {name}{more}}}"


def of_mesh(name: str, rules: str, *, parents: str = "", **options: str) -> str:
    """A route for a Service, without hosts as routes of the mesh have none."""
    return route(name, rules, parents=parents or parent(name), hosts="", **options)


def took(caller: Program, url: str, **more) -> str | int:
    answer = caller.get(url, **more)
    return answer.route if answer.status == 200 else answer.status


MATCHES = {
    "exact": "{path: {type: Exact, value: /one}}",
    "prefix": "{path: {value: /one}}",
    "method": "{path: {value: /one}, method: POST}",
    "header": "{path: {value: /one}, headers: [{name: x-a, value: '1'}]}",
    "regex": "{path: {type: RegularExpression, value: '/item/[0-9]+'}}",
    "query": "{path: {value: /}, queryParams: [{name: q, value: '1'}]}",
}


@behaviour(service("mesh-matched"), of_mesh("mesh-matched", choice("mesh-matched", MATCHES)))
def test_sidecars_follow_the_matches_of_a_route(client, visitor):
    """What no rule takes is not found: the route is all there is to the Service's port."""
    for path, method, headers, expected in (
        ("/one", "GET", {}, "exact"),
        ("/one/two", "GET", {}, "prefix"),
        ("/ones", "GET", {}, 404),
        ("/one/two", "POST", {"x-a": "1"}, "method"),
        ("/one/two", "GET", {"x-a": "1"}, "header"),
        ("/item/1", "GET", {}, "regex"),
        ("/other?q=1", "GET", {}, "query"),
        ("/other", "GET", {}, 404),
    ):
        assert took(client, f"http://mesh-matched{path}", method=method, headers=headers) == expected, path
    assert took(visitor, "http://mesh-matched/one") == "exact"


FILTERED = f"""
- matches: [{{path: {{value: /old}}}}]
  filters:
    - {marked("rewritten")}
    - {{type: ResponseHeaderModifier, responseHeaderModifier: {{set: [{{name: x-more, value: "yes"}}]}}}}
    - {{type: URLRewrite, urlRewrite: {{path: {{type: ReplacePrefixMatch, replacePrefixMatch: /new}}}}}}
    - {{type: RequestMirror, requestMirror: {{backendRef: {{name: mesh-filtered-far, port: 80}}}}}}
  {to("mesh-filtered")}
- matches: [{{path: {{value: /moved}}}}]
  filters: [{{type: RequestRedirect, requestRedirect: {{hostname: b.example, statusCode: 301}}}}]
- matches: [{{path: {{value: /slow}}}}]
  timeouts: {{request: 300ms}}
  {to("mesh-filtered")}
- matches: [{{path: {{value: /again}}}}]
  retry: {{attempts: 3, backoff: 10ms, codes: [503]}}
  {to("mesh-filtered")}
"""


@behaviour(
    service("mesh-filtered", selector=NEAR),
    service("mesh-filtered-far", selector=FAR),
    of_mesh("mesh-filtered", FILTERED),
)
def test_sidecars_apply_the_filters_of_a_route(client, mesh):
    answer = client.get("http://mesh-filtered/old/a")
    assert (answer.pod, answer.seen.target, answer.route) == ("near", "/new/a", "rewritten")
    assert answer.header("x-more") == "yes"
    assert answer.seen.caller == "spiffe://cluster.local/ns/traffic/sa/client"
    moved = client.get("http://mesh-filtered/moved/a")
    assert (moved.status, moved.header("location")) == (301, "http://b.example/moved/a")
    assert client.get("http://mesh-filtered/slow", headers={"x-delay": "5"}).status == 504
    assert client.get("http://mesh-filtered/again", headers={"x-flaky": "3"}).status == 200
    eventually_blocking(lambda: mesh["far"].received(answer.case))


@behaviour(
    service("mesh-split"),
    service("mesh-split-near", selector=NEAR),
    service("mesh-split-far", selector=FAR),
    of_mesh(
        "mesh-split",
        "- {backendRefs: [{name: mesh-split-near, port: 80, weight: 1}, {name: mesh-split-far, port: 80, weight: 4}]}",
    ),
)
def test_sidecars_share_requests_by_weight(client):
    pods = [answer.pod for answer in client.send("http://mesh-split/", count=400, workers=4)]
    assert_share(pods.count("far"), 400, 0.8)
    assert set(pods) == {"near", "far"}


TWO_PORTS = """
kind: Service
metadata: {name: mesh-ported}
spec:
  selector: {app: echo}
  ports: [{name: http, port: 80, targetPort: 8080}, {name: http-other, port: 81, targetPort: 8080}]
---
"""


@behaviour(
    TWO_PORTS,
    of_mesh("mesh-ported", choice("mesh-ported", {"first": ""}), parents=parent("mesh-ported", ", port: 80")),
)
def test_a_route_may_be_for_one_port_of_a_service(client):
    assert [took(client, f"http://mesh-ported:{port}/") for port in (80, 81)] == ["first", ""]


OWN = choice("shared", {"producer": ""})
CONSUMED = f"- {{filters: [{marked('consumer')}], backendRefs: [{{name: shared, namespace: traffic, port: 80}}]}}"


@behaviour(
    service("shared"),
    of_mesh("shared", OWN),
    of_mesh("shared-scoped", CONSUMED, parents=parent("shared", ", namespace: traffic"), namespace="scoped"),
)
def test_a_consumers_route_replaces_the_producers_for_its_own_namespace(client, scoped):
    """It needs no grant for the backend: it only chooses where its own clients go."""
    assert took(client, "http://shared/") == "producer"
    assert took(scoped, "http://shared.traffic/") == "consumer"


CONSUMER_ONLY = (
    f"- {{filters: [{marked('consumer')}], backendRefs: [{{name: mesh-away, namespace: outside, port: 80}}]}}"
)


@behaviour(
    service("mesh-away", selector="app: outer").replace("name: mesh-away}", "name: mesh-away, namespace: outside}", 1),
    of_mesh("mesh-away", CONSUMER_ONLY, parents=parent("mesh-away", ", namespace: outside")),
)
def test_a_consumers_route_comes_and_goes_without_the_producer(client, mesh):
    assert (took(client, "http://mesh-away.outside/"), client.get("http://mesh-away.outside/").pod) == (
        "consumer",
        "outer",
    )
    mesh.apply(
        "produced",
        [of_mesh("mesh-away", choice("mesh-away", {"producer": ""}), namespace="outside")],
    )
    assert took(client, "http://mesh-away.outside/") == "consumer"


ELSEWHERE = """
kind: ServiceEntry
metadata: {name: mesh-entry}
spec:
  hosts: [mesh-entry.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: "$(outer)", ports: {http: 8080}}]
---
"""


@behaviour(
    ELSEWHERE,
    service("mesh-entry-near", selector=NEAR),
    of_mesh(
        "mesh-entry",
        "- {matches: [{path: {value: /near}}], backendRefs: [{name: mesh-entry-near, port: 80}]}\n"
        "- {backendRefs: [{group: networking.istio.io, kind: Hostname, name: mesh-entry.example.com, port: 80}]}",
        parents="{group: networking.istio.io, kind: ServiceEntry, name: mesh-entry}",
    ),
)
def test_a_service_entry_may_be_the_parent_and_a_host_the_backend(client):
    assert [client.get(f"http://mesh-entry.example.com{path}").pod for path in ("/near", "/")] == ["near", "outer"]


@behaviour(
    service("mesh-tcp", port=9000, port_name="tcp", target=9000, selector=NEAR),
    service("mesh-tcp-far", port=9000, port_name="tcp", target=9000, selector=FAR),
    of_mesh("mesh-tcp", "- {backendRefs: [{name: mesh-tcp-far, port: 9000}]}", kind="TCPRoute"),
)
def test_sidecars_follow_tcp_routes(client):
    assert client.connect("mesh-tcp:9000")[0].lines == ("HELLO far v2",)


@behaviour(
    service("mesh-tls", port=443, port_name="tls", target=8443, selector=NEAR),
    service("mesh-tls-far", port=443, port_name="tls", target=8443, selector=FAR),
    route(
        "mesh-tls",
        "- {backendRefs: [{name: mesh-tls-far, port: 443}]}",
        kind="TLSRoute",
        parents=parent("mesh-tls"),
        hosts="mesh-tls.traffic.svc.cluster.local",
    ),
)
def test_sidecars_follow_tls_routes_by_the_name_that_is_asked_for(client):
    host = "mesh-tls.traffic.svc.cluster.local"
    answer = client.get(f"https://{host}/", tls={"ca": ROOT.pem})
    assert (answer.pod, answer.seen.sni) == ("far", host)


CALLED = f"""
- matches: [{{method: {{service: traffic.Echo, method: Stream}}}}]
  filters: [{marked("stream")}]
  backendRefs: [{{name: mesh-grpc, port: 9090}}]
"""


@behaviour(
    service("mesh-grpc", port=9090, port_name="grpc", target=9090),
    of_mesh("mesh-grpc", CALLED, kind="GRPCRoute"),
)
def test_sidecars_follow_grpc_routes(client, echoes):
    case = new_case()
    (call,) = client.grpc("mesh-grpc:9090", method="Stream", metadata=[("x-case", case)])
    (seen,) = echoes.received(case)
    assert (call.code, seen.metadata["x-route"]) == ("OK", "stream")
    assert client.grpc("mesh-grpc:9090")[0].code == "UNIMPLEMENTED"


@behaviour(
    service("mesh-halved"),
    of_mesh("mesh-halved", f"- {{{to('mesh-halved', 'mesh-nobody')}}}"),
    service("mesh-empty"),
    of_mesh("mesh-empty", "- {matches: [{path: {value: /}}]}"),
)
def test_backends_that_are_not_there_answer_500_to_their_share(client):
    found = statuses(client.send("http://mesh-halved/", count=200, workers=2))
    assert found.keys() == {200, 500}
    assert client.get("http://mesh-empty/").status == 500
