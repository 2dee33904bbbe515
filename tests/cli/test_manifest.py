"""`mizzen manifest`: which Gateways and definitions, which form, which exit code."""

import json
import pathlib

import cli_runs
import pytest
import yaml
from gateway_api import gateway


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    manual = gateway(name="manual", spec="addresses: [{type: Hostname, value: own}]")
    broken = gateway(name="broken", spec="infrastructure: {parametersRef: {group: '', kind: ConfigMap, name: none}}")
    for name, text in {"good": gateway(), "manual": manual, "broken": broken}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "gateway.yaml").write_text(text)
    return tmp_path


def test_every_managed_gateway_is_printed_and_a_bad_one_keeps_none_back(folder: pathlib.Path) -> None:
    result = cli_runs.run("manifest", "gateway", "-f", folder)
    assert result.exit_code == 1
    printed = list(yaml.safe_load_all(result.stdout))
    assert [(d["kind"], d["metadata"]["name"]) for d in printed] == [
        ("ServiceAccount", "gw-istio"),
        ("Deployment", "gw-istio"),
        ("Service", "gw-istio"),
    ]
    assert "parametersRef ConfigMap edge/none not found" in result.stderr


def test_one_gateway_as_json(folder: pathlib.Path) -> None:
    result = cli_runs.run("manifest", "gateway", "-f", folder, "gw.edge", "-o", "json")
    assert result.exit_code == 0
    assert [d["kind"] for d in json.loads(result.stdout)["items"]] == ["ServiceAccount", "Deployment", "Service"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none",), "there is no Gateway none"),
        (("gw.web",), "there is no Gateway gw in namespace web"),
        (("gw", "-n", "web"), "there is no Gateway gw in namespace web"),
        (("manual",), "Gateway edge/manual is not one that the control plane deploys"),
    ],
)
def test_a_gateway_that_cannot_be_meant(folder: pathlib.Path, arguments: tuple[str, ...], message: str) -> None:
    result = cli_runs.run("manifest", "gateway", "-f", folder, *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


def test_the_installation_decides_the_image(folder: pathlib.Path) -> None:
    values = folder / "values.txt"
    values.write_text("global: {hub: example.com/own, tag: v9}\n")
    result = cli_runs.run("manifest", "gateway", "-f", folder / "good", "--valuesFile", values)
    assert "image: example.com/own/proxyv2:v9\n" in result.stdout


def test_definitions_are_printed_and_written_as_the_chart_has_them(tmp_path: pathlib.Path) -> None:
    printed = list(yaml.safe_load_all(cli_runs.run("manifest", "crds").stdout))
    assert json.loads(cli_runs.run("manifest", "crds", "-o", "json").stdout)["items"] == printed
    assert cli_runs.run("manifest", "crds", "--dir", tmp_path / "crds").stdout == ""
    chart = pathlib.Path(__file__).parents[2] / "charts" / "mizzen" / "crds"
    written = {path.name: path.read_text() for path in (tmp_path / "crds").iterdir()}
    assert written == {path.name: path.read_text() for path in chart.iterdir()}
    assert len(written) == len(printed)


def test_definitions_that_cannot_be_written_are_an_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    result = cli_runs.run("manifest", "crds", "--dir", tmp_path / "file" / "crds")
    assert result.exit_code == 1
    assert "cannot write definitions to" in result.stderr
