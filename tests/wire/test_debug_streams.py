"""Debug types over ADS, asked of a whole control plane with real credentials."""

import contextlib
import json
import pathlib
from collections.abc import AsyncIterator
from typing import Any

import adsclient
import grpc
import msgspec
import pytest
from certificate_requests import make_request
from control_planes import FAST, HOST, Plane, control_plane
from cryptography.hazmat.primitives.asymmetric import ec
from eventually import eventually

from mizzen import protos, settings
from mizzen.ca import certificates
from mizzen.compile.resource import CLUSTER, LISTENER

SYNCZ = "istio.io/debug/syncz"
CONFIG_DUMP = "istio.io/debug/config_dump"
PAGE = "istio.io/debug"
OPTIONS = (("grpc.ssl_target_name_override", HOST), *adsclient.CHANNEL_OPTIONS)
ASKING = {"id": "debug~0.0.0.0~istioctl~cluster.local", "metadata": {"GENERATOR": "event"}}
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec:
  clusterIP: 10.96.0.1
  ports:
  - {name: http, port: 80}
"""

STATES = ["ERROR", "STALE", "SYNCED", "SYNCED", "SYNCED"]
"""What all clients of the mesh below come to."""

_discovery = protos.package("envoy.service.discovery.v3")


def with_token(plane: Plane, namespace: str = "istio-system", **more: Any) -> adsclient.Client:
    """A client of the token port, as an account of that namespace; without one where it is empty."""
    return adsclient.Client(
        plane.target("--secureGRPCAddr"),
        node=ASKING,
        credentials=plane.credentials(),
        token=plane.token(namespace, "default") if namespace else "",
        options=OPTIONS,
        **more,
    )


def with_certificate(plane: Plane, namespace: str = "istio-system", **more: Any) -> adsclient.Client:
    """A client of the mutual TLS port."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = f"spiffe://cluster.local/ns/{namespace}/sa/default"
    chain = "".join(plane.control_plane.authority.issue(make_request(key), (name,))[:-1])
    credentials = plane.credentials(certificates.encode_key(key), chain.encode())
    target = plane.target("--mutualGRPCAddr")
    return adsclient.Client(target, node=ASKING, credentials=credentials, options=OPTIONS, **more)


def on_the_plain_port(plane: Plane) -> adsclient.Client:
    return adsclient.Client(plane.target("--grpcAddr"), node=ASKING)


class Response(msgspec.Struct):
    """A response to a debug request, decoded."""

    type_url: str
    resources: list[Any]
    """The Anys."""
    identifier: dict[str, Any] | None


async def ask(client: adsclient.Client, type_url: str, *names: str) -> Response:
    """Ask on an open stream; raises ConnectionError with the status that ended it."""
    await client.subscribe(type_url, *names)
    try:
        data = await client.call.read()
    except grpc.aio.AioRpcError as error:
        raise ConnectionError(f"{error.code().name}: {error.details()}") from None
    if client.delta:
        message = _discovery.DeltaDiscoveryResponse.FromString(data)
        resources = [resource.resource for resource in message.resources]
    else:
        message = _discovery.DiscoveryResponse.FromString(data)
        resources = list(message.resources)
    identifier = message.control_plane.identifier
    assert message.nonce
    return Response(message.type_url, resources, json.loads(identifier) if identifier else None)


async def refusal(client: adsclient.Client, type_url: str, *names: str) -> str:
    async with client:
        with pytest.raises(ConnectionError) as refused:
            await ask(client, type_url, *names)
    return str(refused.value)


def proxy(plane: Plane, name: str, namespace: str) -> adsclient.Client:
    """An agent's Envoy, connected."""
    node = adsclient.node(name, namespace, CLUSTER_ID="c1", PROXY_CONFIG={"discoveryAddress": "here"})
    return adsclient.Client(plane.target("--grpcAddr"), node=node)


@contextlib.asynccontextmanager
async def mesh(folder: pathlib.Path, tuned: settings.Settings = FAST) -> AsyncIterator[Plane]:
    """A control plane with proxies of two namespaces, and a client that is no agent's."""
    (folder / "config").mkdir()
    (folder / "config" / "cart.yaml").write_text(SERVICE)
    other = adsclient.Client("", node=adsclient.node("other-0", "shop"))
    async with (
        control_plane(folder, tuned) as plane,
        proxy(plane, "cart-0", "shop") as cart,
        proxy(plane, "teller-0", "bank") as teller,
    ):
        other.target = plane.target("--grpcAddr")
        async with other:
            for client in (cart, teller, other):
                await client.subscribe(CLUSTER)
                await client.read_acked()
            await cart.subscribe(LISTENER)
            await cart.nack(await cart.read(), "no such filter")
            await teller.subscribe(LISTENER)
            await teller.read()
            connections = plane.control_plane.discovery.connections
            await eventually(lambda: sorted(each.state.name for one in connections for each in one.types()) == STATES)
            yield plane


def described(response: Response) -> dict[str, dict[str, str]]:
    """Proxy → type → state, of a syncz response."""
    configs = [protos.to_json(protos.unpack(packed)) for packed in response.resources]
    return {
        config["node"]["id"]: {
            each["typeUrl"].rpartition(".")[2]: each["configStatus"] for each in config["genericXdsConfigs"]
        }
        for config in configs
    }


@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("way", [with_token, with_certificate])
async def test_who_proves_to_be_of_the_system_namespace_sees_every_agent(tmp_path, way, delta):
    async with mesh(tmp_path) as plane, way(plane, delta=delta, reads=False) as client:
        response = await ask(client, SYNCZ)
        assert response.type_url == SYNCZ
        assert {packed.type_url for packed in response.resources} == {
            "type.googleapis.com/envoy.service.status.v3.ClientConfig"
        }
        assert described(response) == {
            "teller-0.bank": {"Cluster": "SYNCED", "Listener": "STALE"},
            "cart-0.shop": {"Cluster": "SYNCED", "Listener": "ERROR"},
        }
        (cart,) = [
            config
            for packed in response.resources
            if (config := protos.to_json(protos.unpack(packed)))["node"]["id"] == "cart-0.shop"
        ]
        assert cart["node"]["metadata"] == {"CLUSTER_ID": "c1", "NAMESPACE": "shop", "ISTIO_VERSION": "1.32.0"}
        (error,) = [each["errorState"] for each in cart["genericXdsConfigs"] if "errorState" in each]
        assert error["details"] == "Internal:no such filter"


async def test_syncz_says_who_answers(tmp_path):
    tuned = msgspec.structs.replace(FAST, instance=settings.Instance(name="istiod-7"))
    async with mesh(tmp_path, tuned) as plane, with_token(plane, reads=False, delta=False) as client:
        response = await ask(client, SYNCZ)
        assert response.identifier["Component"] == "istiod"
        assert response.identifier["ID"] == "istiod-7"
        assert set(response.identifier["Info"]) == {"version", "revision", "golang_version", "status", "tag"}
        assert (await ask(client, PAGE, "list")).identifier is None
        assert (await ask(client, CONFIG_DUMP, "cart-0.shop")).identifier is None


async def test_others_see_the_agents_of_their_own_namespace(tmp_path):
    async with mesh(tmp_path) as plane, with_token(plane, "bank", reads=False, delta=False) as client:
        assert list(described(await ask(client, SYNCZ))) == ["teller-0.bank"]
        assert (await ask(client, CONFIG_DUMP, "cart-0.shop")).resources == []
        assert len((await ask(client, CONFIG_DUMP, "teller-0.bank")).resources) == 7


async def test_a_config_dump_is_one_resource_a_section(tmp_path):
    async with mesh(tmp_path) as plane, with_token(plane, reads=False, delta=False) as client:
        response = await ask(client, CONFIG_DUMP, "cart-0.shop")
        assert [packed.type_url.rpartition(".")[2] for packed in response.resources] == [
            "BootstrapConfigDump",
            "ClustersConfigDump",
            "ListenersConfigDump",
            "ScopedRoutesConfigDump",
            "RoutesConfigDump",
            "SecretsConfigDump",
            "EcdsConfigDump",
        ]
        clusters = protos.to_json(protos.unpack(response.resources[1]))["dynamicActiveClusters"]
        assert "outbound|80||cart.shop.svc.cluster.local" in [each["cluster"]["name"] for each in clusters]
        assert (await ask(client, CONFIG_DUMP, "nobody.shop")).resources == []
        assert (await ask(client, CONFIG_DUMP)).resources == []
        assert (await ask(client, CONFIG_DUMP, "cart-0.shop", "teller-0.bank")).resources == []


async def test_pages_have_the_bytes_of_those_over_http(tmp_path):
    async with mesh(tmp_path) as plane, with_token(plane, reads=False, delta=False) as client:
        for page in ("list", "registryz", "connections?pretty", "config_dump?proxyID=cart-0.shop&types=cds"):
            (packed,) = (await ask(client, PAGE, page)).resources
            assert packed.type_url == PAGE
            status, text = await plane.get(f"/debug/{page}")
            assert (status, packed.value.decode()) == (200, text)
        (packed,) = (await ask(client, PAGE, "edsz?proxyID=nobody")).resources
        assert packed.value.startswith(b"Proxy not connected to this Pilot instance.")


async def test_the_pages_of_others_are_three_and_about_their_own(tmp_path):
    async with mesh(tmp_path) as plane:
        async with with_certificate(plane, "bank", reads=False, delta=False) as client:
            (packed,) = (await ask(client, PAGE, "config_dump?proxyID=teller-0")).resources
            assert b"outbound|80||cart.shop.svc.cluster.local" in packed.value
            (packed,) = (await ask(client, PAGE, "config_dump?proxyID=cart-0")).resources
            assert packed.value.startswith(b"Proxy not connected")
        assert await refusal(with_certificate(plane, "bank", reads=False), PAGE, "syncz") == (
            "PERMISSION_DENIED: the debug info is not available for current identity: "
            '"spiffe://cluster.local/ns/bank/sa/default"'
        )


@pytest.mark.parametrize(("type_url", "names"), [(SYNCZ, ()), (CONFIG_DUMP, ("cart-0.shop",)), (PAGE, ("syncz",))])
async def test_without_credentials_nothing_is_told(tmp_path, type_url, names):
    async with control_plane(tmp_path) as plane:
        plain = on_the_plain_port(plane)
        plain.reads = False
        assert await refusal(plain, type_url, *names) == "UNAUTHENTICATED: authentication required"
        nobody = with_token(plane, "", reads=False)
        assert (await refusal(nobody, type_url, *names)).startswith("UNAUTHENTICATED: authentication failure")


async def test_without_authorization_the_plain_port_tells_states_but_no_pages(tmp_path):
    tuned = msgspec.structs.replace(FAST, http=settings.Http(debug_authorization=False))
    async with mesh(tmp_path, tuned) as plane:
        plain = on_the_plain_port(plane)
        plain.reads = False
        async with plain as client:
            assert set(described(await ask(client, SYNCZ))) == {"cart-0.shop", "teller-0.bank"}
        plain = on_the_plain_port(plane)
        plain.reads = False
        assert await refusal(plain, PAGE, "syncz") == "UNAUTHENTICATED: authentication required"


async def test_one_page_at_a_time(tmp_path):
    async with control_plane(tmp_path) as plane:
        for names in ((), ("list", "syncz")):
            text = await refusal(with_token(plane, reads=False), PAGE, *names)
            assert text == "INVALID_ARGUMENT: exactly one debug request is required"


async def test_unknown_debug_types_are_refused(tmp_path):
    async with control_plane(tmp_path) as plane:
        text = await refusal(with_token(plane, reads=False), "istio.io/debug/nothing")
        assert text.startswith("INVALID_ARGUMENT: istio.io/debug/nothing")


async def test_who_only_asks_is_no_client(tmp_path):
    async with control_plane(tmp_path) as plane, with_token(plane, reads=False, delta=False) as client:
        await ask(client, SYNCZ)
        assert len(plane.control_plane.discovery.connections) == 0
        assert json.loads((await plane.get("/debug/syncz"))[1]) == []


async def test_a_proxy_may_ask_beside_its_subscriptions(tmp_path):
    async with control_plane(tmp_path) as plane:
        client = with_token(plane, "shop", reads=False)
        client.node = adsclient.node("cart-0", "shop", PROXY_CONFIG={"discoveryAddress": "here"})
        async with client:
            assert described(await ask(client, SYNCZ)) == {}
            await client.subscribe(CLUSTER)
            first = _discovery.DeltaDiscoveryResponse.FromString(await client.call.read())
            assert first.type_url == CLUSTER
            await client.subscribe(CLUSTER, nonce=first.nonce)
            assert described(await ask(client, SYNCZ)) == {"cart-0.shop": {"Cluster": "SYNCED"}}
            assert described(await ask(client, SYNCZ)) == {"cart-0.shop": {"Cluster": "SYNCED"}}
