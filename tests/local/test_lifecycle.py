"""How a local mesh begins and ends, well and badly."""

import os
import pathlib
import signal
import socket
import subprocess
import sys

import pytest
from claims import own_port
from eventually import eventually_blocking
from local_mesh import MIZZEN, LocalMesh, get, running

pytestmark = pytest.mark.local


@pytest.fixture
def mesh(hello: pathlib.Path) -> LocalMesh:
    return LocalMesh(hello, f"test-hello-{os.getpid()}")


def is_gone(mesh: LocalMesh) -> bool:
    return not mesh.processes() and not mesh.layout.root.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_orderly_end_leaves_nothing(mesh, number):
    with running(mesh):
        assert get(mesh.gateway()).status == 200
        assert mesh.processes()
        assert mesh.stop(number) == 0
    assert is_gone(mesh)
    assert "stopping" in mesh.text


def test_a_killed_mesh_takes_its_processes_with_it_and_the_next_start_sweeps_its_files(mesh):
    with running(mesh):
        address = mesh.gateway()
        mesh.kill()
        eventually_blocking(lambda: not mesh.processes())
        assert mesh.layout.state.exists()
        leftover = mesh.layout.root / "logs" / "leftover"
        leftover.touch()
    with running(mesh):
        assert mesh.gateway() == address
        assert get(address).status == 200
        assert not leftover.exists()
    assert is_gone(mesh)


def test_a_killed_mesh_ends_although_its_own_process_does_not_answer(mesh):
    with running(mesh):
        os.kill(mesh.state.inner, signal.SIGSTOP)
        mesh.kill()
        eventually_blocking(lambda: not mesh.processes())
    mesh.run("down", mesh.name)
    assert is_gone(mesh)


def test_the_death_of_the_supervising_process_ends_the_mesh_with_an_error(mesh):
    with running(mesh):
        os.kill(mesh.state.inner, signal.SIGKILL)
        assert mesh.process is not None
        assert mesh.process.wait(60) != 0
        assert "Error: the mesh's process" in mesh.text
    assert is_gone(mesh)


def test_down_ends_a_running_mesh_and_sweeps_a_dead_one(mesh):
    with running(mesh):
        assert f"mesh {mesh.name} is down" in mesh.run("down", mesh.name).stdout
        assert is_gone(mesh)
    with running(mesh):
        mesh.kill()
    assert mesh.layout.root.exists()
    mesh.run("down", mesh.name)
    assert is_gone(mesh)


def test_a_detached_mesh_is_ready_when_the_command_returns(mesh):
    done = mesh.run("up", str(mesh.manifests), "--name", mesh.name, "--detach", seconds=90)
    try:
        assert f"mesh {mesh.name} is running with 1 pods" in done.stdout
        log = mesh.layout.root.with_name(f"{mesh.name}.log")
        assert f"is told in {log}\n" in done.stdout
        assert "control plane ready" in log.read_text()
        assert get(mesh.gateway()).status == 200
    finally:
        mesh.run("down", mesh.name)
    assert is_gone(mesh)


def test_a_second_mesh_of_the_same_name_is_refused(mesh):
    with running(mesh):
        done = mesh.run("up", str(mesh.manifests), "--name", mesh.name, check=False)
        assert done.returncode == 1
        assert f"mizzen down {mesh.name}" in done.stderr
        assert get(mesh.gateway()).status == 200


def test_two_meshes_run_side_by_side_on_other_ports(mesh, hello):
    other = LocalMesh(hello, f"{mesh.name}-b")
    with running(mesh), running(other):
        assert mesh.gateway() != other.gateway()
        assert {get(mesh.gateway()).status, get(other.gateway()).status} == {200}
        several = mesh.run("logs", "hello", check=False)
        assert several.returncode != 0
        assert "--mesh" in several.stderr


def test_a_port_that_was_asked_for_and_is_taken_is_fatal(mesh):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = mesh.run("up", str(mesh.manifests), "--name", mesh.name, "--port", f"{port}:hello", check=False)
    assert done.returncode == 1
    assert f"port {port} of 127.0.0.1 is in use by another program" in done.stderr
    assert is_gone(mesh)


def test_a_port_that_was_asked_for_is_used(mesh, hello):
    port = own_port()
    chosen = LocalMesh(hello, mesh.name, "--port", f"{port}:hello.default:18080")
    with running(chosen):
        assert chosen.gateway() == f"127.0.0.1:{port}"
        assert get(chosen.gateway()).status == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("/nonexistent",), "/nonexistent does not exist"),
        (("{manifests}", "--port", "80x:hello"), "expected HOSTPORT:SERVICE"),
        (("{manifests}", "--port", "18081:nobody"), "no Service nobody"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_explained(mesh, arguments, message):
    words = [argument.format(manifests=mesh.manifests) for argument in arguments]
    done = mesh.run("up", *words, "--name", mesh.name, check=False)
    assert done.returncode != 0
    assert message in done.stderr
    assert is_gone(mesh)


@pytest.mark.parametrize("missing", ["ip", "iptables-restore", "setpriv"])
def test_a_missing_tool_is_named_with_its_package(mesh, tmp_path, missing):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in {"unshare", "setpriv", "mount", "ip", "iptables", "iptables-restore", "sh"} - {missing}:
        (tools / name).symlink_to(f"/usr/sbin/{name}" if name.startswith("ip") else f"/usr/bin/{name}")
    mesh.environ["PATH"] = str(tools)
    done = mesh.run("up", str(mesh.manifests), "--name", mesh.name, check=False)
    assert done.returncode == 1
    assert f"{missing} is not installed: install the package" in done.stderr
    assert "--no-capture" in done.stderr


def test_where_namespaces_are_forbidden_another_way_is_offered(mesh):
    """Root without the right to make namespaces, as in an ordinary container."""
    forbidden = ("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin")
    done = subprocess.run(
        (*forbidden, *MIZZEN, "up", str(mesh.manifests), "--name", mesh.name),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "network namespaces cannot be made here" in done.stderr
    assert "--no-capture" in done.stderr


def test_help_imports_nothing_that_is_heavy():
    script = """
import sys
from mizzen.cli.app import main
try:
    main(["up", "--help"])
except SystemExit:
    assert not {"grpc", "google.protobuf", "cryptography", "mizzen.local"} & set(sys.modules), sorted(sys.modules)
"""
    done = subprocess.run((sys.executable, "-c", script), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--no-capture" in done.stdout
