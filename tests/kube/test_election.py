"""Three replicas over a real API server: one of them writes, each status once, whatever becomes of the leader."""

import json
import pathlib
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from eventually import eventually_blocking
from kube_bed import Bed
from kube_objects import path_of, service
from kube_replicas import Replicas

pytestmark = pytest.mark.timeout(600)

NAMES = ("istiod-a", "istiod-b", "istiod-c")
ROUTES = "/apis/gateway.networking.k8s.io/v1/httproutes"


pytestmark = pytest.mark.usefixtures("gateway_class")


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
        self._began = bed.call("GET", ROUTES)["metadata"]["resourceVersion"]

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

    def status_writes(self, name: str) -> int:
        """How many versions of a route came of its status, by all that the server remembers."""
        query = f"resourceVersion={self._began}&watch=true&timeoutSeconds=2&fieldSelector=metadata.name={name}"
        path = f"{ROUTES.replace('httproutes', f'namespaces/{self._namespace}/httproutes')}?{query}"
        statuses: list[Any] = []
        for event in self._events(path):
            assert event["type"] in ("ADDED", "MODIFIED"), event
            status = event["object"].get("status")
            if status and (not statuses or status != statuses[-1]):
                statuses.append(status)
        return len(statuses)

    def versions(self, *names: str) -> list[str]:
        return [self._bed.call("GET", self._path(name))["metadata"]["resourceVersion"] for name in names]

    def _path(self, name: str) -> str:
        return f"{ROUTES.replace('httproutes', f'namespaces/{self._namespace}/httproutes')}/{name}"

    def _events(self, path: str) -> Iterator[dict[str, Any]]:
        for line in self._bed.lines(path):
            yield json.loads(line)


@pytest.fixture
def routes(bed: Bed, namespace: str) -> Routes:
    return Routes(bed, namespace)


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
    assert [routes.status_writes(name) for name in (*names, "late")] == [1] * 11
    replicas.start(first.name)
    second.end(signal.SIGTERM)
    assert replicas.leader != second.name, "who stops gives the Lease away"
    replicas.until_led(by_another_than=second.name)
    routes.apply("latest")
    routes.until("latest", "Accepted", "ResolvedRefs")
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
    eventually_blocking(lambda: b"no longer leads" in first.log.read_bytes(), 120)
    time.sleep(2)
    assert routes.versions("r") == before
    assert replicas.leader != first.name
    assert routes.status_writes("r") == 2
