"""`mizzen trace --from-log`: access logs explained.

In: a file of lines, `-` for stdin, gzip or not; manifests or a local mesh that runs, for objects with file and line.
Out: a table of causes with an example each, or JSON. The exit code is 1 where lines tell of something wrong.
"""

import contextlib
import gzip
import io
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from mizzen.cli import offline
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.diagnose.access_logs.blame import Blame
    from mizzen.diagnose.access_logs.groups import Survey
    from mizzen.diagnose.trace.world import World

_GZIP = b"\x1f\x8b"


def explain(path: str, paths: tuple[str, ...], mesh: str, dialect: Literal["istio", "envoy"], output: str) -> int:
    """Print what a log tells; `paths` are manifests, `mesh` a mesh config with them or else a local mesh."""
    from mizzen.cli import render
    from mizzen.diagnose.access_logs import groups, report

    with offline.collector_off():
        survey = groups.survey(_lines(path))
        blames = _blame(survey, _world(paths, mesh, dialect))
    if output == "json":
        click.echo(render.render_json(report.to_json(survey, blames), indent=2), nl=False)
    else:
        _print(survey, blames)
    return 1 if survey.groups else 0


def _print(survey: "Survey", blames: Sequence["Blame"]) -> None:
    from mizzen.cli import render
    from mizzen.diagnose.access_logs import report

    click.echo(report.summarize(survey))
    if survey.groups:
        click.echo()
        click.echo(render.render_table(report.build_table(survey, blames)), nl=False)
    for group, blame in zip(survey.groups, blames, strict=True):
        click.echo()
        for line in report.describe(group, blame):
            click.echo(line)


def _blame(survey: "Survey", world: "World | None") -> list["Blame"]:
    from mizzen.diagnose.access_logs import blame

    if world is None:
        return [blame.by_names(group) for group in survey.groups]
    return [blame.by_objects(world, group) for group in survey.groups]


def _world(paths: tuple[str, ...], mesh: str, dialect: Literal["istio", "envoy"]) -> "World | None":
    """Manifests, or the local mesh that is named, or the one that runs; None where there is neither."""
    from mizzen.cli import trace_worlds

    try:
        return trace_worlds.find_world(paths, mesh, dialect)
    except MizzenError:
        if paths or mesh:
            raise
        return None


def _lines(path: str) -> Iterator[str]:
    try:
        with contextlib.ExitStack() as stack:
            raw: Any = sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb", buffering=0))
            source = io.BufferedReader(raw)
            plain = stack.enter_context(gzip.open(source)) if source.peek(2)[:2] == _GZIP else source
            for line in plain:
                yield line.decode(errors="replace")
    except (OSError, EOFError) as failed:
        raise MizzenError(f"{path}: {failed}") from failed
