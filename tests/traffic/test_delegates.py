"""Routes that are written in several VirtualServices, and rules for one host from several objects."""

from traffic_manifests import behaviour, routes, service, subsets
from traffic_programs import count_pods

DELEGATES = (
    service("delegated")
    + """
kind: VirtualService
metadata: {name: delegated}
spec:
  hosts: [delegated]
  http:
    - match: [{uri: {prefix: /one}}]
      delegate: {name: delegate-one}
    - match: [{uri: {prefix: /two}}]
      delegate: {name: delegate-two, namespace: scoped}
---
kind: VirtualService
metadata: {name: delegate-one}
spec:
  http:
    - match: [{uri: {prefix: /one/a}}]
      headers: {request: {set: {x-route: one-a}}}
      route: [{destination: {host: delegated}}]
    - match: [{uri: {prefix: /elsewhere}}]
      headers: {request: {set: {x-route: never}}}
      route: [{destination: {host: delegated}}]
    - headers: {request: {set: {x-route: one}}}
      route: [{destination: {host: delegated}}]
---
kind: VirtualService
metadata: {name: delegate-two, namespace: scoped}
spec:
  http:
    - headers: {request: {set: {x-route: two}}}
      route: [{destination: {host: delegated.traffic.svc.cluster.local}}]
---
"""
)


@behaviour(DELEGATES)
def test_a_route_delegates_to_others_which_narrow_its_match(client):
    assert client.get("http://delegated/one/a").route == "one-a"
    assert client.get("http://delegated/one/b").route == "one"
    assert client.get("http://delegated/two/b").route == "two"
    assert client.get("http://delegated/three").status == 404


@behaviour(
    service("merged-subsets"),
    """
kind: DestinationRule
metadata: {name: merged-subsets-a}
spec:
  host: merged-subsets
  subsets: [{name: old, labels: {version: v1}}]
---
kind: DestinationRule
metadata: {name: merged-subsets-b}
spec:
  host: merged-subsets.traffic.svc.cluster.local
  subsets: [{name: new, labels: {version: v2}}]
---
kind: VirtualService
metadata: {name: merged-subsets}
spec:
  hosts: [merged-subsets]
  http:
    - match: [{uri: {prefix: /new}}]
      route: [{destination: {host: merged-subsets, subset: new}}]
    - route: [{destination: {host: merged-subsets, subset: old}}]
""",
)
def test_subsets_of_two_rules_for_one_host_are_joined(client):
    assert set(count_pods(client.send("http://merged-subsets/new", count=5))) == {"far"}
    assert "far" not in count_pods(client.send("http://merged-subsets/", count=20))


@behaviour(
    routes("no-such-subset", "- route: [{destination: {host: no-such-subset, subset: v9}}]"),
    subsets("no-such-subset"),
)
def test_a_route_to_a_subset_that_is_not_there_answers_503(client):
    assert client.get("http://no-such-subset/").status == 503


@behaviour(service("nobody-home", selector="app: nobody"))
def test_a_service_without_endpoints_answers_503(client):
    answer = client.get("http://nobody-home/")
    assert (answer.status, answer.body) == (503, "no healthy upstream")


@behaviour(
    service("port-policy", selector="app: echo, place: near"),
    """
kind: DestinationRule
metadata: {name: port-policy}
spec:
  host: port-policy
  trafficPolicy:
    connectionPool: {http: {maxRequestsPerConnection: 1}}
    portLevelSettings:
      - port: {number: 80}
        connectionPool: {http: {maxRequestsPerConnection: 100}}
""",
)
def test_settings_of_a_port_replace_those_of_the_host(client, mesh):
    assert len(client.send("http://port-policy/", count=5)) == 5
    assert mesh.hosts("client", "outbound|80||port-policy.traffic.svc.cluster.local")["near"]["cx_total"] == 1
