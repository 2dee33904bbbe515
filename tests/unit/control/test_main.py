"""A whole control plane: from files on disk to what a proxy is told and an operator sees, over real sockets."""

import asyncio
import json
import pathlib
import socket
from collections.abc import Callable
from typing import Any

import adsclient
import grpc
import msgspec
import pytest
from certificate_requests import make_request, read_chain, verify_chain
from claims import own_port
from control_planes import ANY_PORT, FAST, HOST, Plane, control_plane, options_for
from cryptography.hazmat.primitives.asymmetric import ec
from eventually import eventually
from issuer import Issuer, key_set

from mizzen import protos, settings
from mizzen.ca import certificates
from mizzen.compile.resource import CLUSTER, SECRET
from mizzen.compile.security.tokens import KEY_SET
from mizzen.control.main import run
from mizzen.errors import MizzenError, SourceError
from mizzen.sources.batches import Batch

AUTH = protos.package("istio.v1.auth")
CREATE = "/istio.v1.auth.IstioCertificateService/CreateCertificate"
OPTIONS = (("grpc.ssl_target_name_override", HOST), *adsclient.CHANNEL_OPTIONS)
CART = "spiffe://cluster.local/ns/default/sa/cart"


def service(name: str, port: int = 80) -> str:
    return (
        f"apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: default}}\n"
        f"spec:\n  clusterIP: 10.96.0.1\n  ports:\n  - {{name: http, port: {port}}}\n"
    )


def cluster(name: str, port: int = 80) -> str:
    return f"outbound|{port}||{name}.default.svc.cluster.local"


def write(folder: pathlib.Path, name: str, text: str) -> None:
    (folder / "config").mkdir(exist_ok=True)
    (folder / "config" / name).write_text(text)


async def watch_clusters(client: adsclient.Client, name: str) -> None:
    """Read until the client holds the cluster."""
    async with asyncio.timeout(60):
        while name not in client.held.get(CLUSTER, {}):
            await client.read_acked()


def plain(plane: Plane, **fields: Any) -> adsclient.Client:
    return adsclient.Client(plane.target("--grpcAddr"), **fields)


async def test_change_on_disk_reaches_a_connected_proxy(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "a.yaml", service("cart"))
    async with control_plane(tmp_path) as plane, plain(plane) as client:
        await client.subscribe(CLUSTER)
        await watch_clusters(client, cluster("cart"))
        write(tmp_path, "b.yaml", service("front", 81))
        await watch_clusters(client, cluster("front", 81))
        (tmp_path / "config" / "b.yaml").unlink()
        answer = await client.read_acked()
        assert cluster("front", 81) in answer.removed


async def test_key_sets_of_issuers_are_fetched_before_anybody_is_served(tmp_path: pathlib.Path) -> None:
    async with Issuer().running() as issuer:
        issuer.documents["/jwks"] = key_set("one")
        head = "apiVersion: security.istio.io/v1\nkind: RequestAuthentication\nmetadata: {name: a, namespace: b}\n"
        write(tmp_path, "a.yaml", f"{head}spec: {{jwtRules: [{{issuer: i, jwksUri: '{issuer.url()}'}}]}}\n")
        async with control_plane(tmp_path) as plane:
            await eventually(lambda: plane.control_plane.engine.peek((KEY_SET, "", issuer.url())) == key_set("one"))
            assert issuer.asked == ["/jwks"]


async def test_broken_file_leaves_the_rest_served_and_is_shown(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "a.yaml", service("cart"))
    write(tmp_path, "b.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {ports: 5}\n")
    async with control_plane(tmp_path) as plane, plain(plane) as client:
        await client.subscribe(CLUSTER)
        await watch_clusters(client, cluster("cart"))
        _, text = await plane.get("/debug/problems")
        (entry,) = json.loads(text)["objects"]
        assert (entry["name"], entry["line"], entry["path"]) == ("x", 4, "spec.ports")
        assert entry["file"].endswith("b.yaml")
        (tmp_path / "config" / "b.yaml").unlink()
        await eventually(lambda: not plane.control_plane.inputs.findings)


async def test_nobody_is_served_before_the_first_list(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "a.yaml", service("cart"))
    async with control_plane(tmp_path, held=True) as plane:
        assert (await plane.get("/ready", "--httpAddr"))[0] == 503
        async with plain(plane) as client:
            await client.subscribe(CLUSTER)
            with pytest.raises(ConnectionError, match="UNAVAILABLE: server is not ready"):
                await client.read()
        source = plane.control_plane.source
        assert source is not None
        await eventually(lambda: source.contents.objects)
        assert not plane.control_plane.is_ready()
        plane.control_plane.inputs.take("held", Batch(), {})
        assert await plane.get("/ready", "--httpAddr") == (200, "")


async def test_mesh_config_is_followed_in_file_and_config_map(tmp_path: pathlib.Path) -> None:
    mesh_file = tmp_path / "mesh.yaml"
    mesh_file.write_text("trustDomain: one.example\n")
    async with control_plane(tmp_path, mesh_config=str(mesh_file)) as plane:
        mesh = plane.control_plane._mesh
        assert mesh.config.trust_domain == "one.example"
        mesh_file.write_text("trustDomain: two.example\n")
        await eventually(lambda: mesh.config.trust_domain == "two.example")
        write(
            tmp_path,
            "cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\n"
            'data: {mesh: "trustDomain: three.example"}\n',
        )
        await eventually(lambda: mesh.config.trust_domain == "three.example")


# -- credentials ------------------------------------------------------------------------------------------------------


async def ask_certificate(plane: Plane, token: str) -> tuple[bytes, tuple[str, ...]]:
    """A new key, and the chain that the certificate service gives for it."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = AUTH.IstioCertificateRequest(csr=make_request(key))
    async with grpc.aio.secure_channel(plane.target("--secureGRPCAddr"), plane.credentials(), OPTIONS) as channel:
        call = channel.unary_unary(CREATE, protos.encode, AUTH.IstioCertificateResponse.FromString)
        answer = await call(request, metadata=[("authorization", f"Bearer {token}")], timeout=60)
    return certificates.encode_key(key), tuple(answer.cert_chain)


def node(account: str = "cart", namespace: str = "default") -> dict[str, Any]:
    return adsclient.node("cart-0", namespace, service_account=account)


async def first_answer(client: adsclient.Client) -> adsclient.Answer:
    async with client:
        await client.subscribe(CLUSTER)
        return await client.read()


async def test_token_opens_the_secure_port_for_its_own_identity(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "a.yaml", service("cart"))
    async with control_plane(tmp_path) as plane:
        target, token = plane.target("--secureGRPCAddr"), plane.token("default", "cart")
        common: dict[str, Any] = {"credentials": plane.credentials(), "options": OPTIONS}
        own = adsclient.Client(target, node=node(), token=token, **common)
        assert cluster("cart") in (await first_answer(own)).names
        for refused, reason in (
            (adsclient.Client(target, node=node(), **common), "UNAUTHENTICATED"),
            (adsclient.Client(target, node=node(), token=token[:-3], **common), "UNAUTHENTICATED"),
            (adsclient.Client(target, node=node("vault"), token=token, **common), "PERMISSION_DENIED"),
            (adsclient.Client(target, node=node("cart", "bank"), token=token, **common), "PERMISSION_DENIED"),
        ):
            with pytest.raises(ConnectionError, match=reason):
                await first_answer(refused)


async def test_issued_certificate_opens_the_mutual_port(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "a.yaml", service("cart"))
    async with control_plane(tmp_path) as plane:
        key, answer = await ask_certificate(plane, plane.token("default", "cart"))
        chain, roots = read_chain(answer)
        assert verify_chain(chain, roots, certificates.start_of(chain[0]) + 200) == [CART]
        credentials = plane.credentials(key, "".join(answer[:-1]).encode())
        target = plane.target("--mutualGRPCAddr")
        own = adsclient.Client(target, node=node(), credentials=credentials, options=OPTIONS)
        assert cluster("cart") in (await first_answer(own)).names
        stolen = adsclient.Client(target, node=node("vault"), credentials=credentials, options=OPTIONS)
        with pytest.raises(ConnectionError, match="PERMISSION_DENIED"):
            await first_answer(stolen)


async def test_plain_port_serves_no_secrets(tmp_path: pathlib.Path) -> None:
    async with control_plane(tmp_path) as plane, plain(plane) as client:
        await client.subscribe(SECRET, "kubernetes://shop")
        await client.subscribe(CLUSTER)
        assert (await client.read()).type_url == CLUSTER
        await client.read_nothing()


# -- what operators see -----------------------------------------------------------------------------------------------


async def test_debug_pages_show_a_connected_proxy(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "a.yaml", service("cart"))
    async with control_plane(tmp_path) as plane, plain(plane, node=node()) as client:
        await client.subscribe(CLUSTER)
        await watch_clusters(client, cluster("cart"))
        connections = plane.control_plane.discovery.connections
        await eventually(lambda: next(iter(connections)).types()[0].acked_nonce)
        (entry,) = json.loads((await plane.get("/debug/syncz"))[1])
        assert entry["proxy"] == "cart-0.default"
        assert entry["cluster_sent"] == entry["cluster_acked"] != ""
        dump = json.loads((await plane.get("/debug/config_dump?proxyID=cart-0.default", "--httpAddr"))[1])
        names = [each["cluster"]["name"] for each in dump["configs"][1]["dynamicActiveClusters"]]
        assert cluster("cart") in names
        adsz = json.loads((await plane.get("/debug/adsz?proxyID=cart-0"))[1])
        assert adsz["clients"][0]["watches"] == {CLUSTER: []}
        assert json.loads((await plane.get("/debug/syncz?namespace=bank"))[1]) == []


async def test_debug_pages_answer_like_istiods(tmp_path: pathlib.Path) -> None:
    async with control_plane(tmp_path) as plane:
        assert await plane.get("/debug/config_dump") == (400, "You must provide a proxyID in the query string")
        status, text = await plane.get("/debug/config_dump?proxyID=nobody")
        assert (status, text[:51]) == (404, "Proxy not connected to this Pilot instance. It may ")
        assert (await plane.get("/debug/nothing"))[0] == 404
        names = json.loads((await plane.get("/debug/list"))[1])
        assert {"adsz", "config_dump", "connections", "problems", "syncz"} <= set(names)
        assert "Pilot Debug Console" in (await plane.get("/debug"))[1]
        assert (await plane.get("/debug/syncz?pretty"))[1] == "[]"
        assert len((await plane.get("/version"))[1].split("-")) == 3


async def test_metrics_have_istios_names(tmp_path: pathlib.Path) -> None:
    async with control_plane(tmp_path) as plane:
        await ask_certificate(plane, plane.token("default", "cart"))
        status, text = await plane.get("/metrics")
        lines = text.splitlines()
        assert status == 200
        assert any(line.startswith("citadel_server_success_cert_issuance_count ") for line in lines)
        assert any(line.startswith("pilot_inbound_updates{") for line in lines)
        assert not any(line.startswith("citadel_server_csr_count_total") for line in lines)


async def test_debug_can_be_kept_off_the_readiness_port(tmp_path: pathlib.Path) -> None:
    config = msgspec.structs.replace(FAST, http=settings.Http(debug_on_http=False))
    async with control_plane(tmp_path, config) as plane:
        assert (await plane.get("/debug/syncz", "--httpAddr"))[0] == 404
        assert (await plane.get("/debug/syncz"))[0] == 200


# -- start and stop ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["plain", "secure", "mutual", "monitoring", "http"])
async def test_port_in_use_names_the_port_and_the_remedy(tmp_path: pathlib.Path, flag: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        address = options_for(tmp_path).plain._replace(port=port)  # type: ignore[union-attr]
        with pytest.raises(MizzenError, match=rf"cannot listen on 127\.0\.0\.1:{port}: .* choose another with --"):
            async with control_plane(tmp_path, **{flag: address}):
                pass


async def test_missing_folder_ends_the_start(tmp_path: pathlib.Path) -> None:
    with pytest.raises(SourceError, match="nowhere: No such file"):
        async with control_plane(tmp_path, config=(str(tmp_path / "nowhere"),)):
            pass


async def test_stop_ends_streams_and_frees_every_port(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "a.yaml", service("cart"))
    flags = ("plain", "secure", "mutual", "monitoring", "http")
    # Of their own: what the system chooses it may give to others as soon as it is free.
    own = {flag: ANY_PORT._replace(port=own_port()) for flag in flags}
    async with control_plane(tmp_path, **own) as plane, plain(plane) as client:
        await client.subscribe(CLUSTER)
        await watch_clusters(client, cluster("cart"))
        ports = dict(plane.control_plane.ports)
        plane.control_plane.stop()
        assert not plane.control_plane.is_ready()
        with pytest.raises(ConnectionError):
            await client.read()
    assert len(ports) == 5
    for port in ports.values():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))


@pytest.mark.parametrize("steps", range(6))
async def test_a_signal_at_any_step_of_the_start_ends_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    (tmp_path / "config").mkdir()
    handlers: list[Callable[[], object]] = []
    monkeypatch.setattr(
        asyncio.get_running_loop(), "add_signal_handler", lambda _number, handler: handlers.append(handler)
    )
    running = asyncio.ensure_future(run(options_for(tmp_path, token_keys=()), FAST))
    for _ in range(1 + steps):
        await asyncio.sleep(0)
    handlers[-1]()
    async with asyncio.timeout(60):
        await running


async def test_restart_keeps_root_and_ports_of_trust(tmp_path: pathlib.Path) -> None:
    async with control_plane(tmp_path) as plane:
        bundle = plane.control_plane.authority.bundle
    async with control_plane(tmp_path) as plane:
        assert plane.control_plane.authority.bundle == bundle


async def test_addresses_that_are_empty_open_no_port(tmp_path: pathlib.Path) -> None:
    async with control_plane(tmp_path, secure=None, mutual=None, http=None) as plane:
        assert set(plane.control_plane.ports) == {"--grpcAddr", "--monitoringAddr"}


async def test_levels_of_log_scopes_are_changed_on_a_port_of_their_own(tmp_path: pathlib.Path) -> None:
    async with control_plane(tmp_path, introspection=ANY_PORT) as plane:
        status, text = await plane.get("/scopej/", "--ctrlz_port")
        assert status == 200
        assert "ads" in {scope["name"] for scope in json.loads(text)}


async def test_port_in_use_for_log_scopes_stops_nobody(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = ANY_PORT._replace(port=taken.getsockname()[1])
        async with control_plane(tmp_path, introspection=address) as plane:
            assert (await plane.get("/ready"))[0] == 200
            assert "--ctrlz_port" not in plane.control_plane.ports
    assert "levels of log scopes cannot be changed" in caplog.text
