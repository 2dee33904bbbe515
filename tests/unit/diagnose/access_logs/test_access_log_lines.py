"""Lines of all known formats, and what pipelines put around them."""

import json
import random

import log_faults
import msgspec
import pytest

from mizzen.diagnose.access_logs import groups
from mizzen.diagnose.access_logs.lines import Entry, parse_line

ISTIO = (
    '[2026-11-30T01:51:52.808Z] "GET /secret/x?a=b HTTP/1.1" 403 - rbac_access_denied_matched_policy[none] - "-" 0 19 3 '
    '- "-" "curl/8.5" "0f113157-ca8a-4ce5-b793-5b60d0d87c79" "deny.kept" "-" inbound|8084|| - 10.44.0.13:8084 '
    "10.44.0.16:52534 outbound_.80_._.deny.kept.svc.cluster.local default"
)
TCP = (
    '[2026-11-30T01:52:20.026Z] "- - -" 0 UF,URX - - "delayed_connect_error:_Connection_refused" 143 0 3 - "-" "-" "-" '
    '"-" "10.44.0.13:8083" PassthroughCluster 10.44.0.16:38914 10.44.0.13:8083 10.44.0.16:38904 - -'
)
ENVOY = '[2026-11-30T01:52:20.026Z] "POST /a HTTP/2" 503 UH 5 19 1 - "-" "agent/1" "id-1" "shop" "10.0.0.1:80"'
OLD = (
    '[2019-03-06T09:31:27.360Z] "GET /status/418 HTTP/1.1" 503 UF "-" "TLS error: 268435703" 0 135 5 2 "-" "curl/7.60.0" '
    '"d209e46f" "httpbin:8000" "127.0.0.1:80" outbound|8000||httpbin.default.svc.cluster.local - 172.30.146.73:8000 '
    "172.30.146.82:38618 - default"
)


def read(text: str) -> Entry:
    found = parse_line(text)
    assert found is not None, text
    return found


def same(text: str, like: str) -> bool:
    """Whether two lines say the same, whoever wrote them down."""
    a, b = read(text), read(like)
    return msgspec.structs.replace(a, line="", pod="") == msgspec.structs.replace(b, line="", pod="")


def test_every_field_of_the_default_format_is_read() -> None:
    found = read(ISTIO)
    assert (found.method, found.path, found.protocol) == ("GET", "/secret/x?a=b", "HTTP/1.1")
    assert (found.status, found.flags, found.sent, found.duration) == (403, frozenset(), 19, 3)
    assert found.details == "rbac_access_denied_matched_policy[none]"
    assert (found.termination, found.failure, found.upstream, found.upstream_local) == ("", "", "", "")
    assert (found.cluster, found.local, found.remote) == ("inbound|8084||", "10.44.0.13:8084", "10.44.0.16:52534")
    assert (found.sni, found.route) == ("outbound_.80_._.deny.kept.svc.cluster.local", "default")
    assert found.is_inbound
    assert not found.is_connection
    assert found.line == ISTIO


def test_a_connection_has_no_method() -> None:
    found = read(TCP)
    assert found.is_connection
    assert found.flags == {"UF", "URX"}
    assert (found.failure, found.cluster) == ("delayed_connect_error:_Connection_refused", "PassthroughCluster")


def test_envoys_own_format_has_neither_details_nor_cluster() -> None:
    found = read(ENVOY)
    assert (found.status, found.flags, found.authority, found.upstream) == (503, {"UH"}, "shop", "10.0.0.1:80")
    assert (found.details, found.cluster) == ("", "")


def test_releases_before_details() -> None:
    found = read(OLD)
    assert (found.failure, found.cluster) == (
        "TLS error: 268435703",
        "outbound|8000||httpbin.default.svc.cluster.local",
    )


@pytest.mark.parametrize(
    "wrap",
    [log_faults.as_json, log_faults.with_prefix, log_faults.by_stern, log_faults.by_docker, log_faults.by_cri],
)
@pytest.mark.parametrize("line", [ISTIO, TCP], ids=["http", "tcp"])
def test_what_pipelines_put_around_a_line_changes_nothing(wrap, line) -> None:
    assert same(wrap(line), line)


@pytest.mark.parametrize(
    ("text", "pod"),
    [
        (f"[pod/web-7d4b9c/istio-proxy] {ISTIO}", "web-7d4b9c"),
        (f"shop web-7d4b9c istio-proxy {ISTIO}", "web-7d4b9c.shop"),
        (f"web-7d4b9c › istio-proxy {ISTIO}", "web-7d4b9c"),
        (json.dumps({"message": ISTIO, "namespace": "shop", "podName": "web-1"}), "web-1.shop"),
        (json.dumps({"log": ISTIO, "kubernetes": {"pod_name": "web-1", "namespace_name": "shop"}}), "web-1.shop"),
        (
            json.dumps(
                {
                    "jsonPayload": json.loads(log_faults.as_json(ISTIO)),
                    "resource": {"labels": {"pod_name": "web-1", "namespace_name": "shop"}},
                }
            ),
            "web-1.shop",
        ),
        (ISTIO, ""),
    ],
)
def test_the_pod_is_known_where_the_pipeline_says_it(text: str, pod: str) -> None:
    assert read(text).pod == pod
    assert same(text, ISTIO)


def test_a_header_with_quotes_is_no_hindrance() -> None:
    found = read(ISTIO.replace("curl/8.5", 'Odd "quoted" agent'))
    assert (found.agent, found.id) == ('Odd "quoted" agent', "0f113157-ca8a-4ce5-b793-5b60d0d87c79")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-30T01:00:00.0Z\tinfo\tReadiness succeeded in 2.4s",
        '{"level":"info","msg":"started"}',
        '{"response_code": 200',
        '[2026-11-30T01:52:20.026Z] "GET / HTTP/1.1" twenty',
        '{"log": {"log": {"log": {"log": {"log": {"log": "deep"}}}}}}',
        "[1,2,3]",
        "\x00\xff{",
        '{"log":' * 9000,
        '[2026-11-30T01:52:20.026Z] "' + '" ' * 20_000,
        '[2026-11-30T01:52:20.026Z] "GET / HTTP/1.1" 200 - a b "' + 'x" "' * 8000 + " 1 2",
        "x" * 100_000,
    ],
)
def test_what_is_no_access_log_is_none(text: str) -> None:
    assert parse_line(text) is None


def test_a_number_without_end_is_none() -> None:
    assert read(ISTIO.replace(" 0 19 3 ", f" 0 19 {'9' * 5000} ")).duration == 0


def test_any_damage_is_either_read_or_not() -> None:
    """Whatever happens to a line on its way, nothing raises."""
    draw = random.Random(7)
    for line in log_faults.generate(3, 400):
        text = list(line.text)
        for _ in range(4):
            place = draw.randrange(len(text))
            text[place : place + draw.randrange(8)] = draw.choice(['"', "{", "}", "\\", "]", "\x1b[0m", "\ud800", ""])
        groups.survey(["".join(text)])


def test_numbers_that_are_missing_are_none_at_all() -> None:
    document = json.loads(log_faults.as_json(ISTIO)) | {"duration": None, "response_code": "403"}
    found = read(json.dumps(document))
    assert (found.duration, found.status) == (0, 403)
