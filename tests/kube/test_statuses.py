"""Statuses of the Gateway API in a real API server: written once, by one replica, and never for nothing."""

import asyncio
import base64
import contextlib
import functools
import pathlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import eventually as waiting
import msgspec
import pytest
from control_planes import FAST, Plane, control_plane
from kube_accounts import installed, until_granted
from kube_bed import Bed
from kube_objects import path_of, service

from mizzen import settings
from mizzen.control import statuses
from mizzen.sources.kube.access import from_kubeconfig

eventually = functools.partial(waiting.eventually, seconds=120.0)
STATUSES_ALONE = msgspec.structs.replace(
    FAST, features=settings.Features(gateway_deployments=False, gateway_classes=False)
)
FOREIGN = {
    "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "theirs"},
    "controllerName": "example.com/controller",
    "conditions": [
        {
            "type": "Accepted",
            "status": "True",
            "reason": "Accepted",
            "message": "",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}


pytestmark = pytest.mark.usefixtures("gateway_class")


@contextlib.asynccontextmanager
async def writing(bed: Bed, folder: pathlib.Path, **instance: str) -> AsyncIterator[Plane]:
    tuned = msgspec.structs.replace(STATUSES_ALONE, instance=settings.Instance(**instance))
    access = from_kubeconfig(await asyncio.to_thread(installed, bed))
    async with control_plane(folder, tuned, config=(), kubernetes=access) as plane:
        yield plane


def gateway(namespace: str, name: str = "gate", class_name: str = "istio", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {
            "gatewayClassName": class_name,
            "addresses": [{"type": "Hostname", "value": f"ingress.{namespace}.svc.cluster.local"}],
            "listeners": [{"name": "web", "port": 80, "protocol": "HTTP"}],
        },
    }


def route(namespace: str, backend: str = "cart", *parents: str) -> dict[str, Any]:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "r", "namespace": namespace},
        "spec": {
            "parentRefs": [{"name": name} for name in parents or ("gate",)],
            "rules": [{"backendRefs": [{"name": backend, "port": 80}]}],
        },
    }


PLURALS = {"Gateway": "gateways", "HTTPRoute": "httproutes", "Service": "services", "EndpointSlice": "endpointslices"}


class Objects:
    """The objects of a namespace, as the server has them."""

    def __init__(self, bed: Bed, namespace: str) -> None:
        self.bed, self.namespace = bed, namespace

    def path(self, document: dict[str, Any]) -> str:
        return path_of(document, PLURALS[document["kind"]])

    async def apply(self, *documents: dict[str, Any]) -> None:
        for document in documents:
            await asyncio.to_thread(self.bed.apply, self.path(document), document)

    async def get(self, document: dict[str, Any]) -> dict[str, Any]:
        return await asyncio.to_thread(self.bed.call, "GET", self.path(document))

    async def patch(self, document: dict[str, Any], body: Any, *, below: str = "") -> None:
        path = self.path(document) + below
        await asyncio.to_thread(self.bed.call, "PATCH", path, body, kind="application/merge-patch+json")

    async def until(self, document: dict[str, Any], holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """The object once its status is so."""

        async def look() -> dict[str, Any] | None:
            found = await self.get(document)
            return found if holds(found.get("status") or {}) else None

        return await eventually(look, every=0.05)

    async def backend(self, name: str = "cart") -> None:
        await self.apply(service(self.namespace, name))

    async def ingress(self, address: str = "10.7.7.7") -> None:
        """A Service of a gateway with an endpoint."""
        await self.apply(
            service(self.namespace, "ingress"),
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {
                    "name": "ingress-1",
                    "namespace": self.namespace,
                    "labels": {"kubernetes.io/service-name": "ingress"},
                },
                "addressType": "IPv4",
                "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
                "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
            },
        )


@pytest.fixture
def objects(bed: Bed, namespace: str) -> Objects:
    return Objects(bed, namespace)


def condition(entry: dict[str, Any], kind: str) -> dict[str, Any]:
    return next((one for one in entry.get("conditions", ()) if one["type"] == kind), {})


def resolved(status: dict[str, Any], wanted: str) -> bool:
    return any(condition(one, "ResolvedRefs").get("status") == wanted for one in status.get("parents", ()))


def is_accepted(status: dict[str, Any]) -> bool:
    return condition(status, "Accepted").get("status") == "True"


async def versions(objects: Objects, *documents: dict[str, Any]) -> list[str]:
    return [(await objects.get(one))["metadata"]["resourceVersion"] for one in documents]


async def are_settled(plane: Plane) -> None:
    """Wait until the writer has nothing to compare or write."""

    async def is_idle() -> bool:
        _, text = await plane.get("/metrics")
        return "\nmizzen_status_waiting 0" in text and 'istio-gateway-status-leader-default"} 1' in text

    quiet = 0
    async with asyncio.timeout(120):
        while quiet < 3:
            await asyncio.sleep(0.3)
            quiet = quiet + 1 if await is_idle() else 0


async def test_statuses_come_and_follow_what_they_are_about(bed, objects, namespace, tmp_path):
    await objects.apply(gateway(namespace), route(namespace))
    await objects.ingress()
    async with writing(bed, tmp_path):
        found = await objects.until(route(namespace), lambda status: resolved(status, "False"))
        (parent,) = found["status"]["parents"]
        assert parent["controllerName"] == "istio.io/gateway-controller"
        assert condition(parent, "ResolvedRefs")["reason"] == "BackendNotFound"
        before = condition(parent, "Accepted")
        await asyncio.sleep(1.1)  # Times have seconds.
        await objects.backend()
        found = await objects.until(route(namespace), lambda status: resolved(status, "True"))
        (parent,) = found["status"]["parents"]
        assert condition(parent, "Accepted") == before, "what has not changed keeps its time"
        assert condition(parent, "ResolvedRefs")["lastTransitionTime"] > before["lastTransitionTime"]
        found = await objects.until(gateway(namespace), is_accepted)
        assert condition(found["status"], "Programmed")["status"] == "True"
        assert found["status"]["listeners"][0]["attachedRoutes"] == 1
        host = {"type": "Hostname", "value": f"ingress.{namespace}.svc.cluster.local"}
        assert found["status"]["addresses"] == [host]


async def test_the_generation_that_was_observed_is_told(bed, objects, namespace, tmp_path):
    await objects.backend()
    await objects.apply(gateway(namespace), route(namespace))
    async with writing(bed, tmp_path):
        first = await objects.until(route(namespace), lambda status: resolved(status, "True"))
        await objects.patch(route(namespace), {"spec": {"hostnames": ["a.example.com"]}})
        generation = first["metadata"]["generation"] + 1

        def observed(status: dict[str, Any]) -> bool:
            return all(one["observedGeneration"] == generation for one in status["parents"][0]["conditions"])

        found = await objects.until(route(namespace), observed)
        times = [one["lastTransitionTime"] for one in found["status"]["parents"][0]["conditions"]]
        assert times == [one["lastTransitionTime"] for one in first["status"]["parents"][0]["conditions"]]


async def test_nothing_is_written_by_a_replica_that_comes_after(bed, objects, namespace, tmp_path):
    await objects.backend()
    documents = gateway(namespace), route(namespace)
    await objects.apply(*documents)
    async with writing(bed, tmp_path) as plane:
        await objects.until(route(namespace), lambda status: resolved(status, "True"))
        await objects.until(gateway(namespace), is_accepted)
        await are_settled(plane)
        before = await versions(objects, *documents)
    async with writing(bed, tmp_path) as plane:
        await are_settled(plane)
        assert await versions(objects, *documents) == before


async def test_what_others_wrote_stays_and_what_they_took_is_written_again(bed, objects, namespace, tmp_path):
    await objects.backend()
    own = {"type": "example.com/Checked", "status": "True", "reason": "r", "message": "", "observedGeneration": 1}
    own["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    await objects.apply(gateway(namespace), route(namespace, "cart", "gate", "theirs"))
    await objects.patch(route(namespace), {"status": {"parents": [FOREIGN]}}, below="/status")
    await objects.patch(gateway(namespace), {"status": {"conditions": [own]}}, below="/status")
    async with writing(bed, tmp_path):
        found = await objects.until(route(namespace), lambda status: resolved(status, "True"))
        assert found["status"]["parents"][0] == FOREIGN
        assert len(found["status"]["parents"]) == 2
        found = await objects.until(gateway(namespace), is_accepted)
        assert own in found["status"]["conditions"]
        await objects.patch(route(namespace), {"status": {"parents": [FOREIGN]}}, below="/status")
        found = await objects.until(route(namespace), lambda status: resolved(status, "True"))
        assert found["status"]["parents"][0] == FOREIGN
        await objects.patch(route(namespace), {"spec": {"parentRefs": [{"name": "theirs"}]}})
        found = await objects.until(route(namespace), lambda status: len(status["parents"]) == 1)
        assert found["status"]["parents"] == [FOREIGN]


async def test_objects_of_other_controllers_and_revisions_are_left_alone(bed, objects, namespace, tmp_path):
    theirs = gateway(namespace, "theirs", "somebody-elses")
    canary = gateway(namespace, "canary", labels={"istio.io/rev": "canary"})
    ours = gateway(namespace, "ours")
    await objects.apply(theirs, canary, ours)
    before = await versions(objects, theirs, canary)
    async with writing(bed, tmp_path) as plane:
        await objects.until(ours, is_accepted)
        await are_settled(plane)
        assert await versions(objects, theirs, canary) == before
        await objects.patch(canary, {"metadata": {"labels": {"istio.io/rev": "default"}}})
        await objects.until(canary, is_accepted)


async def test_a_revision_writes_for_its_tags(bed, objects, namespace, tmp_path):
    tagged = gateway(namespace, "tagged", labels={"istio.io/rev": "stable"})
    await objects.apply(tagged)
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "tag-stable", "labels": {"istio.io/rev": "blue", "istio.io/tag": "stable"}},
    }
    await asyncio.to_thread(bed.apply, path_of(hook, "mutatingwebhookconfigurations"), hook)
    try:
        async with writing(bed, tmp_path, revision="blue"):
            await objects.until(tagged, is_accepted)
    finally:
        await asyncio.to_thread(bed.call, "DELETE", path_of(hook, "mutatingwebhookconfigurations"))


async def test_a_status_that_is_written_recompiles_nothing(bed, objects, namespace, tmp_path):
    await objects.backend()
    await objects.apply(gateway(namespace), route(namespace))
    async with writing(bed, tmp_path) as plane:
        await objects.until(route(namespace), lambda status: resolved(status, "True"))
        await are_settled(plane)
        runs = plane.control_plane.engine.runs
        before = await versions(objects, route(namespace))
        await objects.patch(route(namespace), {"status": {"parents": [FOREIGN]}}, below="/status")
        await objects.until(route(namespace), lambda status: resolved(status, "True"))
        await are_settled(plane)
        assert await versions(objects, route(namespace)) != before
        assert plane.control_plane.engine.runs == runs


async def test_an_address_that_was_told_stays_when_its_service_goes(bed, objects, namespace, tmp_path):
    await objects.ingress()
    await objects.apply(gateway(namespace))
    async with writing(bed, tmp_path):
        found = await objects.until(gateway(namespace), lambda status: status.get("addresses"))
        addresses = found["status"]["addresses"]
        await asyncio.to_thread(bed.call, "DELETE", objects.path(service(namespace, "ingress")))

        def is_lost(status: dict[str, Any]) -> bool:
            return condition(status, "Programmed").get("reason") == "AddressNotUsable"

        found = await objects.until(gateway(namespace), is_lost)
        assert found["status"]["addresses"] == addresses


async def test_nobody_without_permission_writes_and_it_is_told_once(bed, objects, namespace, tmp_path, caplog):
    """The Lease may be written, statuses may be read only."""
    account = f"reader-of-{namespace}"
    everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
    leases = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    role = {"metadata": {"name": account}, "rules": everything + leases}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": account}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account}
    binding = {"metadata": {"name": account}, "roleRef": reference, "subjects": [subject]}
    await asyncio.to_thread(bed.call, "POST", f"{rbac}/clusterroles", role)
    await asyncio.to_thread(bed.call, "POST", f"{rbac}/clusterrolebindings", binding)
    await asyncio.to_thread(until_granted, bed, account, role["rules"])
    certificate, key = bed.authority.issue(account)
    files = {"client-certificate-data": certificate, "client-key-data": key}
    user = {name: base64.b64encode(text.encode()).decode() for name, text in files.items()}
    names = [f"g-{number}" for number in range(3)]
    await objects.apply(*(gateway(namespace, name) for name in names))
    before = await versions(objects, *(gateway(namespace, name) for name in names))
    access = from_kubeconfig(bed.kubeconfig(account, **user))
    refused = statuses._REFUSED.value("KubernetesGateway")
    async with control_plane(tmp_path, STATUSES_ALONE, config=(), kubernetes=access):
        await eventually(lambda: statuses._REFUSED.value("KubernetesGateway") >= refused + len(names))
    # Of each kind: the class of the Gateways may lack its status, too.
    told = [text for text in caplog.messages if "a status cannot be written" in text]
    assert len([text for text in told if 'cannot patch resource "gateways/status"' in text]) == 1, told
    assert await versions(objects, *(gateway(namespace, name) for name in names)) == before
