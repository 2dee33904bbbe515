"""Each case is a manifest with what injection must make of it, to the last field."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mizzen.inject.manifests import inject_documents
from mizzen.inject.values import InjectionConfig, decode_values

CASES = sorted(path.parent for path in (Path(__file__).parent / "cases").glob("*/input.yaml"))


def _load(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text())) if path.exists() else []


def _config(case: Path) -> InjectionConfig:
    values = next(iter(_load(case / "values.yaml")), {})
    return decode_values(values, InjectionConfig(native_sidecars=case.name.startswith("native")))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_manifests_become_exactly_this(case: Path) -> None:
    mesh = next(iter(_load(case / "mesh.yaml")), None)
    done = inject_documents(_load(case / "input.yaml"), mesh=mesh, config=_config(case))
    expected = [document for document in _load(case / "expected.yaml") if document is not None]
    assert list(done.documents) == expected
    assert done.problems == ()


def _workload(kind: str, **more: Any) -> dict[str, Any]:
    pod = {"spec": {"containers": [{"name": "app", "image": "i"}]}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"}, "spec": {"template": pod, **more}}


def _proxies(document: Any) -> int:
    return str(document).count("'name': 'istio-proxy'")


@pytest.mark.parametrize(
    "kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "ReplicationController", "SomebodysOwn"]
)
def test_every_kind_with_a_pod_template_is_injected(kind: str) -> None:
    (document,) = inject_documents([_workload(kind, extra={"kept": True})]).documents
    assert _proxies(document) == 1
    assert document["spec"]["extra"] == {"kept": True}
    assert document["metadata"] == {"name": "w"}
    assert f"/namespaces/default/{kind.lower()}s/w" in str(document)


def test_items_of_lists_are_injected_and_the_list_is_kept() -> None:
    listed = {
        "apiVersion": "v1",
        "kind": "List",
        "metadata": {},
        "items": [_workload("Deployment"), {"kind": "Service"}],
    }
    (document,) = inject_documents([listed]).documents
    assert _proxies(document) == 1
    assert document["items"][1] == {"kind": "Service"}
    assert [document[name] for name in ("apiVersion", "kind", "metadata")] == ["v1", "List", {}]


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "Service", "spec": {"ports": []}},
        {"kind": "CronJob", "spec": {"jobTemplate": None}},
        {"kind": "DeploymentConfig", "spec": {"template": None}},
        {"kind": "Deployment", "spec": {"template": {"spec": {}}}},
        {"kind": "Pod"},
        {"kind": "ConfigMapList", "items": "many"},
        ["not", "an", "object"],
        None,
    ],
)
def test_other_documents_pass_unchanged(document: Any) -> None:
    assert inject_documents([document]).documents == (document,)


def test_order_is_kept_and_skipped_workloads_are_named() -> None:
    host = _workload("DaemonSet")
    host["spec"]["template"]["spec"]["hostNetwork"] = True
    service = {"kind": "Service"}
    done = inject_documents([service, host, _workload("Deployment")])
    assert done.documents[:2] == (service, host)
    (skipped,) = done.skipped
    assert (str(skipped.key), skipped.reason) == ("DaemonSet default/w", "Pod uses the host's network")


def test_a_workload_that_cannot_be_injected_is_named_and_its_neighbours_are_injected() -> None:
    broken = _workload("Deployment")
    broken["spec"]["template"]["metadata"] = {"annotations": {"sidecar.istio.io/proxyCPU": "much"}}
    done = inject_documents([broken, _workload("Job")])
    assert done.documents[0] == broken
    assert _proxies(done.documents[1]) == 1
    (problem,) = done.problems
    assert str(problem) == (
        'Deployment default/w: spec.template.metadata.annotations["sidecar.istio.io/proxyCPU"]: '
        "'much' is no quantity such as 100m or 128Mi"
    )


def test_a_generated_name_names_the_workload() -> None:
    job = _workload("Job")
    job["metadata"] = {"generateName": "import-", "namespace": "data"}
    (document,) = inject_documents([job]).documents
    assert "kubernetes://apis/apps/v1/namespaces/data/jobs/import'" in str(document)
