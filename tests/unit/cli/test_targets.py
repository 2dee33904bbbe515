"""Pods of a local mesh and control planes are found by what people type."""

import pathlib

import cli_runs
import pytest
from http_answers import Answers, on_port, on_socket

from mizzen.cli import targets
from mizzen.errors import MizzenError
from mizzen.local import runtime


@pytest.fixture
def mesh(tmp_path: pathlib.Path) -> str:
    pods = [
        cli_runs.pod("cart-v1-6d4f-0", "shop", tmp_path / "cart.sock"),
        cli_runs.pod("cart-v1-6d4f-1", "shop", tmp_path / "cart1.sock"),
        cli_runs.pod("ledger-0", "pay", tmp_path / "ledger.sock"),
        cli_runs.pod("probe", "default"),
    ]
    return str(cli_runs.write_mesh(tmp_path / "shop", pods=pods, monitoring="127.0.0.1:15014"))


@pytest.mark.parametrize(
    ("reference", "namespace", "found"),
    [
        ("ledger-0", "", "ledger-0.pay"),
        ("ledger-0.pay", "shop", "ledger-0.pay"),
        ("ledger-0", "pay", "ledger-0.pay"),
        ("pod/ledger-0.pay", "", "ledger-0.pay"),
        ("deployment/cart-v1.shop", "", "cart-v1-6d4f-0.shop"),
        ("deploy/cart-v1", "shop", "cart-v1-6d4f-0.shop"),
        ("deployments/cart-v1.shop", "", "cart-v1-6d4f-0.shop"),
        ("sts/ledger", "", "ledger-0.pay"),
    ],
)
def test_a_pod_is_found(mesh: str, reference: str, namespace: str, found: str) -> None:
    assert targets.find_proxy(reference, namespace=namespace, mesh=mesh).name == found


def test_a_workload_of_a_running_mesh_is_its_first_pod(tmp_path: pathlib.Path) -> None:
    pods = [cli_runs.pod(name, "shop") for name in ("cart-v1-b", "cart-v1-a", "front-0")]
    state = runtime.read_state(runtime.Layout(cli_runs.write_mesh(tmp_path / "shop", pods=pods)))

    assert targets.find_running(state, "deploy/cart-v1.shop", "").name == "cart-v1-a"
    assert targets.find_running(state, "front-0", "shop").name == "front-0"
    with pytest.raises(MizzenError, match='no pods match "nope"'):
        targets.find_running(state, "deploy/nope", "")


@pytest.mark.parametrize(
    ("reference", "namespace", "message"),
    [
        ("ledger-0", "shop", "ledger-0.shop is not a pod of this mesh"),
        ("probe", "", "pod probe.default has no sidecar"),
        ("deploy/front", "", 'no pods match "front"'),
        ("secret/x", "", '"secret/x" does not refer to a pod: unknown resource type "secret"'),
    ],
)
def test_a_pod_that_cannot_be_asked_is_named(mesh: str, reference: str, namespace: str, message: str) -> None:
    with pytest.raises(MizzenError) as failed:
        targets.find_proxy(reference, namespace=namespace, mesh=mesh)

    assert message in str(failed.value)


def test_envoy_answers_over_its_socket(tmp_path: pathlib.Path) -> None:
    answers = Answers({"/config_dump?mask=bootstrap": b"{}"})
    with on_socket(tmp_path / "admin.sock", answers):
        proxy = targets.Proxy(name="cart-0.shop", admin=str(tmp_path / "admin.sock"))

        assert proxy.get("config_dump?mask=bootstrap") == b"{}"
        with pytest.raises(MizzenError, match=r"on cart-0\.shop sidecar: unexpected status code: 404: not here"):
            proxy.get("nothing")


def test_a_dead_sidecar_is_named(tmp_path: pathlib.Path) -> None:
    proxy = targets.Proxy(name="cart-0.shop", admin=str(tmp_path / "gone.sock"))

    with pytest.raises(MizzenError, match=r"failed to execute command on cart-0\.shop sidecar: .*No such file"):
        proxy.get("config_dump")


def test_the_control_plane_is_the_meshs_own(mesh: str) -> None:
    assert targets.find_control_planes(mesh=mesh, addresses=()) == [
        targets.ControlPlane(name="mizzen-shop", address="127.0.0.1:15014")
    ]


def test_stated_addresses_come_before_the_mesh() -> None:
    assert targets.find_control_planes(mesh="", addresses=("[::1]:15014",)) == [
        targets.ControlPlane(name="[::1]:15014", address="[::1]:15014")
    ]


def test_an_address_without_a_port_is_refused() -> None:
    with pytest.raises(MizzenError, match="'localhost' is not HOST:PORT"):
        targets.find_control_planes(mesh="", addresses=("localhost",))


def test_a_control_plane_that_does_not_answer_is_named() -> None:
    with on_port(Answers({})) as address:
        pass

    with pytest.raises(MizzenError, match=f"cannot reach the control plane at {address}"):
        targets.ControlPlane(name="x", address=address).get("version")


def test_a_mesh_that_is_not_up_yet_says_so(tmp_path: pathlib.Path) -> None:
    mesh = cli_runs.write_mesh(tmp_path / "young")

    with pytest.raises(MizzenError, match="the control plane of mesh young is not up yet"):
        targets.find_control_planes(mesh=str(mesh), addresses=())
