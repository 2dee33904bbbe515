"""istioctl's commands against a real mesh: its Envoys, its control plane, its objects."""

import json
import os
import pathlib
import tarfile

import pytest
from eventually import eventually_blocking
from local_mesh import LocalMesh, running

pytestmark = pytest.mark.local


def ask(shop: LocalMesh, *arguments: str) -> str:
    return shop.run(*arguments, "--mesh", shop.name).stdout


def test_a_pod_is_described_from_what_its_envoy_holds(shop: LocalMesh) -> None:
    pod = shop.pods("cart-v1")[0]

    text = ask(shop, "describe", "pod", f"{pod.name}.shop")

    assert f"Pod: {pod.name}\n   Pod Revision: default\n   Pod Ports: 8080 (cart), 15090 (istio-proxy)\n" in text
    assert "   Port: http 8080/HTTP targets pod port 8080\n" in text
    assert '   Route to host "cart" subset "v1" with weight 90%\n' in text
    assert "      Route to non-matching subset v2 for (when headers are x-user=tester)\n" in text
    assert "RBAC policies: ns[shop]-policy[cart-callers]-rule[0]\n" in text
    assert text.endswith("   Workload mTLS mode: STRICT\nApplied PeerAuthentication:\n   default.shop\n")


def test_a_service_is_exposed_at_an_address_that_answers(shop: LocalMesh) -> None:
    text = ask(shop, "x", "describe", "svc", "front.shop")

    assert f"Exposed on Ingress Gateway http://{shop.gateway()}\nVirtualService: shop\n" in text


def test_the_program_in_a_pod_that_has_no_sidecar(shop: LocalMesh) -> None:
    done = shop.run("describe", "pod", "deploy/rates.outside", "--mesh", shop.name, check=False)

    assert done.returncode == 1
    assert "is not part of mesh; no Istio sidecar\n" in done.stdout


def test_policies_that_an_envoy_enforces(shop: LocalMesh) -> None:
    assert "ALLOW    cart-callers.shop           1\n" in ask(shop, "authz", "check", "deploy/cart-v1.shop")
    assert ask(shop, "x", "authz", "check", "deploy/front.shop") == "ACTION   AuthorizationPolicy   RULES\n"


def test_levels_of_the_control_plane_are_changed_and_set_back(shop: LocalMesh) -> None:
    def level() -> str:
        scopes = json.loads(ask(shop, "admin", "log", "-o", "json"))
        return next(str(scope["output_level"]) for scope in scopes if scope["name"] == "ads")

    assert ask(shop, "istiod", "log", "--level", "ads:debug") == ""
    try:
        assert level() == "debug"
    finally:
        ask(shop, "admin", "l", "--reset")
    assert level() == "info"


def test_two_proxies_trust_the_same_root(shop: LocalMesh) -> None:
    first, second = shop.pods("cart-v1")[0], shop.pods("front")[0]

    assert "have the identical ROOTCA" in ask(shop, "pc", "rc", f"{first.name}.shop", f"{second.name}.shop")


def test_counters_of_proxy_agent_and_program_together(shop: LocalMesh) -> None:
    assert "server.live: 1\n" in ask(shop, "x", "es", "deploy/front.shop")
    assert "# TYPE envoy_" in ask(shop, "x", "es", "deploy/front.shop", "-o", "prom-merged")


def test_who_is_injected(shop: LocalMesh) -> None:
    assert "✔" in ask(shop, "x", "check-inject", "deploy/front.shop")
    assert "shop      default        default: " in ask(shop, "x", "injector", "list")


def test_a_program_that_listens_on_loopback_is_found(tmp_path: pathlib.Path, hello: pathlib.Path) -> None:
    manifest = hello / "hello.yaml"
    text = manifest.read_text()
    manifest.write_text(
        text.replace('"8000"]', '"8000", --bind, 127.0.0.1]').replace(
            "tcpSocket: {port: 8000}", 'exec: {command: ["true"]}'
        )
    )
    with running(LocalMesh(hello, f"test-loopback-{os.getpid()}")) as mesh:
        eventually_blocking(lambda: "IST0143" in _precheck(mesh))


def _precheck(mesh: LocalMesh) -> str:
    return mesh.run("precheck", "--mesh", mesh.name, check=False).stdout


def test_a_report_holds_every_proxy_and_no_key(shop: LocalMesh, tmp_path: pathlib.Path) -> None:
    ask(shop, "bug-report", "--output-dir", str(tmp_path))

    with tarfile.open(tmp_path / "bug-report.tar.gz") as archive:
        files = {m.name: archive.extractfile(m).read().decode() for m in archive.getmembers()}  # type: ignore[union-attr]
    for pod in shop.proxies():
        assert json.loads(files[f"bug-report/proxies/{pod.namespace}/{pod.name}/config_dump"])["configs"]
    assert "missing" not in files["bug-report/bug-report.log"]
    token = pathlib.Path(shop.state.control_plane.token).read_text().strip()
    key = (shop.layout.control / "token-key.pem").read_text().splitlines()[1]
    for text in files.values():
        assert token not in text
        assert key not in text


def test_a_killed_mesh_is_said_to_be_killed(hello: pathlib.Path) -> None:
    mesh = LocalMesh(hello, f"test-killed-{os.getpid()}")
    with running(mesh):
        mesh.kill()
        eventually_blocking(lambda: not mesh.processes())
        done = mesh.run("ps", "--mesh", mesh.name, check=False)

        assert done.returncode == 1
        assert f"the mesh {mesh.name} was killed; take away what it left with `mizzen down {mesh.name}`" in done.stderr
        assert mesh.run("logs", "control-plane", "--mesh", mesh.name).returncode == 0
        mesh.run("down", mesh.name)
    gone = mesh.run("down", mesh.name, check=False)
    assert f"there is no mesh {mesh.name}" in gone.stderr
    assert "mizzen up" not in gone.stderr


def test_an_empty_directory_is_told_what_makes_pods(tmp_path: pathlib.Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with running(LocalMesh(empty, f"test-empty-{os.getpid()}")) as mesh:
        hint = f"there are no pods: nothing in {empty} makes one (a Deployment, "
        eventually_blocking(lambda: hint in mesh.text)


def test_a_problem_that_is_gone_is_told(hello: pathlib.Path) -> None:
    bad = hello / "bad.yaml"
    bad.write_text("apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: 7}\n")
    with running(LocalMesh(hello, f"test-resolved-{os.getpid()}")) as mesh:
        eventually_blocking(lambda: f"error: {bad}" in mesh.text)
        assert "resolved:" not in mesh.text
        bad.write_text("apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 7}]}\n")
        eventually_blocking(lambda: f"resolved: error: {bad}" in mesh.text)
