"""`mizzen manifest generate`, and what install and uninstall say before they ask a cluster."""

import json
import pathlib

import pytest
import yaml
from cli_runs import run

ORDER = [
    {"CustomResourceDefinition"},
    {"ServiceAccount", "ClusterRole", "Role"},
    {"ClusterRoleBinding", "RoleBinding"},
    {"ValidatingWebhookConfiguration"},
    {"ConfigMap"},
    {"Deployment", "PodDisruptionBudget", "MutatingWebhookConfiguration"},
    {"HorizontalPodAutoscaler"},
    {"Service"},
]


def test_documents_come_in_the_order_in_which_they_are_applied() -> None:
    result = run("manifest", "generate", "--set", "gateways.istio-ingressgateway.enabled=true")
    assert (result.exit_code, result.stderr) == (0, "")
    kinds = [document["kind"] for document in yaml.safe_load_all(result.stdout)]
    ranks = [next(at for at, group in enumerate(ORDER) if kind in group) for kind in kinds]
    assert ranks == sorted(ranks)
    assert set(kinds) == set().union(*ORDER)


def test_flags_lie_over_files_and_a_later_file_over_an_earlier(tmp_path: pathlib.Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("revision: one\npilot: {replicaCount: 2, autoscaleEnabled: false, image: a}\n")
    second.write_text("revision: two\npilot: {image: b}\n")
    files = ("-f", first, "-f", second)
    result = run("manifest", "generate", *files, "-s", "pilot.image=c", "-r", "three", "-i", "mesh", "-o", "json")
    documents = json.loads(result.stdout)["items"]
    (deployment,) = (each for each in documents if each["kind"] == "Deployment")
    assert deployment["metadata"]["name"] == "istiod-three"
    assert deployment["metadata"]["namespace"] == "mesh"
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "localhost/mizzen/c:0.1.0"


def test_texts_stay_texts() -> None:
    result = run("manifest", "generate", "--set-string", "pilot.pdb.minAvailable=1", "-o", "json")
    (budget,) = (each for each in json.loads(result.stdout)["items"] if each["kind"] == "PodDisruptionBudget")
    assert budget["spec"]["minAvailable"] == "1"


def test_a_value_that_has_no_effect_is_told_and_the_rest_is_printed() -> None:
    result = run("manifest", "generate", "--set", "pilot.replicaCuont=3")
    assert result.exit_code == 0
    assert result.stderr == (
        "Warning: unknown value pilot.replicaCuont has no effect; did you mean pilot.replicaCount?\n"
    )
    assert "kind: Deployment" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--set", "pilot"], "'pilot' is not NAME=VALUE"),
        (["--set", "pilot=x"], "values.pilot: expected a map"),
        (["--revision", "No.Name"], "values.revision: 'No.Name' is no name"),
        (["-f", "/nowhere.yaml"], "/nowhere.yaml"),
    ],
)
def test_values_that_cannot_be_meant_print_nothing(arguments: list[str], error: str) -> None:
    result = run("manifest", "generate", *arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert error in result.stderr


def test_nothing_is_uninstalled_that_nobody_names() -> None:
    result = run("uninstall", "-y")
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: at least one of the --revision (or --set revision=<revision>), --filename or --purge flags must be set\n"
    )


def test_without_a_cluster_there_is_nothing_to_install_into(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    for command in (["install", "-y"], ["uninstall", "--purge", "-y"]):
        result = run(*command)
        assert result.exit_code == 1
        assert "no cluster: name its kubeconfig" in result.stderr
