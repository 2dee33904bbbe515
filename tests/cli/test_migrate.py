"""`mizzen migrate ingress`: manifests on stdout, verdicts on stderr or as a report."""

import json
import pathlib

import cli_runs
import pytest
import yaml

SAMPLES = pathlib.Path(__file__).parents[1] / "envoy" / "samples" / "ingress_nginx.yaml"
AUTH = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: inside
  namespace: web
  annotations: {nginx.ingress.kubernetes.io/auth-url: "http://auth.web.svc/check", nginx.ingress.kubernetes.io/limit-rps: "5"}
spec:
  ingressClassName: nginx
  rules: [{host: in.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]
"""


def test_manifests_go_to_stdout_and_verdicts_to_stderr() -> None:
    result = cli_runs.run("migrate", "ingress", "-f", SAMPLES, "--gateway", "edge.infra")
    assert result.exit_code == 0
    printed = list(yaml.safe_load_all(result.stdout))
    gateways = [d for d in printed if d["kind"] == "Gateway" and d["apiVersion"].startswith("gateway.networking")]
    assert [d["metadata"] for d in gateways] == [{"name": "edge", "namespace": "infra"}]
    assert "web/strip" in result.stderr
    assert "Different for every host" in result.stderr


def test_the_report_is_json_without_manifests(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ingress.yaml").write_text(AUTH)
    result = cli_runs.run("migrate", "ingress", "-f", tmp_path, "-o", "report")
    report = json.loads(result.stdout)
    found = {f["subject"]: (f["ingress"], f["verdict"]) for f in report["findings"]}
    assert found == {"auth-url": ("web/inside", "approximated"), "limit-rps": ("web/inside", "impossible")}
    assert report["mesh"]["extensionProviders"][0]["envoyExtAuthzHttp"]["port"] == 80
    assert report["differences"]


def test_what_the_mesh_config_needs_is_told_beside_the_manifests(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ingress.yaml").write_text(AUTH)
    result = cli_runs.run("migrate", "ingress", "-f", tmp_path, "-o", "json")
    assert {d["kind"] for d in json.loads(result.stdout)["items"]} == {"Gateway", "HTTPRoute", "AuthorizationPolicy"}
    assert "Add to the mesh config:\nextensionProviders:\n" in result.stderr


def test_nothing_to_migrate_prints_nothing(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ingress.yaml").write_text(AUTH.replace("ingressClassName: nginx", "ingressClassName: other"))
    result = cli_runs.run("migrate", "ingress", "-f", tmp_path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Ingress web/inside is of another class\n"


@pytest.mark.parametrize("gateway", ["edge", ".infra", "edge."])
def test_a_gateway_is_named_with_its_namespace(gateway: str) -> None:
    result = cli_runs.run("migrate", "ingress", "-f", SAMPLES, "--gateway", gateway)
    assert (result.exit_code, result.stdout) == (64, "")
