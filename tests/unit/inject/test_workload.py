from typing import Any

import pytest

from mizzen.inject.workload import Owner, read_workload


def _owner(metadata: dict[str, Any]) -> Owner | None:
    return read_workload({"metadata": metadata}, namespace="ns", owner=None).owner


def _owned(kind: str, name: str, *, api: str = "apps/v1", controller: bool = True, **labels: str) -> dict[str, Any]:
    reference = {"apiVersion": api, "kind": kind, "name": name, "controller": controller}
    return {"name": "p", "labels": labels, "ownerReferences": [reference]}


@pytest.mark.parametrize(
    ("metadata", "reference"),
    [
        ({"name": "p"}, "kubernetes://apis/v1/namespaces/ns/pods/p"),
        ({"generateName": "p-"}, "kubernetes://apis/v1/namespaces/ns/pods/p"),
        (
            {**_owned("ReplicaSet", "web-5d4f"), "labels": {"pod-template-hash": "5d4f"}},
            "kubernetes://apis/apps/v1/namespaces/ns/deployments/web",
        ),
        (_owned("ReplicaSet", "web-5d4f"), "kubernetes://apis/apps/v1/namespaces/ns/replicasets/web-5d4f"),
        (_owned("StatefulSet", "db"), "kubernetes://apis/apps/v1/namespaces/ns/statefulsets/db"),
        (_owned("Job", "tick-29012345", api="batch/v1"), "kubernetes://apis/batch/v1/namespaces/ns/cronjobs/tick"),
        (_owned("Job", "tick-1", api="batch/v1"), "kubernetes://apis/batch/v1/namespaces/ns/jobs/tick-1"),
        (_owned("StatefulSet", "db", controller=False), "kubernetes://apis/v1/namespaces/ns/pods/p"),
    ],
)
def test_the_workload_behind_a_pod_is_found(metadata: dict[str, Any], reference: str) -> None:
    owner = _owner(metadata)
    assert owner is not None
    assert owner.reference("ns") == reference


def test_a_nameless_template_has_no_owner() -> None:
    assert _owner({}) is None


def test_the_label_of_the_workload_name_wins_for_the_name_only() -> None:
    pod = {"metadata": {"name": "p", "labels": {"service.istio.io/workload-name": "w"}}}
    workload = read_workload(pod, namespace="ns", owner=None)
    assert (workload.name, workload.canonical_name) == ("w", "p")


def test_the_proxy_is_no_container_of_the_application() -> None:
    pod = {"spec": {"containers": [{"name": "istio-proxy"}, {"name": "a"}, "rubbish"]}}
    assert read_workload(pod, namespace="ns", owner=None).containers == ({"name": "a"},)
