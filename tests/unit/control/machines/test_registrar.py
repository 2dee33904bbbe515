"""Entries of machines as they connect, stay, change hands and leave; replicas share the entries, as they share a server."""

import asyncio
import contextlib

import msgspec
import pytest
from eventually import eventually

from mizzen import settings
from mizzen.api.decode import decode_object
from mizzen.api.meta import Key
from mizzen.control.machines import contents
from mizzen.control.machines.entries import OwnEntries
from mizzen.control.machines.registrar import Registrar
from mizzen.control.times import parse_time
from mizzen.errors import SourceError
from mizzen.model.proxy import parse_node
from mizzen.model.spiffe import Identity
from mizzen.sources.kube.client import Refused as ServerRefused
from mizzen.xds.identity import Refused
from mizzen.xds.registration import Health
from mizzen.xds.status import Connection

KEY = Key("WorkloadEntry", "shop", "ratings-10.0.0.9")
GROUP = Key("WorkloadGroup", "shop", "ratings")
SWIFT = settings.Machines(grace=0.4)


class Stream:
    def __init__(self):
        self.closed = False

    def close(self):
        self.closed = True


class Shared(OwnEntries):
    """Entries as replicas see them, all those that stand there included; a server may be away."""

    def __init__(self, mesh):
        self.mesh = mesh
        self.away = False
        self.created = 0
        super().__init__(mesh.feed, mesh.objects.get)

    def known(self):
        return [found for key, found in self.mesh.objects.items() if key.kind == "WorkloadEntry"]

    async def read(self, key):
        if self.away:
            raise SourceError("nobody answers")
        return await super().read(key)

    async def create(self, key, document):
        self.created += 1
        if self.mesh.refuses:
            raise ServerRefused(422, "invalid")
        return await super().create(key, document)


class Mesh:
    """The objects, and the replicas that run."""

    def __init__(self):
        self.objects = {}
        self.refuses = False
        self.now = 1000.0
        self.entries = Shared(self)
        self.set_group()

    def feed(self, key, value):
        if value is None:
            self.objects.pop(key, None)
        else:
            self.objects[key] = value

    def set_group(self, **template):
        document = {
            "apiVersion": "networking.istio.io/v1",
            "kind": "WorkloadGroup",
            "metadata": {"name": "ratings", "namespace": "shop", "uid": "u-1"},
            "spec": {"template": {"serviceAccount": "vm", **template}},
        }
        self.objects[GROUP] = decode_object(document).object

    @property
    def entry(self):
        return self.objects.get(KEY)

    @property
    def annotations(self):
        return self.entry.metadata.annotations

    @property
    def health(self):
        status = self.entry.status
        return {each.type: each.status for each in status.conditions} if status else {}

    @contextlib.asynccontextmanager
    async def replica(self, name, machines=SWIFT, **xds):
        config = settings.Settings(machines=machines, xds=settings.Xds(**xds))
        registrar = Registrar(self.entries, self.objects.get, config, instance=name, clock=lambda: self.now)
        running = asyncio.create_task(registrar.run())
        try:
            yield registrar
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.fixture
def mesh():
    return Mesh()


def connection(at, account="vm", namespace="shop", verified=True, name="vm-1", **metadata):
    node = {
        "id": f"sidecar~10.0.0.9~{name}.shop~shop.svc.cluster.local",
        "metadata": {"NAMESPACE": "shop", "AUTO_REGISTER_GROUP": "ratings", **metadata},
    }
    return Connection(
        id=f"{name}.shop-{at}",
        proxy=parse_node(node),
        address="10.0.0.9:5",
        connected_at=at,
        delta=True,
        identity=Identity("cluster.local", namespace, account) if verified else None,
        version="1.32.0",
        session=None,
        stream=Stream(),
    )


async def test_who_connects_is_registered_before_it_is_served(mesh):
    async with mesh.replica("one") as one:
        await one.admit(connection(1000.0))
    assert mesh.entry.spec.address == "10.0.0.9"
    assert mesh.annotations[contents.CONTROLLER] == "one"
    assert parse_time(mesh.annotations[contents.CONNECTED_AT]) == 1000.0


@pytest.mark.parametrize("lie", [{"account": "other"}, {"namespace": "bank"}, {"verified": False}])
async def test_who_proves_to_be_another_is_refused(mesh, lie):
    async with mesh.replica("one") as one:
        with pytest.raises(Refused) as refused:
            await one.admit(connection(1000.0, **lie))
    assert refused.value.code == "PERMISSION_DENIED"
    assert mesh.entries.created == 0


async def test_who_proves_to_be_another_cannot_take_an_entry_over(mesh):
    async with mesh.replica("one") as one:
        await one.admit(connection(1000.0))
        mesh.set_group(serviceAccount="other")  # For those to come; this entry is the machine's.
        with pytest.raises(Refused):
            await one.admit(connection(1001.0, account="other"))
        await one.admit(connection(1002.0))
        await eventually(lambda: parse_time(mesh.annotations[contents.CONNECTED_AT]) == 1002.0)


async def test_identities_count_for_nothing_where_that_is_set(mesh):
    lenient = msgspec.structs.replace(SWIFT, validate_identity=False)
    async with mesh.replica("one", lenient) as one:
        await one.admit(connection(1000.0, verified=False))
    assert mesh.entry is not None


async def test_without_its_group_a_machine_is_refused(mesh):
    del mesh.objects[GROUP]
    async with mesh.replica("one") as one:
        with pytest.raises(Refused) as refused:
            await one.admit(connection(1000.0))
    assert refused.value.code == "FAILED_PRECONDITION"
    assert "WorkloadGroup shop/ratings" in str(refused.value)


async def test_who_is_connected_is_registered_again_when_its_entry_and_group_come_back(mesh):
    async with mesh.replica("one") as one:
        await one.admit(connection(1000.0))
        del mesh.objects[GROUP]
        await mesh.entries.delete(KEY, await mesh.entries.read(KEY))
        await asyncio.sleep(1.2)
        assert mesh.entry is None
        mesh.set_group()
        await eventually(lambda: mesh.entry)


async def test_an_entry_that_the_server_does_not_want_is_not_offered_again_and_again(mesh):
    mesh.refuses = True
    async with mesh.replica("one") as one:
        await one.admit(connection(1000.0))
        await asyncio.sleep(2.5)
        # Once as it connects, once as it is found missing.
        assert mesh.entries.created <= 2
        mesh.refuses = False
        mesh.set_group(weight=2)
        await eventually(lambda: mesh.entry)


async def test_who_does_not_come_back_is_removed_after_the_grace_period(mesh):
    async with mesh.replica("one") as one:
        gone = connection(1000.0)
        await one.admit(gone)
        mesh.now = 1005.0
        one.leave(gone)
        await eventually(lambda: contents.DISCONNECTED_AT in mesh.annotations)
        assert contents.CONNECTED_AT not in mesh.annotations
        await asyncio.sleep(0.6)
        assert mesh.entry is not None  # By the clock no time has passed.
        mesh.now = 1005.5
        await eventually(lambda: mesh.entry is None)


async def test_who_comes_back_in_time_keeps_its_entry(mesh):
    async with mesh.replica("one") as one:
        first, second = connection(1000.0), connection(1006.0)
        await one.admit(first)
        uid = mesh.entry.metadata.uid
        mesh.now = 1005.0
        one.leave(first)
        await eventually(lambda: contents.DISCONNECTED_AT in mesh.annotations)
        await one.admit(second)
        await eventually(lambda: contents.CONNECTED_AT in mesh.annotations)
        assert contents.DISCONNECTED_AT not in mesh.annotations
        mesh.now = 1020.0
        await asyncio.sleep(1.0)
        assert mesh.entry.metadata.uid == uid


async def test_an_old_connection_that_ends_late_takes_nothing_with_it(mesh):
    async with mesh.replica("one") as one, mesh.replica("two") as two:
        old, new = connection(1000.0), connection(1001.0)
        await one.admit(old)
        await two.admit(new)
        await eventually(lambda: mesh.annotations[contents.CONTROLLER] == "two")
        mesh.now = 1100.0
        one.leave(old)
        await asyncio.sleep(0.8)
        assert mesh.annotations[contents.CONTROLLER] == "two"
        assert contents.CONNECTED_AT in mesh.annotations
        two.leave(new)
        await eventually(lambda: contents.DISCONNECTED_AT in mesh.annotations)


async def test_an_older_connection_does_not_take_an_entry_over(mesh):
    async with mesh.replica("one") as one, mesh.replica("two") as two:
        await two.admit(connection(1001.0))
        await one.admit(connection(1000.0))
        one.hear(connection(1000.0), Health(False, "late"))
        await asyncio.sleep(0.3)
        assert mesh.annotations[contents.CONTROLLER] == "two"
        assert mesh.health == {}


async def test_the_newer_of_two_connections_to_one_replica_counts(mesh):
    async with mesh.replica("one") as one:
        old, new = connection(1000.0), connection(1001.0)
        await one.admit(old)
        await one.admit(new)
        one.leave(old)
        await eventually(lambda: parse_time(mesh.annotations[contents.CONNECTED_AT]) == 1001.0)
        mesh.now = 1100.0
        await asyncio.sleep(0.6)
        assert contents.DISCONNECTED_AT not in mesh.annotations


async def test_health_stands_in_the_status(mesh):
    async with mesh.replica("one") as one:
        told = connection(1000.0)
        await one.admit(told)
        one.hear(told, Health(False, "500: no"))
        await eventually(lambda: mesh.health == {"Healthy": "False"})
        one.hear(told, Health(True))
        await eventually(lambda: mesh.health == {"Healthy": "True"})


async def test_health_that_is_said_before_anybody_is_registered_is_not_lost(mesh):
    mesh.entries.away = True
    async with mesh.replica("one") as one:
        told = connection(1000.0)
        await one.admit(told)
        one.hear(told, Health(True))
        mesh.entries.away = False
        await eventually(lambda: mesh.entry is not None and mesh.health == {"Healthy": "True"})


async def test_health_counts_for_nothing_where_that_is_set(mesh):
    async with mesh.replica("one", msgspec.structs.replace(SWIFT, health=False)) as one:
        told = connection(1000.0)
        await one.admit(told)
        one.hear(told, Health(True))
        await asyncio.sleep(0.3)
        assert mesh.health == {}


async def entry_of_somebody(mesh, **annotations):
    document = {
        "apiVersion": "networking.istio.io/v1",
        "kind": "WorkloadEntry",
        "metadata": {"name": "mine", "namespace": "shop", "annotations": annotations},
        "spec": {"address": "10.0.0.9", "serviceAccount": "vm"},
    }
    await mesh.entries.create(Key("WorkloadEntry", "shop", "mine"), document)
    return lambda: mesh.objects[Key("WorkloadEntry", "shop", "mine")]


def mine(at, **more):
    return connection(at, AUTO_REGISTER_GROUP="", WORKLOAD_ENTRY="mine", **more)


async def test_an_entry_that_somebody_wrote_has_its_health_while_its_machine_is_connected(mesh):
    found = await entry_of_somebody(mesh, **{contents.HEALTH_CHECKS: "true"})
    async with mesh.replica("one") as one:
        told = mine(1000.0)
        await one.admit(told)
        one.hear(told, Health(True))
        await eventually(lambda: found().status is not None and found().status.conditions)
        one.leave(told)
        await eventually(lambda: contents.DISCONNECTED_AT in found().metadata.annotations)
        mesh.now += 60
        await eventually(lambda: found().status.conditions == ())


async def test_an_entry_that_somebody_wrote_is_for_its_own_machine(mesh):
    await entry_of_somebody(mesh, **{contents.HEALTH_CHECKS: "true"})
    async with mesh.replica("one") as one:
        with pytest.raises(Refused):
            await one.admit(mine(1000.0, account="other"))


async def test_an_entry_without_health_checks_is_left_alone(mesh):
    found = await entry_of_somebody(mesh)
    async with mesh.replica("one") as one:
        told = mine(1000.0)
        await one.admit(told)
        one.hear(told, Health(True))
        await asyncio.sleep(0.2)
        assert found().status is None
        assert found().metadata.annotations == {}


async def test_an_entry_that_is_not_there_cannot_be_one_s_own(mesh):
    async with mesh.replica("one") as one:
        with pytest.raises(Refused) as refused:
            await one.admit(mine(1000.0))
    assert refused.value.code == "FAILED_PRECONDITION"


async def test_entries_whose_replica_is_gone_are_swept_when_no_connection_can_be_so_old(mesh):
    async with mesh.replica("one") as one:
        await one.admit(connection(1000.0))
    async with mesh.replica("two", settings.Machines(grace=0.01), max_connection_age=60.0):
        mesh.now = 1080.0
        await asyncio.sleep(1.3)
        assert mesh.entry is not None
        mesh.now = 1091.0
        await eventually(lambda: mesh.entry is None)


async def test_a_server_that_is_away_keeps_nobody_out(mesh):
    mesh.entries.away = True
    async with mesh.replica("one") as one:
        await one.admit(connection(1000.0))
        assert mesh.entry is None
        mesh.entries.away = False
        await eventually(lambda: mesh.entry)


async def test_nobody_is_registered_where_that_is_set(mesh):
    async with mesh.replica("one", msgspec.structs.replace(SWIFT, register=False)) as one:
        await one.admit(connection(1000.0, account="anybody"))
        await asyncio.sleep(0.2)
    assert mesh.entry is None
