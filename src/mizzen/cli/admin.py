"""`mizzen admin log`: what a control plane logs, read and changed while it runs.

In: the introspection interface (ControlZ) of a local mesh's control plane, or of one at an address. Out: its scopes
with their levels as istioctl prints them; nothing when levels were changed.
"""

import re
import urllib.parse
from collections.abc import Iterator
from typing import Any

import click

from mizzen.cli import options, render, targets
from mizzen.cli.flags import Command
from mizzen.cli.groups import AliasGroup
from mizzen.diagnose.table import Table
from mizzen.errors import DecodeError, MizzenError

_COLUMNS = ("ACTIVE SCOPE", "DESCRIPTION", "LOG LEVEL", "STACK TRACE LEVEL")
_CHANGE = re.compile(r"([\w\- ]+):(none|error|warn|info|debug)")
_RESET = {"output_level": "info", "stack_trace_level": "none"}


@click.group(cls=AliasGroup)
def admin() -> None:
    """Look after the control plane."""


@admin.command("log", cls=Command)
@click.argument("pod", metavar="[NAME]", required=False)
@click.option(
    "--level", "levels", default="", metavar="SCOPE:LEVEL,…", help="Set levels: none, error, warn, info, debug."
)
@click.option("--stack-trace-level", "traces", default="", metavar="SCOPE:LEVEL,…", help="Set levels of stack traces.")
@click.option("--reset", is_flag=True, help="Set all levels back.")
@click.option("--log-reset", is_flag=True, help="Set the levels of messages back.")
@click.option("--stack-trace-reset", is_flag=True, help="Set the levels of stack traces back.")
@click.option(
    "--ctrlz_port", "port", type=click.IntRange(1, 65535), default=None, help="Of a control plane on this machine."
)
@click.option("--controlz", "address", default="", metavar="HOST:PORT", help="Of a control plane elsewhere.")
@options.output_option("short", "json", "yaml", default="short")
@options.mesh_option
def log(
    *,
    pod: str | None,
    levels: str,
    traces: str,
    reset: bool,
    log_reset: bool,
    stack_trace_reset: bool,
    port: int | None,
    address: str,
    output: str,
    mesh: str,
) -> None:
    """Show or change what the control plane logs."""
    if levels and (reset or log_reset):
        raise MizzenError("--level cannot be combined with --reset, --log-reset")
    if traces and (reset or stack_trace_reset):
        raise MizzenError("--stack-trace-level cannot be combined with --reset, --stack-trace-reset")
    changes = [*_parse(levels, "output_level"), *_parse(traces, "stack_trace_level")]
    plane = _find(pod, mesh=mesh, address=address or (f"localhost:{port}" if port else ""))
    scopes = _read_scopes(plane)
    reset_fields = [
        field
        for field, asked in (("output_level", reset or log_reset), ("stack_trace_level", reset or stack_trace_reset))
        if asked
    ]
    changes += [(str(scope.get("name")), field, _RESET[field]) for scope in scopes for field in reset_fields]
    if changes:
        _change(plane, scopes, changes)
    elif output == "short":
        click.echo(render.render_table(_build_table(scopes)), nl=False)
    else:
        click.echo(render.render_as(output, scopes), nl=False)


admin.add(log, "l")


def _parse(text: str, field: str) -> Iterator[tuple[str, str, str]]:
    """Scope, field and level of each change."""
    for part in filter(None, text.split(",")):
        found = _CHANGE.fullmatch(part)
        if found is None:
            raise MizzenError(f"pattern {part} did not match")
        yield found[1], field, found[2]


def _find(pod: str | None, *, mesh: str, address: str) -> targets.ControlPlane:
    """The introspection interface that is meant; a name is held against what there is."""
    if address:
        (plane,) = targets.find_control_planes(mesh="", addresses=(address,))
        return plane
    state = targets.read_state(mesh)
    name = targets.plane_name(state)
    if pod is not None and pod not in (name, "control-plane"):
        raise MizzenError(f"no pods found: the control plane of mesh {state.mesh} is {name}, not {pod}")
    return targets.ControlPlane(name=name, address=targets.require_up(state, state.control_plane.introspection))


def _read_scopes(plane: targets.ControlPlane) -> list[dict[str, Any]]:
    scopes = plane.get_json("scopej/")
    if not isinstance(scopes, list) or not all(isinstance(scope, dict) for scope in scopes):
        raise DecodeError(f"the control plane at {plane.address} did not answer with a list of scopes")
    return sorted(scopes, key=lambda scope: str(scope.get("name")))


def _change(plane: targets.ControlPlane, scopes: list[dict[str, Any]], changes: list[tuple[str, str, str]]) -> None:
    """All changes of a scope at once; an unknown scope is an error before anything is changed."""
    wanted: dict[str, dict[str, Any]] = {}
    known = {str(scope.get("name")): scope for scope in scopes}
    for name, field, level in changes:
        if name not in known:
            raise MizzenError(f"unknown scope {name}; known are {', '.join(known)}")
        wanted.setdefault(name, dict(known[name]))[field] = level
    for name, scope in wanted.items():
        plane.put_json(f"scopej/{urllib.parse.quote(name)}", scope)


def _build_table(scopes: list[dict[str, Any]]) -> Table:
    fields = ("name", "description", "output_level", "stack_trace_level")
    rows = tuple(tuple(str(scope.get(field) or "") for field in fields) for scope in scopes)
    return Table(columns=_COLUMNS, rows=rows, padding=3)
