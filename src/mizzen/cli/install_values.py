"""What an installation is told on a command line: `-f`, `--set`, `--revision`.

In: flags. Out: `Values`, with warnings on stderr for values that nothing reads. Files lie over the defaults in their
order, `--set` over them, and the flags of their own over all.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mizzen.cli import installation, options
from mizzen.errors import DecodeError

if TYPE_CHECKING:
    from mizzen.install.values import Values

F = TypeVar("F", bound=Callable[..., Any])


def values_options(function: F) -> F:
    """The flags; commands hand them to `read_values`."""
    return options.compose(
        (
            click.option("-f", "--filename", "files", multiple=True, metavar="FILE", help="Values; repeatable."),
            click.option("-s", "--set", "assignments", multiple=True, metavar="NAME=VALUE", help="One value."),
            click.option("--set-string", "texts", multiple=True, metavar="NAME=TEXT", help="One value, as a text."),
            click.option("-r", "--revision", default="", help="Name of the control plane."),
            click.option("-i", "--istioNamespace", "istio_namespace", default="", help="Its namespace."),
        )
    )(function)


def read_values(
    *,
    files: tuple[str, ...],
    assignments: tuple[str, ...],
    texts: tuple[str, ...] = (),
    revision: str,
    istio_namespace: str,
) -> "Values":
    """The values. Raises MizzenError for files and flags that mean nothing."""
    from mizzen.install.assignments import parse_assignments
    from mizzen.install.values import lay_over

    layers: list[Any] = [layer for path in files for layer in _read(path)]
    layers += [parse_assignments(each) for each in assignments]
    layers += [parse_assignments(each, as_text=True) for each in texts]
    if revision:
        layers.append({"revision": revision})
    if istio_namespace:
        layers.append({"global": {"istioNamespace": istio_namespace}})
    values = lay_over(layers)
    for warning in values.warnings:
        click.echo(f"Warning: {warning}", err=True)
    return values


def _read(path: str) -> list[Any]:
    from mizzen.install.operators import layer_of

    documents = installation.read_documents(path)
    if not all(isinstance(each, dict) for each in documents):
        raise DecodeError("expected a map of values", path)
    try:
        return [layer_of(each) for each in documents]
    except DecodeError as error:
        raise DecodeError(str(error), path) from error
