"""`mizzen precheck`: what speaks against an installation or an upgrade, by exit code and text."""

import json
import pathlib

import cli_runs
import pytest

from mizzen.cli import listening

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gateways.gateway.networking.k8s.io}
spec: {group: gateway.networking.k8s.io, versions: [{name: v1alpha2, served: true}]}
"""
ALPHA = """
apiVersion: v1
kind: Service
metadata: {name: a, namespace: default, annotations: {networking.istio.io/exportTo: "."}}
spec: {ports: [{port: 1}]}
"""


def write(folder: pathlib.Path, text: str) -> pathlib.Path:
    path = folder / "cluster.yaml"
    path.write_text(text)
    return path


def test_nothing_speaks_against_it(tmp_path: pathlib.Path) -> None:
    result = cli_runs.run("precheck", write(tmp_path, ""))

    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (
        "✔ No issues found when checking the cluster. Istio is safe to install or upgrade!\n"
        "  To get started, check out https://istio.io/latest/docs/setup/getting-started/.\n"
    )


def test_a_warning_is_reason_enough(tmp_path: pathlib.Path) -> None:
    result = cli_runs.run("x", "precheck", write(tmp_path, CRD))

    assert result.exit_code == 1
    assert "[IST0156] (CustomResourceDefinition gateways.gateway.networking.k8s.io " in result.stdout
    assert "\x1b[" in result.stdout
    assert result.stderr.startswith(
        "Error: Issues found when checking the cluster. Istio may not be safe to install or upgrade.\nSee https://"
    )


def test_json_says_the_same(tmp_path: pathlib.Path) -> None:
    result = cli_runs.run("precheck", write(tmp_path, CRD), "-o", "json")

    assert {found["code"] for found in json.loads(result.stdout)} == {"IST0156", "IST0172"}
    assert result.exit_code == 1


def test_lesser_findings_show_on_demand_and_do_no_harm(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, ALPHA)

    quiet, loud = cli_runs.run("precheck", path), cli_runs.run("precheck", path, "--output-threshold", "Info")
    assert (quiet.exit_code, quiet.stdout) == (0, "")
    assert (loud.exit_code, "IST0136" in loud.stdout) == (0, True)


def test_an_upgrade_from_an_old_release(tmp_path: pathlib.Path) -> None:
    zipkin = "{apiVersion: v1, kind: Service, metadata: {name: zipkin, namespace: istio-system}, spec: {}}"
    path = write(tmp_path, zipkin)

    assert "IST0169" in cli_runs.run("precheck", path, "-f", "1.20").stdout
    assert cli_runs.run("precheck", path, "-f", "1.30").exit_code == 0


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("1", "invalid version 1, expected format like '1.0'"),
        ("2.1", "expected major version 1, got 2"),
        ("1.x", "minor version is not a number: x"),
    ],
)
def test_a_version_that_is_none(tmp_path: pathlib.Path, version: str, message: str) -> None:
    result = cli_runs.run("precheck", write(tmp_path, ""), "--from-version", version)

    assert (result.exit_code, result.stderr) == (1, f"Error: {message}\n")


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("0100007F:1F90", "127.0.0.1:8080"),
        ("00000000:0050", "0.0.0.0:80"),
        ("00000000000000000000000001000000:0016", "[::1]:22"),
    ],
)
def test_addresses_of_the_kernel(written: str, address: str) -> None:
    assert listening.parse_address(written) == address
