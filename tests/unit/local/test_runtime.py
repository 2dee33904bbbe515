"""A mesh's folder: finding it, its lock, its state, and what is swept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mizzen.errors import LocalError, UsageError
from mizzen.local import runtime
from mizzen.local.processes import MESH_VARIABLE
from mizzen.local.runtime import ControlPlane, Layout, Pod, State


def pod(name: str, namespace: str = "shop") -> Pod:
    return Pod(
        name=name, namespace=namespace, address="10.44.0.10", ready=True, sidecar=True, revision="r", directory="/d"
    )


def state(*pods: Pod) -> State:
    return State(mesh="shop", isolation="root", pid=1, inner=2, control_plane=ControlPlane(pid=3), pods=pods)


def test_the_state_reads_as_it_was_written(tmp_path):
    layout = Layout(tmp_path)
    runtime.write_state(layout, state(pod("cart-0")))
    assert runtime.read_state(layout) == state(pod("cart-0"))


def test_a_mesh_without_a_state_is_not_up(tmp_path):
    with pytest.raises(LocalError, match="not come up"):
        runtime.read_state(Layout(tmp_path))


def test_root_and_users_have_their_own_places(tmp_path):
    assert runtime.find_base(0, {}) == Path("/run/mizzen")
    assert runtime.find_base(1000, {"XDG_RUNTIME_DIR": str(tmp_path)}) == tmp_path / "mizzen"
    assert runtime.find_base(1000, {"XDG_RUNTIME_DIR": "/nonexistent"}) == Path("/tmp/mizzen-1000")


@pytest.mark.parametrize("name", ["shop", "Shop_2.beta-1", "a" * 63])
def test_a_mesh_lives_directly_in_its_users_place(tmp_path, name):
    assert runtime.lay_out(tmp_path, name) == Layout(tmp_path / name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "/etc", "../shop", ".hidden", "my shop", "shop\n", "é", "a" * 64]
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match=r"cannot be the name of a mesh: .* --name"):
        runtime.lay_out(tmp_path, name)


def test_the_only_mesh_needs_no_name_and_of_several_one_must_be_named(tmp_path):
    with pytest.raises(LocalError, match="no mesh is running"):
        runtime.select_mesh(tmp_path / "none", None)
    held = [runtime.lock(Layout(tmp_path / "shop"))]
    assert runtime.select_mesh(tmp_path, None).name == "shop"
    held.append(runtime.lock(Layout(tmp_path / "other")))
    assert runtime.select_mesh(tmp_path, "shop").name == "shop"
    with pytest.raises(UsageError, match="other, shop"):
        runtime.select_mesh(tmp_path, None)
    with pytest.raises(LocalError, match="no mesh nope; there are other, shop"):
        runtime.select_mesh(tmp_path, "nope")
    for descriptor in held:
        os.close(descriptor)


def test_a_killed_mesh_is_not_asked_but_can_be_taken_down(tmp_path):
    (tmp_path / "dead").mkdir()
    for name in ("dead", None):
        with pytest.raises(LocalError, match=r"the mesh dead was killed; .*`mizzen down dead`"):
            runtime.select_mesh(tmp_path, name)
        assert runtime.select_remains(tmp_path, name).name == "dead"


def test_a_killed_mesh_is_no_choice_beside_one_that_runs(tmp_path):
    (tmp_path / "dead").mkdir()
    held = runtime.lock(Layout(tmp_path / "shop"))
    assert runtime.select_mesh(tmp_path, None).name == "shop"
    with pytest.raises(UsageError, match="several meshes are there"):
        runtime.select_remains(tmp_path, None)
    os.close(held)


def test_taking_down_what_is_not_there_does_not_advise_to_start_one(tmp_path):
    for name, words in (("nope", "there is no mesh nope; nothing is left to take down"), (None, "no mesh is running")):
        with pytest.raises(LocalError, match=words) as failed:
            runtime.select_remains(tmp_path, name)
        assert "mizzen up" not in str(failed.value)


def test_only_one_process_is_a_mesh(tmp_path):
    layout = Layout(tmp_path / "shop")
    held = runtime.lock(layout)
    assert runtime.is_locked(layout)
    with pytest.raises(LocalError, match="mizzen down shop"):
        runtime.lock(layout)
    os.close(held)
    assert not runtime.is_locked(layout)


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("cart-v1-abc", "cart-v1-abc.shop"),
        ("cart-v1.shop", "cart-v1-abc.shop"),
        ("cart-v1-abc.shop", "cart-v1-abc.shop"),
        ("ledger-0.pay", "ledger-0.pay"),
        ("front.web", "front-x.web"),
    ],
)
def test_a_pod_is_found_by_name_or_by_an_unambiguous_beginning_in_its_namespace(reference, found):
    known = state(
        pod("cart-v1-abc"),
        pod("cart-v2-def"),
        pod("ledger-0", "pay"),
        pod("ledger-0"),
        pod("front-x", "web"),
        pod("front-y"),
    )
    chosen = runtime.find_pod(known, reference)
    assert f"{chosen.name}.{chosen.namespace}" == found


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("cart.shop", r"ambiguous; it could be: cart-v1-abc\.shop, cart-v2-def\.shop"),
        ("ledger-0", r"ambiguous; it could be: ledger-0\.pay, ledger-0\.shop"),
        ("cart-v1", r"not a pod of this mesh; those whose names begin so: cart-v1-abc\.shop$"),
        ("cart-v1.pay", r"not a pod of this mesh; those whose names begin so: cart-v1-abc\.shop$"),
        (".shop", "there are: cart"),
        ("nope", "there are: cart"),
    ],
)
def test_an_ambiguous_or_unknown_pod_is_refused_with_the_candidates(reference, message):
    known = state(pod("cart-v1-abc"), pod("cart-v2-def"), pod("ledger-0", "pay"), pod("ledger-0"))
    with pytest.raises(LocalError, match=message):
        runtime.find_pod(known, reference)


def test_a_workload_is_one_of_one_namespace():
    known = state(pod("cart-b"), pod("cart-a"), pod("cart-a", "pay"), pod("front-x", "web"))

    assert runtime.first_pod(known, "cart.shop").name == "cart-a"
    assert runtime.first_pod(known, "front").namespace == "web"
    with pytest.raises(LocalError, match=r"cart is ambiguous; it could be of: cart-a\.pay, cart-a\.shop, cart-b\.shop"):
        runtime.first_pod(known, "cart")
    with pytest.raises(LocalError, match=r'no pods match "front\.shop"'):
        runtime.first_pod(known, "front.shop")


def test_what_a_killed_mesh_left_running_is_found_by_its_mark_and_killed(tmp_path):
    layout = Layout(tmp_path / "shop")
    sleep = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]

    def start(root: Path) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(sleep, env={**os.environ, MESH_VARIABLE: str(root)}, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        return child

    with start(layout.root) as ours, start(tmp_path / "shop-2") as others:
        assert runtime.sweep_processes(layout) == 1
        assert ours.wait() == -9
        assert others.poll() is None
        others.kill()
    assert runtime.sweep_processes(layout) == 0
