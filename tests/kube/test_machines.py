"""Machines outside Kubernetes at a real API server: onboarded, registered, healthy or not, and removed when they go."""

import asyncio
import base64
import contextlib
import functools
import json
import pathlib
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import adsclient
import msgspec
import pod_net
import pytest
import vm_runs
from control_planes import FAST, HOST, Plane, control_plane
from cryptography import x509
from eventually import eventually
from kube_accounts import install_rights, make_account, token
from kube_bed import Answer, Bed
from kube_objects import path_of
from machine_streams import addresses, say_health

from mizzen import settings
from mizzen.compile.resource import CLUSTER, ENDPOINT
from mizzen.control import main
from mizzen.control.options import Address
from mizzen.control.peer_records import PeerRecords
from mizzen.sources.kube.access import from_kubeconfig

SYSTEM = "istio-system"
GRACE = 6.0
OPTIONS = (("grpc.ssl_target_name_override", HOST), *adsclient.CHANNEL_OPTIONS)


@pytest.fixture(scope="module", autouse=True)
def mesh(bed: Bed, mesh_kinds: None) -> Iterator[None]:
    """A mesh config that says nothing."""
    path = f"/api/v1/namespaces/{SYSTEM}/configmaps"
    bed.call("POST", path, {"metadata": {"name": "istio"}, "data": {"mesh": "{}"}})
    yield
    bed.call("DELETE", f"{path}/istio")


@contextlib.asynccontextmanager
async def serving(bed: Bed, folder: pathlib.Path, name: str = "one", **changes: Any) -> AsyncIterator[Plane]:
    """A control plane with the rights of an installed one, that gives machines little time to come back."""
    await asyncio.to_thread(folder.mkdir)
    tuned = msgspec.structs.replace(
        FAST, machines=settings.Machines(grace=GRACE), instance=settings.Instance(name=name)
    )
    access = from_kubeconfig(await asyncio.to_thread(install_rights, bed, SYSTEM))
    async with control_plane(folder, tuned, config=(), token_keys=(), kubernetes=access, **changes) as plane:
        yield plane


@pytest.fixture
async def plane(bed, tmp_path):
    async with serving(bed, tmp_path / "plane") as plane:
        yield plane


def group(namespace: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "WorkloadGroup",
        "metadata": {"name": "ratings", "namespace": namespace},
        "spec": {
            "metadata": {"labels": {"app": "ratings", "version": "v2"}},
            "template": {"serviceAccount": "vm", "ports": {"http": 9080}},
            **spec,
        },
    }


@pytest.fixture
async def shop(bed: Bed, namespace: str) -> str:
    """A namespace with a Service of machines, their group and two accounts."""

    def make() -> None:
        for account in ("vm", "other"):
            make_account(bed, namespace, account)
        ports = [{"name": "http", "port": 80, "targetPort": 9080}]
        service = {"metadata": {"name": "ratings"}, "spec": {"selector": {"app": "ratings"}, "ports": ports}}
        bed.call("POST", f"/api/v1/namespaces/{namespace}/services", service)
        bed.apply(path_of(group(namespace), "workloadgroups"), group(namespace))

    await asyncio.to_thread(make)
    return namespace


def entries(bed: Bed, namespace: str) -> dict[str, dict[str, Any]]:
    found = bed.call("GET", f"/apis/networking.istio.io/v1/namespaces/{namespace}/workloadentries")["items"]
    return {each["metadata"]["name"]: each for each in found}


def health(entry: dict[str, Any]) -> dict[str, str]:
    conditions = entry.get("status", {}).get("conditions", ())
    return {each["type"]: each["status"] for each in conditions}


async def until(check: Callable[[], Any], seconds: float = 90.0) -> Any:
    """The first true value of a check that may take its time."""
    return await eventually(lambda: asyncio.to_thread(check), seconds, 0.1)


async def until_entry(bed: Bed, namespace: str, holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """The one entry of a namespace, once it is so."""

    def look() -> dict[str, Any] | None:
        found = list(entries(bed, namespace).values())
        return found[0] if len(found) == 1 and holds(found[0]) else None

    result: dict[str, Any] = await until(look)
    return result


async def client(
    bed: Bed, plane: Plane, namespace: str, account: str = "vm", host: str = "127.0.0.1", **metadata: Any
) -> adsclient.Client:
    """An agent of a machine, by its protocol alone."""
    shown = await asyncio.to_thread(token, bed, namespace, account)
    node = adsclient.node("vm-1", namespace, ip="10.9.8.7", service_account=account, **metadata)
    target = f"{host}:{plane.control_plane.ports['--secureGRPCAddr']}"
    return adsclient.Client(target, node=node, credentials=plane.credentials(), token=shown, options=OPTIONS)


def machine(bed: Bed, plane: Plane, namespace: str, **more: Any) -> Any:
    return client(bed, plane, namespace, AUTO_REGISTER_GROUP="ratings", **more)


# -- the real agent -----------------------------------------------------------------------------------------------


@pytest.fixture
def network(tmp_path) -> Iterator[pod_net.Network]:
    folder = tmp_path / "machines"
    folder.mkdir()
    with pod_net.network(folder) as network:
        yield network


async def onboard(bed: Bed, namespace: str, vm: vm_runs.Machine, host: str, *more: str, name: str = "ratings") -> None:
    files = vm.folder / "files"
    arguments = ("--name", name, "--namespace", namespace, "--output", files, "--autoregister", *more)
    address = ("--internalIP", vm.address, "--ingressIP", host, "--clusterID", "Kubernetes")
    done = await asyncio.to_thread(vm_runs.configure, *arguments, *address, "--kubeconfig", bed.kubeconfig())
    assert done.returncode == 0, done.stderr
    vm.take(files)


async def test_a_machine_joins_serves_when_it_is_healthy_comes_back_by_certificate_and_leaves(
    bed, shop, network, tmp_path, monkeypatch
):
    # A certificate waits two seconds for its machine's entry; an Envoy here may take longer until it registers it.
    monkeypatch.setattr(main, "PeerRecords", functools.partial(PeerRecords, patience=30.0))
    probe = {"exec": {"command": ["test", "-e", "healthy"]}, "periodSeconds": 1}
    document = group(shop, probe=probe)
    await asyncio.to_thread(bed.apply, path_of(document, "workloadgroups"), document)
    ports = {"secure": Address(network.host, 15012), "mutual": Address(network.host, 15011)}
    async with serving(bed, tmp_path / "plane", **ports) as plane:
        roots = plane.control_plane.authority.bundle.decode()
        await until(lambda: kept_roots(bed, shop) == roots)
        vm = vm_runs.Machine(network.pod("vm"))
        await onboard(bed, shop, vm, network.host, "--capture-dns=false")
        vm.start()
        entry = await until_entry(bed, shop, lambda found: health(found) == {"Healthy": "False"})
        assert entry["metadata"]["name"] == f"ratings-{vm.address}"
        assert entry["metadata"]["annotations"]["istio.io/autoRegistrationGroup"] == "ratings"
        assert entry["metadata"]["annotations"]["istio.io/workloadController"] == "one"
        assert entry["metadata"]["ownerReferences"][0]["name"] == "ratings"
        expected = {"app": "ratings", "version": "v2", "service.istio.io/canonical-name": "ratings"}
        assert expected.items() <= entry["spec"]["labels"].items()
        assert (entry["spec"]["address"], entry["spec"]["serviceAccount"]) == (vm.address, "vm")
        await until(lambda: vm.is_ready)
        assert uri_of(vm.chain) == f"spiffe://cluster.local/ns/{shop}/sa/vm"
        # Servers know it by its certificate, for metrics, from the first one on.
        assert b";ratings;v2;Kubernetes;" in record_of(vm.chain)

        async with await client(bed, plane, shop, host=network.host) as asking:
            name = f"outbound|80||ratings.{shop}.svc.cluster.local"
            await asking.subscribe(ENDPOINT, name)
            assert addresses(await asking.read_acked(60), name) == []
            (vm.folder / "healthy").touch()
            await until_entry(bed, shop, lambda found: health(found) == {"Healthy": "True"})
            assert addresses(await asking.read_acked(60), name) == [vm.address]
            (vm.folder / "healthy").unlink()
            await until_entry(bed, shop, lambda found: health(found) == {"Healthy": "False"})
            assert addresses(await asking.read_acked(60), name) == []
        # Its own Envoy serves the Service's port for it, healthy or not.
        (vm.folder / "healthy").touch()
        await until(lambda: "inbound|9080||" in vm.envoy("/clusters"))

        # Looked for from now on: by the time that the agent has ended, there may be no entry any more.
        await asyncio.gather(
            asyncio.to_thread(vm.stop),
            until_entry(bed, shop, lambda found: "istio.io/disconnectedAt" in found["metadata"]["annotations"]),
        )
        await until(lambda: not entries(bed, shop))

        # Its token is over, and it needs another certificate: it proves itself by the one that it has.
        first = vm.chain.read_bytes()
        vm.token.write_text(ended(vm.token.read_text()))
        await asyncio.to_thread(shutil.rmtree, vm.folder / "etc/istio/proxy/identity")
        vm.start()
        await until_entry(bed, shop, lambda found: health(found) == {"Healthy": "True"})
        await until(lambda: vm.is_ready)
        assert vm.chain.read_bytes() != first
        assert uri_of(vm.chain) == f"spiffe://cluster.local/ns/{shop}/sa/vm"


WHO_CALLS = """
import http.server
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        said = str(self.headers.get("x-forwarded-client-cert")).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)
http.server.HTTPServer(("", 9080), Answer).serve_forever()
"""


async def test_machines_call_each_other_by_name_over_mutual_tls(bed, shop, network, tmp_path):
    callers = group(shop, template={"serviceAccount": "other"}) | {"metadata": {"name": "callers", "namespace": shop}}
    await asyncio.to_thread(bed.apply, path_of(callers, "workloadgroups"), callers)
    ports = {"secure": Address(network.host, 15012), "mutual": Address(network.host, 15011)}
    async with serving(bed, tmp_path / "plane", **ports) as plane:
        roots = plane.control_plane.authority.bundle.decode()
        await until(lambda: kept_roots(bed, shop) == roots)
        server, caller = (vm_runs.Machine(network.pod(name)) for name in ("server", "caller"))
        await onboard(bed, shop, server, network.host)
        await onboard(bed, shop, caller, network.host, name="callers")
        server.serve(WHO_CALLS)
        for vm in (server, caller):
            await asyncio.to_thread(vm.capture)
            vm.start()
        for vm in (server, caller):
            await until(lambda vm=vm: vm.is_ready)
        answer = await until(lambda: found if (found := caller.pod.get(80, host=f"ratings.{shop}"))[0] == 200 else None)
        said = answer[1]
        assert f"URI=spiffe://cluster.local/ns/{shop}/sa/other" in said
        assert f"By=spiffe://cluster.local/ns/{shop}/sa/vm" in said


def kept_roots(bed: Bed, namespace: str) -> str:
    try:
        found = bed.call("GET", f"/api/v1/namespaces/{namespace}/configmaps/istio-ca-root-cert")
    except Answer:
        return ""
    return str(found["data"]["root-cert.pem"])


def uri_of(chain: pathlib.Path) -> str:
    leaf = x509.load_pem_x509_certificate(chain.read_bytes())
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return str(names.get_values_for_type(x509.UniformResourceIdentifier)[0])


def record_of(chain: pathlib.Path) -> bytes:
    leaf = x509.load_pem_x509_certificate(chain.read_bytes())
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return b" ".join(name.value for name in names if isinstance(name, x509.OtherName))


def ended(shown: str) -> str:
    """A token whose time is over, which nobody would believe anyway."""
    head, _, signature = shown.strip().split(".")
    payload = base64.urlsafe_b64encode(json.dumps({"exp": 1}).encode()).rstrip(b"=").decode()
    return f"{head}.{payload}.{signature}"


# -- by the protocol ----------------------------------------------------------------------------------------------


async def refusal(refused: adsclient.Client) -> str:
    async with refused:
        await refused.subscribe(CLUSTER)
        with pytest.raises(ConnectionError) as ended:
            await refused.read(60)
    return str(ended.value)


async def test_who_is_another_account_is_refused_and_leaves_no_trace(bed, shop, plane):
    told = await refusal(await machine(bed, plane, shop, account="other"))
    assert "PERMISSION_DENIED" in told
    assert 'service account mismatch: "other" vs "vm"' in told
    assert await asyncio.to_thread(entries, bed, shop) == {}


async def test_who_is_registered_cannot_be_replaced_by_another(bed, shop, plane):
    async with await machine(bed, plane, shop) as right:
        await right.subscribe(CLUSTER)
        await right.read_acked(60)
        found = await until_entry(bed, shop, lambda _: True)
        assert "service account mismatch" in await refusal(await machine(bed, plane, shop, account="other"))
        (still,) = (await asyncio.to_thread(entries, bed, shop)).values()
        assert (still["metadata"]["uid"], still["spec"]) == (found["metadata"]["uid"], found["spec"])


async def test_without_its_group_a_machine_waits_outside(bed, shop, plane):
    path = path_of(group(shop), "workloadgroups")
    await asyncio.to_thread(bed.call, "DELETE", path)
    asked = await machine(bed, plane, shop)
    await until_known(plane, shop, there=False)
    assert "FAILED_PRECONDITION" in await refusal(asked)
    await asyncio.to_thread(bed.apply, path, group(shop))
    await until_known(plane, shop, there=True)
    async with await machine(bed, plane, shop) as welcome:
        await welcome.subscribe(CLUSTER)
        assert (await welcome.read(60)).resources
        await until_entry(bed, shop, lambda _: True)


async def until_known(plane: Plane, namespace: str, *, there: bool) -> None:
    key = ("WorkloadGroup", namespace, "ratings")
    await until(lambda: (plane.control_plane.engine.peek(key) is not None) is there)


async def test_an_entry_goes_over_to_the_replica_with_the_newer_connection(bed, shop, tmp_path):
    async with serving(bed, tmp_path / "one", "one") as one, serving(bed, tmp_path / "two", "two") as two:
        async with await machine(bed, two, shop) as new:
            async with await machine(bed, one, shop) as old:
                await old.subscribe(CLUSTER)
                await old.read_acked(60)
                await until_entry(bed, shop, lambda found: controller(found) == "one")
                await new.subscribe(CLUSTER)
                await new.read_acked(60)
                await until_entry(bed, shop, lambda found: controller(found) == "two")
            # What ends at the one is nothing to the other; longer than the grace period.
            await asyncio.sleep(GRACE + 2)
            found = await until_entry(bed, shop, lambda _: True)
            assert "istio.io/connectedAt" in found["metadata"]["annotations"]
            await say_health(new, "500: no")
            await until_entry(bed, shop, lambda found: health(found) == {"Healthy": "False"})
        await until(lambda: not entries(bed, shop))


def controller(found: dict[str, Any]) -> str:
    return str(found["metadata"]["annotations"]["istio.io/workloadController"])


async def test_health_of_an_entry_that_a_user_wrote_goes_with_its_machine(bed, shop, plane):
    document = {
        "apiVersion": "networking.istio.io/v1",
        "kind": "WorkloadEntry",
        "metadata": {
            "name": "mine",
            "namespace": shop,
            "annotations": {"proxy.istio.io/health-checks-enabled": "true"},
        },
        "spec": {"address": "10.9.8.7", "serviceAccount": "vm"},
    }
    await asyncio.to_thread(bed.apply, path_of(document, "workloadentries"), document)
    await until(lambda: plane.control_plane.engine.peek(("WorkloadEntry", shop, "mine")))
    async with await client(bed, plane, shop, WORKLOAD_ENTRY="mine") as own:
        await own.subscribe(CLUSTER)
        await own.read_acked(60)
        await say_health(own)
        await until_entry(bed, shop, lambda found: health(found) == {"Healthy": "True"})
    await until_entry(bed, shop, lambda found: health(found) == {})
