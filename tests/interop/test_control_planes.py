"""Istio's own control plane and Mizzen's over one cluster: agents of both at both, and the way there and back.

Both sign under one root, which an operator plugged in. istiod is told to send nothing that upstream's Envoy lacks.
What stays through it all is a client that makes requests without end, over new connections and over one that it keeps.
"""

import json
import pathlib
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import cli_runs
import pytest
from eventually import eventually_blocking
from interop_mesh import Calls, Mesh, Workload
from istio_programs import HOST, UPSTREAM_ONLY, Plane
from kube_objects import path_of
from tcp_gate import Gate

from mizzen.inject.values import InjectionConfig

UPSTREAM = InjectionConfig(dialect="envoy")
CART = "outbound|80||cart.shop.svc.cluster.local"
CANARY = InjectionConfig(dialect="envoy", revision="mizzen")


@pytest.fixture(scope="module")
def istiod(mesh: Mesh) -> Plane:
    plane = mesh.istiod(**UPSTREAM_ONLY)
    mesh.gate.lead_to(plane.secure)
    return plane


@pytest.fixture(scope="module")
def mizzen(mesh: Mesh, istiod: Plane) -> Iterator[Plane]:
    """Mizzen beside it, as a revision that has a name of its own."""
    plane = mesh.mizzen(REVISION="mizzen")
    gate = Gate(mesh.network.other, 15012)
    gate.lead_to(plane.secure)
    yield plane
    gate.close()


@pytest.fixture(scope="module")
def web(mesh: Mesh, istiod: Plane) -> Workload:
    """A client with Mizzen's agent, at istiod."""
    web = mesh.workload("web-1", "web", UPSTREAM)
    web.capture(mesh.network.host, mesh.network.other)
    web.start_mizzen_agent()
    web.until_ready()
    return web


@pytest.fixture(scope="module")
def cart(mesh: Mesh, istiod: Plane) -> Workload:
    """A server with Istio's agent, at istiod."""
    return _start_cart(mesh, "cart-1", UPSTREAM)


def _start_cart(mesh: Mesh, name: str, config: InjectionConfig) -> Workload:
    cart = mesh.workload(name, "cart", config)
    cart.capture()
    cart.start_istio_agent()
    cart.until_ready()
    mesh.tell_endpoints("cart")
    return cart


def _proxies(plane: Plane) -> set[str]:
    """The proxies that a control plane serves now."""
    code, text = plane.get("/debug/syncz", "monitoringAddr")
    assert code == 200, f"{text}\nrunning: {plane.process.is_running}\n{plane.process.log[-4000:]}"
    return set(re.findall(r'"proxy":\s*"([^"]+)"', text))


@pytest.fixture(scope="module")
def calls(mesh: Mesh, web: Workload, cart: Workload) -> Iterator[Calls]:
    """Requests from web to cart, for as long as the tests of this module last."""
    eventually_blocking(lambda: web.get("cart")["code"] == 200, 60, every=0.2)
    calls = Calls(web, mesh.address("cart"))
    yield calls
    calls.end()


# -- commands against istiod ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reach(mesh: Mesh, istiod: Plane) -> list[str]:
    """How our commands reach istiod: over ADS, by a token of the system's namespace."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "admin", "namespace": "istio-system"}}
    mesh.apply(account)
    token = mesh.folder / "admin-token"
    token.write_text(mesh.token_of("istio-system", "admin", "istio-ca"))
    root = mesh.folder / "root.pem"
    root.write_bytes(mesh.root.pem)
    address = f"127.0.0.1:{istiod.ports['secureGRPCAddr']}"
    return ["--xds-address", address, "--token", str(token), "--root", str(root), "--authority", HOST]


def test_sidecars_of_both_makes_speak_mutual_tls_at_istiod(web: Workload, cart: Workload, istiod: Plane) -> None:
    answer = eventually_blocking(lambda: (found := web.get("cart"))["code"] == 200 and found, 60, every=0.2)
    assert "URI=spiffe://cluster.local/ns/shop/sa/web" in answer["headers"]["x-forwarded-client-cert"]
    assert _proxies(istiod) == {"web-1.shop", "cart-1.shop"}


def test_proxy_status_of_istiod(web: Workload, cart: Workload, reach: list[str]) -> None:
    def rows() -> dict[str, list[str]]:
        answer = cli_runs.run("proxy-status", *reach)
        assert answer.exit_code == 0, answer.output
        return {line.split()[0]: line.split() for line in answer.stdout.splitlines()[1:]}

    def are_in_step() -> bool:
        found = rows()  # Clusters, listeners, endpoints, routes; what is just being told is not acknowledged yet.
        both = found.keys() == {"web-1.shop", "cart-1.shop"}
        return both and all(row[2:6] == ["SYNCED"] * 4 for row in found.values())

    eventually_blocking(are_in_step, 60, every=0.5)


def test_version_of_istiod(istiod: Plane, reach: list[str]) -> None:
    answer = cli_runs.run("version", *reach)
    assert answer.exit_code == 0, answer.output
    assert "control plane version" in answer.stdout


def test_debug_pages_of_istiod(web: Workload, cart: Workload, reach: list[str]) -> None:
    answer = cli_runs.run("x", "internal-debug", "syncz", *reach)
    assert answer.exit_code == 0, answer.output
    assert "cart-1.shop" in answer.stdout


def test_proxy_config_of_proxies_of_istiod(web: Workload, cart: Workload, tmp_path: pathlib.Path) -> None:
    for workload in (web, cart):
        eventually_blocking(
            lambda workload=workload: CART in workload.dynamic("dynamic_active_clusters"), 60, every=0.2
        )
        dump = tmp_path / f"{workload.name}.json"
        dump.write_text(json.dumps(workload.admin("/config_dump?include_eds")))
        for page in ("cluster", "listener", "route", "endpoint", "secret"):
            answer = cli_runs.run("proxy-config", page, "-f", dump)
            assert answer.exit_code == 0, answer.output
        answer = cli_runs.run("proxy-config", "cluster", "-f", dump, "--fqdn", "cart.shop")
        assert "cart.shop.svc.cluster.local" in answer.stdout


def test_analysis_of_the_cluster_of_istiod(mesh: Mesh, istiod: Plane) -> None:
    broken = _virtual_service("nobody", "no-such-service")
    mesh.apply(broken, "virtualservices")
    answer = cli_runs.run("analyze", "-n", "shop", "--kubeconfig", mesh.bed.kubeconfig())
    assert "[IST0101] (VirtualService shop/nobody)" in answer.stdout
    mesh.remove(broken, "virtualservices")


def _virtual_service(name: str, host: str, **headers: str) -> dict[str, Any]:
    route: dict[str, Any] = {"route": [{"destination": {"host": host}}]}
    if headers:
        route["headers"] = {"request": {"set": {key.replace("_", "-"): value for key, value in headers.items()}}}
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"hosts": [host], "http": [route]},
    }


# -- what both write --------------------------------------------------------------------------------------------------


def test_what_both_control_planes_write_comes_to_rest(mesh: Mesh, istiod: Plane, mizzen: Plane) -> None:
    """Roots and virtual addresses are for all revisions, statuses for one: nobody overwrites the other for ever."""
    gateways = [_gateway("of-default"), _gateway("of-mizzen", **{"istio.io/rev": "mizzen"})]
    for gateway in gateways:
        mesh.apply(gateway, "gateways")
    entries = [_entry(f"outside-{number}") for number in range(10)]
    for entry in entries:
        mesh.apply(entry, "serviceentries")
    paths = [path_of(each, "serviceentries") for each in entries] + [path_of(each, "gateways") for each in gateways]
    paths += [f"/api/v1/namespaces/{name}/configmaps/istio-ca-root-cert" for name in ("shop", "istio-system")]

    def versions() -> dict[str, str]:
        return {
            path: (mesh.find(path) or {"metadata": {"resourceVersion": ""}})["metadata"]["resourceVersion"]
            for path in paths
        }

    def is_whole() -> bool:
        addressed = all((mesh.find(path) or {}).get("status", {}).get("addresses") for path in paths[:10])
        return addressed and all(_accepted(mesh.find(path)) for path in paths[10:12]) and all(versions().values())

    eventually_blocking(is_whole, 90, every=0.5)
    before, since = versions(), time.monotonic()

    def has_rested() -> bool:
        nonlocal before, since
        now = versions()
        if now != before:
            before, since = now, time.monotonic()
        return time.monotonic() - since > 5

    eventually_blocking(has_rested, 60, every=0.5)
    given = [one["value"] for path in paths[:10] for one in mesh.bed.call("GET", path)["status"]["addresses"]]
    assert len(given) == len(set(given)) == 20


def _gateway(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {
            "gatewayClassName": "istio",
            "addresses": [{"type": "Hostname", "value": "cart.shop.svc.cluster.local"}],
            "listeners": [{"name": "web", "port": 80, "protocol": "HTTP"}],
        },
    }


def _entry(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "ServiceEntry",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "hosts": [f"{name}.example.com"],
            "ports": [{"number": 443, "name": "tls", "protocol": "TLS"}],
            "resolution": "DNS",
        },
    }


def _accepted(found: dict[str, Any] | None) -> bool:
    conditions = (found or {}).get("status", {}).get("conditions", ())
    return any((one["type"], one["status"]) == ("Accepted", "True") for one in conditions)


# -- there and back ---------------------------------------------------------------------------------------------------


def test_running_sidecars_move_to_mizzen_and_back(
    mesh: Mesh, web: Workload, cart: Workload, istiod: Plane, mizzen: Plane, calls: Calls
) -> None:
    """The name of the control plane leads to another one; no sidecar is started again."""
    for number, (old, new) in enumerate([(istiod, mizzen), (mizzen, istiod), (istiod, mizzen), (mizzen, istiod)]):
        begun = time.time()
        mesh.gate.lead_to(new.secure)
        eventually_blocking(lambda new=new: _proxies(new) >= {"web-1.shop", "cart-1.shop"}, 90, every=0.2)
        eventually_blocking(lambda old=old: not _proxies(old) & {"web-1.shop", "cart-1.shop"}, 90, every=0.2)
        mesh.apply(_virtual_service("cart", "cart", x_turn=str(number)), "virtualservices")
        eventually_blocking(
            lambda number=number: web.get("cart")["headers"].get("x-turn") == str(number), 60, every=0.2
        )
        calls.until_since(begun, 100)
    mesh.remove(_virtual_service("cart", "cart"), "virtualservices")
    assert calls.failures == []
    assert "ACK ERROR" not in mizzen.process.log
    assert "ACK ERROR" not in istiod.process.log


def test_workloads_move_revision_by_revision_and_back(
    mesh: Mesh, web: Workload, cart: Workload, istiod: Plane, mizzen: Plane, calls: Calls
) -> None:
    """A pod of the other revision comes, then the old one goes, as a rolling restart does it."""
    there = _replace(mesh, calls, cart, "cart-2", CANARY)
    assert "cart-2.shop" in _proxies(mizzen)
    assert "cart-2.shop" not in _proxies(istiod)
    _replace(mesh, calls, there, "cart-3", UPSTREAM)
    assert "cart-3.shop" in _proxies(istiod)
    _until(lambda: not _proxies(mizzen))
    assert calls.failures == []


def _replace(mesh: Mesh, calls: Calls, old: Workload, name: str, config: InjectionConfig) -> Workload:
    new = _start_cart(mesh, name, config)
    _until(lambda: calls.last_names(20) == {old.name, name})
    mesh.withdraw(old)
    _until(lambda: calls.last_names(20) == {name})
    old.end_sidecar()
    calls.until_since(time.time(), 100)
    return new


def _until(check: Callable[[], object]) -> None:
    eventually_blocking(check, 90, every=0.2)


def test_certificates_of_one_are_good_at_the_other(
    mesh: Mesh, web: Workload, mizzen: Plane, istiod: Plane, calls: Calls
) -> None:
    """All requests of this module met mutual TLS, whoever had signed the certificates of the two ends."""
    assert calls.all
    assert {one["mtls"] for one in calls.all} == {True}
    assert "issued a certificate to spiffe://cluster.local/ns/shop/sa/cart" in mizzen.process.log
