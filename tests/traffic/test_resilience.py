"""Faults that are asked for, and what the mesh makes of those that happen: retries, timeouts, limits, ejection."""

from concurrent.futures import ThreadPoolExecutor

from eventually import eventually_blocking
from traffic_manifests import behaviour, policy, routes, service, subsets
from traffic_programs import count_pods, new_case, statuses
from traffic_shares import assert_share

NEAR = "app: echo, place: near"
FAR = "app: echo, place: far"
NO_PRIORITIES = "loadBalancer: {localityLbSetting: {enabled: false}}"
"""Without it an outlier detection makes the callers prefer their own locality."""


@behaviour(
    routes(
        "delay",
        """
- match: [{headers: {x-user: {exact: slow}}}]
  fault: {delay: {fixedDelay: 1s, percentage: {value: 100}}}
  route: [{destination: {host: delay}}]
- route: [{destination: {host: delay}}]
""",
    )
)
def test_a_fault_delays_the_requests_of_its_route(client, mesh):
    slow = client.get("http://delay/", headers={"x-user": "slow"})
    assert slow.status == 200
    assert slow.seconds > 0.8
    assert statuses(client.send("http://delay/", count=5)) == {200: 5}
    lines = mesh.logged("client", '"delay"', 6)
    assert sorted("DI" in line.split() for line in lines) == [False] * 5 + [True]


@behaviour(
    routes(
        "abort",
        """
- match: [{uri: {prefix: /always}}]
  fault: {abort: {httpStatus: 555, percentage: {value: 100}}}
  route: [{destination: {host: abort}}]
- fault: {abort: {httpStatus: 400, percentage: {value: 30}}}
  route: [{destination: {host: abort}}]
""",
    )
)
def test_a_fault_aborts_its_share_of_requests_before_they_arrive(client, echoes):
    always = client.get("http://abort/always")
    assert (always.status, always.body) == (555, "fault filter abort")
    assert echoes.received(always.case) == []
    answers = client.send("http://abort/", count=400, workers=4)
    found = statuses(answers)
    assert set(found) == {200, 400}
    assert_share(found[400], 400, 0.3)
    assert len(echoes.received(answers[0].case)) == found[200]


@behaviour(
    routes(
        "abort-grpc",
        """
- fault: {abort: {grpcStatus: UNAVAILABLE, percentage: {value: 100}}}
  route: [{destination: {host: abort-grpc}}]
""",
        port=9090,
        port_name="grpc",
        target=9090,
    )
)
def test_a_fault_aborts_grpc_calls_with_a_grpc_status(client):
    (call,) = client.grpc("abort-grpc:9090")
    assert (call.code, call.details) == ("UNAVAILABLE", "fault filter abort")


@behaviour(
    service("mirrored", selector=FAR),
    routes(
        "mirror",
        """
- route: [{destination: {host: mirror, subset: v1}}]
  mirror: {host: mirrored}
""",
    ),
    subsets("mirror"),
)
def test_a_mirror_gets_a_copy_whose_answer_nobody_waits_for(client, echoes):
    answer = client.get("http://mirror/path", method="POST", body="hello")
    assert answer.seen.version == "v1"
    arrived = eventually_blocking(lambda: found if len(found := echoes.received(answer.case)) > 1 else None)
    assert len(arrived) == 2
    (copy,) = (seen for seen in arrived if seen.pod == "far")
    assert (copy.header("host"), copy.method, copy.target, copy.body) == ("mirror", "POST", "/path", "hello")


@behaviour(
    service("mirrored-some", selector=FAR),
    routes(
        "mirror-some",
        """
- route: [{destination: {host: mirror-some, subset: v1}}]
  mirrors:
    - destination: {host: mirrored-some}
      percentage: {value: 20}
""",
    ),
    subsets("mirror-some"),
)
def test_a_mirror_gets_its_share(client, echoes, mesh):
    answers = client.send("http://mirror-some/", count=300, workers=3)
    assert statuses(answers) == {200: 300}

    def copies() -> int:
        return sum(seen.pod == "far" for seen in echoes.received(answers[0].case))

    def all_arrived() -> bool:
        far = mesh.hosts("client", "outbound|80||mirrored-some.traffic.svc.cluster.local")["far"]
        return far["rq_active"] == 0 and copies() == far["rq_total"] > 0

    eventually_blocking(all_arrived)
    assert_share(copies(), 300, 0.2)


@behaviour(
    routes(
        "retries",
        """
- retries: {attempts: 3, retryOn: 5xx}
  route: [{destination: {host: retries}}]
""",
        selector=NEAR,
    )
)
def test_retries_are_counted_at_the_upstream(client, echoes):
    failing = client.get("http://retries/", headers={"x-answer": "500"})
    assert failing.status == 500
    assert len(echoes.received(failing.case)) == 4
    recovering = client.get("http://retries/", headers={"x-flaky": "2"})
    assert recovering.status == 200
    assert len(echoes.received(recovering.case)) == 3


@behaviour(
    routes("retries-default", "- route: [{destination: {host: retries-default}}]", selector=NEAR),
    routes(
        "retries-off",
        """
- retries: {attempts: 0}
  route: [{destination: {host: retries-off}}]
""",
        port=9090,
        port_name="grpc",
        target=9090,
        selector=NEAR,
    ),
    service("retries-grpc", port=9090, port_name="grpc", target=9090, selector=NEAR),
)
def test_without_a_policy_what_is_safe_is_retried_twice_and_with_no_attempts_nothing(client, echoes):
    unavailable = [("x-code", "UNAVAILABLE")]
    for host, arrivals in (("retries-grpc", 3), ("retries-off", 1)):
        case = new_case()
        (call,) = client.grpc(f"{host}:9090", metadata=[*unavailable, ("x-case", case)])
        assert call.code == "UNAVAILABLE"
        assert len(echoes.received(case)) == arrivals, host
    assert len(echoes.received(client.get("http://retries-default/", headers={"x-answer": "503"}).case)) == 1


@behaviour(
    routes(
        "retries-elsewhere",
        "- {retries: {attempts: 4, retryOn: 5xx}, route: [{destination: {host: retries-elsewhere}}]}",
    ),
    routes(
        "retries-by-code", '- {retries: {attempts: 1, retryOn: "409"}, route: [{destination: {host: retries-by-code}}]}'
    ),
)
def test_a_retry_goes_to_another_endpoint_and_may_be_for_a_status_of_ones_own(client, echoes):
    answers = client.send("http://retries-elsewhere/", count=60, headers={"x-break": "mid"})
    assert statuses(answers) == {200: 60}
    tries = [seen.header("x-envoy-attempt-count") for seen in echoes.received(answers[0].case) if seen.pod == "mid"]
    assert "1" in tries
    # Who draws six times, and draws what was tried each time, takes that: once in 700 retries, not in three.
    assert len(tries) - tries.count("1") <= 3
    for status, arrivals in (("409", 2), ("500", 1)):
        answer = client.get("http://retries-by-code/", headers={"x-answer": status})
        assert len(echoes.received(answer.case)) == arrivals


@behaviour(
    routes(
        "try-timeout",
        """
- retries: {attempts: 2, perTryTimeout: 2s, retryOn: 5xx}
  route: [{destination: {host: try-timeout}}]
""",
        selector=NEAR,
    )
)
def test_each_try_has_its_timeout(client, echoes):
    answer = client.get("http://try-timeout/", headers={"x-delay": "20"})
    assert answer.status == 504
    assert answer.seconds > 5
    eventually_blocking(lambda: len(echoes.received(answer.case)) >= 3)
    assert len(echoes.received(answer.case)) == 3


@behaviour(
    routes(
        "timeout",
        """
- timeout: 2s
  route: [{destination: {host: timeout}}]
""",
    )
)
def test_a_request_has_its_timeout(client):
    late = client.get("http://timeout/", headers={"x-delay": "20"})
    assert (late.status, late.body) == (504, "upstream request timeout")
    assert late.seconds > 1.5
    eventually_blocking(lambda: client.get("http://timeout/").status == 200)


@behaviour(
    service("overflow", selector=NEAR),
    policy(
        "overflow",
        "connectionPool: {tcp: {maxConnections: 1}, http: {http1MaxPendingRequests: 1, maxRequestsPerConnection: 0}}",
    ),
)
def test_requests_beyond_the_connection_pool_overflow(client, echoes):
    assert client.get("http://overflow/").status == 200
    case = new_case()
    with ThreadPoolExecutor(8) as threads:
        held = {"headers": {"x-hold": "yes"}, "case": case, "timeout": 60}
        requests = [threads.submit(client.get, "http://overflow/", **held) for _ in range(8)]
        try:
            eventually_blocking(lambda: sum(each.done() for each in requests) == 6)
        finally:
            echoes.release(case)
        answers = [each.result() for each in requests]
    assert statuses(answers) == {200: 2, 503: 6}
    assert {each.header("x-envoy-overloaded") for each in answers if each.status == 503} == {"true"}
    assert len(echoes.received(case)) == 2


@behaviour(
    service("few-connections", port=9000, port_name="tcp", target=9000, selector=NEAR),
    policy("few-connections", "connectionPool: {tcp: {maxConnections: 2}}"),
)
def test_tcp_connections_beyond_the_limit_are_closed(client):
    lines = client.connect("few-connections:9000", count=5, held=True)
    assert [bool(line.lines) for line in lines] == [True, True, False, False, False]
    eventually_blocking(lambda: client.connect("few-connections:9000")[0].lines == ("HELLO near v1",))


@behaviour(
    service("ejected"),
    policy(
        "ejected",
        f"{NO_PRIORITIES}, outlierDetection: {{consecutive5xxErrors: 3, interval: 1s, baseEjectionTime: 300s,"
        " maxEjectionPercent: 50}",
    ),
    routes("ejected-plain", "- route: [{destination: {host: ejected-plain}}]"),
)
def test_an_endpoint_that_fails_in_a_row_is_ejected(client, mesh):
    cluster = "outbound|80||ejected.traffic.svc.cluster.local"

    def is_ejected() -> bool:
        client.send("http://ejected/", count=9, headers={"x-break": "mid"})
        return mesh.hosts("client", cluster)["mid"]["health_flags"] == "/failed_outlier_check"

    eventually_blocking(is_ejected)
    eventually_blocking(lambda: set(count_pods(client.send("http://ejected/", count=40))) == {"near", "far"})
    assert statuses(client.send("http://ejected/", count=20, headers={"x-break": "mid"})) == {200: 20}
    assert "mid" in count_pods(client.send("http://ejected-plain/", count=60)), "other hosts keep the endpoint"


@behaviour(
    service("gateway-errors"),
    policy(
        "gateway-errors",
        f"{NO_PRIORITIES}, outlierDetection: {{consecutiveGatewayErrors: 2, consecutive5xxErrors: 0, interval: 1s,"
        " baseEjectionTime: 300s}",
    ),
)
def test_only_gateway_errors_count_where_the_rule_says_so(client):
    client.send("http://gateway-errors/", count=40, headers={"x-answer": "500"})
    assert set(count_pods(client.send("http://gateway-errors/", count=40))) == {"near", "mid", "far"}


@behaviour(
    service("one-request", selector=NEAR),
    policy("one-request", "connectionPool: {http: {maxRequestsPerConnection: 1}}"),
)
def test_a_connection_carries_as_many_requests_as_the_rule_says(client, mesh):
    def connections() -> int:
        return mesh.hosts("client", "outbound|80||one-request.traffic.svc.cluster.local")["near"]["cx_total"]

    assert client.get("http://one-request/").status == 200
    before = connections()
    assert statuses(client.send("http://one-request/", count=5)) == {200: 5}
    assert connections() - before == 5
