"""Of a pod that runs only what somebody reads makes a difference."""

import pytest
from msgspec.structs import replace

from mizzen.api.kube.pods import ContainerStatus, Pod, PodCondition, PodIP, PodStatus, as_running
from mizzen.api.kube.services import Service
from mizzen.api.meta import ObjectMeta

READY = PodCondition(type="Ready", status="True")
RUNNING = PodStatus(phase="Running", pod_ip="10.0.0.1", pod_ips=(PodIP(ip="10.0.0.1"),), conditions=(READY,))
METADATA = ObjectMeta(name="a", namespace="shop", labels={"app": "a"}, annotations={"istio.io/rev": "stable"})
POD = Pod(metadata=METADATA, status=RUNNING)


@pytest.mark.parametrize(
    "remarked",
    [
        {"example.com/note": "x"},
        {"cni.projectcalico.org/podIP": "10.0.0.1/32"},
        {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"},
        {"prometheus.io/scrape": "true"},
    ],
)
def test_annotations_of_other_tools_were_for_its_making(remarked: dict[str, str]) -> None:
    annotated = replace(METADATA, annotations={**METADATA.annotations, **remarked})
    assert as_running(replace(POD, metadata=annotated)) == POD


@pytest.mark.parametrize(
    "status",
    [
        replace(RUNNING, conditions=(PodCondition(type="ContainersReady", status="False"), READY)),
        replace(RUNNING, conditions=(READY, PodCondition(type="example.com/gate", status="False"))),
        replace(RUNNING, container_statuses=(ContainerStatus(name="app", ready=False),)),
        replace(RUNNING, init_container_statuses=(ContainerStatus(name="istio-proxy", ready=True),)),
    ],
)
def test_of_how_it_fares_only_whether_it_is_ready_counts(status: PodStatus) -> None:
    assert as_running(replace(POD, status=status)) == POD


@pytest.mark.parametrize(
    "other",
    [
        replace(POD, metadata=replace(METADATA, labels={"app": "b"})),
        replace(POD, metadata=replace(METADATA, annotations={"istio.io/rev": "canary"})),
        replace(POD, status=replace(RUNNING, conditions=(PodCondition(type="Ready", status="False"),))),
        replace(POD, status=replace(RUNNING, phase="Succeeded")),
        replace(POD, status=replace(RUNNING, pod_ips=())),
        replace(POD, status=None),
    ],
)
def test_what_is_read_stays_and_is_not_copied(other: Pod) -> None:
    assert as_running(other) is other != POD


def test_other_objects_are_left_alone() -> None:
    found = Service(metadata=ObjectMeta(name="a"))
    assert as_running(found) is found
