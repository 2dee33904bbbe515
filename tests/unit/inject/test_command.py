"""`mizzen inject`, called as a user calls it."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from mizzen.cli.app import COMMANDS
from mizzen.cli.inject import inject
from mizzen.cli.render import render_document
from mizzen.sources.documents import parse_yaml

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: web, image: i}]}}}
"""


def _run(*arguments: str, stdin: str = "", **env: str) -> Result:
    return CliRunner().invoke(inject, list(arguments), input=stdin, env=env, standalone_mode=False)


def test_stdin_to_stdout_document_for_document() -> None:
    done = _run("-f", "-", stdin=f"kind: Service\n---\n# only a comment\n---{DEPLOYMENT}")
    assert done.return_value == 0
    service, deployment = [document for document in yaml.safe_load_all(done.stdout) if document]
    assert service == {"kind": "Service"}
    assert len(deployment["spec"]["template"]["spec"]["containers"]) == 2


def test_injecting_the_output_again_changes_nothing() -> None:
    once = _run("-f", "-", stdin=DEPLOYMENT).stdout
    assert _run("-f", "-", stdin=once).stdout == once


def test_a_file_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "in.yaml").write_text(DEPLOYMENT)
    done = _run("-f", str(tmp_path / "in.yaml"), "-o", str(tmp_path / "out.yaml"))
    assert (done.return_value, done.stdout) == (0, "")
    assert "istio-proxy" in (tmp_path / "out.yaml").read_text()


def test_files_and_flags_decide_what_is_injected(tmp_path: Path) -> None:
    mesh = {"kind": "ConfigMap", "data": {"mesh": "trustDomain: example.org"}}
    (tmp_path / "mesh.yaml").write_text(yaml.safe_dump(mesh))
    (tmp_path / "values.yaml").write_text("global: {hub: registry}")
    (tmp_path / "injector.yaml").write_text("injectedAnnotations: {team: mesh}")
    done = _run(
        "-f",
        "-",
        *("--meshConfigFile", str(tmp_path / "mesh.yaml")),
        *("--valuesFile", str(tmp_path / "values.yaml")),
        *("--injectConfigFile", str(tmp_path / "injector.yaml")),
        *("-r", "canary", "--dialect", "envoy"),
        stdin=DEPLOYMENT,
        ENABLE_NATIVE_SIDECARS="true",
    )
    for expected in ("example.org", "registry/proxyv2", "team: mesh", "istiod-canary", "MIZZEN_DIALECT", "Always"):
        assert expected in done.stdout


def test_a_mesh_config_with_a_fault_is_refused_by_field(tmp_path: Path) -> None:
    (tmp_path / "mesh.yaml").write_text("defaultConfig: {concurrency: many}")
    done = _run("-f", "-", "--meshConfigFile", str(tmp_path / "mesh.yaml"), stdin=DEPLOYMENT)
    assert "mesh.yaml: defaultConfig.concurrency: " in str(done.exception)


def test_what_is_skipped_is_said_on_stderr() -> None:
    pod = "kind: Pod\nmetadata: {name: p, namespace: ns}\nspec: {hostNetwork: true, containers: []}\n"
    done = _run("-f", "-", stdin=pod)
    assert done.return_value == 0
    assert done.stderr == '===> Skipping injection because "ns/p": Pod uses the host\'s network\n'
    assert "istio-proxy" not in done.stdout


def test_nothing_is_written_if_one_workload_cannot_be_injected(tmp_path: Path) -> None:
    bad = DEPLOYMENT.replace(
        "{spec: {containers", '{metadata: {annotations: {sidecar.istio.io/proxyCPU: "x"}}, spec: {containers'
    )
    done = _run("-f", "-", "-o", str(tmp_path / "out"), stdin=f"{DEPLOYMENT}---{bad}")
    assert done.return_value == 1
    assert "Error: Deployment default/web: spec.template.metadata.annotations" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        ([], "", "filename not specified"),
        (["-f", "/nowhere/x.yaml"], "", "/nowhere/x.yaml: "),
        (["-f", "-"], "kind: Service\n---\na: [1\n", "-:"),
        (["-f", "-", "-o", "/nowhere/out"], DEPLOYMENT, "/nowhere/out: No such file or directory"),
    ],
)
def test_errors_name_the_file(arguments: list[str], stdin: str, message: str) -> None:
    done = _run(*arguments, stdin=stdin)
    assert done.exception is not None
    assert message in str(done.exception)


def test_the_command_is_in_the_table_under_both_names() -> None:
    entry = COMMANDS["inject"]
    assert entry.target == "mizzen.cli.inject:inject"
    assert "kube-inject" in entry.aliases


printable = st.characters(categories=["L", "N", "P", "S", "Zs"], include_characters="\n\t")
looks_like_more = st.sampled_from(
    ["1e3", "0x1f", "017", "1:20", "y", "On", "null", "~", "1_000", "", "2026-01-01", "a\nb"]
)
strings = st.text(printable, max_size=8) | looks_like_more


@given(value=st.dictionaries(strings, strings | st.integers(-9, 9) | st.booleans() | st.none() | st.lists(strings)))
def test_output_reads_back_as_the_same_values(value: dict[str, object]) -> None:
    (document,) = parse_yaml(render_document(value))
    assert document.value == value
