"""Machines at a control plane whose objects come from files: registered in its memory, for as long as they are there."""

import adsclient
import pytest
from control_planes import FAST, HOST, control_plane
from eventually import eventually
from machine_streams import addresses, say_health
from msgspec.structs import replace

from mizzen import settings
from mizzen.api.meta import Key
from mizzen.compile.resource import CLUSTER, ENDPOINT

OPTIONS = (("grpc.ssl_target_name_override", HOST), *adsclient.CHANNEL_OPTIONS)
KEY = Key("WorkloadEntry", "shop", "ratings-10.9.8.7")
NAME = "outbound|80||ratings.shop.svc.cluster.local"
MESH = """
apiVersion: v1
kind: Service
metadata: {name: ratings, namespace: shop}
spec: {selector: {app: ratings}, ports: [{name: http, port: 80, targetPort: 9080}]}
---
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: ratings, namespace: shop}
spec:
  metadata: {labels: {app: ratings}}
  template: {serviceAccount: vm}
"""


@pytest.fixture
async def plane(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "mesh.yaml").write_text(MESH)
    async with control_plane(tmp_path, replace(FAST, machines=settings.Machines(grace=0.5))) as plane:
        yield plane


def client(plane, account="vm", *, name="vm-1", ip="10.9.8.7", **metadata) -> adsclient.Client:
    return adsclient.Client(
        plane.target("--secureGRPCAddr"),
        node=adsclient.node(name, "shop", ip=ip, service_account=account, **metadata),
        credentials=plane.credentials(),
        token=plane.token("shop", account),
        options=OPTIONS,
    )


def machine(plane, account="vm", **metadata) -> adsclient.Client:
    return client(plane, account, AUTO_REGISTER_GROUP="ratings", **metadata)


async def test_a_machine_is_an_endpoint_while_it_is_connected(plane):
    async with client(plane, "other") as watching:
        await watching.subscribe(ENDPOINT, NAME)
        assert addresses(await watching.read_acked(), NAME) == []
        async with machine(plane) as vm:
            await vm.subscribe(CLUSTER)
            # Its first configuration is whole.
            assert "inbound|9080||" in (await vm.read_acked()).names
            assert addresses(await watching.read_acked(), NAME) == ["10.9.8.7"]
        assert addresses(await watching.read_acked(), NAME) == []
    assert plane.control_plane.engine.peek(KEY) is None


async def test_a_machine_that_is_probed_serves_only_while_it_is_healthy(plane):
    async with client(plane, "other") as watching:
        await watching.subscribe(ENDPOINT, NAME)
        assert addresses(await watching.read_acked(), NAME) == []
        async with machine(plane, PROXY_CONFIG={"readinessProbe": {"tcpSocket": {"port": 9080}}}) as vm:
            await vm.subscribe(CLUSTER)
            await vm.read_acked()
            await say_health(vm)
            assert addresses(await watching.read_acked(), NAME) == ["10.9.8.7"]
            await say_health(vm, "down")
            assert addresses(await watching.read_acked(), NAME) == []


@pytest.mark.parametrize(
    ("account", "group", "code"), [("other", "ratings", "PERMISSION_DENIED"), ("vm", "unknown", "FAILED_PRECONDITION")]
)
async def test_who_may_not_register_is_not_served(plane, account, group, code):
    async with client(plane, account, AUTO_REGISTER_GROUP=group) as refused:
        await refused.subscribe(CLUSTER)
        with pytest.raises(ConnectionError, match=code):
            await refused.read()
    assert plane.control_plane.engine.peek(KEY) is None


async def test_on_the_plain_port_nobody_registers(plane):
    node = adsclient.node("vm-1", "shop", ip="10.9.8.7", service_account="vm", AUTO_REGISTER_GROUP="ratings")
    async with adsclient.Client(plane.target("--grpcAddr"), node=node) as unproved:
        await unproved.subscribe(CLUSTER)
        with pytest.raises(ConnectionError, match="requires a verified identity"):
            await unproved.read()


async def test_what_stands_in_a_file_stays_as_it_is(plane):
    (plane.config / "entry.yaml").write_text(
        "apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\n"
        f"metadata: {{name: {KEY.name}, namespace: shop}}\nspec: {{address: 10.9.8.7, labels: {{app: ratings}}}}\n"
    )
    written = await eventually(lambda: plane.control_plane.engine.peek(KEY))
    async with machine(plane) as vm:
        await vm.subscribe(CLUSTER)
        await vm.read_acked()
        await say_health(vm)
        await vm.read_nothing(0.5)
    # Another that comes and goes after it is registered and forgotten meanwhile.
    other = Key("WorkloadEntry", "shop", "ratings-10.9.8.6")
    async with machine(plane, name="vm-2", ip="10.9.8.6") as later:
        await later.subscribe(CLUSTER)
        await eventually(lambda: plane.control_plane.engine.peek(other))
    await eventually(lambda: plane.control_plane.engine.peek(other) is None)
    assert plane.control_plane.engine.peek(KEY) == written
