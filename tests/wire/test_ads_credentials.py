"""Who may open which stream: TLS ports, tokens, certificates, and the identity that a node claims."""

import asyncio
import ssl

import pytest
from ads_credentials import HOST, Mesh
from ads_server import Serving, serve
from adsclient import CHANNEL_OPTIONS, Client, node

from mizzen.compile.resource import CLUSTER, SECRET
from mizzen.settings import Xds
from mizzen.xds import metrics

RESOURCES = [(CLUSTER, "a", "1"), (SECRET, "key", "1")]
OPTIONS = (*CHANNEL_OPTIONS, ("grpc.ssl_target_name_override", HOST))


@pytest.fixture(scope="module")
def mesh():
    return Mesh()


def with_token(mesh: Mesh, serving: Serving, namespace: str = "shop", account: str = "front", **more) -> Client:
    """A client of the token port that says to be shop/front."""
    return Client(
        serving.target,
        node=node("front-1", "shop", service_account="front"),
        credentials=mesh.channel_credentials(),
        token=mesh.token(namespace, account, **more) if namespace else "",
        options=OPTIONS,
    )


def with_certificate(mesh: Mesh, serving: Serving, namespace: str = "shop", account: str = "front") -> Client:
    """A client of the mutual TLS port that says to be shop/front."""
    return Client(
        serving.target,
        node=node("front-1", "shop", service_account="front"),
        credentials=mesh.channel_credentials(namespace, account),
        options=OPTIONS,
    )


def token_port(mesh: Mesh, **more):
    return serve(
        RESOURCES, authenticator=mesh.authenticator, credentials=mesh.serving.credentials(mutual=False), **more
    )


def mutual_port(mesh: Mesh):
    return serve(RESOURCES, authenticator=mesh.authenticator, credentials=mesh.serving.credentials(mutual=True))


async def ending(client: Client) -> str:
    await client.subscribe(CLUSTER)
    with pytest.raises(ConnectionError) as ended:
        await client.read()
    return str(ended.value)


async def test_a_token_opens_a_stream_and_secrets(mesh):
    async with token_port(mesh) as serving, with_token(mesh, serving) as client:
        await client.subscribe(CLUSTER)
        assert (await client.read()).names == ["a"]
        await client.subscribe(SECRET, "key")
        assert (await client.read()).names == ["key"]
        [connection] = serving.discovery.connections
        assert str(connection.identity) == "spiffe://cluster.local/ns/shop/sa/front"


async def test_secrets_that_are_not_there_are_counted(mesh):
    before = metrics.SECRET_ERRORS.value()
    async with token_port(mesh) as serving, with_token(mesh, serving) as client:
        await client.subscribe(SECRET, "key", "absent", "gone")
        assert (await client.read()).names == ["key"]
        assert metrics.SECRET_ERRORS.value() - before == 2


async def test_a_certificate_opens_a_stream_and_secrets(mesh):
    async with mutual_port(mesh) as serving, with_certificate(mesh, serving) as client:
        await client.subscribe(SECRET, "key")
        assert (await client.read()).names == ["key"]
        [connection] = serving.discovery.connections
        assert str(connection.identity) == "spiffe://cluster.local/ns/shop/sa/front"


async def test_the_plain_port_serves_no_secrets():
    async with serve(RESOURCES) as serving, Client(serving.target) as client:
        await client.subscribe(SECRET, "key")
        await client.subscribe(CLUSTER)
        assert (await client.read()).type_url == CLUSTER
        await client.read_nothing()


async def test_the_plain_port_may_ask_for_a_token_too(mesh):
    xds = Xds(authenticate_plaintext=True, stop_grace=0.1)
    async with serve(RESOURCES, authenticator=mesh.authenticator, xds=xds) as serving:
        async with Client(serving.target) as client:
            assert (await ending(client)).startswith("UNAUTHENTICATED: authentication failure")
        async with Client(serving.target, node=node("x", "shop"), token=mesh.token("shop", "default")) as client:
            await client.subscribe(SECRET, "key")
            assert (await client.read()).names == ["key"]


async def test_without_a_token_nobody_is_let_in(mesh):
    async with token_port(mesh) as serving, with_token(mesh, serving, namespace="") as client:
        assert (await ending(client)).startswith("UNAUTHENTICATED: authentication failure")


async def test_an_outdated_token_is_refused_without_being_shown(mesh, caplog):
    async with token_port(mesh) as serving, with_token(mesh, serving, lifetime=-3600) as client:
        text = await ending(client)
        assert text.startswith("UNAUTHENTICATED: authentication failure")
        assert client.token not in text + caplog.text


@pytest.mark.parametrize("claim", [("shop", "cart"), ("bank", "front")])
@pytest.mark.parametrize("method", ["token", "certificate"])
async def test_a_node_that_is_not_the_callers_is_refused(mesh, method, claim):
    port, client_of = (token_port, with_token) if method == "token" else (mutual_port, with_certificate)
    async with port(mesh) as serving, client_of(mesh, serving, *claim) as client:
        identity = f"spiffe://cluster.local/ns/{claim[0]}/sa/{claim[1]}"
        assert await ending(client) == (
            f"PERMISSION_DENIED: authorization failed: no identities ([{identity}]) matched shop/front"
        )
        assert len(serving.discovery.connections) == 0


async def test_the_identity_check_can_be_switched_off(mesh):
    xds = Xds(identity_check=False, stop_grace=0.1)
    async with token_port(mesh, xds=xds) as serving, with_token(mesh, serving, "bank", "teller") as client:
        await client.subscribe(CLUSTER)
        assert (await client.read()).names == ["a"]


async def test_whose_claims_were_not_checked_gets_no_secrets(mesh):
    xds = Xds(identity_check=False, stop_grace=0.1)
    async with token_port(mesh, xds=xds) as serving, with_token(mesh, serving, "bank", "teller") as client:
        await client.subscribe(SECRET, "key")
        await client.subscribe(CLUSTER)
        assert (await client.read()).type_url == CLUSTER
        [connection] = serving.discovery.connections
        assert connection.identity is None


async def test_without_authentication_a_secure_port_serves_no_secrets(mesh):
    xds = Xds(authenticate=False, stop_grace=0.1)
    async with token_port(mesh, xds=xds) as serving, with_token(mesh, serving, namespace="") as client:
        await client.subscribe(SECRET, "key")
        await client.subscribe(CLUSTER)
        assert (await client.read()).type_url == CLUSTER


async def test_without_a_certificate_the_mutual_port_does_not_shake_hands(mesh):
    async with mutual_port(mesh) as serving, with_token(mesh, serving) as client:
        assert (await ending(client)).startswith("UNAVAILABLE")


async def test_a_stranger_s_certificate_is_not_believed(mesh):
    async with mutual_port(mesh) as serving:
        client = with_certificate(mesh, serving)
        client.credentials = Mesh().channel_credentials("shop", "front", roots=mesh.authority.bundle)
        async with client:
            assert (await ending(client)).startswith("UNAVAILABLE")
            assert len(serving.discovery.connections) == 0


def shown_certificate(port: int) -> bytes:
    """The certificate that a TLS port shows."""
    return ssl.get_server_certificate(("127.0.0.1", port)).encode()


async def test_the_server_s_certificate_is_renewed_without_a_restart(mesh):
    async with token_port(mesh) as serving, with_token(mesh, serving) as old:
        await old.subscribe(CLUSTER)
        await old.read_acked()
        before = await asyncio.to_thread(shown_certificate, serving.port)
        mesh.serving.renew()
        after = await asyncio.to_thread(shown_certificate, serving.port)
        assert before != after
        assert after.decode().split() == mesh.serving.chain_pem.decode().split()
        async with with_token(mesh, serving) as new:
            await new.subscribe(CLUSTER)
            assert (await new.read()).names == ["a"]
        serving.set(CLUSTER, "b", "1")
        assert (await old.read()).names == ["b"], "the old stream goes on"
