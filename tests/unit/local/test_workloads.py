"""Which pods a manifest asks for, and how they are named."""

import re

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
