"""Commands that ask a whole control plane over ADS, by token, by client certificate, and without."""

import contextlib
import json
import pathlib
from collections.abc import AsyncIterator

import adsclient
import msgspec
import pytest
import yaml
from certificate_requests import make_request
from control_planes import FAST, HOST, Plane, control_plane
from cryptography.hazmat.primitives.asymmetric import ec
from eventually import eventually
from programs import mizzen

from mizzen import settings
from mizzen.ca import certificates
from mizzen.compile.resource import CLUSTER, LISTENER

NAMED = msgspec.structs.replace(FAST, instance=settings.Instance(name="istiod-7"))


@contextlib.asynccontextmanager
async def mesh(folder: pathlib.Path) -> AsyncIterator[Plane]:
    """A control plane and an agent that has refused its listeners."""
    async with control_plane(folder, NAMED) as plane:
        node = adsclient.node("cart-0", "shop", CLUSTER_ID="c1", PROXY_CONFIG={"discoveryAddress": "here"})
        async with adsclient.Client(plane.target("--grpcAddr"), node=node) as client:
            await client.subscribe(CLUSTER)
            await client.read_acked()
            await client.subscribe(LISTENER)
            await client.nack(await client.read(), "no such filter")
            (connection,) = plane.control_plane.discovery.connections
            states = ["SYNCED", "ERROR"]
            await eventually(lambda: [each.state.name for each in connection.types()] == states)
            yield plane


def by_token(plane: Plane, namespace: str = "istio-system") -> list[str]:
    """Flags of who has a service account's token and the mesh's root."""
    token, root = plane.folder / "token", plane.folder / "root.pem"
    token.write_text(plane.token(namespace, "default"))
    root.write_bytes(plane.control_plane.authority.bundle)
    address = ["--xds-address", plane.target("--secureGRPCAddr"), "--authority", HOST]
    return [*address, "--token", str(token), "--root", str(root)]


def by_certificate(plane: Plane) -> list[str]:
    """Flags of who has a client certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = "spiffe://cluster.local/ns/istio-system/sa/default"
    *chain, root = plane.control_plane.authority.issue(make_request(key), (name,))
    folder = plane.folder / "certificates"
    folder.mkdir(exist_ok=True)
    (folder / "key.pem").write_bytes(certificates.encode_key(key))
    (folder / "cert-chain.pem").write_text("".join(chain))
    (folder / "root-cert.pem").write_text(root)
    return ["--xds-address", plane.target("--mutualGRPCAddr"), "--cert-dir", str(folder), "--authority", HOST]


def without_looking(flags: list[str]) -> list[str]:
    """The same without the name and roots that are expected of the server."""
    kept = flags[: flags.index("--authority")] + flags[flags.index("--authority") + 2 :]
    if "--root" in kept:
        del kept[kept.index("--root") : kept.index("--root") + 2]
    return [*kept, "--insecure"]


CONDENSED = [
    ["NAME", "CLUSTER", "ISTIOD", "VERSION", "SUBSCRIBED TYPES"],
    ["cart-0.shop", "c1", "istiod-7", "1.32.0", "2 (CDS,LDS)"],
]


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


@pytest.mark.parametrize("way", [by_token, by_certificate])
async def test_states_are_told_to_who_shows_credentials(tmp_path: pathlib.Path, way) -> None:
    async with mesh(tmp_path) as plane:
        for flags in (way(plane), without_looking(way(plane))):
            answer = await mizzen("proxy-status", "-v0", *flags)
            assert (answer.code, answer.err) == (0, "")
            assert cells(answer.out) == CONDENSED


async def test_documents_are_the_answer_itself(tmp_path: pathlib.Path) -> None:
    async with mesh(tmp_path) as plane:
        flags = by_token(plane)
        document = json.loads((await mizzen("proxy-status", "-o", "json", *flags)).out)
        assert document["typeUrl"] == "istio.io/debug/syncz"
        assert json.loads(document["controlPlane"]["identifier"])["ID"] == "istiod-7"
        (config,) = document["resources"]
        (error,) = [each["errorState"] for each in config["genericXdsConfigs"] if "errorState" in each]
        assert error["details"] == "Internal:no such filter"
        other = yaml.safe_load((await mizzen("proxy-status", "-o", "yaml", "-n", "bank", *flags)).out)
        assert other["resources"] == []


async def test_versions_of_control_plane_and_proxies(tmp_path: pathlib.Path) -> None:
    async with mesh(tmp_path) as plane:
        lines = (await mizzen("version", *by_certificate(plane))).out.splitlines()
        assert lines[0].removeprefix("client version") == lines[1].removeprefix("control plane version")
        assert lines[2] == "data plane version: 1.32.0 (1 proxies)"


async def test_one_proxy_is_held_against_what_it_was_sent(tmp_path: pathlib.Path) -> None:
    async with mesh(tmp_path) as plane:
        file = tmp_path / "dump.json"
        file.write_text((await plane.get("/debug/config_dump?proxyID=cart-0.shop"))[1])
        flags = ["--file", file, *by_token(plane)]
        answer = await mizzen("proxy-status", "cart-0.shop", *flags)
        assert answer.out == "Clusters Match\nListeners Match\nRoutes Match\n"
        absent = await mizzen("proxy-status", "nobody.shop", *flags)
        assert (absent.code, absent.err) == (1, "Error: unable to find config dump in Istiod responses\n")


async def test_pages_are_shown(tmp_path: pathlib.Path) -> None:
    async with mesh(tmp_path) as plane:
        flags = by_certificate(plane)
        page = await mizzen("x", "internal-debug", "connections", *flags)
        assert json.loads(page.out)["clients"][0]["connectionId"] == "cart-0.shop-1"
        assert page.out.startswith('{\n  "totalClients"')
        unknown = await mizzen("x", "internal-debug", "nothing", *flags)
        first, rest = unknown.out.split("\n", 1)
        assert first == "error: according to below command list, please check all supported internal debug commands"
        assert rest == (await mizzen("x", "internal-debug", "--list", *flags)).out
        assert "syncz" in json.loads(rest)
        which = await mizzen("x", "internal-debug", "edsz", *flags)
        assert which.code == 1
        assert "You must provide a proxyID in the query string, e.g. [edsz?proxyID=" in which.err
        everywhere = await mizzen("x", "internal-debug", "syncz?namespace=bank", "--all", *flags)
        assert json.loads(everywhere.out) == {plane.target("--mutualGRPCAddr"): []}


async def test_who_may_not_see_is_told_why(tmp_path: pathlib.Path) -> None:
    async with control_plane(tmp_path) as plane:
        plain = await mizzen("proxy-status", "--xds-address", plane.target("--grpcAddr"), "--plaintext")
        assert (plain.code, plain.out) == (1, "")
        assert plain.err.endswith("UNAUTHENTICATED: authentication required\n")
        page = await mizzen("x", "internal-debug", "syncz", *by_token(plane, "shop"))
        assert page.code == 1
        assert "PERMISSION_DENIED: the debug info is not available for current identity" in page.err


async def test_the_server_s_certificate_is_checked(tmp_path: pathlib.Path) -> None:
    async with control_plane(tmp_path) as plane:
        flags = by_token(plane)
        flags[flags.index("--authority") + 1] = "elsewhere.example"
        answer = await mizzen("proxy-status", *flags)
        assert (answer.code, answer.out) == (1, "")
        assert "UNAVAILABLE" in answer.err


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--plaintext", "--cert-dir", "x"], "either --plaintext or --cert-dir, not both"),
        (["--monitoring", "127.0.0.1:1"], "either --xds-address or --monitoring, not both"),
        (["--token", "/nowhere/token"], "cannot read /nowhere/token: No such file or directory"),
        (["--timeout", "soon"], "--timeout: 'soon' is not a duration"),
    ],
)
async def test_flags_that_make_no_sense_are_named(flags: list[str], text: str) -> None:
    answer = await mizzen("proxy-status", "--xds-address", "127.0.0.1:1", *flags)
    assert answer.code != 0
    assert text in answer.err
