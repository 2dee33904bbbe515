"""How a command gets into a pod that runs: by the namespaces of one of its processes.

In: the state file's word on a pod. Out: the command line that enters, with the environment of the container's own
process, or this process replaced by it.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from mizzen.errors import LocalError
from mizzen.local.isolation import Isolation
from mizzen.local.processes import Identity, build_identity_options
from mizzen.local.runtime import Container, Pod, State

PROXY = "istio-proxy"

_RUN = 'command -v -- "$1" >/dev/null || { echo "Error: there is no program $1 in $0" >&2; exit 127; }; exec "$@"'
"""Looked for where it would run, so that the message is ours."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A command that runs inside a pod."""

    argv: tuple[str, ...]
    environ: Mapping[str, str]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run where; handed on to the half that runs among the mesh's users."""

    state: State
    pod: Pod
    container: str
    command: tuple[str, ...]


def select_container(pod: Pod, name: str) -> Container:
    """The container of that name; without one the first that is no proxy, as kubectl's default annotation has it."""
    running = [item for item in pod.containers if item.pid]
    chosen = [item for item in running if name in ("", item.name)]
    chosen.sort(key=lambda item: not name and item.name == PROXY)
    if chosen:
        return chosen[0]
    known = ", ".join(item.name for item in running) or "none"
    wanted = f"container {name}" if name else "container"
    raise LocalError(f"{pod.name}.{pod.namespace} has no running {wanted}; running: {known}")


def build_entry(request: Request, environ: Mapping[str, str]) -> Entry:
    """The command as the container itself would run it; `environ` is the caller's own.

    Processes of subordinate users can only be looked into from among them: there the command goes through this module.
    """
    select_container(request.pod, request.container)
    if Isolation(request.state.isolation) is not Isolation.MAPPED:
        return _enter(request)
    inner = (sys.executable, "-m", "mizzen.local.execution", msgspec.json.encode(request).decode())
    enter = ("nsenter", f"--target={request.state.inner}", "--user", "--preserve-credentials", "--")
    return Entry(argv=(*enter, *inner), environ=environ)


def _enter(request: Request) -> Entry:
    container = select_container(request.pod, request.container)
    isolation = Isolation(request.state.isolation)
    process = Path(f"/proc/{container.pid}")
    try:
        environ = _read_environ(process)
        directory = os.readlink(process / "cwd")
    except OSError as error:
        raise LocalError(f"cannot look into {request.pod.name}.{request.pod.namespace}: {error.strerror}") from error
    identity = Identity(uid=container.uid, gid=container.gid, capabilities=container.capabilities)
    pod = f"{request.pod.name}.{request.pod.namespace}"
    command = ("sh", "-c", _RUN, pod, *request.command)
    argv = ["setpriv", "--no-new-privs", *build_identity_options(identity), "--", *command]
    if isolation.namespaces:
        user = ["--user", "--preserve-credentials"] if isolation is Isolation.SINGLE else []
        argv = ["nsenter", f"--target={container.pid}", *user, "--net", "--mount", f"--wd={directory}", "--", *argv]
    return Entry(argv=tuple(argv), environ=environ)


def _read_environ(process: Path) -> dict[str, str]:
    pairs = (item.partition("=") for item in (process / "environ").read_bytes().decode(errors="replace").split("\0"))
    return {name: value for name, equals, value in pairs if equals}


def replace_process(entry: Entry) -> NoReturn:
    """Becomes the command."""
    try:
        os.execvpe(entry.argv[0], entry.argv, dict(entry.environ))
    except OSError as error:
        raise LocalError(f"cannot run {entry.argv[0]}: {error.strerror}") from error


def main(arguments: list[str]) -> int:
    """The half that runs among the mesh's users."""
    try:
        replace_process(_enter(msgspec.json.decode(arguments[1], type=Request)))
    except LocalError as failed:
        sys.stderr.write(f"Error: {failed}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
