"""Tokens of real service accounts, reviewed by a real API server: whom a control plane believes, and while none answers."""

import asyncio
import signal
import time

import ads_credentials
import adsclient
import grpc
import pytest
from certificate_requests import make_request
from certificate_service import ask
from control_planes import HOST, Plane, control_plane
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from eventually import eventually
from kube_accounts import installed, token
from kube_bed import Bed
from kube_objects import path_of, pod

from mizzen.ca import certificates
from mizzen.compile.resource import CLUSTER
from mizzen.control.token_reviews import TokenReviews
from mizzen.errors import AuthorityError
from mizzen.model.spiffe import Identity, format_spiffe
from mizzen.sources.kube.access import from_kubeconfig
from mizzen.sources.kube.client import Client

OPTIONS = (("grpc.ssl_target_name_override", HOST), *adsclient.CHANNEL_OPTIONS)


@pytest.fixture
def account(bed: Bed, namespace: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    bed.call("POST", path, {"metadata": {"name": "cart"}})
    document = pod(namespace, "cart-0")
    document["spec"]["serviceAccountName"] = "cart"
    bed.apply(path_of(document, "pods"), document)
    return namespace


@pytest.fixture
async def plane(bed: Bed, tmp_path):
    access = from_kubeconfig(await asyncio.to_thread(installed, bed))
    async with control_plane(tmp_path, config=(), token_keys=(), kubernetes=access) as plane:
        yield plane


def proxy(plane: Plane, namespace: str, shown: str, account: str = "cart") -> adsclient.Client:
    return adsclient.Client(
        plane.target("--secureGRPCAddr"),
        node=adsclient.node("cart-0", namespace, service_account=account),
        credentials=plane.credentials(),
        token=shown,
        options=OPTIONS,
    )


async def is_served(client: adsclient.Client) -> bool:
    async with client:
        await client.subscribe(CLUSTER)
        try:
            return bool((await client.read(60)).resources)
        except ConnectionError:
            return False


async def test_a_proxy_is_believed_by_its_token_for_what_it_is_alone(bed, account, plane):
    good = await asyncio.to_thread(token, bed, account, pod_name="cart-0")
    assert await is_served(proxy(plane, account, good))
    assert not await is_served(proxy(plane, "kube-system", good))
    assert not await is_served(proxy(plane, account, good, account="admin"))


async def test_the_pod_that_a_token_is_bound_to_is_known(bed, account, plane):
    shown = await asyncio.to_thread(token, bed, account, pod_name="cart-0")
    found = await plane.control_plane.cluster.token_reviews.verify(shown)
    assert (found.namespace, found.name, found.pod) == (account, "cart", "cart-0")


@pytest.mark.parametrize("way", ["audience", "tampered", "nobody", "administrator"])
async def test_other_tokens_are_refused(bed, account, plane, way):
    good = await asyncio.to_thread(token, bed, account)
    head, payload, signature = good.split(".")
    shown = {
        "audience": await asyncio.to_thread(token, bed, account, audience="somebody-else"),
        "tampered": ".".join((head, payload, signature[:-8] + "AAAAAAAA")),
        "nobody": "abc",
        "administrator": "administrator-of-this-run",
    }[way]
    assert not await is_served(proxy(plane, account, shown))
    with pytest.raises(AuthorityError):
        await plane.control_plane.cluster.token_reviews.verify(shown)
    assert await is_served(proxy(plane, account, good))


async def workload_credentials(plane: Plane, shown: str) -> grpc.ChannelCredentials:
    """A workload's certificate as its control plane gives it, and what its proxy needs for mutual TLS."""
    key = ec.generate_private_key(ec.SECP256R1())
    chain, _ = await ask(plane, shown, make_request(key))
    own = b"".join(one.public_bytes(serialization.Encoding.PEM) for one in chain)
    return plane.credentials(certificates.encode_key(key), own)


def stolen_name(plane: Plane, namespace: str) -> grpc.ChannelCredentials:
    """The certificate of another authority for the same workload."""
    other = ads_credentials.Mesh().authority
    key = ec.generate_private_key(ec.SECP256R1())
    *chain, _ = other.issue(make_request(key), (format_spiffe(Identity("cluster.local", namespace, "cart")),))
    return plane.credentials(certificates.encode_key(key), "".join(chain).encode())


def holder(plane: Plane, namespace: str, own: grpc.ChannelCredentials, account: str = "cart") -> adsclient.Client:
    """A proxy that shows a certificate and no token."""
    node = adsclient.node("cart-0", namespace, service_account=account)
    return adsclient.Client(plane.target("--mutualGRPCAddr"), node=node, credentials=own, options=OPTIONS)


async def test_proxies_come_back_by_certificate_or_known_token_while_the_server_is_away(bed, account, plane):
    known, unknown = [await asyncio.to_thread(token, bed, account, pod_name="cart-0") for _ in range(2)]
    forged = ".".join((*known.split(".")[:2], unknown.split(".")[2]))
    own = await workload_credentials(plane, known)
    assert await is_served(holder(plane, account, own))
    await asyncio.to_thread(bed.stop_server, signal.SIGKILL)
    try:
        assert await is_served(holder(plane, account, own))
        assert await is_served(proxy(plane, account, known))
        assert await is_served(holder(plane, account, await workload_credentials(plane, known))), "it renews, too"
        assert not await is_served(holder(plane, account, own, account="admin"))
        assert not await is_served(holder(plane, "kube-system", own))
        assert not await is_served(holder(plane, account, stolen_name(plane, account)))
        for shown in (forged, unknown, ""):
            assert not await is_served(proxy(plane, account, shown))
    finally:
        await asyncio.to_thread(bed.start_server)
    # So it was refused for the server's absence alone, which may last a moment longer.
    await eventually(lambda: is_served(proxy(plane, account, unknown)), 120, every=0.2)
    assert not await is_served(proxy(plane, account, forged))


class Reviewed:
    """Reviews by a clock that a test turns."""

    def __init__(self, bed: Bed) -> None:
        self.now = time.time()
        self.client = Client(from_kubeconfig(installed(bed)))
        self._reviews = TokenReviews(self.client, ("istio-ca",), lambda: self.now)

    async def believes(self, shown: str) -> bool:
        try:
            await self._reviews.verify(shown)
        except AuthorityError:
            return False
        return True


@pytest.fixture
async def reviewed(bed):
    reviewed = Reviewed(bed)
    async with reviewed.client:
        yield reviewed


async def test_known_tokens_hold_while_the_server_is_away_and_others_do_not_come_in(bed, account, reviewed, plane):
    known, unknown = [await asyncio.to_thread(token, bed, account) for _ in range(2)]
    assert await reviewed.believes(known)
    assert await is_served(proxy(plane, account, known))
    await asyncio.to_thread(bed.stop_server, signal.SIGKILL)
    try:
        assert await is_served(proxy(plane, account, known))
        assert not await is_served(proxy(plane, account, unknown))
        reviewed.now += 1800
        assert await reviewed.believes(known)
        assert not await reviewed.believes(unknown)
        assert not await reviewed.believes(known[:-8] + "AAAAAAAA")
        reviewed.now = time.time() + 3601  # The token is as old as it is, not as the fixture.
        assert not await reviewed.believes(known), "it has ended"
    finally:
        await asyncio.to_thread(bed.start_server)
    await eventually(lambda: is_served(proxy(plane, account, unknown)), 120, every=0.2)


async def test_known_tokens_hold_while_the_server_says_nothing(bed, account, reviewed, plane):
    known, unknown = [await asyncio.to_thread(token, bed, account) for _ in range(2)]
    assert await reviewed.believes(known)
    with bed.silent_server():
        reviewed.now += 1800
        async with asyncio.timeout(40):  # A request is given up after a minute, an agent waits for ten seconds.
            assert await reviewed.believes(known)
        assert not await reviewed.believes(unknown)
    await eventually(lambda: reviewed.believes(unknown), 120, every=0.2)


async def test_a_token_of_an_account_that_is_gone_is_refused_when_it_is_asked_about_again(bed, account, reviewed):
    shown = await asyncio.to_thread(token, bed, account, seconds=86_400)
    assert await reviewed.believes(shown)
    await asyncio.to_thread(bed.call, "DELETE", f"/api/v1/namespaces/{account}/serviceaccounts/cart")
    assert await reviewed.believes(shown), "remembered"
    for _ in range(100):  # The server itself remembers for some seconds.
        reviewed.now += 301
        if not await reviewed.believes(shown):
            return
        await asyncio.sleep(0.3)
    raise AssertionError("still believed")
