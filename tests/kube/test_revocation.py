"""Revocation lists of a plugged-in authority, over a real API server, with the rights of an installation alone."""

import asyncio
import time

import pytest
from eventually import eventually
from kube_authority import namespaces_of, replica, write_secret
from kube_bed import Bed
from plugged_authority import Node, make_node, revoke

from mizzen.ca import certificates

pytestmark = pytest.mark.timeout(600)

MAP = "istio-ca-crl"


def plugged(node: Node, lists: bytes) -> dict[str, bytes]:
    key = certificates.encode_key(node.key)
    return {"ca-cert.pem": node.pem, "ca-key.pem": key, "root-cert.pem": node.pem, "ca-crl.pem": lists}


def maps_of(bed: Bed) -> dict[str, str]:
    """The lists in each namespace that has them."""
    listed = bed.call("GET", "/api/v1/configmaps")["items"]
    return {one["metadata"]["namespace"]: one["data"]["ca-crl.pem"] for one in listed if one["metadata"]["name"] == MAP}


async def until(bed: Bed, lists: bytes) -> None:
    """The lists are in every namespace, and the same everywhere; or there are none."""

    def holds() -> bool:
        return maps_of(bed) == (dict.fromkeys(namespaces_of(bed), lists.decode()) if lists else {})

    await eventually(lambda: asyncio.to_thread(holds), 120, 0.2)


async def test_the_lists_are_in_every_namespace_while_there_are_any(bed, namespace, tmp_path, caplog):
    node = make_node("the operator's", time.time())
    one, two = revoke(node, time.time(), [1]), revoke(node, time.time(), [1, 2])
    path = f"/api/v1/namespaces/{namespace}/configmaps/{MAP}"

    async def put(lists: bytes) -> None:
        await asyncio.to_thread(write_secret, bed, namespace, "cacerts", plugged(node, lists))

    async def call(method: str, path: str, *body: object, **more: str) -> dict:
        return await asyncio.to_thread(bed.call, method, path, *body, **more)

    await put(one)
    async with replica(bed, tmp_path / "a", namespace), replica(bed, tmp_path / "b", namespace):
        await until(bed, one)
        assert (await call("GET", path))["metadata"]["labels"] == {"istio.io/config": "true"}

        await put(two)
        await until(bed, two)
        await call("POST", "/api/v1/namespaces", {"metadata": {"name": f"{namespace}-later"}})
        edit = {"data": {"ca-crl.pem": "forged", "theirs": "stays"}}
        await call("PATCH", path, edit, kind="application/merge-patch+json")
        await until(bed, two)
        assert (await call("GET", path))["data"]["theirs"] == "stays"
        await call("DELETE", path)
        await until(bed, two)

        await put(two[:-30])
        await eventually(lambda: "the last good revocation lists stay in force" in caplog.text, 120)
        await call("DELETE", path)
        await until(bed, two)

        await put(b"")
        await until(bed, b"")
        own = {"metadata": {"name": MAP}, "data": {"ca-crl.pem": "somebody's"}}
        await call("POST", f"/api/v1/namespaces/{namespace}/configmaps", own)
        await asyncio.sleep(2)
        assert await asyncio.to_thread(maps_of, bed) == {namespace: "somebody's"}
        await put(one)
        await until(bed, one)
    await put(b"")
    async with replica(bed, tmp_path / "c", namespace):
        await until(bed, b"")


async def test_switched_off_nothing_is_written_and_nothing_removed(bed, namespace, tmp_path):
    node = make_node("the operator's", time.time())
    await asyncio.to_thread(write_secret, bed, namespace, "cacerts", plugged(node, revoke(node, time.time())))
    left = {"metadata": {"name": MAP, "labels": {"istio.io/config": "true"}}, "data": {"ca-crl.pem": "left"}}
    await asyncio.to_thread(bed.call, "POST", f"/api/v1/namespaces/{namespace}/configmaps", left)
    async with replica(bed, tmp_path / "a", namespace, revocations=False) as plane:
        source = plane.control_plane.cluster.source
        roots = "istio-ca-root-cert"
        await eventually(
            lambda: (
                {key.namespace for key in source.objects if (key.kind, key.name) == ("ConfigMap", roots)}
                >= namespaces_of(bed)
            ),
            120,
        )
        assert await asyncio.to_thread(maps_of, bed) == {namespace: "left"}
    await asyncio.to_thread(bed.call, "DELETE", f"/api/v1/namespaces/{namespace}/configmaps/{MAP}")
