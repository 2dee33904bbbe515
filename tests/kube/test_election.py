"""Three replicas over a real API server: one of them writes, each status once, whatever becomes of the leader."""

import pathlib
import signal
import time
from collections.abc import Iterator

import pytest
from eventually import eventually_blocking
from kube_bed import Bed
from kube_objects import path_of, service
from kube_replicas import Replica, Replicas

NAMES = ("istiod-a", "istiod-b", "istiod-c")

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("gateway_class")]


@pytest.fixture
def replicas(bed: Bed, tmp_path: pathlib.Path, namespace: str) -> Iterator[Replicas]:
    """Of a revision of their own, so that each test has its own Lease."""
    revision = f"of-{namespace}"
    found = Replicas(
        bed,
        tmp_path,
        f"istio-gateway-status-leader-{revision}",
        REVISION=revision,
        PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER="false",
        PILOT_ENABLE_GATEWAY_API_GATEWAYCLASS_CONTROLLER="false",
    )
    try:
        yield found
    finally:
        found.stop()


class Routes:
    """Routes of a revision, and how often each was written."""

    def __init__(self, bed: Bed, namespace: str) -> None:
        self._bed, self._namespace = bed, namespace
        labels = {"istio.io/rev": f"of-{namespace}"}
        gateway = {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "Gateway",
            "metadata": {"name": "gate", "namespace": namespace, "labels": labels},
            "spec": {"gatewayClassName": "istio", "listeners": [{"name": "web", "port": 80, "protocol": "HTTP"}]},
        }
        bed.apply(path_of(gateway, "gateways"), gateway)
        bed.apply(path_of(service(namespace, "cart"), "services"), service(namespace, "cart"))
        self._labels = labels

    def apply(self, name: str, backend: str = "cart") -> None:
        document = {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {"name": name, "namespace": self._namespace, "labels": self._labels},
            "spec": {
                "parentRefs": [{"name": "gate"}],
                "rules": [{"backendRefs": [{"name": backend, "port": 80}]}],
            },
        }
        self._bed.apply(path_of(document, "httproutes"), document)

    def reasons(self, name: str) -> set[str]:
        """The reasons of a route's conditions, if they are of its generation."""
        route = self._bed.call("GET", self._path(name))
        conditions = [one for parent in route.get("status", {}).get("parents", ()) for one in parent["conditions"]]
        generation = route["metadata"]["generation"]
        return {one["reason"] for one in conditions if one["observedGeneration"] == generation}

    def until(self, name: str, *reasons: str) -> None:
        eventually_blocking(lambda: self.reasons(name) == set(reasons), 120, every=0.1)

    def writes(self) -> dict[str, int]:
        """How often each route was written, by its user and for its status, by what the store counts."""
        begin = f"/httproutes/{self._namespace}/"
        return {at.partition(begin)[2]: count for at, count in self._bed.stored_writes().items() if begin in at}

    def versions(self, *names: str) -> list[str]:
        return [self._bed.call("GET", self._path(name))["metadata"]["resourceVersion"] for name in names]

    def _path(self, name: str) -> str:
        return f"/apis/gateway.networking.k8s.io/v1/namespaces/{self._namespace}/httproutes/{name}"


@pytest.fixture
def routes(bed: Bed, namespace: str) -> Routes:
    return Routes(bed, namespace)


def until_idle(leader: Replica) -> None:
    """Wait until a replica that has written a status has nothing more to compare or write."""
    eventually_blocking(
        lambda: "\nmizzen_status_waiting 0" in leader.read("--monitoringAddr", "/metrics"), 120, every=0.2
    )


def test_a_killed_leader_is_succeeded_and_each_status_is_written_once(replicas, routes):
    names = [f"r-{number}" for number in range(10)]
    for name in names:
        routes.apply(name)
    replicas.start(*NAMES)
    first = replicas.until_led()
    for name in names:
        routes.until(name, "Accepted", "ResolvedRefs")
    before = routes.versions(*names)
    first.end(signal.SIGKILL)
    routes.apply("late")
    second = replicas.until_led(by_another_than=first.name)
    assert replicas.spec["leaseTransitions"] == 1
    routes.until("late", "Accepted", "ResolvedRefs")
    assert routes.versions(*names) == before
    until_idle(second)
    assert routes.writes() == dict.fromkeys((*names, "late"), 2)
    replicas.start(first.name)
    second.end(signal.SIGTERM)
    assert replicas.leader != second.name, "who stops gives the Lease away"
    third = replicas.until_led(by_another_than=second.name)
    routes.apply("latest")
    routes.until("latest", "Accepted", "ResolvedRefs")
    until_idle(third)
    assert routes.versions(*names) == before


def test_a_leader_that_slept_through_its_term_writes_no_more(replicas, routes):
    routes.apply("r")
    replicas.start(*NAMES[:2])
    first = replicas.until_led()
    routes.until("r", "Accepted", "ResolvedRefs")
    first.send(signal.SIGSTOP)
    replicas.until_led(by_another_than=first.name)
    routes.apply("r", "absent")
    routes.until("r", "Accepted", "BackendNotFound")
    before = routes.versions("r")
    first.send(signal.SIGCONT)
    eventually_blocking(lambda: f"no longer leads {replicas.lease}" in first.log.read_text(), 120)
    time.sleep(2)
    assert routes.versions("r") == before
    assert replicas.leader != first.name
    assert routes.writes() == {"r": 4}, "twice by its user"
