"""Runs of the program in this process, and a mesh folder as `mizzen up` would write it."""

import pathlib
from collections.abc import Iterable

from click.testing import CliRunner, Result

from mizzen.cli import app
from mizzen.local import runtime


def run(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """One command line; output and errors apart, exit code as a shell would see it."""
    return CliRunner().invoke(app.main, [str(argument) for argument in arguments], input=stdin, prog_name="mizzen")


def write_mesh(folder: pathlib.Path, *, pods: Iterable[runtime.Pod] = (), **control_plane: str) -> pathlib.Path:
    """A mesh folder that says it has these pods and this control plane."""
    folder.mkdir()
    state = runtime.State(
        mesh=folder.name,
        isolation="root",
        pid=1,
        inner=1,
        control_plane=runtime.ControlPlane(**control_plane),
        pods=tuple(pods),
    )
    runtime.write_state(runtime.Layout(folder), state)
    return folder


def pod(name: str, namespace: str, admin: str | pathlib.Path = "") -> runtime.Pod:
    """A pod of such a mesh; `admin` is the socket of its sidecar."""
    return runtime.Pod(
        name=name,
        namespace=namespace,
        address="10.9.0.1",
        ready=True,
        sidecar=bool(admin),
        revision="1",
        directory="/nowhere",
        admin=str(admin),
    )
