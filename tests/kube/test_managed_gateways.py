"""Managed Gateways in a real API server: deployed, kept, handed on, and never written for nothing."""

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
from kube_bed import Answer, Bed
from kube_objects import path_of

from mizzen import settings
from mizzen.api.meta import Key
from mizzen.sources.kube.access import from_kubeconfig

MANAGER = "istio.io/gateway-controller"
PLACES = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts/",
    "Service": "/api/v1/namespaces/{}/services/",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments/",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers/",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets/",
}
ALWAYS = ("ServiceAccount", "Service", "Deployment")
MERGE = "application/merge-patch+json"
until = functools.partial(waiting.eventually, seconds=120.0, every=0.1)


pytestmark = pytest.mark.usefixtures("mesh_kinds")


@contextlib.asynccontextmanager
async def deploying(bed: Bed, folder: pathlib.Path, **features: bool) -> AsyncIterator[Plane]:
    tuned = msgspec.structs.replace(FAST, features=settings.Features(**features))
    access = from_kubeconfig(await asyncio.to_thread(installed, bed))
    async with control_plane(folder, tuned, config=(), kubernetes=access) as plane:
        yield plane


class Made:
    """A Gateway, and what is made for it."""

    def __init__(self, bed: Bed, namespace: str) -> None:
        self._bed, self.namespace = bed, namespace

    def gateway(self, **metadata: Any) -> dict[str, Any]:
        return {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "Gateway",
            "metadata": {"name": "gate", "namespace": self.namespace, **metadata},
            "spec": {
                "gatewayClassName": "istio",
                "listeners": [{"name": "web", "port": 80, "protocol": "HTTP"}],
            },
        }

    async def call(self, method: str, path: str, body: Any = None, **more: str) -> dict[str, Any]:
        return await asyncio.to_thread(self._bed.call, method, path, body, **more)

    async def apply(self, document: dict[str, Any], plural: str) -> dict[str, Any]:
        return await asyncio.to_thread(self._bed.apply, path_of(document, plural), document)

    async def apply_gateway(self, **metadata: Any) -> dict[str, Any]:
        return await self.apply(self.gateway(**metadata), "gateways")

    @property
    def gateway_path(self) -> str:
        return path_of(self.gateway(), "gateways")

    def path(self, kind: str, name: str = "gate-istio") -> str:
        return PLACES[kind].format(self.namespace) + name

    async def find(self, kind: str) -> dict[str, Any] | None:
        return await self.at(self.path(kind))

    async def at(self, path: str) -> dict[str, Any] | None:
        try:
            return await self.call("GET", path)
        except Answer as answer:
            if answer.status != 404:
                raise
            return None

    async def until(self, kind: str, holds: Callable[[dict[str, Any]], Any] = bool) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            found = await self.find(kind)
            return found if found is not None and holds(found) else None

        return await until(look)

    async def until_gateway(self, holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            found = await self.call("GET", self.gateway_path)
            return found if holds(found) else None

        return await until(look)

    async def versions(self) -> dict[str, str]:
        found = {kind: await self.find(kind) for kind in PLACES}
        return {kind: one["metadata"]["resourceVersion"] for kind, one in found.items() if one is not None}

    async def are_quiet_for_none(self) -> dict[str, str]:
        """The versions after a while in which something would have been made."""
        await asyncio.sleep(3)
        return await self.versions()

    async def are_quiet(self) -> dict[str, str]:
        """The versions, once nobody has written for a while."""
        last: dict[str, str] = {}
        async with asyncio.timeout(120):
            while not last or last != await self.versions():
                last = await self.versions()
                await asyncio.sleep(2)
        return last


@pytest.fixture
def made(bed: Bed, namespace: str) -> Made:
    return Made(bed, namespace)


def owner(found: dict[str, Any]) -> dict[str, Any]:
    (reference,) = found["metadata"]["ownerReferences"]
    return reference


async def test_a_gateway_is_deployed_under_its_name_and_ownership(bed, made, tmp_path):
    gateway = await made.apply_gateway()
    async with deploying(bed, tmp_path):
        for kind in ALWAYS:
            found = await made.until(kind)
            reference = owner(found)
            assert (reference["kind"], reference["uid"]) == ("Gateway", gateway["metadata"]["uid"])
            assert found["metadata"]["labels"]["gateway.istio.io/managed"] == "istio.io-gateway-controller"
            assert {entry["manager"] for entry in found["metadata"]["managedFields"]} == {MANAGER}
            assert {entry["operation"] for entry in found["metadata"]["managedFields"]} == {"Apply"}
        service = await made.until("Service")
        assert [port["port"] for port in service["spec"]["ports"]] == [15021, 80]
        assert await made.find("HorizontalPodAutoscaler") is None

        def is_signed(found: dict[str, Any]) -> bool:
            return found["metadata"].get("annotations", {}).get("gateway.istio.io/controller-version") == "5"

        await made.until_gateway(is_signed)
        made_class = await until(lambda: made.at("/apis/gateway.networking.k8s.io/v1/gatewayclasses/istio"))
        assert made_class["spec"]["controllerName"] == MANAGER


async def test_the_address_of_the_load_balancer_is_told(bed, made, tmp_path):
    await made.apply_gateway()
    async with deploying(bed, tmp_path):
        await made.until("Service")
        slice_ = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": "gate-istio-1",
                "namespace": made.namespace,
                "labels": {"kubernetes.io/service-name": "gate-istio"},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.9.9.9"], "conditions": {"ready": True}}],
            "ports": [{"name": "web", "port": 80, "protocol": "TCP"}],
        }
        await made.apply(slice_, "endpointslices")

        def reason(found: dict[str, Any]) -> str:
            conditions = found.get("status", {}).get("conditions", ())
            return next((one["reason"] for one in conditions if one["type"] == "Programmed"), "")

        await made.until_gateway(lambda found: reason(found) == "AddressNotAssigned")
        status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}}
        await made.call("PATCH", f"{made.path('Service')}/status", status, kind=MERGE)
        found = await made.until_gateway(lambda found: reason(found) == "Programmed")
        assert found["status"]["addresses"] == [{"type": "IPAddress", "value": "192.0.2.7"}]


async def test_what_somebody_changes_or_removes_is_put_right(bed, made, tmp_path):
    await made.apply_gateway()
    async with deploying(bed, tmp_path):
        for kind in ALWAYS:
            await made.until(kind)
        changed = {"spec": {"selector": {"app": "other"}, "type": "ClusterIP"}}
        await made.call("PATCH", made.path("Service"), changed, kind=MERGE)
        selector = {"gateway.networking.k8s.io/gateway-name": "gate"}
        service = await made.until("Service", lambda found: found["spec"]["selector"] == selector)
        assert service["spec"]["type"] == "LoadBalancer"
        await made.call("PATCH", made.path("Deployment"), {"metadata": {"ownerReferences": None}}, kind=MERGE)
        await made.until("Deployment", lambda found: found["metadata"].get("ownerReferences"))
        before = await made.until("ServiceAccount")
        await made.call("DELETE", made.path("ServiceAccount"))
        await made.until(
            "ServiceAccount", lambda found: found["metadata"]["uid"] != before["metadata"]["uid"]
        )  # fmt: skip


async def test_fields_of_others_stay_theirs(bed, made, tmp_path):
    await made.apply_gateway()
    async with deploying(bed, tmp_path):
        for kind in ALWAYS:
            await made.until(kind)
        await made.call("PATCH", made.path("Deployment"), {"spec": {"replicas": 3}}, kind=MERGE)
        added = {"metadata": {"annotations": {"example.com/checked": "yes"}}}
        await made.call("PATCH", made.path("Service"), added, kind=MERGE)
        await made.are_quiet()
        deployment, service = await made.find("Deployment"), await made.find("Service")
        assert deployment is not None
        assert service is not None
        assert deployment["spec"]["replicas"] == 3
        assert service["metadata"]["annotations"]["example.com/checked"] == "yes"


async def test_nothing_is_written_by_a_replica_that_comes_after(bed, made, tmp_path):
    await made.apply_gateway()
    async with deploying(bed, tmp_path):
        for kind in ALWAYS:
            await made.until(kind)
        before = await made.are_quiet()
    async with deploying(bed, tmp_path) as plane:
        applied = 'mizzen_leader{lease="istio-gateway-deployment-default"} 1'

        async def leads() -> bool:
            return applied in (await plane.get("/metrics"))[1]

        await until(leads)
        later = made.gateway()
        later["metadata"]["name"] = "later"
        await made.apply(later, "gateways")
        await until(lambda: made.at(made.path("Deployment", "later-istio")))  # So the first one was seen to.
        assert await made.are_quiet() == before


async def test_the_gateway_and_its_parameters_are_followed(bed, made, tmp_path):
    parameters = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "choices", "namespace": made.namespace},
        "data": {
            "horizontalPodAutoscaler": "spec: {minReplicas: 2, maxReplicas: 4}",
            "podDisruptionBudget": "spec: {minAvailable: 1}",
        },
    }
    await made.apply(parameters, "configmaps")
    gateway = await made.apply_gateway()
    async with deploying(bed, tmp_path):
        await made.until("Deployment")
        listener = {"name": "more", "port": 8443, "protocol": "HTTP"}
        reference = {"group": "", "kind": "ConfigMap", "name": "choices"}
        spec = {"listeners": [*gateway["spec"]["listeners"], listener], "infrastructure": {"parametersRef": reference}}
        await made.call("PATCH", made.gateway_path, {"spec": spec}, kind=MERGE)
        await made.until("Service", lambda found: 8443 in {port["port"] for port in found["spec"]["ports"]})
        autoscaler = await made.until("HorizontalPodAutoscaler")
        assert (autoscaler["spec"]["minReplicas"], autoscaler["spec"]["maxReplicas"]) == (2, 4)
        assert owner(autoscaler)["name"] == "gate"
        assert (await made.until("PodDisruptionBudget"))["spec"]["minAvailable"] == 1


async def test_what_is_somebody_elses_is_left_alone(bed, made, tmp_path, caplog):
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "gate-istio", "namespace": made.namespace, "labels": {"team": "other"}},
    }
    before = await made.apply(account, "serviceaccounts")
    await made.apply_gateway()
    async with deploying(bed, tmp_path):
        await made.until("Deployment")
        await made.are_quiet()
        found = await made.find("ServiceAccount")
        assert found is not None
        assert found["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        assert caplog.text.count("ServiceAccount gate-istio is somebody else's") == 1


async def test_gateways_of_newer_control_planes_and_of_other_revisions_are_not_deployed(bed, made, tmp_path):
    await made.apply_gateway(annotations={"gateway.istio.io/controller-version": "6"})
    canary = made.gateway(labels={"istio.io/rev": "canary"})
    canary["metadata"]["name"] = "canary"
    ours = made.gateway()
    ours["metadata"]["name"] = "ours"
    for document in (canary, ours):
        await made.apply(document, "gateways")
    async with deploying(bed, tmp_path):
        await until(lambda: made.at(made.path("Deployment", "ours-istio")))
        assert await made.are_quiet_for_none() == {}
        assert not await made.at(made.path("Deployment", "canary-istio"))


async def test_a_gateway_that_is_gone_is_not_deployed_again(bed, made, tmp_path):
    """The server of this test has no garbage collector, which is what removes the objects of a Gateway that is gone."""
    await made.apply_gateway()
    async with deploying(bed, tmp_path) as plane:
        for kind in ALWAYS:
            await made.until(kind)
        key, source = Key("KubernetesGateway", made.namespace, "gate"), plane.control_plane.cluster.source
        assert source.resource_version(key)
        await made.call("DELETE", made.gateway_path)
        # Each kind is told of by itself: that its Service is gone may be heard before this is.
        await until(lambda: not source.resource_version(key))
        for kind in ALWAYS:
            await made.call("DELETE", made.path(kind))
        assert await made.are_quiet_for_none() == {}


RIGHTS: tuple[tuple[str, str, str], ...] = (
    ("*", "*", "get list watch"),
    ("coordination.k8s.io", "leases", "get create patch"),
    (
        "gateway.networking.k8s.io",
        "gatewayclasses/status gateways/status listenersets/status httproutes/status grpcroutes/status "
        "tcproutes/status tlsroutes/status backendtlspolicies/status",
        "patch",
    ),
    ("gateway.networking.k8s.io", "gatewayclasses", "create"),
    ("gateway.networking.k8s.io", "gateways", "patch"),
    ("", "configmaps", "create patch"),
    ("", "serviceaccounts services", "create patch"),
    ("apps", "deployments", "create patch"),
    ("autoscaling", "horizontalpodautoscalers", "create patch"),
    ("policy", "poddisruptionbudgets", "create patch"),
)
"""What docs/kubernetes.md says is needed to write back."""


async def test_the_rights_that_are_documented_are_enough(bed, made, tmp_path, caplog):
    account, rbac = f"writer-of-{made.namespace}", "/apis/rbac.authorization.k8s.io/v1"
    rules = [
        {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
        for group, resources, verbs in RIGHTS
    ]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": account}
    await made.call("POST", f"{rbac}/clusterroles", {"metadata": {"name": account}, "rules": rules})
    binding = {"metadata": {"name": account}, "roleRef": reference, "subjects": [subject]}
    await made.call("POST", f"{rbac}/clusterrolebindings", binding)
    await asyncio.to_thread(until_granted, bed, account, rules)
    certificate, key = bed.authority.issue(account)
    files = {"client-certificate-data": certificate, "client-key-data": key}
    user = {name: base64.b64encode(text.encode()).decode() for name, text in files.items()}
    parameters = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "choices", "namespace": made.namespace},
        "data": {
            "horizontalPodAutoscaler": "spec: {minReplicas: 2, maxReplicas: 4}",
            "podDisruptionBudget": "spec: {minAvailable: 1}",
        },
    }
    await made.apply(parameters, "configmaps")
    gateway = made.gateway()
    reference = {"group": "", "kind": "ConfigMap", "name": "choices"}
    gateway["spec"]["infrastructure"] = {"parametersRef": reference}
    with contextlib.suppress(Answer):
        await made.call("DELETE", "/apis/gateway.networking.k8s.io/v1/gatewayclasses/istio-remote")
    await made.apply(gateway, "gateways")
    access = from_kubeconfig(bed.kubeconfig(account, **user))
    async with control_plane(tmp_path, FAST, config=(), kubernetes=access):
        for kind in PLACES:
            await made.until(kind)

        def is_accepted(found: dict[str, Any]) -> bool:
            conditions = found.get("status", {}).get("conditions", ())
            return any((one["type"], one["status"]) == ("Accepted", "True") for one in conditions)

        await made.until_gateway(is_accepted)
        await until(lambda: made.at("/apis/gateway.networking.k8s.io/v1/gatewayclasses/istio-remote"))
    assert "forbidden" not in caplog.text
