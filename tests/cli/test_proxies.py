"""Commands that ask the proxies of a mesh: envoy-stats, log by labels, rootca-compare; and remote-clusters."""

import base64
import json
import pathlib
from collections.abc import Iterator

import cli_runs
import pytest
import yaml
from cryptography.hazmat.primitives.serialization import Encoding
from http_answers import Answers, on_port, on_socket

from mizzen.ca import certificates
from mizzen.local import runtime

STATS = {
    "/stats": b"server.live: 1\n",
    "/stats?format=json": b'{"stats": [{"name": "server.live", "value": 1}]}',
    "/clusters": b"agent::default_priority::max_connections::1024\n",
    "/clusters?format=json": b'{"cluster_statuses": []}',
    "/stats/prometheus": b"envoy_server_live{} 1\n",
    "/logging": b"active loggers:\n  http: warning\n",
}
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, labels: {{app: cart, track: {track}}}}}
"""


@pytest.fixture
def mesh(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Two pods with proxies, one of them labelled `track: new`."""
    pods = [cli_runs.pod(name, "shop", tmp_path / f"{name}.sock") for name in ("cart-a", "cart-b")]
    folder = cli_runs.write_mesh(tmp_path / "mesh", pods=pods)
    config = runtime.Layout(folder).config
    config.mkdir()
    for name, track in (("cart-a", "old"), ("cart-b", "new")):
        (config / f"{name}.yaml").write_text(POD.format(name=name, track=track))
    with on_socket(tmp_path / "cart-a.sock", Answers(STATS)), on_socket(tmp_path / "cart-b.sock", Answers(STATS)):
        yield folder


def stats(*arguments: object) -> str:
    result = cli_runs.run("x", "envoy-stats", *arguments)
    assert result.exit_code == 0, result.stderr
    return str(result.stdout)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((), "server.live: 1\n"),
        (("-t", "clusters"), "agent::default_priority::max_connections::1024\n"),
        (("-o", "prom"), "envoy_server_live{} 1\n"),
    ],
)
def test_what_a_proxy_counts(mesh: pathlib.Path, options: tuple[str, ...], text: str) -> None:
    assert stats("cart-a.shop", *options, "--mesh", mesh) == f"\nThe result of pod cart-a.shop:\n\n{text}"


def test_counters_as_json_and_yaml(mesh: pathlib.Path) -> None:
    expected = json.loads(STATS["/stats?format=json"])
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        text = stats("cart-a.shop", "-o", form, "--mesh", mesh)

        assert read(text.partition(":\n\n")[2]) == expected


def test_the_pods_with_some_labels(mesh: pathlib.Path) -> None:
    assert stats("-l", "app=cart,track=new", "--mesh", mesh).count("The result of pod cart-b.shop:") == 1
    assert stats("-l", "app=cart", "--mesh", mesh).count("The result of pod ") == 2
    none = cli_runs.run("x", "es", "-l", "app=nobody", "--mesh", mesh)
    assert (none.exit_code, none.stderr) == (1, "Error: no pods found with label selector app=nobody\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "stats requires pod name or label selector"),
        (("a", "-l", "x=y"), "name cannot be provided when the label selector is specified"),
        (("a", "-t", "memory"), "unknown stats type memory"),
        (
            ("a", "-o", "wide"),
            "unable to match a printer suitable for the output format wide, allowed formats are: "
            "json,yaml,short,prom,prom-merged",
        ),
        (("-l", "nonsense"), "'nonsense' is no selector: labels are written as NAME=VALUE, with a comma between them"),
    ],
)
def test_stats_that_cannot_be_had(mesh: pathlib.Path, arguments: tuple[str, ...], message: str) -> None:
    result = cli_runs.run("x", "envoy-stats", *arguments, "--mesh", mesh)

    assert (result.exit_code, result.stderr) == (1, f"Error: {message}\n")


def test_loggers_of_the_pods_with_some_labels(mesh: pathlib.Path) -> None:
    result = cli_runs.run("proxy-config", "log", "-l", "track=old", "--mesh", mesh)

    assert result.stdout == "cart-a.shop:\nactive loggers:\n  http: warning\n\n"


# -- roots ------------------------------------------------------------------------------------------------------------


def secrets(*roots: str) -> str:
    """A dump of a proxy that trusts these."""
    bundle = base64.b64encode("".join(roots).encode()).decode()
    secret = {"name": "ROOTCA", "secret": {"validation_context": {"trusted_ca": {"inline_bytes": bundle}}}}
    section = {"@type": "type.googleapis.com/envoy.admin.v3.SecretsConfigDump", "dynamic_active_secrets": [secret]}
    return json.dumps({"configs": [section if roots else {**section, "dynamic_active_secrets": []}]})


@pytest.fixture(scope="module")
def roots() -> list[str]:
    built = [certificates.build_root("cluster.local", 3600.0, 2048, 1_000_000_000.0) for _ in range(3)]
    return [root.certificate.public_bytes(Encoding.PEM).decode() for root in built]


def compare(tmp_path: pathlib.Path, first: str, second: str) -> tuple[int, str, str]:
    (tmp_path / "a.json").write_text(first)
    (tmp_path / "b.json").write_text(second)
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    result = cli_runs.run("proxy-config", "rootca-compare", "--file", a, "--file", b)
    return result.exit_code, result.stdout, result.stderr.replace(f"{tmp_path}/", "")


def test_one_common_root_is_enough(tmp_path: pathlib.Path, roots: list[str]) -> None:
    code, out, _ = compare(tmp_path, secrets(roots[0], roots[1]), secrets(roots[2], roots[1]))

    assert (code, out.replace(f"{tmp_path}/", "")) == (
        0,
        "Both [a.json] and [b.json] have the identical ROOTCA, theoretically the connectivity between them is"
        " available\n",
    )


def test_without_a_common_root_nobody_is_trusted(tmp_path: pathlib.Path, roots: list[str]) -> None:
    assert compare(tmp_path, secrets(roots[0]), secrets(roots[1])) == (
        1,
        "",
        "Error: Both [a.json] and [b.json] have the non identical ROOTCA, theoretically the connectivity between them"
        " is unavailable\n",
    )


def test_a_proxy_without_roots_is_said(tmp_path: pathlib.Path, roots: list[str]) -> None:
    assert compare(tmp_path, secrets(roots[0]), secrets()) == (1, "", "Error: cannot find ROOTCA from secret\n")


def test_two_proxies_are_wanted() -> None:
    result = cli_runs.run("pc", "rc", "only-one")

    assert (result.exit_code, result.stderr) == (1, "Error: rootca-compare requires 2 pods as an argument\n")


# -- other clusters ---------------------------------------------------------------------------------------------------


def test_other_clusters_with_their_state() -> None:
    clusters = [
        {"id": "east", "secretName": "istio-system/istio-remote-secret-east", "syncStatus": "synced"},
        {"id": "west", "syncStatus": "timeout"},
    ]
    with on_port(Answers({"/debug/clusterz": json.dumps(clusters).encode()})) as plane:
        lines = cli_runs.run("remote-clusters", "--monitoring", plane, "-r", "canary").stdout.splitlines()

    assert lines[0].split() == ["NAME", "SECRET", "STATUS", "ISTIOD", "REVISION"]
    assert lines[1].split() == ["east", "istio-system/istio-remote-secret-east", "synced", plane, "canary"]
    assert lines[2].split() == ["west", "timeout", plane, "canary"]


def test_an_answer_that_is_no_list_is_an_error() -> None:
    with on_port(Answers({"/debug/clusterz": b'{"a": 1}'})) as plane:
        result = cli_runs.run("remote-clusters", "--monitoring", plane)

    assert (result.exit_code, "did not answer with a list of clusters" in result.stderr) == (1, True)
