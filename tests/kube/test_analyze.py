"""`analyze` over a real cluster, over files, and over both together."""

import json

import cli_runs
import pytest
from kube_bed import Bed
from kube_objects import path_of, service

pytestmark = pytest.mark.usefixtures("mesh_kinds")


def route(namespace: str, host: str) -> dict:
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": "v", "namespace": namespace},
        "spec": {"hosts": [host], "http": [{"route": [{"destination": {"host": host}}]}]},
    }


def analyze(bed: Bed, namespace: str, *arguments: str) -> list[tuple[str, str]]:
    ran = cli_runs.run("analyze", "-c", str(bed.kubeconfig()), "-n", namespace, "-o", "json", *arguments)
    assert ran.exit_code == 0, ran.stderr
    return [(found["code"], found.get("reference", "")) for found in json.loads(ran.stdout)]


def test_the_objects_of_the_cluster_are_analysed(bed, namespace):
    document = route(namespace, "absent")
    bed.apply(path_of(document, "virtualservices"), document)
    assert ("IST0101", "") in analyze(bed, namespace)
    bed.apply(path_of(service(namespace, "absent"), "services"), service(namespace, "absent"))
    assert "IST0101" not in {code for code, _ in analyze(bed, namespace)}


def test_files_are_analysed_with_the_cluster_and_replace_its_objects(bed, namespace, tmp_path):
    bed.apply(path_of(service(namespace, "cart"), "services"), service(namespace, "cart"))
    file = tmp_path / "v.json"
    file.write_text(json.dumps(route(namespace, "cart")))
    assert "IST0101" not in {code for code, _ in analyze(bed, namespace, str(file))}
    file.write_text(json.dumps(route(namespace, "absent")))
    assert ("IST0101", str(file)) in analyze(bed, namespace, str(file))
    bed.apply(path_of(route(namespace, "cart"), "virtualservices"), route(namespace, "cart"))
    assert ("IST0101", str(file)) in analyze(bed, namespace, str(file))


def test_a_cluster_that_is_not_there_is_an_error(bed, namespace):
    user = {"client-certificate": "/nowhere", "client-key": "/nowhere"}
    ran = cli_runs.run("analyze", "-c", str(bed.kubeconfig("broken", **user)), "-n", namespace)
    assert ran.exit_code == 1
    assert "client-certificate" in ran.stderr
