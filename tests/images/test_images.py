"""What is in the images, and that it does what manifests ask of it with the rights that they leave to it."""

import json
from typing import NamedTuple

import pytest
from eventually import eventually_blocking
from image_build import Image
from image_containers import Running
from image_mesh import Mesh, container

from mizzen.api.kube.pods import Pod

pytestmark = pytest.mark.timeout(900)  # The first test builds the images.

BOTH = pytest.mark.parametrize("name", ["control-plane", "sidecar"])
UNWANTED = ("cc", "gcc", "gcc-*", "g++", "cpp", "ld", "as", "make", "pip*", "curl", "wget", "git")
MEGABYTE = 1_000_000


@BOTH
def test_an_image_holds_no_compiler_no_installer_and_no_tests(images: dict[str, Image], name: str) -> None:
    root = images[name].root
    folders = [root / folder for folder in ("usr/bin", "usr/sbin", "usr/local/bin", "opt/mizzen/bin")]
    program = next((root / "opt/mizzen/lib").glob("python3*/site-packages/mizzen"))

    assert [str(found) for folder in folders for word in UNWANTED for found in folder.glob(word)] == []
    assert [str(found) for word in ("test_*", "conftest.py", "tests") for found in program.rglob(word)] == []
    assert not (root / "source").exists()
    assert list((root / "var/lib/apt/lists").glob("*")) == []


@BOTH
def test_an_image_runs_as_a_user_that_kubernetes_knows_not_to_be_root(images: dict[str, Image], name: str) -> None:
    """`runAsNonRoot` wants a number."""
    assert images[name].user == "1337:1337"


def test_an_image_stays_small(images: dict[str, Image]) -> None:
    """Over its base: Python, the program and what it imports; of the sidecar's, the half is Envoy."""
    sizes = {name: sum(layer.bytes for layer in image.layers) for name, image in images.items()}

    assert sizes["control-plane"] < 150 * MEGABYTE
    assert sizes["sidecar"] < 275 * MEGABYTE


@BOTH
def test_the_program_runs_without_rights_or_anything_to_write_to(mesh: Mesh, name: str) -> None:
    ran = mesh.run_program(name, "mizzen", "version", "--remote=false", "-o", "json")

    assert ran.wait() == 0, ran.log
    assert json.loads(ran.log)["clientVersion"]["version"]


class Started(NamedTuple):
    """What runs for all tests that follow."""

    web: Pod
    edge: Pod
    router: Pod
    control: Running
    proxies: dict[str, Running]


@pytest.fixture(scope="module")
def started(mesh: Mesh) -> Started:
    """The control plane as installed, an injected pod, a managed gateway, and one that the injector made."""
    web, edge = mesh.injected("web"), mesh.gateway()
    router = mesh.injected("router", {"inject.istio.io/templates": "gateway"})
    control = mesh.start_control_plane()
    proxies = {}
    init = mesh.start(web, container(web, "istio-init"))
    assert init.wait() == 0, init.log
    for pod in (web, edge, router):
        proxies[pod.metadata.name] = mesh.start(pod, container(pod, "istio-proxy"))
    mesh.run_program("control-plane", "python3", "-m", "http.server", "8080", pod="web", user="1000:1000")
    for pod in (web, edge, router):
        mesh.probe(pod, container(pod, "istio-proxy"), proxies[pod.metadata.name])
    return Started(web, edge, router, control, proxies)


def test_a_pod_is_captured_by_its_init_container_with_network_rights_alone(mesh: Mesh, started: Started) -> None:
    init = container(started.web, "istio-init")

    assert init.security_context is not None
    assert init.security_context.capabilities == {"add": ["NET_ADMIN", "NET_RAW"], "drop": ["ALL"]}
    assert "-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001" in mesh.namespaces["web"].run("iptables-save")


def test_capture_is_seen_to_work_by_whoever_may_not_set_it_up(mesh: Mesh, started: Started) -> None:
    """What a pod runs where a node's agent captures: validation, as the proxy's user. Envoy has its ports here, so the
    pod is another one, and its rules are those that were loaded for the first."""
    words = container(started.web, "istio-init").args
    capturing = mesh.run_program(
        "sidecar", "pilot-agent", *words, pod="checked", user="0", capabilities=("NET_ADMIN", "NET_RAW")
    )
    assert capturing.wait() == 0, capturing.log

    checking = mesh.run_program(
        "sidecar", "pilot-agent", *words, "--run-validation", "--skip-rule-apply", pod="checked"
    )
    assert checking.wait() == 0, checking.log


def test_rules_are_refused_to_whoever_has_no_network_rights(mesh: Mesh, started: Started) -> None:
    words = container(started.web, "istio-init").args

    ran = mesh.run_program("sidecar", "pilot-agent", *words, pod="denied", user="0")

    assert ran.wait() != 0
    assert "Error: " in ran.log


def test_requests_reach_the_application_through_gateway_and_sidecar(mesh: Mesh, started: Started) -> None:
    """By mutual TLS, which the pod insists on; the gateway listens on port 80 without being root."""
    edge, place = mesh.namespaces["edge"].address, mesh.namespaces["istiod"]

    status, body = eventually_blocking(lambda: (got := place.get(80, "/etc/", edge))[0] == 200 and got, seconds=60.0)
    refused, _ = place.get(8080, "/etc/", mesh.namespaces["web"].address)

    assert (status, "Directory listing" in body) == (200, True)
    assert refused == 0


@pytest.mark.parametrize("name", ["web", "edge", "router"])
def test_a_proxy_writes_to_its_volumes_alone(started: Started, name: str) -> None:
    proxy = started.proxies[name]

    assert proxy.is_running
    assert proxy.written() == []
    assert "Read-only file system" not in proxy.log
    assert "Permission denied" not in proxy.log


def test_the_control_plane_writes_nowhere(started: Started) -> None:
    assert started.control.is_running
    assert started.control.written() == []
    assert "rror" not in started.control.log, started.control.log


def test_lifecycle_hooks_find_the_agent(mesh: Mesh, started: Started) -> None:
    held = mesh.injected("held", {"proxy.istio.io/config": '{"holdApplicationUntilProxyStarts": true}'})
    native = mesh.injected("native", {"sidecar.istio.io/nativeSidecar": "true"})
    after, before = (container(pod, "istio-proxy").lifecycle for pod in (held, native))
    assert after is not None
    assert before is not None
    assert after.post_start is not None
    assert before.pre_stop is not None

    for handler in (after.post_start, before.pre_stop):
        assert handler.exec is not None
        done = started.proxies["web"].execute(*handler.exec.command)
        assert done.returncode == 0, done


def test_proxies_and_control_plane_end_when_they_are_told_to(started: Started) -> None:
    for name, proxy in started.proxies.items():
        assert proxy.stop() == 0, (name, proxy.log)
    assert started.control.stop() == 0, started.control.log
