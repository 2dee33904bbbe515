"""How an answer looks to each proxy that passes it on, and to a source that does not wait for it."""

import pytest
from traced_mesh import BASE, SHOP, ask, blamed, pod, service, world_of

DIRECT = BASE + pod("client") + pod("server", namespace="bare") + service("server", namespace="bare")
"""A server without a sidecar: the client's is the only one."""


def routes(http: str) -> str:
    return f"""
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: routes, namespace: web}}
spec: {{hosts: [server], http: [{{{http}, route: [{{destination: {{host: server}}}}]}}]}}
"""


@pytest.mark.parametrize(
    ("waits", "takes", "http", "flag"),
    [
        (0.0, 5.0, "name: any", "-"),
        (1.0, 0.5, "name: any", "-"),
        (1.0, 5.0, "name: any", "DC"),
        (1.0, 5.0, "timeout: 2s", "DC"),
        (3.0, 5.0, "timeout: 2s", "UT"),
        (3.0, 5.0, "timeout: 0s, retries: {attempts: 1, perTryTimeout: 1s, retryOn: 5xx}", "URX,UT"),
        (1.5, 5.0, "timeout: 0s, retries: {attempts: 1, perTryTimeout: 1s, retryOn: 5xx}", "DC"),
    ],
)
def test_a_source_that_goes_is_a_downstream_disconnect(waits, takes, http, flag):
    found = ask(world_of(SHOP, routes(http)), "http://server/", takes=takes, gives_up=waits)
    assert set(found.flag.split(",")) == set(flag.split(","))
    if flag == "DC":
        assert (found.outcome, found.status, found.details) == ("failed", 0, "downstream_remote_disconnect")
        assert found.seen_by_client == (0, "DC", "downstream_remote_disconnect")
        assert found.cause is None


@pytest.mark.parametrize(
    ("http", "flags", "details"),
    [
        ("timeout: 3s, retries: {attempts: 5, perTryTimeout: 2s, retryOn: 5xx}", {"UT"}, "response_timeout"),
        (
            "timeout: 9s, retries: {attempts: 1, perTryTimeout: 2s, retryOn: 5xx}",
            {"UT", "URX"},
            "upstream_per_try_timeout",
        ),
        (
            "timeout: 9s, retries: {attempts: 1, perTryTimeout: 2s, retryOn: connect-failure}",
            {"UT"},
            "upstream_per_try_timeout",
        ),
    ],
)
def test_the_timeout_that_comes_first_decides(http, flags, details):
    found = ask(world_of(SHOP, routes(http)), "http://server/", takes=20.0)
    assert (found.status, set(found.flag.split(",")), found.details) == (504, flags, details)


def test_a_program_that_closes_is_told_by_the_proxy_beside_it():
    found = ask(world_of(SHOP), "http://server/", answers=0)
    details = "upstream_reset_before_response_started{connection_termination}"
    assert (found.outcome, found.status, found.flag, found.details) == ("failed", 503, "UC", details)
    assert (found.side, found.link, found.cause) == ("server.web", "application", None)
    assert found.seen_by_client == (503, "-", "via_upstream")


def test_a_program_without_a_sidecar_that_closes_is_told_by_the_caller():
    found = ask(world_of(DIRECT), "http://server.bare/", answers=0)
    assert found.seen_by_client[:2] == (503, "UC")


def test_a_reset_is_retried_where_the_route_says_so():
    text = routes("retries: {attempts: 1, retryOn: reset}").replace("server", "server.bare.svc.cluster.local")
    found = ask(world_of(DIRECT, text), "http://server.bare/", answers=0)
    assert set(found.flag.split(",")) == {"UC", "URX"}


def test_flags_of_the_server_are_not_those_of_who_passes_them_on():
    text = BASE + pod("client") + pod("server") + service("server", port="{name: http, port: 80, targetPort: 7999}")
    found = ask(world_of(text), "http://server/")
    assert set(found.flag.split(",")) == {"UF", "URX"}
    assert found.seen_by_client == (503, "-", "via_upstream")
    assert blamed(found) == "Service/server"


def test_headers_of_insiders_count_from_nobody():
    headers = {"x-envoy-upstream-rq-timeout-ms": "10", "x-envoy-retry-on": "5xx"}
    found = ask(world_of(SHOP), "http://server/", headers=headers, takes=5.0)
    assert (found.outcome, found.status, found.flag) == ("delivered", 200, "-")
