"""`mizzen proxy-config` on dumps that a real Envoy 1.40 gave, from files and from a mesh."""

import datetime
import json
import pathlib
import re
from collections.abc import Iterator

import cli_runs
import pytest
import yaml
from http_answers import Answers, on_port, on_socket

from mizzen.cli import proxy_config
from mizzen.diagnose.tables import secrets

DUMPS = pathlib.Path(__file__).parent / "dumps"
DUMP = DUMPS / "config_dump.json"
CLUSTERS = DUMPS / "clusters.json"


def pc(*arguments: object) -> str:
    result = cli_runs.run("proxy-config", *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def fails(*arguments: object) -> str:
    result = cli_runs.run("proxy-config", *arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    return result.stderr


def test_cluster_shows_static_and_dynamic_clusters() -> None:
    assert pc("cluster", "-f", DUMP) == (
        "SERVICE FQDN                          PORT     SUBSET     DIRECTION     TYPE       DESTINATION RULE\n"
        "BlackHoleCluster                      -        -          -             STATIC     \n"
        "agent-pipe                            -        -          -             STATIC     \n"
        "edge.default.svc.cluster.local        443      -          outbound      STATIC     \n"
        "prometheus_stats                      -        -          -             STATIC     \n"
        "reviews.default.svc.cluster.local     9080     v1         outbound      EDS        reviews.default\n"
    )


def test_cluster_json_is_the_messages_in_protobufs_json_names() -> None:
    (cluster,) = json.loads(pc("cluster", "-f", DUMP, "--subset", "v1", "-o", "json"))

    assert cluster["name"] == "outbound|9080|v1|reviews.default.svc.cluster.local"
    assert "@type" not in cluster
    assert cluster["edsClusterConfig"]["edsConfig"]["pathConfigSource"] == {"path": "/etc/envoy/eds.yaml"}
    assert cluster["metadata"]["filterMetadata"]["istio"]["config"].endswith("/destination-rule/reviews")


def test_yaml_says_the_same_as_json() -> None:
    for subcommand in ("cluster", "listener", "route", "secret", "bootstrap", "ecds", "eds", "all"):
        in_json = json.loads(pc(subcommand, "-f", DUMP, "-o", "json"))

        assert yaml.safe_load(pc(subcommand, "-f", DUMP, "-o", "yaml")) == in_json


def test_listeners_that_envoy_refused_are_not_shown() -> None:
    assert pc("listeners", "-f", DUMP) == (
        "ADDRESSES PORT  MATCH DESTINATION\n"
        "127.0.0.1 19556 ALL   Inline Route: /stats/prometheus*\n"
        "127.0.0.1 19580 ALL   Route: 9080\n"
    )


def test_route_shows_where_a_route_comes_from() -> None:
    assert pc("r", "-f", DUMP, "--name", "9080") == (
        "NAME     VHOST NAME                                 DOMAINS                                        MATCH"
        "     VIRTUAL SERVICE\n"
        "9080     reviews.default.svc.cluster.local:9080     reviews, reviews.default.svc.cluster.local     /*   "
        "     reviews.default\n"
    )


def test_endpoint_sorts_addresses_as_text() -> None:
    assert pc("endpoint", "-f", CLUSTERS, "--port", "9080") == (
        "ENDPOINT             STATUS        OUTLIER CHECK     CLUSTER\n"
        "10.244.1.10:9080     HEALTHY       OK                outbound|9080|v1|reviews.default.svc.cluster.local\n"
        "10.244.1.12:9080     UNHEALTHY     OK                outbound|9080|v1|reviews.default.svc.cluster.local\n"
        "10.244.1.9:9080      HEALTHY       OK                outbound|9080|v1|reviews.default.svc.cluster.local\n"
    )


@pytest.mark.parametrize(
    ("option", "endpoints"),
    [
        (("--status", "unhealthy"), ["10.244.1.12:9080"]),
        (("--address", "127.0.0.1"), ["127.0.0.1:15000"]),
        (("--cluster", "AGENT-PIPE"), ["unix:///etc/envoy/x.sock"]),
        (("--cluster", "agent"), []),
    ],
)
def test_endpoint_filters_compare_whole_values_in_any_case(option: tuple[str, ...], endpoints: list[str]) -> None:
    rows = pc("ep", "-f", CLUSTERS, *option).splitlines()[1:]

    assert [row.split()[0] for row in rows] == endpoints


def test_endpoint_json_keeps_whole_clusters() -> None:
    (cluster,) = json.loads(pc("ep", "-f", CLUSTERS, "--address", "10.244.1.9", "-o", "json"))

    assert [host["address"]["socketAddress"]["portValue"] for host in cluster["hostStatuses"]] == [9080] * 3
    assert cluster["addedViaApi"] is True


def test_eds_shows_localities() -> None:
    assert pc("eds", "-f", DUMP, "--address", "10.244.1.9:9080") == (
        "NAME                STATUS      LOCALITY     CLUSTER\n"
        "10.244.1.9:9080     HEALTHY     r1/z1        outbound|9080|v1|reviews.default.svc.cluster.local\n"
    )


def test_secret_reads_the_first_certificate_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_config, "_now", lambda: datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC))
    header, warming, leaf, root = pc("secret", "-f", DUMP).splitlines()

    assert re.split(r" {2,}", header) == list(secrets.COLUMNS)
    assert warming.split() == ["kubernetes://edge-cert", "WARMING", "false"]
    assert leaf.split() == [
        *("default", "Cert", "Chain", "ACTIVE", "true", "0000deadbeef00000000000000000001"),
        *("2035-12-30T00:00:00Z", "2026-01-01T00:00:00Z"),
    ]
    assert root.split()[:3] == ["ROOTCA", "CA", "ACTIVE"]


def test_bootstrap_is_json_unless_asked_otherwise() -> None:
    assert json.loads(pc("bootstrap", "-f", DUMP))["bootstrap"]["node"]["cluster"] == "cart.shop"
    assert pc("b", "-f", DUMP, "-o", "short") == (
        "Istio Version:       1.30.1\n"
        "Istio Proxy Version: 0123abcd\n"
        "Envoy Version:       1.40.0/Clean/RELEASE/BoringSSL\n"
    )


def test_ecds_shows_what_was_discovered() -> None:
    assert pc("ecds", "-f", DUMP) == (
        "ECDS NAME        TYPE\ndefault.wasm     envoy.extensions.filters.http.fault.v3.HTTPFault\n"
    )


def test_all_puts_headings_above_sections_and_names_in_front() -> None:
    text = pc("all", "-f", DUMP, "--with-headers")
    headings = [line for line in text.splitlines() if line.startswith("------")]

    names = ("BOOTSTRAP", "CLUSTER", "LISTENER", "ROUTE", "SECRET", "ENDPOINTS")
    assert headings == [f"------ {name} INFO ------" for name in names]
    for name in ("cluster/outbound|9080|v1|reviews.default", "listener/stats ", "route/9080 ", "secret/ROOTCA "):
        assert f"\n{name}" in text
    assert "\nendpoint/10.244.1.9:9080 " in text


def test_all_shows_the_rest_when_a_section_is_missing(tmp_path: pathlib.Path) -> None:
    dump = json.loads(DUMP.read_text())
    dump["configs"] = [c for c in dump["configs"] if "RoutesConfigDump" not in c["@type"]]
    (tmp_path / "dump.json").write_text(json.dumps(dump))

    text = pc("all", "-f", tmp_path / "dump.json")

    assert "config dump has no configuration type type.googleapis.com/envoy.admin.v3.RoutesConfigDump\n" in text
    assert "secret/default" in text


def test_a_dump_comes_from_stdin_too() -> None:
    result = cli_runs.run("pc", "c", "-f", "-", stdin=DUMP.read_bytes())

    assert result.stdout == pc("cluster", "-f", DUMP)


@pytest.mark.parametrize(
    ("subcommand", "named"), [("cluster", "cluster"), ("endpoints", "endpoints"), ("eds", "eds"), ("a", "all")]
)
def test_neither_pod_nor_file_is_an_error(subcommand: str, named: str) -> None:
    usage, error = fails(subcommand).splitlines()

    assert usage.startswith(f"Usage: mizzen proxy-config {subcommand}")
    assert error == f"Error: {named} requires pod name or --file parameter"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "error unmarshalling config dump response from Envoy: "),
        ("[]", "error unmarshalling config dump response from Envoy: not an object"),
        ('{"configs": 1}', "error unmarshalling config dump response from Envoy: `configs` is not a list"),
        ("{}", "config dump has no configuration type type.googleapis.com/envoy.admin.v3.ClustersConfigDump"),
        (
            '{"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump"}]}',
            "no clusters found",
        ),
    ],
)
def test_what_is_no_dump_is_named(tmp_path: pathlib.Path, text: str, message: str) -> None:
    (tmp_path / "dump.json").write_text(text)

    assert fails("cluster", "-f", tmp_path / "dump.json").startswith(f"Error: {message}")


def test_an_unreadable_file_is_named(tmp_path: pathlib.Path) -> None:
    missing = tmp_path / "none.json"

    assert fails("cluster", "-f", missing) == f"Error: cannot read {missing}: No such file or directory\n"


def test_an_unknown_format_is_refused() -> None:
    assert fails("cluster", "-f", DUMP, "-o", "wide") == 'Error: output format "wide" not supported\n'


def test_a_second_pod_does_not_parse() -> None:
    assert cli_runs.run("pc", "cluster", "a", "b").exit_code == 64


@pytest.fixture
def answers() -> Answers:
    return Answers(
        {
            "/config_dump?mask=dynamic_active_clusters,dynamic_warming_clusters,static_clusters": DUMP.read_bytes(),
            "/clusters?format=json": CLUSTERS.read_bytes(),
            "/logging": b"active loggers:\n  http: warning\n  rbac: warning\n",
            "/logging?level=warning": b"active loggers:\n  http: warning\n  rbac: warning\n",
            "/logging?paths=http:debug,rbac:warning": b"active loggers:\n  http: debug\n  rbac: warning\n",
        }
    )


@pytest.fixture
def mesh(tmp_path: pathlib.Path, answers: Answers) -> Iterator[pathlib.Path]:
    admin = tmp_path / "admin.sock"
    with on_socket(admin, answers):
        yield cli_runs.write_mesh(tmp_path / "shop", pods=[cli_runs.pod("cart-0", "shop", admin)])


def test_a_live_proxy_answers_like_a_file(mesh: pathlib.Path) -> None:
    assert pc("cluster", "cart-0.shop", "--mesh", mesh) == pc("cluster", "-f", DUMP)
    assert pc("ep", "cart-0", "-n", "shop", "--mesh", mesh) == pc("ep", "-f", CLUSTERS)


def test_a_missing_pod_lists_the_pods_there_are(mesh: pathlib.Path) -> None:
    error = fails("cluster", "front-0.web", "--mesh", mesh)

    assert error == "Error: front-0.web is not a pod of this mesh; there are: cart-0.shop\n"


def test_log_shows_levels(mesh: pathlib.Path, answers: Answers) -> None:
    assert pc("log", "cart-0.shop", "--mesh", mesh) == (
        "cart-0.shop:\nactive loggers:\n  http: warning\n  rbac: warning\n\n"
    )
    assert answers.requests == ["POST /logging"]


def test_log_changes_levels(mesh: pathlib.Path, answers: Answers) -> None:
    assert "http: debug" in pc("log", "cart-0", "--level", "http:debug,rbac:warn", "--mesh", mesh)
    assert answers.requests == ["POST /logging", "POST /logging?paths=http:debug,rbac:warning"]


def test_log_reset_sets_all_loggers_back(mesh: pathlib.Path, answers: Answers) -> None:
    pc("log", "cart-0", "--reset", "--mesh", mesh)

    assert answers.requests[-1] == "POST /logging?level=warning"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "log requires pod name or --selector"),
        (("cart-0", "--level", "info", "--reset"), "--level cannot be combined with --reset"),
        (("cart-0", "--level", "loud"), "unrecognized logging level: loud"),
        (("cart-0", "--level", "nope:info"), "unrecognized logger name: nope"),
    ],
)
def test_log_refuses_what_it_cannot_do(
    mesh: pathlib.Path, answers: Answers, arguments: tuple[str, ...], message: str
) -> None:
    assert fails("log", *arguments, "--mesh", mesh) == f"Error: {message}\n"
    assert [request for request in answers.requests if "?" in request] == []


def test_a_control_plane_is_asked_what_it_sent() -> None:
    sent = DUMP.read_bytes()
    plain, whole = "/debug/config_dump?proxyID=cart-0.shop", "/debug/config_dump?proxyID=cart-0.shop&include_eds=true"
    with on_port(Answers({plain: sent, whole: sent})) as plane:
        assert pc("cluster", "cart-0.shop", "--monitoring", plane) == pc("cluster", "-f", DUMP)
        assert pc("eds", "cart-0", "-n", "shop", "--monitoring", plane) == pc("eds", "-f", DUMP)
        assert "only Envoy itself knows the health of hosts" in fails("endpoint", "cart-0.shop", "--monitoring", plane)
        assert "unable to find config dump" in fails("route", "other.shop", "--monitoring", plane)
