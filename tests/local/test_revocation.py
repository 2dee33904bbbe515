"""Revoked certificates with real Envoys: whoever has one is refused, on either side of a connection, and nobody else.

Every request makes a connection of its own; those that exist already are not looked at again by any Envoy.
"""

import os
import pathlib
from collections.abc import Iterable, Iterator

import pytest
import traffic_mesh
import whole_files
from eventually import eventually_blocking
from local_mesh import LocalMesh, running
from plugged_authority import make_node, revoke, write_authority
from rotation_mesh import chain, now, revocations
from traffic_certificates import ROOT
from traffic_manifests import complete, fill, render, service
from traffic_mesh import TrafficMesh

from mizzen.local import observer, runtime

pytestmark = [pytest.mark.local, pytest.mark.envoy, pytest.mark.timeout(600)]

SETTINGS = """
kind: Namespace
metadata: {name: traffic, labels: {istio-injection: enabled}}
---
kind: PeerAuthentication
metadata: {name: default, namespace: istio-system}
spec: {mtls: {mode: STRICT}}
---
kind: DestinationRule
metadata: {name: anew, namespace: traffic}
spec:
  host: server
  trafficPolicy: {connectionPool: {http: {maxRequestsPerConnection: 1}}}
"""
PODS = {"good": "good", "bad": "bad", "server": "echo"}
URL = "http://server/"


class Mesh:
    """The running mesh and its operator, who has a root, an intermediate under it, and a revocation list of each."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.authority = folder / "cacerts"
        self.root = make_node("root", now())
        self.issuing = make_node("issuing", now(), self.root)
        write_authority(self.authority, self.issuing, [self.issuing], [self.root])
        self.local = LocalMesh(folder / "manifests", f"test-revocation-{os.getpid()}")
        self.local.environ["ROOT_CA_DIR"] = str(self.authority)

    def lists(self, serials: Iterable[str] = ()) -> bytes:
        """The operator's lists, with these certificates of workloads."""
        return revoke(self.issuing, now(), (int(serial, 16) for serial in serials)) + revoke(self.root, now())

    def write(self, pem: bytes) -> None:
        """As a whole: a file that is written in place is empty first, and says then that nothing is revoked."""
        whole_files.put(self.authority / "ca-crl.pem", pem)

    def put_in_force(self, pem: bytes) -> None:
        """Write the file, and wait until every Envoy has it."""
        self.write(pem)
        self.wait_for(pem)

    def wait_for(self, pem: bytes) -> None:
        eventually_blocking(lambda: all(revocations(pod) == pem for pod in self.local.proxies()), 120)

    def serial(self, name: str) -> str:
        return chain(self.local.pod(name))[0]

    def proxy(self, name: str) -> runtime.Container:
        """The pod's agent and Envoy."""
        return next(each for each in self.local.pod(name).containers if each.name == "istio-proxy")

    def statuses(self) -> dict[str, int]:
        """How requests of each client end."""
        traffic = TrafficMesh(self.local)
        return {name: traffic[name].get(URL).status for name in ("good", "bad")}


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    folder = tmp_path_factory.mktemp("revocation")
    (folder / "manifests").mkdir()
    traffic_mesh.lay_programs(folder / "manifests")
    pods = [traffic_mesh.build_pod(name, "", labels={"app": app}) for name, app in PODS.items()]
    for pod in pods:
        del pod["spec"]["nodeSelector"]
    certificate, key = ROOT.issue("server")
    content = {"tls.crt": certificate, "tls.key": key, "ca.crt": ROOT.pem}
    secret = {"kind": "Secret", "metadata": {"name": "programs-tls"}, "stringData": content}
    documents = [*complete(SETTINGS), *complete(service("server")), fill(secret), *map(fill, pods)]
    (folder / "manifests" / "mesh.yaml").write_text(render(documents))
    found = Mesh(folder)
    with running(found.local):
        eventually_blocking(lambda: found.statuses() == {"good": 200, "bad": 200})
        yield found


@pytest.fixture(autouse=True)
def nothing_revoked(mesh: Mesh) -> Iterator[None]:
    """Before and after each test there is no list, and everybody is served."""
    assert mesh.statuses() == {"good": 200, "bad": 200}
    yield
    (mesh.authority / "ca-crl.pem").unlink()
    mesh.wait_for(b"")
    assert mesh.statuses() == {"good": 200, "bad": 200}


def test_a_client_is_refused_once_its_certificate_is_revoked_and_another_goes_on(mesh: Mesh) -> None:
    mesh.put_in_force(mesh.lists())
    assert mesh.statuses() == {"good": 200, "bad": 200}
    mesh.put_in_force(mesh.lists([mesh.serial("bad")]))
    assert mesh.statuses() == {"good": 200, "bad": 503}
    assert TrafficMesh(mesh.local)["bad"].get(URL).body.endswith("connection termination"), "the server ended it"
    mesh.put_in_force(mesh.lists([mesh.serial("server")[:-1]]))
    assert mesh.statuses() == {"good": 200, "bad": 200}


def test_a_server_is_refused_once_its_certificate_is_revoked(mesh: Mesh) -> None:
    mesh.put_in_force(mesh.lists([mesh.serial("server")]))
    assert mesh.statuses() == {"good": 503, "bad": 503}
    assert TrafficMesh(mesh.local)["good"].get(URL).body.endswith("remote connection failure"), "the client ended it"


@pytest.mark.parametrize("cut", ["the root's", "the end of a list"])
def test_a_bad_file_changes_nothing_and_is_told(mesh: Mesh, cut: str) -> None:
    good = mesh.lists([mesh.serial("bad")])
    mesh.put_in_force(good)
    log = mesh.local.layout.control_log
    before = log.read_text().count("the last good revocation lists stay in force")
    everybody = [mesh.serial(name) for name in PODS]
    mesh.write(mesh.lists(everybody)[:-30] if cut == "the end of a list" else revoke(mesh.issuing, now()))
    eventually_blocking(lambda: log.read_text().count("the last good revocation lists stay in force") > before, 60)
    assert mesh.statuses() == {"good": 200, "bad": 503}
    mesh.wait_for(good)


def test_an_envoy_that_starts_again_has_the_lists_from_the_start(mesh: Mesh) -> None:
    mesh.put_in_force(mesh.lists([mesh.serial("bad")]))
    before = mesh.proxy("server")
    observer.ask_envoy(mesh.local.pod("server"), "/quitquitquit", method="POST")

    def is_back() -> bool:
        now = mesh.proxy("server")
        return now.restarts > before.restarts and now.ready

    eventually_blocking(is_back, 120)
    eventually_blocking(lambda: mesh.statuses()["good"] == 200, 120)
    assert mesh.statuses() == {"good": 200, "bad": 503}
