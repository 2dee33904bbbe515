"""The real istioctl asks Mizzen's control plane, unchanged, and shows what `mizzen` shows."""

import contextlib
import json
import pathlib
import re
from collections.abc import AsyncIterator

import adsclient
import istioctl_runs
import msgspec
import pytest
from certificate_requests import make_request
from control_planes import FAST, HOST, Plane, control_plane
from cryptography.hazmat.primitives.asymmetric import ec
from eventually import eventually
from istioctl_runs import NO_CLUSTER
from programs import mizzen

from mizzen import settings
from mizzen.ca import certificates
from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE

NAMED = msgspec.structs.replace(FAST, instance=settings.Instance(name="istiod-7"))
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec:
  clusterIP: 10.96.0.1
  ports:
  - {name: http, port: 80}
"""
CART = "outbound|80||cart.shop.svc.cluster.local"
STATES = ["ERROR", "SYNCED", "SYNCED", "SYNCED", "SYNCED", "SYNCED"]
_AGE = re.compile(r" \(\w+\)")


def agent(plane: Plane, name: str, namespace: str) -> adsclient.Client:
    node = adsclient.node(name, namespace, CLUSTER_ID="Kubernetes", PROXY_CONFIG={"discoveryAddress": "here"})
    return adsclient.Client(plane.target("--grpcAddr"), node=node)


@contextlib.asynccontextmanager
async def mesh(folder: pathlib.Path) -> AsyncIterator[Plane]:
    """A control plane with two agents, one of which has refused its listeners."""
    (folder / "config").mkdir()
    (folder / "config" / "cart.yaml").write_text(SERVICE)
    async with (
        control_plane(folder, NAMED) as plane,
        agent(plane, "cart-0", "shop") as cart,
        agent(plane, "teller-0", "bank") as teller,
    ):
        for client, types in ((cart, (CLUSTER, ENDPOINT, LISTENER, ROUTE)), (teller, (CLUSTER, LISTENER))):
            for type_url in types:
                await client.subscribe(type_url, *{ENDPOINT: (CART,), ROUTE: ("80",)}.get(type_url, ()))
                answer = await client.read()
                refused = client is teller and type_url == LISTENER
                await (client.nack(answer, "no such filter") if refused else client.ack(answer))
        connections = plane.control_plane.discovery.connections
        await eventually(lambda: sorted(each.state.name for one in connections for each in one.types()) == STATES)
        yield plane


def credentials(plane: Plane, namespace: str = "istio-system") -> list[str]:
    """Flags that both programs take: a client certificate, and the name of the server."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = f"spiffe://cluster.local/ns/{namespace}/sa/default"
    *chain, root = plane.control_plane.authority.issue(make_request(key), (name,))
    folder = plane.folder / "certificates"
    folder.mkdir(exist_ok=True)
    (folder / "key.pem").write_bytes(certificates.encode_key(key))
    (folder / "cert-chain.pem").write_text("".join(chain))
    (folder / "root-cert.pem").write_text(root)
    return ["--xds-address", plane.target("--mutualGRPCAddr"), "--cert-dir", str(folder), "--authority", HOST]


def without_age(text: str) -> str:
    """Times go on between two questions, and with them the widths of columns."""
    return re.sub(r"  +", "  ", _AGE.sub("", text))


@pytest.mark.parametrize("verbosity", ["0", "1"])
@pytest.mark.parametrize("namespace", [(), ("-n", "bank")])
async def test_tables_of_states_are_equal(tmp_path: pathlib.Path, namespace: tuple[str, ...], verbosity: str) -> None:
    async with mesh(tmp_path) as plane:
        command = ["proxy-status", "-v", verbosity, *namespace, *credentials(plane)]
        theirs = await istioctl_runs.run(tmp_path, *command, *NO_CLUSTER)
        ours = await mizzen(*command)
        assert (theirs.code, ours.code) == (0, 0), (theirs.err, ours.err)
        assert "istiod-7" in theirs.out
        if verbosity == "0":
            assert ours.out == theirs.out
        assert without_age(ours.out) == without_age(theirs.out)


async def test_documents_of_states_are_equal(tmp_path: pathlib.Path) -> None:
    async with mesh(tmp_path) as plane:
        command = ["proxy-status", "-o", "json", *credentials(plane)]
        theirs = json.loads((await istioctl_runs.run(tmp_path, *command, *NO_CLUSTER)).out)
        ours = json.loads((await mizzen(*command)).out)
        for document in (theirs, ours):
            document.pop("versionInfo")
            document.pop("nonce")
            for resource in document["resources"]:
                for config in resource["genericXdsConfigs"]:
                    config["lastUpdated"] = config["lastUpdated"].rstrip("0Z")
                    config.get("errorState", {}).pop("lastUpdateAttempt", None)
        assert ours == theirs
        assert {resource["node"]["id"] for resource in theirs["resources"]} == {"cart-0.shop", "teller-0.bank"}


async def test_one_proxy_is_held_against_what_it_was_sent(tmp_path: pathlib.Path) -> None:
    async with mesh(tmp_path) as plane:
        dump = json.loads((await plane.get("/debug/config_dump?proxyID=cart-0.shop"))[1])
        file = tmp_path / "dump.json"
        file.write_text(json.dumps(dump))
        command = ["proxy-status", "cart-0.shop", "--file", file, *credentials(plane)]
        theirs = await istioctl_runs.run(tmp_path, *command, *NO_CLUSTER)
        ours = await mizzen(*command)
        assert theirs.out == ours.out == "Clusters Match\nListeners Match\nRoutes Match\n"
        dump["configs"][1]["dynamicActiveClusters"].pop()
        file.write_text(json.dumps(dump))
        theirs = await istioctl_runs.run(tmp_path, *command, *NO_CLUSTER)
        ours = await mizzen(*command)
        assert theirs.out.splitlines()[0] == ours.out.splitlines()[0] == "Clusters Don't Match"


async def test_versions_are_equal(tmp_path: pathlib.Path) -> None:
    async with mesh(tmp_path) as plane:
        theirs = await istioctl_runs.run(tmp_path, "x", "version", *credentials(plane), *NO_CLUSTER)
        ours = await mizzen("x", "version", *credentials(plane))
        assert theirs.out.splitlines()[1:] == ours.out.splitlines()[1:]
        assert theirs.out.splitlines()[2] == "data plane version: 1.32.0 (2 proxies)"


PAGES = (
    *("syncz", "connections", "adsz", "mesh", "registryz", "endpointShardz", "configz", "resourcesz", "instancesz"),
    *("authorizationz", "telemetryz", "cachez", "clusterz", "config_dump?proxyID=cart-0", "edsz?proxyID=cart-0"),
    *("sidecarz?proxyID=cart-0", "ndsz?proxyID=nobody", "nothing", "edsz", "--list"),
)


async def test_pages_are_equal(tmp_path: pathlib.Path) -> None:
    async with mesh(tmp_path) as plane:
        flags = credentials(plane)
        for page in PAGES:
            theirs = await istioctl_runs.run(tmp_path, "x", "internal-debug", page, *flags, *NO_CLUSTER)
            ours = await mizzen("x", "internal-debug", page, *flags)
            assert ours.code == theirs.code, page
            assert ours.out.split() == theirs.out.split(), page
            assert ours.err.split() == theirs.err.split(), page


async def test_who_may_not_see_is_refused(tmp_path: pathlib.Path) -> None:
    async with mesh(tmp_path) as plane:
        plain = ["--xds-address", plane.target("--grpcAddr"), "--plaintext"]
        for flags, text in (
            (plain, "authentication required"),
            (credentials(plane, "shop"), "the debug info is not available for current identity"),
        ):
            theirs = await istioctl_runs.run(tmp_path, "x", "internal-debug", "syncz", *flags, *NO_CLUSTER)
            ours = await mizzen("x", "internal-debug", "syncz", *flags)
            assert (ours.code, theirs.code) == (1, 1)
            assert text in ours.err
            assert text in theirs.err
