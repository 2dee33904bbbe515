"""Which endpoint gets a request: subsets, weights, hashes, localities."""

from eventually import eventually_blocking
from traffic_manifests import behaviour, policy, routes, service, subsets
from traffic_programs import count_pods, statuses
from traffic_shares import assert_share

ALL = {"near", "mid", "far"}
KEYS = 50
"""So many hashes leave out one of three endpoints once in a hundred million runs."""


@behaviour(
    routes(
        "chosen",
        """
- match: [{uri: {prefix: /new}}]
  route: [{destination: {host: chosen, subset: v2}}]
- route: [{destination: {host: chosen, subset: v1}}]
""",
    ),
    subsets("chosen"),
)
def test_a_subset_is_the_endpoints_with_its_labels(client):
    assert set(count_pods(client.send("http://chosen/new", count=20))) == {"far"}
    assert set(count_pods(client.send("http://chosen/", count=40))) == {"near", "mid"}


@behaviour(
    routes(
        "weighted",
        """
- route:
    - {destination: {host: weighted, subset: v1}, weight: 75}
    - {destination: {host: weighted, subset: v2}, weight: 25}
""",
    ),
    subsets("weighted"),
)
def test_weights_split_requests(client):
    found = count_pods(client.send("http://weighted/", count=500, workers=4))
    assert_share(found["far"], 500, 0.25)


@behaviour(
    routes(
        "weightless",
        """
- route:
    - {destination: {host: weightless, subset: v1}, weight: 0}
    - {destination: {host: weightless, subset: v2}, weight: 100}
""",
    ),
    subsets("weightless"),
)
def test_a_weight_of_zero_gets_nothing(client):
    assert set(count_pods(client.send("http://weightless/", count=40))) == {"far"}


@behaviour(
    service("weighted-other", selector="app: echo, place: far"),
    routes(
        "weighted-hosts",
        """
- route:
    - {destination: {host: weighted-hosts}, weight: 1, headers: {request: {set: {x-route: own}}}}
    - {destination: {host: weighted-other}, weight: 1, headers: {request: {set: {x-route: other}}}}
""",
        selector="app: echo, place: near",
    ),
)
def test_weights_split_between_hosts_each_with_header_changes_of_its_own(client):
    answers = client.send("http://weighted-hosts/", count=200, workers=2)
    assert {(answer.pod, answer.route) for answer in answers} == {("near", "own"), ("far", "other")}
    assert_share(count_pods(answers)["near"], 200, 0.5)


@behaviour(
    routes("subset-policy", "- route: [{destination: {host: subset-policy, subset: v1}}]"),
    """
kind: DestinationRule
metadata: {name: subset-policy}
spec:
  host: subset-policy
  trafficPolicy: {loadBalancer: {simple: RANDOM}}
  subsets:
    - name: v1
      labels: {version: v1}
      trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x-user}}}
""",
)
def test_the_policy_of_a_subset_replaces_that_of_its_host(client):
    for user in range(6):
        answers = client.send("http://subset-policy/", count=8, headers={"x-user": f"user-{user}"})
        assert len(count_pods(answers)) == 1


@behaviour(service("turns"), policy("turns", "loadBalancer: {simple: ROUND_ROBIN}"))
def test_round_robin_takes_turns(client):
    assert count_pods(client.send("http://turns/", count=30)) == dict.fromkeys(ALL, 10)


def assert_sticks(client, url: str, keys: list[dict]) -> None:
    """Every key has one endpoint, and all endpoints have keys."""
    chosen = set()
    for key in keys:
        pods = count_pods(client.send(url, count=6, headers=key))
        assert len(pods) == 1, (key, pods)
        chosen |= set(pods)
    assert chosen == ALL


@behaviour(service("hash-header"), policy("hash-header", "loadBalancer: {consistentHash: {httpHeaderName: x-user}}"))
def test_a_hash_of_a_header_sticks(client, visitor):
    keys = [{"x-user": f"user-{number}"} for number in range(KEYS)]
    assert_sticks(client, "http://hash-header/", keys)
    for key in keys[:5]:
        assert client.get("http://hash-header/", headers=key).pod == visitor.get("http://hash-header/", headers=key).pod


@behaviour(
    service("hash-cookie"),
    policy("hash-cookie", "loadBalancer: {consistentHash: {httpCookie: {name: session, path: /, ttl: 60s}}}"),
)
def test_a_hash_of_a_cookie_sticks_and_the_mesh_gives_the_cookie(client):
    chosen = set()
    for _ in range(KEYS):
        first = client.get("http://hash-cookie/")
        name, _, rest = first.header("set-cookie").partition("=")
        value, _, attributes = rest.partition(";")
        assert (name, attributes) == ("session", " Max-Age=60; Path=/; HttpOnly")
        again = client.send("http://hash-cookie/", count=4, headers={"cookie": f"session={value}"})
        assert set(count_pods(again)) == {first.pod}
        assert not any(answer.has("set-cookie") for answer in again)
        chosen.add(first.pod)
    assert chosen == ALL


@behaviour(
    service("hash-query"), policy("hash-query", "loadBalancer: {consistentHash: {httpQueryParameterName: user}}")
)
def test_a_hash_of_a_query_parameter_sticks(client):
    chosen = set()
    for number in range(KEYS):
        pods = count_pods(client.send(f"http://hash-query/?user=u{number}", count=4))
        assert len(pods) == 1
        chosen |= set(pods)
    assert chosen == ALL


@behaviour(service("hash-source"), policy("hash-source", "loadBalancer: {consistentHash: {useSourceIp: true}}"))
def test_a_hash_of_the_source_address_sticks(client):
    assert len(count_pods(client.send("http://hash-source/", count=30, reuse=False))) == 1


@behaviour(
    service("hash-maglev"),
    policy("hash-maglev", "loadBalancer: {consistentHash: {httpHeaderName: x-user, maglev: {tableSize: 65537}}}"),
)
def test_a_maglev_hash_sticks(client):
    assert_sticks(client, "http://hash-maglev/", [{"x-user": f"user-{number}"} for number in range(KEYS)])


def eject(mesh, name: str, pod: str) -> None:
    """Has the client's Envoy see a pod fail until it is ejected, and waits until no request goes there."""
    client, url = mesh["client"], f"http://{name}/"
    assert 503 in statuses(client.send(url, count=2, headers={"x-break": pod}))
    cluster = f"outbound|80||{name}.traffic.svc.cluster.local"
    eventually_blocking(lambda: mesh.hosts("client", cluster)[pod]["health_flags"] == "/failed_outlier_check")
    eventually_blocking(lambda: pod not in count_pods(client.send(url, count=10)))


def assert_moves_on(mesh, name: str, pods: list[str]) -> None:
    """All requests go to the first pod, to the second when that one is ejected, and so on."""
    for pod, following in zip(pods, [*pods[1:], ""], strict=True):
        assert set(count_pods(mesh["client"].send(f"http://{name}/", count=20))) == {pod}
        if following:
            eject(mesh, name, pod)


@behaviour(
    service("failover"),
    policy(
        "failover",
        "outlierDetection: {consecutive5xxErrors: 2, interval: 1s, baseEjectionTime: 300s, maxEjectionPercent: 100}",
    ),
)
def test_the_next_locality_takes_over_when_the_nearest_is_ejected(mesh):
    assert_moves_on(mesh, "failover", ["near", "mid", "far"])


@behaviour(
    service("failover-region"),
    policy(
        "failover-region",
        "loadBalancer: {localityLbSetting: {failover: [{from: r1, to: r2}]}},"
        " outlierDetection: {consecutive5xxErrors: 2, interval: 1s, baseEjectionTime: 300s, maxEjectionPercent: 100}",
    ),
)
def test_regions_fail_over_where_the_rule_says(mesh):
    assert_moves_on(mesh, "failover-region", ["near", "mid", "far"])


@behaviour(
    service("priority"),
    policy(
        "priority",
        'loadBalancer: {localityLbSetting: {failoverPriority: ["place=mid"]}},'
        " outlierDetection: {consecutive5xxErrors: 2, interval: 1s, baseEjectionTime: 300s, maxEjectionPercent: 100}",
    ),
)
def test_labels_decide_the_order_of_failover(client, mesh):
    assert set(count_pods(client.send("http://priority/", count=20))) == {"mid"}
    eject(mesh, "priority", "mid")
    assert set(count_pods(client.send("http://priority/", count=40))) == {"near", "far"}


@behaviour(
    service("distributed"),
    policy(
        "distributed",
        "loadBalancer: {localityLbSetting: {distribute: [{from: r1/z1/*, to: {r1/z1/*: 20, r2/*: 80}}]}},"
        " outlierDetection: {consecutive5xxErrors: 100}",
    ),
)
def test_localities_get_the_shares_of_the_rule(client):
    found = count_pods(client.send("http://distributed/", count=400, workers=4))
    assert set(found) == {"near", "far"}
    assert_share(found["far"], 400, 0.8)


@behaviour(
    """
kind: Service
metadata: {name: close-only}
spec:
  selector: {app: echo}
  trafficDistribution: PreferClose
  ports: [{name: http, port: 80, targetPort: 8080}]
"""
)
def test_a_service_may_prefer_what_is_close(client):
    assert set(count_pods(client.send("http://close-only/", count=20))) == {"near"}


@behaviour(
    """
kind: Service
metadata: {name: node-only}
spec:
  selector: {app: echo}
  internalTrafficPolicy: Local
  ports: [{name: http, port: 80, targetPort: 8080}]
"""
)
def test_internal_traffic_may_stay_on_the_node(client):
    assert set(count_pods(client.send("http://node-only/", count=20))) == {"near"}
