"""`mizzen compile`: its inputs, its output's shape, its exit codes."""

import json
import pathlib
import re
from typing import Any

import cli_runs
import pytest
import yaml

CORPUS = pathlib.Path(__file__).parents[1] / "golden" / "corpus"
BASE = CORPUS / "base.yaml"
FRONT = ("--proxy", "front-0.web")

SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: extra, namespace: web}
spec:
  clusterIP: 10.96.9.9
  ports: [{name: http, port: 8099}]
"""
NODE = {
    "id": "sidecar~10.1.1.10~front-0.web~web.svc.cluster.local",
    "metadata": {"NAMESPACE": "web", "NAME": "front-0", "INSTANCE_IPS": "10.1.1.10", "LABELS": {"app": "front"}},
}


def compiled(*arguments: object, stdin: str | None = None) -> dict[str, dict[str, Any]]:
    result = cli_runs.run("compile", *arguments, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    answer: dict[str, dict[str, Any]] = json.loads(result.stdout)
    return answer


def fails(*arguments: object, code: int = 1) -> str:
    result = cli_runs.run("compile", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    return result.stderr


def test_the_answer_holds_every_kind_by_name() -> None:
    answer = compiled("-f", BASE, *FRONT)

    assert list(answer) == ["clusters", "listeners", "routes", "endpoints", "extensions", "secrets"]
    cluster = answer["clusters"]["outbound|8080||cart.shop.svc.cluster.local"]
    assert list(cluster)[:2] == ["@type", "name"]
    assert "connectTimeout" in cluster


def test_endpoints_are_those_of_eds_clusters() -> None:
    answer = compiled("-f", BASE, *FRONT)
    eds = {name for name, cluster in answer["clusters"].items() if cluster.get("type") == "EDS"}

    assert set(answer["endpoints"]) == eds


def test_routes_are_those_that_listeners_name() -> None:
    answer = compiled("-f", BASE, *FRONT)

    named = set(re.findall(r'"routeConfigName": "([^"]+)"', json.dumps(answer["listeners"])))

    assert {"80", "8080"} <= named
    assert set(answer["routes"]) == named


def test_the_same_proxy_comes_from_a_node_or_from_its_pod(tmp_path: pathlib.Path) -> None:
    (tmp_path / "node.json").write_text(json.dumps(NODE))

    by_node = compiled("-f", BASE, "--node", tmp_path / "node.json")

    assert by_node["clusters"].keys() == compiled("-f", BASE, *FRONT)["clusters"].keys()


def test_stdin_adds_to_files() -> None:
    answer = compiled("-f", BASE, "-f", "-", *FRONT, stdin=SERVICE)

    assert "outbound|8099||extra.web.svc.cluster.local" in answer["clusters"]


def test_an_empty_file_is_fine(tmp_path: pathlib.Path) -> None:
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "node.json").write_text(json.dumps(NODE))

    answer = compiled("-f", tmp_path / "empty.yaml", "--node", tmp_path / "node.json")

    assert "BlackHoleCluster" in answer["clusters"]


def test_a_later_file_replaces_objects_of_an_earlier_one(tmp_path: pathlib.Path) -> None:
    for name, port in (("a.yaml", 8099), ("b.yaml", 8098)):
        (tmp_path / name).write_text(SERVICE.replace("8099", str(port)))

    clusters = compiled("-f", BASE, "-f", tmp_path / "a.yaml", "-f", tmp_path / "b.yaml", *FRONT)["clusters"]

    assert "outbound|8098||extra.web.svc.cluster.local" in clusters
    assert "outbound|8099||extra.web.svc.cluster.local" not in clusters


def test_the_dialect_can_be_overridden() -> None:
    istio, envoy = (json.dumps(compiled("-f", BASE, *FRONT, "--dialect", d)) for d in ("istio", "envoy"))

    assert "istio.metadata_exchange" in istio
    assert "istio.metadata_exchange" not in envoy


def test_the_mesh_config_of_a_file_counts(tmp_path: pathlib.Path) -> None:
    (tmp_path / "mesh.yaml").write_text("connectTimeout: 3s\n")

    answer = compiled("-f", BASE, "--mesh", tmp_path / "mesh.yaml", *FRONT)

    assert answer["clusters"]["outbound|8080||cart.shop.svc.cluster.local"]["connectTimeout"] == "3s"


def test_the_mesh_config_of_the_config_map_counts_where_no_file_is_named(tmp_path: pathlib.Path) -> None:
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "istio", "namespace": "istio-system"},
        "data": {"mesh": "connectTimeout: 4s"},
    }
    (tmp_path / "istio.yaml").write_text(yaml.safe_dump(config_map))

    answer = compiled("-f", BASE, "-f", tmp_path / "istio.yaml", *FRONT)

    assert answer["clusters"]["outbound|8080||cart.shop.svc.cluster.local"]["connectTimeout"] == "4s"


def test_yaml_says_the_same_as_json() -> None:
    result = cli_runs.run("compile", "-f", BASE, *FRONT, "-o", "yaml")

    assert yaml.safe_load(result.stdout) == compiled("-f", BASE, *FRONT)


def test_a_summary_counts() -> None:
    header, *rows = cli_runs.run("compile", "-f", BASE, *FRONT, "-o", "summary").stdout.splitlines()
    counts = {row.split()[0]: int(row.split()[1]) for row in rows}

    assert header.split() == ["KIND", "RESOURCES", "BYTES", "VERSION"]
    assert counts == {kind: len(found) for kind, found in compiled("-f", BASE, *FRONT).items()}


def test_a_bad_object_is_a_problem_and_its_neighbours_are_compiled(tmp_path: pathlib.Path) -> None:
    (tmp_path / "mixed.yaml").write_text(f"{SERVICE}---\nkind: [broken\n---\n{SERVICE.replace('extra', 'other')}")

    result = cli_runs.run("compile", "-f", BASE, "-f", tmp_path / "mixed.yaml", *FRONT)

    assert result.exit_code == 0
    assert f"error: {tmp_path / 'mixed.yaml'}:" in result.stderr
    clusters = json.loads(result.stdout)["clusters"]
    assert {f"outbound|8099||{name}.web.svc.cluster.local" for name in ("extra", "other")} <= set(clusters)


def test_an_unknown_proxy_is_answered_with_those_like_it() -> None:
    error = fails("-f", BASE, "--proxy", "front-1.web")

    assert error.startswith("Error: there is no Pod front-1.web; there are front-0.web")


def test_without_any_pod_that_is_said(tmp_path: pathlib.Path) -> None:
    (tmp_path / "s.yaml").write_text(SERVICE)

    error = fails("-f", tmp_path / "s.yaml", "--proxy", "front-1.web")

    assert error.startswith(
        "Error: there is no Pod front-1.web; there is no Pod at all, and none is made from a Deployment: "
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is not an xDS Node"),
        ("{}", "is not type~ip~name.namespace~domain"),
        ('{"id": "ztunnel~10.0.0.1~a.b~b.svc"}', "no proxy of type 'ztunnel' is served"),
    ],
)
def test_a_node_that_is_none_is_fatal(tmp_path: pathlib.Path, text: str, message: str) -> None:
    (tmp_path / "node.json").write_text(text)

    assert message in fails("-f", BASE, "--node", tmp_path / "node.json")


def test_an_unreadable_input_is_fatal(tmp_path: pathlib.Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe")
    (tmp_path / "mesh.yaml").write_text("a: [")

    assert "cannot read" in fails("-f", tmp_path / "none.yaml", *FRONT)
    assert "is not UTF-8 text" in fails("-f", tmp_path / "binary.yaml", *FRONT)
    assert "cannot read" in fails("-f", BASE, "--node", tmp_path / "none.json")
    assert f"--mesh: {tmp_path / 'mesh.yaml'}:1" in fails("-f", BASE, "--mesh", tmp_path / "mesh.yaml", *FRONT)


@pytest.mark.parametrize("arguments", [(), ("-f", BASE), ("-f", BASE, *FRONT, "--node", "x"), FRONT])
def test_what_must_be_given_must_be_given(arguments: tuple[object, ...]) -> None:
    fails(*arguments, code=64)


def test_what_is_left_out_of_what_was_compiled_is_told_once(tmp_path: pathlib.Path) -> None:
    nameless = tmp_path / "filter.yaml"
    nameless.write_text(
        "apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: x, namespace: web}\n"
        "spec: {configPatches: [{applyTo: CLUSTER, patch: {operation: ADD, value: {connect_timeout: 3s}}}]}\n"
    )
    bad = tmp_path / "route.yaml"
    bad.write_text(
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: y, namespace: web}\n"
        "spec: {hosts: [extra.example], http: [{match: [{uri: {regex: 'a('}}], route: [{destination: {host: cart}}]}]}\n"
    )
    result = cli_runs.run("compile", "-f", BASE, "-f", nameless, "-f", bad, *FRONT)
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]

    assert result.exit_code == 0
    assert sorted(line.partition(" spec.")[0] for line in errors) == [
        f"error: {nameless}:1: EnvoyFilter web/x:",
        f"error: {bad}:4: VirtualService web/y:",
    ]
