"""Two revisions of the control plane in one cluster: an upgrade by a tag, and the way back; which objects are whose."""

import asyncio
import contextlib
import functools
import pathlib
from collections.abc import AsyncIterator
from typing import Any

import adsclient
import cli_runs
import eventually as waiting
import pytest
from kube_accounts import install_rights, make_account, token
from kube_admission import Mesh, a_pod, meshed
from kube_bed import Answer, Bed
from kube_objects import path_of, service
from kube_replicas import LEASES
from kube_webhooks import MUTATING, REVISION, injector

from mizzen.compile.resource import CLUSTER

SYSTEM = "istio-system"
TAG = "prod"
STATUS_LEASE = "istio-gateway-status-leader"
PLURALS = {"ServiceEntry": "serviceentries", "Service": "services", "Gateway": "gateways", "ConfigMap": "configmaps"}
eventually = functools.partial(waiting.eventually, seconds=120.0)


@pytest.fixture(autouse=True)
def surroundings(bed: Bed, mesh_kinds: None):
    """No tag is left behind."""
    yield
    for collection in (MUTATING, f"/api/v1/namespaces/{SYSTEM}/services"):
        for found in bed.call("GET", f"{collection}?labelSelector=istio.io/tag")["items"]:
            bed.call("DELETE", f"{collection}/{found['metadata']['name']}")


@contextlib.asynccontextmanager
async def revision(bed: Bed, folder: pathlib.Path, name: str) -> AsyncIterator[Mesh]:
    """A control plane of a revision with its injector, until the block ends and both are removed."""
    own = folder / name
    own.mkdir(exist_ok=True)
    rights = await asyncio.to_thread(install_rights, bed, SYSTEM)
    async with meshed(bed, own, name, kubeconfig=rights) as mesh:
        await mesh.injects(injector(mesh.url(), name))
        yield mesh


async def give_tag(bed: Bed, name: str) -> None:
    arguments = ("tag", "set", TAG, "--revision", name, "--overwrite", "--kubeconfig", bed.kubeconfig())
    result = await asyncio.to_thread(cli_runs.run, *arguments)
    assert result.exit_code == 0, result.output


async def apply(bed: Bed, *documents: dict[str, Any]) -> None:
    for document in documents:
        await asyncio.to_thread(bed.apply, path_of(document, PLURALS[document["kind"]]), document)


def entry(namespace: str, host: str, labelled: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "ServiceEntry",
        "metadata": {"name": host, "namespace": namespace, "labels": {REVISION: labelled} if labelled else {}},
        "spec": {
            "hosts": [f"{host}.{namespace}.example"],
            "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}],
        },
    }


def gateway(namespace: str, name: str, labelled: str) -> dict[str, Any]:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": name, "namespace": namespace, "labels": {REVISION: labelled}},
        "spec": {
            "gatewayClassName": "istio",
            "addresses": [{"type": "Hostname", "value": f"ingress.{namespace}.svc.cluster.local"}],
            "listeners": [{"name": "web", "port": 80, "protocol": "HTTP"}],
        },
    }


async def injected_by(mesh: Mesh, namespace: str, name: str) -> dict[str, Any]:
    """A pod that is really created, once the API server asks the revision of that name."""
    document = a_pod(namespace)

    async def is_its() -> bool:
        with contextlib.suppress(Answer):
            pod = await mesh.create(document)
            return pod["metadata"].get("annotations", {}).get("istio.io/rev") == name
        return False

    await eventually(is_its, every=0.1)
    return await mesh.create(document, dry=False)


def discovery_of(pod: dict[str, Any]) -> str:
    """The control plane that a pod's proxy is told to ask."""
    containers = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    proxy = next(each for each in containers if each["name"] == "istio-proxy")
    return next(each["value"] for each in proxy["env"] if each["name"] == "CA_ADDR")


@contextlib.asynccontextmanager
async def proxy_of(pod: dict[str, Any], planes: dict[str, Mesh], bed: Bed) -> AsyncIterator[adsclient.Client]:
    """The pod's proxy, connected to where its environment says, as its service account."""
    plane = planes[discovery_of(pod)].plane
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    client = adsclient.Client(
        plane.target("--secureGRPCAddr"),
        node=adsclient.node(name, namespace),
        credentials=plane.credentials(),
        token=await asyncio.to_thread(token, bed, namespace, "default", pod_name=name),
        options=(*adsclient.CHANNEL_OPTIONS, ("grpc.ssl_target_name_override", discovery_of(pod).partition(":")[0])),
    )
    async with client:
        await client.subscribe(CLUSTER)
        await client.read_acked(60)
        yield client


def hosts(client: adsclient.Client) -> set[str]:
    """The hosts of ServiceEntries of its own namespace that a proxy knows."""
    end = f".{client.node['metadata']['NAMESPACE']}.example"
    names = (name.split("|")[-1] for name in client.held[CLUSTER])
    return {name.removesuffix(end) for name in names if name.endswith(end)}


async def read_until(client: adsclient.Client, wanted: set[str]) -> None:
    while hosts(client) != wanted:
        await client.read_acked(120)


async def told_of(mesh: Mesh) -> set[str]:
    """Whom `proxy-status` shows at a control plane."""
    arguments = ("proxy-status", "--monitoring", mesh.plane.target("--monitoringAddr"))
    result = await asyncio.to_thread(cli_runs.run, *arguments)
    assert result.exit_code == 0, result.output
    return {line.split()[0] for line in result.stdout.splitlines()[1:]}


async def test_an_upgrade_by_a_tag_the_way_back_and_the_end_of_the_old_revision(bed, namespace, tmp_path, caplog):
    make_account(bed, namespace, "default")
    await apply(
        bed,
        entry(namespace, "everybodys"),
        entry(namespace, "of-blue", "blue"),
        entry(namespace, "of-green", "green"),
        entry(namespace, "of-the-tag", TAG),
    )
    async with contextlib.AsyncExitStack() as late, revision(bed, tmp_path, "green") as green:
        blue = await late.enter_async_context(revision(bed, tmp_path, "blue"))
        planes = {f"istiod-{name}.{SYSTEM}.svc:15012": mesh for name, mesh in (("blue", blue), ("green", green))}
        await give_tag(bed, "blue")
        await blue.mark(namespace, REVISION, TAG)
        old = await injected_by(blue, namespace, "blue")
        async with proxy_of(old, planes, bed) as at_blue:
            await read_until(at_blue, {"everybodys", "of-blue", "of-the-tag"})

            # The tag moves: new pods are green's, those that run stay with blue.
            await give_tag(bed, "green")
            new = await injected_by(green, namespace, "green")
            async with proxy_of(new, planes, bed) as at_green:
                await read_until(at_green, {"everybodys", "of-green", "of-the-tag"})
                await read_until(at_blue, {"everybodys", "of-blue"})
                for mesh, pod in ((blue, old), (green, new)):
                    assert await told_of(mesh) == {f"{pod['metadata']['name']}.{namespace}"}

            # Back again.
            await give_tag(bed, "blue")
            again = await injected_by(blue, namespace, "blue")
            assert discovery_of(again) == discovery_of(old)
            await read_until(at_blue, {"everybodys", "of-blue", "of-the-tag"})
        await give_tag(bed, "green")
        await injected_by(green, namespace, "green")

        # Each revision has a leader of its own; what the tag names is green's to write to, though blue serves it.
        leases = [f"{LEASES}/{STATUS_LEASE}-{name}" for name in ("blue", "green")]

        async def are_held() -> bool:
            with contextlib.suppress(Answer):
                holders = {(await green.call("GET", path))["spec"]["holderIdentity"] for path in leases}
                return len(holders - {""}) == 2
            return False

        await eventually(are_held, every=0.1)
        await late.aclose()
        # The one that comes last shows that the other one was seen.
        await apply(bed, gateway(namespace, "orphan", "blue"), gateway(namespace, "tagged", TAG))

        async def is_accepted(name: str) -> bool:
            found = await green.call("GET", path_of(gateway(namespace, name, ""), "gateways"))
            return any(each["status"] == "True" for each in found["status"]["conditions"])

        await eventually(lambda: is_accepted("tagged"), every=0.1)
        assert not await is_accepted("orphan")
        await injected_by(green, namespace, "green")
    assert "forbidden" not in caplog.text


async def test_a_namespace_moves_from_one_revision_to_the_other_by_its_label(bed, namespace, tmp_path):
    async with revision(bed, tmp_path, "blue") as blue, revision(bed, tmp_path, "green") as green:
        for name, mesh in (("blue", blue), ("green", green), ("blue", blue)):
            await mesh.mark(namespace, REVISION, name)
            pod = await injected_by(mesh, namespace, name)
            assert discovery_of(pod) == f"istiod-{name}.{SYSTEM}.svc:15012"


async def test_who_injects_is_told_of_the_cluster(bed, namespace, tmp_path):
    async with revision(bed, tmp_path, "blue") as blue:
        await give_tag(bed, "blue")
        await blue.mark(namespace, REVISION, TAG)
        pod = (await injected_by(blue, namespace, "blue"))["metadata"]["name"]
        flags = ("--kubeconfig", bed.kubeconfig())
        verdict = await asyncio.to_thread(cli_runs.run, "x", "check-inject", f"{pod}.{namespace}", *flags)
        rows = [line.split(maxsplit=3) for line in verdict.stdout.splitlines()]
        reason = f"Namespace label {REVISION}={TAG} matches"
        assert [f"istio-revision-tag-{TAG}", "blue", "✔", reason] in rows, verdict.output
        assert next(row for row in rows if row[0] == "istio-sidecar-injector-blue")[2] == "✘"
        listed = await asyncio.to_thread(cli_runs.run, "x", "injector", "list", *flags)
        assert [namespace, "blue", "blue:", "1"] in [line.split() for line in listed.stdout.splitlines()], listed.output


async def test_the_mesh_config_says_which_namespaces_there_are(bed, namespace, tmp_path):
    await apply(bed, service(namespace, "s"), entry(namespace, "there"))
    mesh_config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "istio-chosen", "namespace": SYSTEM},
        "data": {"mesh": "discoverySelectors:\n- matchLabels: {discover: me}\n"},
    }
    await apply(bed, mesh_config)
    try:
        rights = await asyncio.to_thread(install_rights, bed, SYSTEM)
        async with meshed(bed, tmp_path, "chosen", kubeconfig=rights) as mesh:
            source, engine = mesh.plane.control_plane.cluster.source, mesh.plane.control_plane.engine

            def known() -> set[str]:
                """Namespaces of which anything is in memory, told or not."""
                held = (key for one in source._reflectors.values() for key in one.held)
                return {key.namespace for key in (*held, *source.objects) if key.namespace}

            assert known() <= {SYSTEM}
            await mesh.mark(namespace, "discover", "me")
            await eventually(lambda: namespace in known())
            async with adsclient.Client(
                mesh.plane.target("--grpcAddr"), node=adsclient.node(namespace=namespace)
            ) as client:
                await client.subscribe(CLUSTER)
                await client.read_acked(60)
                await read_until(client, {"there"})
                while f"outbound|80||s.{namespace}.svc.cluster.local" not in client.held[CLUSTER]:
                    await client.read_acked(120)  # Each kind is listed by itself.
                await mesh.mark(namespace, "discover", "not")
                await read_until(client, set())
            await eventually(lambda: known() <= {SYSTEM})
            await apply(bed, {**mesh_config, "data": {"mesh": "{}"}})
            await eventually(lambda: any(key[1] == namespace for key in engine.keys("Service")))
    finally:
        await asyncio.to_thread(bed.call, "DELETE", path_of(mesh_config, "configmaps"))
