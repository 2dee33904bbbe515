"""The access log: one line for each request and connection, with what both sides know of it.

Fields are taken apart as a reader of the log would: quoted ones whole, the rest by spaces.
"""

import re
import shlex
from concurrent.futures import ThreadPoolExecutor

import pytest
from eventually import eventually_blocking
from traffic_manifests import behaviour, policy, routes, service
from traffic_programs import new_case, statuses

NEAR = "app: echo, place: near"
FIELDS = (
    *("request", "status", "flags", "details", "termination", "failure", "received", "sent", "duration"),
    *("service_time", "forwarded_for", "agent", "id", "authority", "upstream", "cluster", "upstream_local"),
    *("local", "remote", "sni", "route"),
)


def read(line: str) -> dict[str, str]:
    """The fields of a line in the default format, by name."""
    start, _, rest = line.partition("] ")
    assert re.fullmatch(r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", start), line
    values = shlex.split(rest)
    assert len(values) == len(FIELDS), line
    return dict(zip(FIELDS, values, strict=True))


@behaviour(service("logged", selector=NEAR))
def test_a_request_is_logged_at_both_sides(client, mesh):
    answer = client.get("http://logged/path?q=1", headers={"user-agent": "tester/1"}, method="POST", body="12345")
    near = mesh.pod("near")
    (service_address,) = client.resolve("logged")
    (out,), (into,) = ([read(line) for line in mesh.logged(pod, '"logged"')] for pod in ("client", "near"))
    for side in (out, into):
        assert side["request"] == "POST /path?q=1 HTTP/1.1"
        assert (side["status"], side["flags"], side["details"]) == ("200", "-", "via_upstream")
        assert (side["received"], side["sent"]) == ("5", str(len(answer.body)))
        assert (side["agent"], side["authority"], side["route"]) == ("tester/1", "logged", "default")
        assert int(side["duration"]) >= int(side["service_time"]) >= 0
    assert out["id"] == into["id"] == answer.seen.header("x-request-id")
    assert out["upstream"] == into["upstream"] == into["local"] == f"{near.address}:8080"
    assert (out["cluster"], into["cluster"]) == ("outbound|80||logged.traffic.svc.cluster.local", "inbound|8080||")
    assert (out["local"], into["sni"]) == (f"{service_address}:80", "outbound_.80_._.logged.traffic.svc.cluster.local")
    assert out["remote"].startswith(f"{client.address}:")
    assert into["remote"].startswith(f"{client.address}:")
    assert into["upstream_local"].startswith("127.0.0.6:")


@behaviour(service("logged-tcp", port=9000, port_name="tcp", target=9000, selector=NEAR))
def test_a_connection_is_logged_once_when_it_ends(client, mesh):
    (line,) = client.connect("logged-tcp:9000")
    assert line.lines == ("HELLO near v1",)
    (out,) = (read(item) for item in mesh.logged("client", "outbound|9000||logged-tcp.traffic"))
    (into,) = (read(item) for item in mesh.logged("near", "outbound_.9000_._.logged-tcp.traffic"))
    for side in (out, into):
        assert (side["request"], side["status"], side["flags"]) == ("- - -", "0", "-")
        assert (side["received"], side["sent"]) == ("0", str(len("HELLO near v1\n")))
    assert (out["cluster"], into["cluster"]) == (
        "outbound|9000||logged-tcp.traffic.svc.cluster.local",
        "inbound|9000||",
    )


FLAGS = (
    service("flag-uh", selector="app: nobody"),
    routes("flag-nc", "- route: [{destination: {host: flag-nc, subset: v9}}]"),
    routes("flag-ut", "- {timeout: 100ms, route: [{destination: {host: flag-ut}}]}", selector=NEAR),
    routes(
        "flag-di",
        "- {fault: {delay: {fixedDelay: 10ms, percentage: {value: 100}}}, route: [{destination: {host: flag-di}}]}",
    ),
    routes(
        "flag-fi",
        "- {fault: {abort: {httpStatus: 418, percentage: {value: 100}}}, route: [{destination: {host: flag-fi}}]}",
    ),
    routes("flag-nr", "- {match: [{uri: {exact: /never}}], route: [{destination: {host: flag-nr}}]}"),
    routes(
        "flag-urx",
        "- {retries: {attempts: 1, retryOn: 5xx}, route: [{destination: {host: flag-urx}}]}",
        selector=NEAR,
    ),
)


@behaviour(*FLAGS)
@pytest.mark.parametrize(
    ("name", "status", "flags", "details"),
    [
        ("flag-uh", "503", "UH", "no_healthy_upstream"),
        ("flag-nc", "503", "NC", "cluster_not_found"),
        ("flag-ut", "504", "UT", "response_timeout"),
        ("flag-di", "200", "DI", "via_upstream"),
        ("flag-fi", "418", "FI", "fault_filter_abort"),
        ("flag-nr", "404", "NR", "route_not_found"),
        ("flag-urx", "500", "URX", "via_upstream"),
    ],
)
def test_flags_say_what_went_wrong(client, mesh, name, status, flags, details):
    client.get(
        f"http://{name}/", headers={"x-delay": "1", "x-answer": status} if name in ("flag-ut", "flag-urx") else {}
    )
    (line,) = (read(item) for item in mesh.logged("client", f'"{name}"'))
    assert (line["status"], line["flags"], line["details"]) == (status, flags, details)


@behaviour(service("flag-uo", selector=NEAR), policy("flag-uo", "connectionPool: {http: {http2MaxRequests: 1}}"))
def test_an_overflow_is_flagged(client, mesh):
    case = new_case()
    with ThreadPoolExecutor(1) as threads:
        held = threads.submit(client.get, "http://flag-uo/", headers={"x-hold": "yes"}, case=case)
        try:
            eventually_blocking(lambda: mesh.echoes.received(case))
            assert statuses(client.send("http://flag-uo/", count=2)) == {503: 2}
        finally:
            mesh.echoes.release(case)
        assert held.result().status == 200
    lines = [read(item) for item in mesh.logged("client", '"flag-uo"', 3)]
    assert sorted((line["status"], line["flags"]) for line in lines) == [("200", "-"), ("503", "UO"), ("503", "UO")]


@behaviour(service("shown"))
def test_a_refused_destination_is_logged_as_such(scoped, outer, mesh):
    scoped.get("http://unregistered.example.com/", address=f"{outer.address}:80")
    (line,) = (read(item) for item in mesh.logged("scoped", '"unregistered.example.com"'))
    assert (line["status"], line["details"], line["route"]) == ("502", "direct_response", "block_all")
