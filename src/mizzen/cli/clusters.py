"""Which API server a command means: `--kubeconfig`, `--context`, as kubectl finds them.

In: the command line and the environment. Out: an `Access`, or None where there is no kubeconfig.
"""

import os
import pathlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mizzen.cli import options
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.sources.kube.access import Access

F = TypeVar("F", bound=Callable[..., Any])


def cluster_options(function: F) -> F:
    """`-c/--kubeconfig` and `--context`."""
    return options.compose(
        (
            click.option("-c", "--kubeconfig", default="", metavar="FILE", help="Kubeconfig; KUBECONFIG without."),
            click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig."),
        )
    )(function)


def find_kubeconfig(flag: str, environment: Mapping[str, str] = os.environ) -> pathlib.Path | None:
    """The file of the flag, the first that KUBECONFIG names and that exists, or the one at home."""
    if flag:
        return pathlib.Path(flag)
    named = [pathlib.Path(part) for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    home = pathlib.Path(environment.get("HOME", "/")) / ".kube" / "config"
    return next((path for path in named or [home] if path.exists()), None)


def open_cluster(kubeconfig: str, context: str, environment: Mapping[str, str] = os.environ) -> "Access":
    """The API server to speak to; within a pod its own, without a kubeconfig. Raises MizzenError for none."""
    from mizzen.sources.kube import access

    path = find_kubeconfig(kubeconfig, environment)
    if path is not None:
        return access.from_kubeconfig(path, context)
    if context or "KUBERNETES_SERVICE_HOST" not in environment:
        raise MizzenError("no cluster: name its kubeconfig with --kubeconfig FILE or KUBECONFIG")
    return access.in_cluster(environment)
