"""Which workload a certificate is for: by the pod of a token or by an address, never against the proved identity."""

import asyncio

import pytest

from mizzen.api.kube.pods import Pod, PodIP, PodSpec, PodStatus
from mizzen.api.meta import Key, ObjectMeta
from mizzen.api.networking.workload_entry import WorkloadEntry, WorkloadEntrySpec
from mizzen.api.networking.workload_group import WorkloadGroup, WorkloadGroupSpec
from mizzen.ca.identity import Call, Caller
from mizzen.control import peer_records
from mizzen.control.peer_records import PeerRecords, read_address
from mizzen.incremental import Engine

CART = "spiffe://cluster.local/ns/shop/sa/cart"
RECORD = "cart-0;shop;cart;v1;Kubernetes;;"


def pod(name: str = "cart-0", account: str = "cart", address: str = "10.0.0.7", namespace: str = "shop") -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, labels={"app": "cart", "version": "v1"}),
        spec=PodSpec(service_account_name=account),
        status=PodStatus(phase="Running", pod_ip=address, pod_ips=(PodIP(ip=address),)),
    )


def engine(*pods: Pod) -> Engine:
    db = Engine()
    for each in pods:
        db.set(Key("Pod", each.metadata.namespace, each.metadata.name), each)
    return db


async def describe(db: Engine, *, by: str = "", peer: str = "", ready: bool = True, identity: str = CART) -> str:
    caller = Caller(identities=(identity,), method="token", pod=by)
    return await PeerRecords(db, lambda: ready, patience=0).describe(caller, Call(peer=peer))


async def test_the_pod_of_the_token_is_the_workload() -> None:
    assert await describe(engine(pod()), by="cart-0", peer="ipv4:192.0.2.1:5") == RECORD


@pytest.mark.parametrize("peer", ["ipv4:10.0.0.7:4242", "ipv6:%5B::ffff:10.0.0.7%5D:4242"])
async def test_without_one_it_is_the_workload_at_the_callers_address(peer: str) -> None:
    assert await describe(engine(pod()), peer=peer) == RECORD


async def test_a_machine_is_known_by_its_workload_entry() -> None:
    db = Engine()
    entry = WorkloadEntry(
        metadata=ObjectMeta(name="vm", namespace="shop"),
        spec=WorkloadEntrySpec(address="10.0.0.9", service_account="cart", labels={"app": "till"}),
    )
    db.set(Key("WorkloadEntry", "shop", "vm"), entry)
    assert await describe(db, peer="ipv4:10.0.0.9:1") == "vm;shop;till;latest;Kubernetes;;"


async def test_a_machine_that_registers_meanwhile_is_waited_for() -> None:
    db = Engine()
    group = WorkloadGroup(
        metadata=ObjectMeta(name="tills", namespace="shop"),
        spec=WorkloadGroupSpec(template=WorkloadEntrySpec(service_account="cart")),
    )
    db.set(Key("WorkloadGroup", "shop", "tills"), group)
    records = PeerRecords(db, lambda: True, patience=20)
    asked = Caller(identities=(CART,), method="token")
    telling = asyncio.create_task(records.describe(asked, Call(peer="ipv4:10.0.0.9:1")))
    await asyncio.sleep(0.15)
    assert not telling.done()
    entry = WorkloadEntry(
        metadata=ObjectMeta(name="till-1", namespace="shop"),
        spec=WorkloadEntrySpec(address="10.0.0.9", service_account="cart", labels={"app": "till"}),
    )
    db.set(Key("WorkloadEntry", "shop", "till-1"), entry)
    assert await telling == "till-1;shop;till;latest;Kubernetes;;"


async def test_who_has_no_group_to_register_by_is_not_waited_for() -> None:
    asked = Caller(identities=(CART,), method="token")
    async with asyncio.timeout(60):
        assert (
            await PeerRecords(Engine(), lambda: True, patience=1000).describe(asked, Call(peer="ipv4:1.2.3.4:1")) == ""
        )


@pytest.mark.parametrize(
    ("known", "by", "peer"),
    [
        (pod(account="other"), "cart-0", "ipv4:10.0.0.7:1"),
        (pod(account="other"), "", "ipv4:10.0.0.7:1"),
        (pod(namespace="bank"), "cart-0", "ipv4:10.0.0.7:1"),
        (pod(namespace="bank"), "", "ipv4:10.0.0.7:1"),
        (pod(), "", "ipv4:10.0.0.8:1"),
        (pod(), "cart-1", "ipv4:10.0.0.7:1"),
    ],
)
async def test_nobody_is_named_after_a_workload_that_is_not_the_proved_one(known: Pod, by: str, peer: str) -> None:
    assert await describe(engine(known), by=by, peer=peer) == ""


async def test_an_identity_of_another_form_and_a_mesh_that_is_not_read_yet_name_nobody() -> None:
    assert await describe(engine(pod()), by="cart-0", identity="spiffe://else/x") == ""
    assert await describe(engine(pod()), by="cart-0", ready=False) == ""
    assert await describe(engine(pod()), peer="ipv4:10.0.0.7:1", ready=False) == ""


async def test_a_certificate_waits_for_a_pod_that_is_not_known_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_records, "_LOOK_EVERY", 0.001)
    db = engine()
    waiting = asyncio.create_task(
        PeerRecords(db, lambda: True, patience=60).describe(
            Caller(identities=(CART,), method="token", pod="cart-0"), Call()
        )
    )
    await asyncio.sleep(0.01)
    assert not waiting.done()
    db.set(Key("Pod", "shop", "cart-0"), pod())
    assert await waiting == RECORD


@pytest.mark.parametrize("peer", ["", "unix:/run/x.sock", "ipv4:", "10.0.0.7:5"])
def test_what_is_no_address_is_none(peer: str) -> None:
    assert read_address(peer) == ""


def test_addresses_are_read_in_both_families() -> None:
    assert read_address("ipv4:10.0.0.7:5") == "10.0.0.7"
    assert read_address("ipv6:%5Bfd00::7%5D:5") == "fd00::7"
    assert read_address("ipv6:[fd00::7]:5") == "fd00::7"
