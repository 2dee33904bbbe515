"""Which pods a manifest asks for, and how they are named."""

import re
from collections import Counter

import msgspec
from local_objects import deployment, stateful_set, template

from mizzen.api.kube.pods import Pod, PodSpec
from mizzen.api.kube.workloads import DaemonSet, DaemonSetSpec, ReplicaSet, ReplicaSetSpec
from mizzen.api.meta import Key, ObjectMeta
from mizzen.local import workloads


def test_pods_of_a_deployment_carry_its_template_hash_in_name_and_labels():
    first, second = workloads.expand([deployment("cart-v1", replicas=2)])
    digest = first.pod.metadata.labels["pod-template-hash"]
    assert re.fullmatch(rf"cart-v1-{digest}-[bcdfghjklmnpqrstvwxz2456789]{{5}}", first.pod.metadata.name)
    assert first.pod.metadata.name != second.pod.metadata.name
    owner = first.pod.metadata.owner_references[0]
    assert (owner.kind, owner.name, owner.controller) == ("ReplicaSet", f"cart-v1-{digest}", True)


def test_names_are_a_function_of_the_manifest():
    once = [pod.key for pod in workloads.expand([deployment("cart"), stateful_set("ledger")])]
    again = [pod.key for pod in workloads.expand([stateful_set("ledger"), deployment("cart")])]
    assert once == again


def test_another_template_is_another_revision_under_another_name():
    (before,) = workloads.expand([deployment("cart", template("cart", command=("python3", "a.py")))])
    (after,) = workloads.expand([deployment("cart", template("cart", command=("python3", "b.py")))])
    assert before.revision != after.revision
    assert before.key != after.key


def test_more_replicas_leave_the_first_ones_as_they_are():
    two = {pod.key for pod in workloads.expand([deployment("cart", replicas=2)])}
    three = {pod.key for pod in workloads.expand([deployment("cart", replicas=3)])}
    assert two < three


def test_pods_of_a_stateful_set_are_numbered_and_have_host_names():
    pods = workloads.expand([stateful_set("ledger", replicas=2, service="ledger")])
    assert [pod.pod.metadata.name for pod in pods] == ["ledger-0", "ledger-1"]
    assert [(pod.pod.spec.hostname, pod.pod.spec.subdomain) for pod in pods] == [
        ("ledger-0", "ledger"),
        ("ledger-1", "ledger"),
    ]
    assert pods[1].pod.metadata.labels["statefulset.kubernetes.io/pod-name"] == "ledger-1"
    assert pods[1].pod.metadata.owner_references[0].kind == "StatefulSet"


def test_a_bare_pod_is_itself_in_the_default_namespace():
    (planned,) = workloads.expand([Pod(metadata=ObjectMeta(name="tool"), spec=PodSpec())])
    assert planned.key == Key("Pod", "default", "tool")
    assert planned.owner == planned.key


def test_zero_and_negative_replicas_are_none_and_absent_ones_are_one():
    assert workloads.expand([deployment("a", replicas=0), deployment("b", replicas=-3)]) == ()
    assert len(workloads.expand([deployment("a", replicas=None)])) == 1


def test_replica_sets_and_daemon_sets_own_their_pods_directly():
    metadata = ObjectMeta(name="a", namespace="shop")
    replica_set = ReplicaSet(metadata=metadata, spec=ReplicaSetSpec(template=template("a")))
    daemon_set = DaemonSet(metadata=metadata, spec=DaemonSetSpec(template=template("a")))
    owners = {pod.owner.kind: pod.pod.metadata.owner_references[0].kind for pod in workloads.expand([replica_set])}
    owners |= {pod.owner.kind: pod.pod.metadata.owner_references[0].kind for pod in workloads.expand([daemon_set])}
    assert owners == {"ReplicaSet": "ReplicaSet", "DaemonSet": "DaemonSet"}


def test_the_same_pod_from_two_objects_is_made_once():
    bare = Pod(metadata=ObjectMeta(name="ledger-0", namespace="shop"))
    (planned,) = workloads.expand([stateful_set("ledger", replicas=1), bare])
    assert planned.owner.kind == "Pod"


def test_the_hash_follows_the_content_not_the_order_of_labels():
    labels = {"app": "cart", "version": "v1"}
    one = msgspec.structs.replace(template("cart"), metadata=ObjectMeta(labels=labels))
    other = msgspec.structs.replace(template("cart"), metadata=ObjectMeta(labels=dict(reversed(labels.items()))))
    assert workloads.template_hash(one) == workloads.template_hash(other)


def test_of_a_workload_beyond_measure_a_part_is_foretold_and_that_is_said():
    objects = [deployment("a", replicas=100_000_000), stateful_set("b", replicas=2_000_000_000), deployment("c")]

    pods = workloads.expand(objects)
    told = {str(problem.key): problem for problem in workloads.excess(objects)}

    counts = Counter(pod.owner.name for pod in pods)
    assert counts == {"a": workloads.MOST_FORETOLD, "b": workloads.MOST_FORETOLD, "c": 1}
    assert {problem.key.name for problem in told.values()} == {"a", "b"}
    assert str(workloads.excess(objects[:1])[0]).endswith(
        "/a: spec.replicas: asks for 100,000,000 pods; at most 1,000 of one workload are foretold"
    )


def test_as_many_as_are_foretold_are_no_excess():
    assert workloads.excess([deployment("a", replicas=workloads.MOST_FORETOLD)]) == ()


def test_a_mesh_runs_the_workloads_that_fit_as_a_whole():
    objects = [
        deployment("a", replicas=workloads.MOST_RUN - 2),
        deployment("b", replicas=100_000_000),
        deployment("c", replicas=2),
        stateful_set("d", replicas=1),
    ]

    admitted = workloads.admit(objects)

    assert Counter(pod.owner.name for pod in admitted.pods) == {"a": workloads.MOST_RUN - 2, "c": 2}
    assert [(problem.key.name, problem.level) for problem in admitted.problems] == [("b", "error"), ("d", "error")]
    assert "asks for 100,000,000 pods; a local mesh runs at most 500 and has room for 2 more" in str(
        admitted.problems[0]
    )
    assert "asks for 1 pod; a local mesh runs at most 500 and has room for 0 more" in str(admitted.problems[1])


def test_a_mesh_that_fits_is_admitted_as_it_is_expanded():
    objects = [deployment("a", replicas=3), stateful_set("d", replicas=2)]
    assert workloads.admit(objects) == workloads.Admitted(pods=workloads.expand(objects))
