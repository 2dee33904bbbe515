"""Istio's own agent, as Mizzen's injector starts it, at Mizzen's control plane; its Envoy is upstream's."""

import contextlib
import http.server
import json
import sys
import threading
import urllib.request
from collections.abc import Iterator

import pytest
import traffic_wasm
from eventually import eventually_blocking
from interop_mesh import Mesh, Workload
from istio_programs import Plane
from plugged_authority import make_node

DIALECT = {"ISTIO_META_MIZZEN_DIALECT": "envoy"}
_ASK = """
import sys, dns.message, dns.query
answer = dns.query.udp(dns.message.make_query(sys.argv[1], "A"), "127.0.0.1", port=15053, timeout=10)
print(answer.rcode(), *(record.address for entry in answer.answer for record in entry))
"""


@pytest.fixture(scope="module")
def plane(mesh: Mesh) -> Plane:
    plane = mesh.mizzen()
    mesh.gate.lead_to(plane.secure)
    return plane


@pytest.fixture(scope="module")
def cart(mesh: Mesh, plane: Plane) -> Workload:
    """A server with delta ADS, whose certificates live for a minute."""
    cart = mesh.workload("cart-1", "cart", **DIALECT)
    cart.capture()
    cart.start_istio_agent(SECRET_TTL="60s", SECRET_GRACE_PERIOD_RATIO="0.95")
    cart.until_ready()
    mesh.tell_endpoints("cart")
    return cart


@pytest.fixture(scope="module")
def web(mesh: Mesh, plane: Plane) -> Workload:
    """A client with state-of-the-world ADS, which resolves names and takes roots that are pushed."""
    settings = {"ISTIO_META_DNS_CAPTURE": "true", "PROXY_CONFIG_XDS_AGENT": "true"}
    web = mesh.workload("web-1", "web", **DIALECT, **settings)
    web.capture()
    web.start_istio_agent(ISTIO_DELTA_XDS="false")
    web.until_ready()
    return web


def test_requests_pass_with_mutual_tls(web: Workload, cart: Workload) -> None:
    answer = eventually_blocking(lambda: (found := web.get("cart"))["code"] == 200 and found, 60, every=0.2)
    assert answer["name"] == "cart-1"
    identities = answer["headers"]["x-forwarded-client-cert"]
    assert "URI=spiffe://cluster.local/ns/shop/sa/web" in identities
    assert "By=spiffe://cluster.local/ns/shop/sa/cart" in identities


def test_plain_requests_are_refused_where_mutual_tls_is_strict(mesh: Mesh, web: Workload, cart: Workload) -> None:
    policy = {
        "apiVersion": "security.istio.io/v1",
        "kind": "PeerAuthentication",
        "metadata": {"name": "strict", "namespace": "shop"},
        "spec": {"mtls": {"mode": "STRICT"}},
    }
    # The bridge's own side has no sidecar.
    assert eventually_blocking(lambda: _is_answered(cart.place.address), 60, every=0.2)
    mesh.apply(policy, "peerauthentications")
    assert eventually_blocking(lambda: not _is_answered(cart.place.address), 60, every=0.2)
    assert web.get("cart")["code"] == 200


def _is_answered(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/", timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False


def test_certificates_are_renewed(cart: Workload, web: Workload) -> None:
    first = _serial(cart)
    eventually_blocking(lambda: _serial(cart) != first, 120, every=0.5)
    assert web.get("cart")["code"] == 200


def _serial(workload: Workload) -> str:
    chains = [one["cert_chain"] for one in workload.admin("/certs")["certificates"] if one["cert_chain"]]
    return str(chains[0][0]["serial_number"])


def test_names_come_with_the_name_table(mesh: Mesh, web: Workload) -> None:
    def ask(name: str) -> list[str]:
        return web.place.run(sys.executable, "-c", _ASK, name).split()

    address = mesh.address("web")
    eventually_blocking(lambda: ask("web") == ["0", address], 60, every=0.2)
    for name in ("web", "web.shop", "web.shop.svc.cluster.local"):
        assert ask(name) == ["0", address]
    entry = {
        "apiVersion": "networking.istio.io/v1",
        "kind": "ServiceEntry",
        "metadata": {"name": "outside", "namespace": "shop"},
        "spec": {
            "hosts": ["outside.example.com"],
            "addresses": ["240.1.2.3"],
            "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}],
            "resolution": "STATIC",
            "endpoints": [{"address": "192.0.2.1"}],
        },
    }
    mesh.apply(entry, "serviceentries")
    eventually_blocking(lambda: ask("outside.example.com") == ["0", "240.1.2.3"], 60, every=0.2)


def test_roots_are_pushed(mesh: Mesh, web: Workload) -> None:
    other = make_node("another root", 1_780_000_000)
    mesh_config = {"caCertificates": [{"pem": other.pem.decode()}]}
    mesh.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "istio", "namespace": "istio-system"},
            "data": {"mesh": json.dumps(mesh_config)},
        },
        "configmaps",
    )
    number = format(other.certificate.serial_number, "x")

    def trusts() -> bool:
        roots = [root for one in web.admin("/certs")["certificates"] for root in one["ca_cert"]]
        return any(root["serial_number"].lstrip("0") == number for root in roots)

    eventually_blocking(trusts, 60, every=0.2)
    assert web.get("cart")["code"] == 200


def test_probes_of_the_application_go_through_the_agent(cart: Workload) -> None:
    probe = cart.container("cart").readiness_probe
    assert probe is not None
    assert probe.http_get is not None
    code, text = cart.place.get(int(str(probe.http_get.port)), probe.http_get.path, cart.place.address)
    assert code == 200, text
    assert json.loads(text)["path"] == "/healthy"


def test_metrics_of_agent_and_envoy_are_merged(cart: Workload) -> None:
    code, text = cart.place.get(15020, "/stats/prometheus")
    assert code == 200
    assert "istio_agent_cert_expiry_seconds" in text
    assert "envoy_server_live" in text


def test_modules_of_wasm_plugins_are_fetched_by_the_agent(mesh: Mesh, web: Workload, cart: Workload) -> None:
    module = traffic_wasm.build_module("x-module", "was-here")
    with _serving(mesh.network.host, module) as url:
        plugin = {
            "apiVersion": "extensions.istio.io/v1alpha1",
            "kind": "WasmPlugin",
            "metadata": {"name": "header", "namespace": "shop"},
            "spec": {"selector": {"matchLabels": {"app": "cart"}}, "url": url, "failStrategy": "FAIL_CLOSE"},
        }
        mesh.apply(plugin, "wasmplugins")
        address = f"http://{mesh.address('cart')}/"
        eventually_blocking(lambda: web.place.ask(address)[1].get("x-module") == "was-here", 60, every=0.2)
    (filters,) = [dump["ecds_filters"] for dump in cart.admin("/config_dump")["configs"] if "ecds_filters" in dump]
    assert "var/lib/istio/data" in json.dumps(filters)
    assert url not in json.dumps(filters)


@contextlib.contextmanager
def _serving(host: str, content: bytes) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = http.server.ThreadingHTTPServer((host, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}/module.wasm"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_machines_register_themselves_and_say_how_they_are(mesh: Mesh, plane: Plane) -> None:
    group = {
        "apiVersion": "networking.istio.io/v1",
        "kind": "WorkloadGroup",
        "metadata": {"name": "machines", "namespace": "shop"},
        "spec": {"template": {"serviceAccount": "machine"}, "metadata": {"labels": {"app": "machine"}}},
    }
    mesh.apply(group, "workloadgroups")
    probe = {"httpGet": {"path": "/healthy", "port": 80}, "periodSeconds": 1, "failureThreshold": 1}
    settings = {"ISTIO_META_AUTO_REGISTER_GROUP": "machines", **DIALECT}
    machine = mesh.workload("machine-1", "machine", proxy_config={"readinessProbe": probe}, **settings)
    machine.start_istio_agent()

    def health() -> dict[str, str]:
        path = "/apis/networking.istio.io/v1/namespaces/shop/workloadentries"
        entries = [
            one for one in mesh.bed.call("GET", path)["items"] if one["spec"]["address"] == machine.place.address
        ]
        conditions = [one for entry in entries for one in entry.get("status", {}).get("conditions", ())]
        return {one["type"]: one["status"] for one in conditions}

    eventually_blocking(lambda: health().get("Healthy") == "True", 60, every=0.2)
    assert machine.application is not None
    machine.application.kill()
    eventually_blocking(lambda: health().get("Healthy") == "False", 60, every=0.2)
    machine.end_sidecar()


def test_nothing_is_refused_and_everybody_is_in_step(web: Workload, cart: Workload, plane: Plane) -> None:
    def are_in_step() -> bool:
        code, text = plane.get("/debug/syncz", "monitoringAddr")
        assert code == 200
        rows = {row["proxy"]: row for row in json.loads(text)}
        kinds = ("cluster", "listener", "route", "endpoint")
        acked = all(row[f"{kind}_sent"] == row[f"{kind}_acked"] for row in rows.values() for kind in kinds)
        return acked and rows.keys() == {"cart-1.shop", "web-1.shop"}

    eventually_blocking(are_in_step, 60, every=0.2)  # The end of the machine before may still be told.
    assert "ACK ERROR" not in plane.process.log
