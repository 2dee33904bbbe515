"""The cluster or mesh that `analyze` reads beside files.

In: the command line and the environment. Out: the objects of an API server, where a kubeconfig says which; otherwise
the manifests of the local mesh that runs. Files are read after them and replace what they hold.
"""

import os
import pathlib
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import click

from mizzen.cli import clusters, targets
from mizzen.errors import MizzenError, UsageError

_ADMISSION = "admissionregistration.k8s.io/v1"


class Live(NamedTuple):
    """What is read before the files."""

    documents: tuple[Mapping[str, Any], ...] = ()
    """Objects of an API server."""
    paths: tuple[str, ...] = ()
    """The manifests of a local mesh."""


def read(
    kubeconfig: str,
    context: str,
    environment: Mapping[str, str] = os.environ,
    *,
    only: Collection[str] | None = None,
) -> Live | None:
    """None where neither a cluster nor a local mesh is at hand. Raises MizzenError for one that cannot be read.

    `only`: the kinds of objects to ask an API server for, if not all.
    """
    path = clusters.find_kubeconfig(kubeconfig, environment)
    if path is not None:
        return Live(documents=_list(path, context, only))
    if context:
        raise UsageError(f"--context {context}: there is no kubeconfig")
    try:
        return Live(paths=targets.read_state("").manifests)
    except MizzenError:
        return None


def _list(path: pathlib.Path, context: str, only: Collection[str] | None) -> tuple[Mapping[str, Any], ...]:
    import asyncio

    from mizzen.api.kinds import KINDS
    from mizzen.sources.kube.access import from_kubeconfig
    from mizzen.sources.kube.listing import Extra, list_documents

    extras = (
        Extra("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"),
        Extra(_ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        Extra(_ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    )
    wanted = [kind for kind in KINDS if only is None or kind.kind in only]
    besides = [extra for extra in extras if only is None or extra.kind in only]
    listing = asyncio.run(list_documents(from_kubeconfig(path, context), wanted, besides))
    for refused in listing.refused:
        click.echo(f"Warning: not read: {refused}", err=True)
    return tuple(listing.documents)
