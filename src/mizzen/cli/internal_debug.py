"""`mizzen x internal-debug`: one page of a control plane's debug console.

In: a page with its parameters (`edsz?proxyID=cart`), and control planes. Out: the page of the first control plane that
has it, or of all by name; documents are indented, words are printed as they are.
"""

import json
from collections.abc import Iterable
from typing import Any

import click

from mizzen.cli import render
from mizzen.cli.flags import Command
from mizzen.cli.planes import ABSENT, UNKNOWN_PAGE, Plane, find_planes
from mizzen.cli.reach import Reach, reach_options
from mizzen.errors import MizzenError, UsageError

_NO_PROXY = "You must provide a proxyID in the query string"
_UNKNOWN = "error: according to below command list, please check all supported internal debug commands"


@click.command("internal-debug", cls=Command)
@click.argument("page", metavar="[PAGE[?QUERY]]", required=False)
@click.option("-L", "--list", "lists", is_flag=True, help="Show the names of all pages.")
@click.option("--all", "everywhere", is_flag=True, help="Ask every control plane, and show each answer by name.")
@reach_options
def internal_debug(page: str | None, lists: bool, everywhere: bool, reach: Reach) -> None:
    """Show one page of the control plane's debug console."""
    if not page and not lists:
        raise UsageError("debug type is required, you can specify --list flag to list supported debug types")
    planes = find_planes(reach)
    name = "list" if lists or not page else page
    if everywhere:
        click.echo(render.render_json({plane.name: _read(_ask(plane, name)) for plane in planes}, indent=2), nl=False)
        return
    text = _first(_ask(plane, name) for plane in planes)
    if text.startswith(UNKNOWN_PAGE):
        click.echo(_UNKNOWN)
        text = planes[0].page("list")
    click.echo(_show(text))


def _ask(plane: Plane, name: str) -> str:
    text = plane.page(name)
    if text.startswith(_NO_PROXY):
        raise MizzenError(f"{_NO_PROXY}, e.g. [{name}?proxyID=istio-ingressgateway]")
    return text


def _first(texts: Iterable[str]) -> str:
    """The first answer that is one; the last refusal where there is none."""
    text = ""
    for text in texts:
        if not text.startswith(ABSENT):
            break
    return text


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


def _show(text: str) -> str:
    found = _read(text)
    return found if isinstance(found, str) else render.render_json(found, indent=2).rstrip("\n")
