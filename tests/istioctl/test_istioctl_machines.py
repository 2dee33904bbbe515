"""Files of machines outside Kubernetes: the real istioctl and Mizzen write the same ones for the same groups."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import istioctl_runs
import kube_bed
import kube_mesh_kinds
import pytest
import vm_runs
import yaml

MESH = """
trustDomain: td.example
defaultConfig: {meshId: mesh1, concurrency: 3, tracing: {sampling: 10}, proxyMetadata: {Z: z}}
"""
ANNOTATION = "proxy_metadata: {Q: \"it's a $x\"}\ntracing: {zipkin: {address: 'a:1'}}\ndrain_duration: 3s"


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kube_bed.Bed]:
    with kube_bed.running(tmp_path_factory.mktemp("kubernetes")) as bed:
        kube_mesh_kinds.install(bed)
        bed.call("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
        bed.call("POST", "/api/v1/namespaces/shop/serviceaccounts", {"metadata": {"name": "vm"}})
        config_map(bed, "shop", "istio-ca-root-cert", "root-cert.pem", "ROOT\n")
        config_map(bed, "istio-system", "istio", "mesh", MESH)
        config_map(bed, "istio-system", "istio-canary", "mesh", "{}")
        values = {"global": {"multiCluster": {"clusterName": "east"}}}
        config_map(bed, "istio-system", "istio-sidecar-injector", "values", json.dumps(values))
        service = {"metadata": {"name": "gate"}, "spec": {"externalIPs": ["7.7.7.7"], "ports": [{"port": 15012}]}}
        bed.call("POST", "/api/v1/namespaces/shop/services", service)
        yield bed


def config_map(bed: kube_bed.Bed, namespace: str, name: str, key: str, text: str) -> None:
    bed.call("POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": name}, "data": {key: text}})


def group(*, namespace: str = "shop", annotation: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {"name": "ratings", "namespace": namespace, "annotations": {"proxy.istio.io/config": annotation}}
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "WorkloadGroup",
        "metadata": metadata,
        "spec": {"template": {"serviceAccount": "vm"}, **spec},
    }


FULL = group(
    annotation=ANNOTATION,
    metadata={
        "labels": {"app": "ratings", "version": "v2"},
        "annotations": {"proxy.istio.io/config": "statusPort: 15090"},
    },
    template={"serviceAccount": "vm", "ports": {"http": 8080}, "network": "vm-net", "labels": {"app": "rating"}},
    probe={"httpGet": {"path": "/x", "port": 80}, "periodSeconds": 5},
)


@pytest.mark.parametrize(
    ("document", "flags"),
    [
        (FULL, ("--ingressService", "gate.shop")),
        (group(), ("--autoregister", "--capture-dns=false", "--externalIP", "1.2.3.4", "--ingressIP", "9.9.9.9")),
        (group(), ("--clusterID", "c1", "--revision", "canary", "--internalIP", "10.0.0.1")),
    ],
    ids=("full", "registered", "revision"),
)
async def test_the_files_are_the_same(bed, tmp_path: pathlib.Path, document, flags) -> None:
    theirs, ours = await both(bed, tmp_path, document, *flags)
    assert theirs == (0, "")
    assert ours == (0, "")
    for name in ("cluster.env", "root-cert.pem", "hosts"):
        assert (tmp_path / "ours" / name).read_text() == (tmp_path / "theirs" / name).read_text(), name
    read = [yaml.safe_load((tmp_path / who / "mesh.yaml").read_text()) for who in ("ours", "theirs")]
    assert read[0] == read[1]
    modes = [{path.name: path.stat().st_mode for path in (tmp_path / who).iterdir()} for who in ("ours", "theirs")]
    assert modes[0] == modes[1]
    assert len(modes[0]) == 5


@pytest.mark.parametrize(
    ("document", "flags"),
    [
        (group(namespace="default"), ("--clusterID", "c1")),
        (group(template={"serviceAccount": "nobody"}), ("--clusterID", "c1")),
        (group(), ("--clusterID", "c1", "--revision", "gone")),
        (None, ("--name", "gone", "--namespace", "shop", "--clusterID", "c1")),
    ],
    ids=("no roots", "no account", "no revision", "no group"),
)
async def test_what_is_missing_is_told_in_the_same_words(bed, tmp_path: pathlib.Path, document, flags) -> None:
    theirs, ours = await both(bed, tmp_path, document, *flags)
    assert theirs[0] == 1
    assert ours == theirs
    assert "not found" in ours[1]


async def both(
    bed: kube_bed.Bed, folder: pathlib.Path, document: dict[str, Any] | None, *flags: str
) -> list[tuple[int, str]]:
    """Code and error of istioctl and of Mizzen."""
    if document is not None:
        (folder / "group.yaml").write_text(json.dumps(document))
        flags = ("-f", str(folder / "group.yaml"), *flags)
    command = ("x", "workload", "entry", "configure", "-o", folder / "theirs", *flags)
    their = await istioctl_runs.run(folder, *command, cluster=bed.kubeconfig())
    our = vm_runs.configure("-o", folder / "ours", "--kubeconfig", bed.kubeconfig(), *flags)
    return [(their.code, told(their.err)), (our.returncode, told(our.stderr))]


def told(text: str) -> str:
    """The error; what each warns of, and in which words, is its own matter."""
    return "".join(line for line in text.splitlines(keepends=True) if line.startswith("Error:"))
