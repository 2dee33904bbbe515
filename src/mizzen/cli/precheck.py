"""`mizzen experimental precheck`: what speaks against installing into a cluster, or upgrading what is there.

In: objects of the cluster from files, or of a local mesh with what its programs listen on. Out: findings as istioctl
prints them, exit code 1 from the first Warning on and where not everything could be read. Checks that need a live
cluster (its version, permissions) are left out where there is none.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from mizzen.cli import listening, options, targets, views
from mizzen.cli.flags import Command
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.analysis.findings import Level
    from mizzen.analysis.settings import Facts
    from mizzen.cli.analysis_output import Placed

_SUCCESS = (
    "\u2714 No issues found when checking the cluster. Istio is safe to install or upgrade!\n"
    "  To get started, check out https://istio.io/latest/docs/setup/getting-started/."
)
_EXIT_ISSUES: "Level" = "Warning"


@click.command("precheck", cls=Command)
@click.argument("files", metavar="[FILE...]", nargs=-1)
@click.option("-f", "--from-version", default="", metavar="1.MINOR", help="The release that is to be upgraded.")
@click.option("--skip-controlplane", is_flag=True, help="Leave out what concerns the control plane's installation.")
@click.option(
    "--output-threshold", default="Warning", show_default=True, metavar="LEVEL", help="Show these and graver."
)
@click.option("-r", "--revision", default="default", show_default=True, help="Revision of the control plane.")
@options.output_option("log", "json", "yaml", default="log")
@options.mesh_option
def precheck(
    files: tuple[str, ...],
    from_version: str,
    skip_controlplane: bool,
    output_threshold: str,
    revision: str,
    output: str,
    mesh: str,
) -> int:
    """Check whether it is safe to install or upgrade."""
    from mizzen.analysis import catalogue, reports
    from mizzen.analysis import precheck as checks
    from mizzen.analysis.settings import Facts
    from mizzen.cli import analysis_output

    threshold = reports.parse_level(output_threshold)
    if threshold is None:
        raise click.BadParameter(f"{output_threshold!r} is no level: Info, Warning or Error")
    facts = Facts(from_version=_parse_version(from_version))
    found, unread = _check(files, facts, revision=revision, mesh=mesh)
    if skip_controlplane:
        found = [each for each in found if each.finding.key != checks.CLUSTER]
    shown = [each for each in found if reports.is_at_least(each.finding, threshold)]
    if shown or output != "log":
        # istioctl colours these lines wherever they go.
        click.echo(analysis_output.render(output, shown, colour=True), nl=False, color=True)
    if any(reports.is_at_least(each.finding, _EXIT_ISSUES) for each in found):
        more = f"See {catalogue.DOCUMENTATION} for more information about causes and resolutions."
        raise MizzenError(
            f"Issues found when checking the cluster. Istio may not be safe to install or upgrade.\n{more}"
        )
    if unread:
        raise MizzenError("not everything could be read, so nobody can tell whether it is safe to install or upgrade")
    if output == "log":
        click.echo(_SUCCESS, err=True)
    return 0


def _parse_version(text: str) -> str:
    """`1.20`, with or without a patch."""
    if not text:
        return ""
    parts = text.split(".")
    if len(parts) < 2:
        raise MizzenError(f"invalid version {text}, expected format like '1.0'")
    if parts[0] != "1":
        raise MizzenError(f"expected major version 1, got {parts[0]}")
    if not parts[1].isdecimal():
        raise MizzenError(f"minor version is not a number: {parts[1]}")
    return f"1.{parts[1]}"


def _check(files: Sequence[str], facts: "Facts", *, revision: str, mesh: str) -> "tuple[list[Placed], bool]":
    """The findings, and whether something could not be read that they might be about."""
    import msgspec

    from mizzen.analysis import precheck as checks
    from mizzen.analysis import reports
    from mizzen.analysis import settings as analysis_settings
    from mizzen.cli import analysis_files
    from mizzen.cli.analysis_mesh import Mesh
    from mizzen.cli.analysis_output import Placed

    paths = list(files)
    if not paths:
        view = views.View(views.Request(mesh=mesh))
        assert view.state is not None
        paths = [*view.state.manifests, str(targets.find_layout(mesh).config)]
        facts = msgspec.structs.replace(facts, listening=listening.find_all(view.state))
    manifests = analysis_files.load(paths, analysis_files.Asked(revision=revision))
    for error in manifests.errors:
        click.echo(f"Error: {error}", err=True)
    held = Mesh(analysis_settings.Settings(revision=revision))
    held.put(manifests)
    held.engine.set(analysis_settings.FACTS, facts)
    ordered = reports.filter_findings(
        checks.check_all(held.engine), namespace="", suppressions=(), annotations=lambda _key: {}
    )
    places: Any = manifests.places
    found = [Placed(each, places[each.key].reference(each.path) if each.key in places else "") for each in ordered]
    return found, bool(manifests.errors)
