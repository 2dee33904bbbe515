"""A leader that is killed while it keeps everything that a control plane writes: its successor doubles nothing of it."""

import asyncio
import pathlib
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import adsclient
import grpc
import pytest
from control_planes import HOST
from eventually import eventually_blocking
from kube_accounts import make_account, token
from kube_bed import Answer, Bed
from kube_objects import path_of, service
from kube_replicas import LEASES, Replica, Replicas, leases_of

from mizzen.compile.resource import CLUSTER
from mizzen.control.election import lease_name
from mizzen.control.writers import STATUS_ELECTION

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("mesh_kinds")]

GATEWAYS, CORE, APPS = "gateway.networking.k8s.io/v1", "v1", "apps/v1"
MESH = "networking.istio.io/v1"
KINDS = {
    "deployments": APPS,
    "services": CORE,
    "serviceaccounts": CORE,
    "configmaps": CORE,
    "gateways": GATEWAYS,
    "httproutes": GATEWAYS,
    "serviceentries": MESH,
    "workloadentries": MESH,
}
"""What a leader writes, or a replica for a machine, and where."""
MANY = tuple(f"g-{number}" for number in range(8))
OPTIONS = (("grpc.ssl_target_name_override", HOST), *adsclient.CHANNEL_OPTIONS)


class Space:
    """A namespace whose objects are of one revision."""

    def __init__(self, bed: Bed, namespace: str) -> None:
        self.bed, self.namespace, self.revision = bed, namespace, f"of-{namespace}"

    def apply(self, kind: str, plural: str, name: str, version: str, spec: dict[str, Any]) -> None:
        metadata = {"name": name, "namespace": self.namespace, "labels": {"istio.io/rev": self.revision}}
        document = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
        self.bed.apply(path_of(document, plural), document)

    def apply_all(self, name: str) -> None:
        """A Gateway to deploy, a route to judge, an entry to give addresses."""
        listener = {"name": "web", "port": 80, "protocol": "HTTP"}
        self.apply("Gateway", "gateways", name, GATEWAYS, {"gatewayClassName": "istio", "listeners": [listener]})
        rules = [{"backendRefs": [{"name": "cart", "port": 80}]}]
        self.apply("HTTPRoute", "httproutes", name, GATEWAYS, {"parentRefs": [{"name": name}], "rules": rules})
        port = {"number": 80, "name": "http", "protocol": "HTTP"}
        entry = {"hosts": [f"{name}.example.com"], "resolution": "DNS", "ports": [port]}
        self.apply("ServiceEntry", "serviceentries", name, MESH, entry)

    def path(self, plural: str, name: str = "") -> str:
        root = "/api" if KINDS[plural] == CORE else "/apis"
        return f"{root}/{KINDS[plural]}/namespaces/{self.namespace}/{plural}{f'/{name}' if name else ''}"

    def find(self, plural: str, name: str) -> dict[str, Any]:
        try:
            return self.bed.call("GET", self.path(plural, name))
        except Answer as answer:
            if answer.status != 404:
                raise
            return {}

    def names(self, plural: str) -> set[str]:
        return {one["metadata"]["name"] for one in self.bed.call("GET", self.path(plural))["items"]}

    def is_kept(self, name: str) -> bool:
        """Whether all is made and said of what `apply_all` brings."""
        made = [self.find(plural, f"{name}-istio") for plural in ("deployments", "services", "serviceaccounts")]
        parents = self.find("httproutes", name).get("status", {}).get("parents", ())
        gateway = self.find("gateways", name).get("status", {})
        return (
            all(made)
            and any(all(one["status"] == "True" for one in parent["conditions"]) for parent in parents)
            # The last that is said of a Gateway, once its Service and its route are known.
            and any("no instances found" in one["message"] for one in gateway.get("conditions", ()))
            and all(one["attachedRoutes"] == 1 for one in gateway.get("listeners", ()))
            and bool(self.find("serviceentries", name).get("status", {}).get("addresses"))
        )

    def roots(self) -> str:
        """What is told to the namespace of whom to trust; empty until the leader of the roots, who may be late, says it."""
        return str(self.find("configmaps", "istio-ca-root-cert").get("data", {}).get("root-cert.pem", ""))

    def writes(self) -> dict[str, Counter[str]]:
        """How often each object of a kind was written since it was made, by what the store counts."""
        found: dict[str, Counter[str]] = {plural: Counter() for plural in KINDS}
        for at, count in self.bed.stored_writes().items():
            *_, plural, namespace, name = at.split("/")
            plural = {"specs": "services"}.get(plural, plural)
            if namespace == self.namespace and plural in found:
                found[plural][name] = count
        return found

    def leaders(self) -> set[str]:
        """Who holds the Leases of all that is written."""
        found = {one["metadata"]["name"]: one["spec"] for one in self.bed.call("GET", LEASES)["items"]}
        names = leases_of(self.revision)
        return {found.get(name, {}).get("holderIdentity", "").partition("_")[0] for name in names}


@pytest.fixture
def space(bed: Bed, namespace: str) -> Space:
    found = Space(bed, namespace)
    bed.apply(path_of(service(namespace, "cart"), "services"), service(namespace, "cart"))
    make_account(bed, namespace, "vm")
    found.apply("WorkloadGroup", "workloadgroups", "vms", MESH, {"template": {"serviceAccount": "vm"}})
    return found


@pytest.fixture
def replicas(bed: Bed, tmp_path: pathlib.Path, space: Space) -> Iterator[Replicas]:
    lease = lease_name(STATUS_ELECTION, space.revision)
    found = Replicas(bed, tmp_path, lease, REVISION=space.revision)
    try:
        yield found
    finally:
        found.stop()


def machine(space: Space, replica: Replica, roots: str) -> adsclient.Client:
    """The agent of a machine that registers itself, by its protocol alone."""
    node = adsclient.node("vm-1", space.namespace, ip="10.9.8.7", service_account="vm", AUTO_REGISTER_GROUP="vms")
    return adsclient.Client(
        replica.address("--secureGRPCAddr"),
        node=node,
        credentials=grpc.ssl_channel_credentials(roots.encode()),
        token=token(space.bed, space.namespace, "vm"),
        options=OPTIONS,
    )


def registered(space: Space, by: str) -> str:
    """The uid of the machine's entry, once it is that replica's."""
    metadata = space.find("workloadentries", "vms-10.9.8.7").get("metadata", {})
    is_there = metadata.get("annotations", {}).get("istio.io/workloadController") == by
    return metadata["uid"] if is_there else ""


async def until(check: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.to_thread(eventually_blocking, lambda: check(*arguments), 180, every=0.2)


async def test_a_leader_killed_at_its_work_leaves_nothing_that_its_successor_makes_twice(bed, space, replicas):
    await asyncio.to_thread(space.apply_all, "first")
    replicas.start("istiod-a")
    await until(lambda: space.leaders() == {"istiod-a"})
    await until(space.is_kept, "first")
    first, roots = replicas.all["istiod-a"], await until(space.roots)
    await until(first.is_ready)
    async with await asyncio.to_thread(machine, space, first, roots) as agent:
        await agent.subscribe(CLUSTER)
        await agent.read_acked(60)
        uid = await until(registered, space, "istiod-a")
        replicas.start("istiod-b", "istiod-c")
        await until(replicas.all["istiod-b"].is_ready)
        reconnecting = await asyncio.to_thread(machine, space, replicas.all["istiod-b"], roots)
        before = await asyncio.to_thread(space.writes)
        for name in MANY:
            await asyncio.to_thread(space.apply_all, name)
        await until(lambda: space.names("deployments") > {"first-istio"})
        first.end(signal.SIGKILL)
    await asyncio.to_thread(space.apply_all, "late")
    async with reconnecting as agent:
        await agent.subscribe(CLUSTER)
        await agent.read_acked(60)
        await until(lambda: space.leaders() <= {"istiod-b", "istiod-c"})
        for name in (*MANY, "late"):
            await until(space.is_kept, name)
        assert await until(registered, space, "istiod-b") == uid
        replicas.start("istiod-a")  # As its Deployment would have it.
        await asyncio.to_thread(replicas.all["istiod-a"].address, "--secureGRPCAddr")
        await asyncio.sleep(5)
        after = await asyncio.to_thread(space.writes)
    names = ("first", *MANY, "late")
    made, said = Counter(f"{name}-istio" for name in names), Counter((*names, *names))
    assert after == {
        "deployments": made,
        "services": made + Counter(["cart"]),
        "serviceaccounts": made + Counter(["vm"]),
        "configmaps": Counter(["istio-ca-root-cert"]),
        "gateways": after["gateways"],
        "httproutes": said,
        "serviceentries": said,
        "workloadentries": Counter(["vms-10.9.8.7"] * 2),  # By the one replica and by the other.
    }
    assert after["gateways"].keys() == set(names)
    assert max(after["gateways"].values()) <= 5, (
        "by its user, once claimed, and said before and after its route and its Service are there"
    )
    assert after["gateways"]["first"] == before["gateways"]["first"]
