"""`mizzen diff`: what a change does, before it is merged.

In: two states of manifests, each a path, a git revision or REV:PATH, and probes. Out: a report on stdout as text, JSON
or Markdown for a pull request. Exit codes are diff's: 0 for the same, 1 for different, 2 for an error.
"""

import functools
import os
from typing import TYPE_CHECKING, Literal

import click

from mizzen.cli import options
from mizzen.cli.flags import Command
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.diagnose.change.probes import Probe

EXIT_DIFFERENT = 1
EXIT_ERROR = 2


class _Trouble(MizzenError):
    """An error, told apart from a difference by its code."""

    exit_code = EXIT_ERROR


@click.command("diff", cls=Command)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option("--probe", "probe_files", multiple=True, metavar="FILE", help="Requests to ask about; repeatable.")
@click.option("--mesh", "mesh_file", default="", metavar="FILE", help="Mesh config of both, over the defaults.")
@click.option("--mesh-new", "new_mesh_file", default="", metavar="FILE", help="Mesh config of NEW, where it differs.")
@options.dialect_option
@options.output_option("text", "json", "markdown", default="text")
def diff(
    old: str,
    new: str,
    probe_files: tuple[str, ...],
    mesh_file: str,
    new_mesh_file: str,
    dialect: Literal["istio", "envoy"],
    output: str,
) -> int:
    """Tell what a change does to proxies, requests and open connections.

    OLD and NEW are each a file or folder, a git revision (of the same place as the other), or REV:PATH.
    """
    from mizzen.cli import diff_run, render, revisions
    from mizzen.diagnose.change import printing, report

    try:
        probes = _read_probes(probe_files)
        with revisions.state(old, new) as before, revisions.state(new, old) as after:
            made = diff_run.compare(
                diff_run.Asked(
                    old=before,
                    new=after,
                    old_title=old,
                    new_title=new,
                    old_mesh=mesh_file,
                    new_mesh=new_mesh_file or mesh_file,
                    dialect=dialect,
                    probes=probes,
                )
            )
    except MizzenError as error:
        raise _Trouble(str(error)) from error
    if output == "json":
        text = render.render_json(report.to_json(made), indent=2)
    else:
        text = printing.render_markdown(made) if output == "markdown" else printing.render_text(made)
    click.echo(text, nl=False)
    return 0 if made.is_same else EXIT_DIFFERENT


def _read_probes(files: tuple[str, ...]) -> "tuple[Probe, ...]":
    from mizzen.cli import targets
    from mizzen.diagnose.change import probes
    from mizzen.sources import documents

    found: list[Probe] = []
    for file in files:
        try:
            text = targets.read_file(file).decode()
            parsed = documents.parse_yaml(text)
        except (documents.DocumentError, UnicodeDecodeError) as bad:
            raise MizzenError(f"{os.path.basename(file)}: {bad}") from bad
        locator = documents.Locator(text)
        for index, document in enumerate(parsed):
            if document.value is not None:
                found += probes.parse_probes(document.value, file, functools.partial(locator.find_line, index))
    return tuple(found)
