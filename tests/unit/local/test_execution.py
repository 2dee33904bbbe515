"""How a command gets into a pod."""

import os
import subprocess

import msgspec
import pytest

from mizzen.errors import LocalError
from mizzen.local import execution
from mizzen.local.execution import Request
from mizzen.local.runtime import Container, Pod, State


def request(isolation: str, *containers: Container, container: str = "") -> Request:
    pod = Pod(
        name="cart-0",
        namespace="shop",
        address="10.44.0.10",
        ready=True,
        sidecar=True,
        revision="r",
        directory="/d",
        containers=containers,
    )
    state = State(mesh="shop", isolation=isolation, pid=1, inner=77, pods=(pod,))
    return Request(state=state, pod=pod, container=container, command=("id", "-u"))


def running(name: str, **fields: object) -> Container:
    return Container(name=name, pid=os.getpid(), **fields)


def test_the_program_is_preferred_to_the_proxy():
    pod = request("root", running("istio-proxy"), running("cart")).pod
    assert execution.select_container(pod, "").name == "cart"
    assert execution.select_container(pod, "istio-proxy").name == "istio-proxy"


def test_a_container_that_does_not_run_is_refused_with_those_that_do():
    wanted = request("root", Container(name="cart"), running("istio-proxy"), container="cart")
    with pytest.raises(LocalError, match="no running container cart; running: istio-proxy"):
        execution.build_entry(wanted, {})


def unwrapped(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command without the shell that looks for the program first."""
    shell = argv.index("sh")
    return argv[:shell] + argv[shell + 4 :]


def test_a_program_that_is_not_there_is_named_with_its_pod():
    argv = execution.build_entry(request("no-capture", running("cart")), {}).argv
    command = (*argv[argv.index("sh") : -2], "no-such-program", "-u")

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    pod = argv[argv.index("sh") + 3]
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == f"Error: there is no program no-such-program in {pod}\n"


def test_arguments_reach_the_program_as_they_are():
    argv = execution.build_entry(request("no-capture", running("cart")), {}).argv
    command = (*argv[argv.index("sh") : -2], "printf", "%s|", "a b", "$HOME", "")

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout == "a b|$HOME||"


def test_as_root_it_joins_the_namespaces_and_becomes_the_containers_user(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    user = running("cart", uid=65532, gid=65532, capabilities=("dac_read_search",))
    entry = execution.build_entry(request("root", user), {})
    assert unwrapped(entry.argv) == (
        *("nsenter", f"--target={os.getpid()}", "--net", "--mount", f"--wd={tmp_path}", "--"),
        *("setpriv", "--no-new-privs", "--reuid=65532", "--regid=65532", "--clear-groups"),
        *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", "--", "id", "-u"),
    )
    assert entry.environ["PATH"] == os.environ["PATH"]


def test_with_one_user_it_enters_the_user_namespace_too():
    argv = execution.build_entry(request("single-user", running("cart")), {}).argv
    assert argv[2:4] == ("--user", "--preserve-credentials")


def test_without_namespaces_nothing_is_entered():
    argv = execution.build_entry(request("no-capture", running("cart")), {}).argv
    assert unwrapped(argv) == ("setpriv", "--no-new-privs", "--", "id", "-u")


def test_among_subordinate_users_the_rest_is_done_from_inside():
    wanted = request("user", running("cart", uid=65532, gid=65532))
    entry = execution.build_entry(wanted, {"PATH": "/bin"})
    assert entry.argv[:4] == ("nsenter", "--target=77", "--user", "--preserve-credentials")
    assert entry.argv[-3:-1] == ("-m", "mizzen.local.execution")
    assert msgspec.json.decode(entry.argv[-1], type=Request) == wanted
    assert entry.environ == {"PATH": "/bin"}
