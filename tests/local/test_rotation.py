"""Certificates and roots are exchanged while requests run: nobody notices.

Each test keeps every kind of caller busy, and counts: not one request may fail, no kept connection may be lost.
"""

import os
import pathlib
from collections.abc import Iterator

import pytest
from eventually import eventually_blocking
from local_mesh import LocalMesh, running
from plugged_authority import make_node, write_authority
from rotation_mesh import (
    LIFE,
    Credential,
    Load,
    chain,
    now,
    roots,
    serial,
    wait_in_every_proxy,
    write_manifests,
)

from mizzen.local import observer

pytestmark = [pytest.mark.local, pytest.mark.envoy, pytest.mark.timeout(600)]

ROTATIONS = 3
BETWEEN = 40
"""Requests of every caller before and after each change."""


class Mesh:
    """The running mesh, its gateway's Secret, and the folder of its operator's authority."""

    def __init__(self, local: LocalMesh, credential: Credential, authority: pathlib.Path) -> None:
        self.local = local
        self.credential = credential
        self.authority = authority

    def load(self) -> Load:
        return Load(self.local, self.credential.authority)


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    folder = tmp_path_factory.mktemp("rotation")
    credential = write_manifests(folder / "manifests")
    local = LocalMesh(folder / "manifests", f"test-rotation-{os.getpid()}")
    local.environ |= {
        "DEFAULT_WORKLOAD_CERT_TTL": f"{LIFE}s",
        "MAX_WORKLOAD_CERT_TTL": f"{LIFE}s",
        "MIZZEN_ROOT_OVERLAP": "6s",
        "ROOT_CA_DIR": str(folder / "cacerts"),
    }
    with running(local):
        yield Mesh(local, credential, folder / "cacerts")
    assert "error" not in local.text.lower(), local.text


def assert_nothing_failed(mesh: Mesh, load: Load) -> None:
    assert load.failures == []
    assert load.answered > 0
    assert observer.rejections(mesh.local.proxies()) == {}


def test_gateways_secret_is_exchanged_under_load(mesh):
    with mesh.load().running() as load:
        load.wait_for(BETWEEN)
        for _ in range(ROTATIONS):
            wanted = mesh.credential.exchange()
            eventually_blocking(lambda wanted=wanted: load.failures or load.anew[1].serials[-1] == wanted, 60)
            load.wait_for(BETWEEN)
            assert load.anew[1].serials[-1] == wanted
    assert_nothing_failed(mesh, load)
    assert [len(caller.serials) for caller in load.kept] == [0, 1], "kept connections live on"


def test_leaves_are_renewed_under_load(mesh):
    pods = mesh.local.proxies()
    shown: dict[str, set[str]] = {pod.name: set() for pod in pods}

    def all_renewed() -> bool:
        for pod in pods:
            shown[pod.name].update(chain(pod)[:1])
        return all(len(serials) > ROTATIONS for serials in shown.values())

    with mesh.load().running() as load:
        load.wait_for(BETWEEN)
        eventually_blocking(lambda: load.failures or all_renewed(), 60 + 4 * LIFE * ROTATIONS)
        load.wait_for(BETWEEN)
    assert_nothing_failed(mesh, load)
    assert len(shown) == 3


def test_roots_are_exchanged_under_load_old_both_new(mesh):
    with mesh.load().running() as load:
        load.wait_for(BETWEEN)
        before = {pod.name: set(roots(pod)) for pod in mesh.local.proxies()}
        for name in ("first", "second"):
            root = make_node(name, now())
            issuing = make_node(f"{name} intermediate", now(), root)
            write_authority(mesh.authority, issuing, [issuing], [root])
            new = serial(root.certificate)
            wait_in_every_proxy(mesh.local, lambda pod, new=new: load.failures or new in roots(pod))
            # A proxy trusts the new root and still the old ones, before it shows a certificate of it.
            assert load.failures or all(before[pod.name] <= set(roots(pod)) for pod in mesh.local.proxies())
            load.wait_for(BETWEEN)
            signed = serial(issuing.certificate)
            wait_in_every_proxy(mesh.local, lambda pod, signed=signed: load.failures or signed in chain(pod))
            load.wait_for(BETWEEN)
            before = {pod.name: set(roots(pod)) for pod in mesh.local.proxies()}
        # Certificates of the old roots expire, then nobody trusts them any longer.
        wait_in_every_proxy(mesh.local, lambda pod: load.failures or roots(pod) == [new], 300)
        load.wait_for(BETWEEN)
    assert_nothing_failed(mesh, load)
    assert [roots(pod) for pod in mesh.local.proxies()] == [[new]] * 3
