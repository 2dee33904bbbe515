from datetime import UTC, datetime

import msgspec

from mizzen.api.meta import LAST_APPLIED, Key, ObjectMeta, VersionedMeta, without_remarks
from mizzen.api.problems import Problem


def test_a_key_names_its_object() -> None:
    assert str(Key("VirtualService", "default", "reviews")) == "VirtualService default/reviews"
    assert str(Key("Node", "", "node-a")) == "Node node-a"


def test_the_oldest_comes_first_and_undated_objects_last() -> None:
    old = ObjectMeta(name="z", creation_timestamp=datetime(2024, 1, 1, tzinfo=UTC))
    new = ObjectMeta(name="a", creation_timestamp=datetime(2025, 1, 1, tzinfo=UTC))
    undated = ObjectMeta(name="a", namespace="b")
    undated_too = ObjectMeta(name="a", namespace="a")
    ordered = sorted([undated, new, undated_too, old], key=lambda metadata: metadata.age_order)
    assert ordered == [old, new, undated_too, undated]


def test_a_resource_version_is_kept_only_where_it_is_told_to_envoy() -> None:
    written = {"name": "a", "resourceVersion": "7"}
    assert msgspec.convert(written, ObjectMeta) == ObjectMeta(name="a")
    assert msgspec.convert(written, VersionedMeta).resource_version == "7"
    assert "resourceVersion" in ObjectMeta.unread
    assert "resourceVersion" not in VersionedMeta.unread


def test_a_problem_reads_as_object_path_and_fault() -> None:
    key = Key("VirtualService", "default", "reviews")
    problem = Problem(key=key, path="spec.http[1].route[0].weight", message="expected int", code="invalid-field")
    assert str(problem) == "VirtualService default/reviews: spec.http[1].route[0].weight: expected int"
    assert str(Problem(message="not an object", code="not-an-object")) == "not an object"


def test_remarks_are_kubectls_copy_and_what_no_mesh_reads() -> None:
    read = {
        "networking.istio.io/exportTo": ".",
        "istio.io/rev": "x",
        "kubernetes.io/ingress.class": "istio",
        "undotted": "1",
    }
    remarks = {
        "argocd.argoproj.io/tracking-id": "a",
        "meta.helm.sh/release-name": "b",
        "notistio.io/x": "c",
        # Kubernetes' own controllers write these again and again.
        "control-plane.alpha.kubernetes.io/leader": "{}",
        "deployment.kubernetes.io/revision": "7",
        "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z",
        "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z",
        "node.alpha.kubernetes.io/ttl": "15",
    }
    assert without_remarks(read | remarks | {LAST_APPLIED: "{}"}, of_tools=True) == read
    assert without_remarks(read | remarks | {LAST_APPLIED: "{}"}, of_tools=False) == read | remarks
    assert without_remarks(read, of_tools=True) is read
