"""What Istio's proxy image would get: dialect `istio` through Istio's own agent, in both variants of ADS.

Upstream's Envoy cannot take it, as it lacks Istio's filters. So one pod's agent has no Envoy, and the test asks in its
place; another has one, and what it refuses shows that nothing but those filters is in the way.
"""

import asyncio
import contextlib
import json
import re

import adsclient
import pytest
from adsclient import Client
from eventually import eventually_blocking
from interop_mesh import Mesh, Workload
from istio_programs import Plane

from mizzen.compile.resource import CLUSTER, ENDPOINT, EXTENSION, LISTENER, ROUTE

_PLUGIN = "extensions.istio.io/trafficextension/shop.nowhere~istio-translated-wasmplugin"
ISTIOS_OWN = {"istio.metadata_exchange", "istio.alpn", "istio.stats"}
_DELAY = {
    "apiVersion": "networking.istio.io/v1",
    "kind": "VirtualService",
    "metadata": {"name": "cart", "namespace": "shop"},
    "spec": {
        "hosts": ["cart"],
        "http": [
            {
                "fault": {"delay": {"fixedDelay": "1s", "percentage": {"value": 1}}},
                "route": [{"destination": {"host": "cart"}}],
            }
        ],
    },
}


@pytest.fixture(scope="module")
def plane(mesh: Mesh) -> Plane:
    plane = mesh.mizzen()
    mesh.gate.lead_to(plane.secure)
    mesh.apply(_DELAY, "virtualservices")
    telemetry = {
        "apiVersion": "telemetry.istio.io/v1",
        "kind": "Telemetry",
        "metadata": {"name": "metrics", "namespace": "istio-system"},
        "spec": {"metrics": [{"providers": [{"name": "prometheus"}]}]},
    }
    mesh.apply(telemetry, "telemetries")
    plugin = {
        "apiVersion": "extensions.istio.io/v1alpha1",
        "kind": "WasmPlugin",
        "metadata": {"name": "nowhere", "namespace": "shop"},
        "spec": {"url": f"http://{mesh.network.host}:9/module.wasm", "failStrategy": "FAIL_OPEN"},
    }
    mesh.apply(plugin, "wasmplugins")
    return plane


@pytest.fixture(scope="module")
def relay(mesh: Mesh, plane: Plane) -> Workload:
    """A pod whose agent has no Envoy."""
    cart = mesh.workload("cart-1", "cart", ISTIO_META_DNS_CAPTURE="true")
    cart.capture()
    cart.start_istio_agent(DISABLE_ENVOY="true", WASM_HTTP_REQUEST_MAX_RETRIES="1")
    eventually_blocking(lambda: _socket(cart).exists(), 60)
    mesh.tell_endpoints("cart")
    return cart


def _socket(workload: Workload):
    return workload.place.folder / "etc/istio/proxy/XDS"


def _node(workload: Workload) -> dict:
    return adsclient.node(
        workload.name,
        "shop",
        ip=workload.place.address,
        service_account="cart",
        LABELS={"app": "cart"},
        CLUSTER_ID="Kubernetes",
        DNS_CAPTURE="true",
        ENVOY_STATUS_PORT=15021,
        ENVOY_PROMETHEUS_PORT=15090,
        INTERCEPTION_MODE="REDIRECT",
    )


async def _ask_all(client: Client) -> dict[str, dict[str, bytes]]:
    """What an Envoy holds that has asked for everything, in its order."""
    for kind in (CLUSTER, ENDPOINT, LISTENER, ROUTE, EXTENSION):
        names: tuple[str, ...] = ()
        if kind == ENDPOINT:
            names = tuple(sorted(name for name in client.held[CLUSTER] if name.startswith("outbound|")))
        if kind in (ROUTE, EXTENSION):
            names = ("80",) if kind == ROUTE else (_PLUGIN,)
        await client.subscribe(kind, *names)
        while (await client.read_acked(60)).type_url != kind:
            """Something else was pushed meanwhile."""
    with contextlib.suppress(TimeoutError):
        while True:
            await client.read_acked(1.0)
    return client.held


@pytest.mark.parametrize("delta", [True, False], ids=["delta", "state-of-the-world"])
async def test_the_agent_passes_on_what_the_control_plane_sends(relay: Workload, plane: Plane, delta: bool) -> None:
    plain = f"127.0.0.1:{plane.ports['grpcAddr']}"
    async with (
        Client(f"unix://{_socket(relay)}", delta=delta, node=_node(relay), headers_first=False) as through,
        Client(plain, delta=delta, node=_node(relay)) as straight,
    ):
        # Side by side, so that both hold what comes meanwhile.
        got, sent = await asyncio.gather(_ask_all(through), _ask_all(straight))
    for kind in (CLUSTER, ENDPOINT, LISTENER, ROUTE):
        assert got[kind]
        assert got[kind] == sent[kind]
    assert b"wasm-default-allow" in got[EXTENSION][_PLUGIN], "the module cannot be fetched, and the plugin fails open"
    assert b"wasm-default-allow" not in sent[EXTENSION][_PLUGIN]
    used = {name for resources in got.values() for packed in resources.values() for name in _filters(packed)}
    assert used >= ISTIOS_OWN


def _filters(packed: bytes) -> set[str]:
    return {name for name in ISTIOS_OWN if name.encode() in packed}


def test_the_agent_answers_names(relay: Workload, mesh: Mesh) -> None:
    def told() -> list[str]:
        code, text = relay.place.get(15020, "/debug/ndsz")
        table = json.loads(text).get("table", {}) if code == 200 else {}
        return list(table.get("cart.shop.svc.cluster.local", {}).get("ips", ()))

    address = mesh.address("cart")
    eventually_blocking(lambda: told() == [address], 60, every=0.2)


def test_upstreams_envoy_lacks_nothing_but_istios_filters(mesh: Mesh, plane: Plane) -> None:
    web = mesh.workload("web-1", "web")
    web.capture()
    web.start_istio_agent()

    def refused() -> set[str]:
        return {name for line in _lines(plane) for name in _missing(line)}

    eventually_blocking(lambda: {"LDS", "CDS"} <= _kinds(plane.process.log), 60, every=0.2)
    assert refused() <= ISTIOS_OWN
    complaints = [line for line in _lines(plane) if "config rejected" in line or "ACK ERROR" in line]
    assert all(_missing(line) for line in complaints)
    assert not web.is_ready, "an Envoy that has refused its listeners gets no traffic"


def _lines(plane: Plane) -> list[str]:
    """What the control plane has said; the last line may be on its way."""
    return plane.process.log.rpartition("\n")[0].splitlines()


def _missing(line: str) -> set[str]:
    return set(re.findall(r"registered implementation for '([^']+)'", line))


def _kinds(log: str) -> set[str]:
    return set(re.findall(r"ADS:(\w+): ACK ERROR", log))
