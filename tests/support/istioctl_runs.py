"""Runs of the real istioctl, away from any cluster and from the user's own settings."""

import os
import pathlib

import programs
from programs import Answer

_CHOSEN = os.environ.get("ISTIOCTL", "")
_BUILT = pathlib.Path(__file__).parents[2] / ".venv" / "istioctl" / "istioctl"

# A revision that is named is not looked up in the cluster.
NO_CLUSTER = ("--revision", "default")
_KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: none, user: {}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
"""


def find() -> pathlib.Path | None:
    """The program: `$ISTIOCTL`, else what `scripts/test-istioctl` built."""
    path = pathlib.Path(_CHOSEN) if _CHOSEN else _BUILT
    return path if os.access(path, os.X_OK) else None


async def run(folder: pathlib.Path, *arguments: object, cluster: pathlib.Path | None = None) -> Answer:
    """One command line; `folder` is its home, `cluster` the kubeconfig of a cluster that is there."""
    program = find()
    assert program is not None
    kubeconfig = cluster or folder / "kubeconfig"
    if cluster is None:
        kubeconfig.write_text(_KUBECONFIG)
    environ = {"HOME": str(folder), "PATH": os.defpath, "TZ": "UTC"}
    return await programs.run(program, "--kubeconfig", kubeconfig, *arguments, environ=environ)
