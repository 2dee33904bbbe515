"""`mizzen analyze`: coded findings over manifests, over a cluster or a local mesh, or over both together.

In: files, folders or stdin; an API server, or the mesh that runs here. Out: findings on stdout as lines, JSON, YAML or
SARIF, everything else on stderr. Flags, texts and exit codes are istioctl's: 79 for findings at or above the failure
threshold, 65 for documents that cannot be read, both for lines only. Services, Pods and Secrets in files count, which
istioctl passes over. `--baseline` and `--since` leave out what was found before.
"""

import os
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mizzen.cli import options
from mizzen.cli.flags import Command
from mizzen.cli.groups import EXIT_PARSE
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.analysis.findings import Level
    from mizzen.analysis.reports import Suppression
    from mizzen.cli.analysis_live import Live
    from mizzen.cli.analysis_output import Placed
    from mizzen.cli.analysis_run import Answer, Asked

STDIN = "-"
EXIT_FOUND = 79
EXIT_UNREADABLE = 65
_FORMATS = ("log", "json", "yaml", "sarif")
_RECURSIVE = "The recursive flag has been removed and is hardcoded to true without explicitly specifying it."


class _Failure(MizzenError):
    """The analysis went well, and its outcome is a failure."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def _level(ctx: click.Context, option: click.Parameter, value: str) -> "Level":
    from mizzen.analysis.reports import parse_level

    del ctx
    level = parse_level(value)
    if level is None:
        name = option.opts[0]
        raise _Failure(f'invalid argument "{value}" for "{name}" flag: invalid level option', EXIT_PARSE)
    return level


def _format(ctx: click.Context, option: click.Parameter, value: str) -> str:
    del ctx, option
    if value.lower() not in _FORMATS:
        raise _Failure(f"{value} not a valid option for format. See mizzen analyze --help", EXIT_PARSE)
    return value.lower()


@click.command("analyze", cls=Command)
@click.argument("paths", nargs=-1, metavar="[FILE|FOLDER|-]...")
@click.option("-L", "--list-analyzers", is_flag=True, help="Print the analyzers and stop.")
@click.option("-k", "--use-kube/--no-use-kube", default=True, help="Read the live cluster too.")
@click.option("-c", "--kubeconfig", default="", metavar="FILE", help="Which cluster; KUBECONFIG or ~/.kube/config.")
@click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig, if not its current one.")
@click.option("--color/--no-color", default=None, help="Colour the levels; by default on a terminal.")
@click.option("-v", "--verbose", is_flag=True, help="Say which analyzers ran and what became of each document.")
@click.option("--failure-threshold", default="Error", callback=_level, help="Lowest level that fails.")
@click.option("--output-threshold", default="Info", callback=_level, help="Lowest level that is printed.")
@click.option("-o", "--output", default="log", callback=_format, metavar="|".join(_FORMATS), help="Output format.")
@click.option("--meshConfigFile", "mesh_file", default="", metavar="FILE", help="Mesh config to use.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Findings of every namespace.")
@click.option("-S", "--suppress", multiple=True, metavar="CODE=GLOB", help="Leave out, as `IST0103=Pod shop/*`.")
@click.option("--timeout", default="30s", hidden=True)
@click.option("-R", "--recursive", is_flag=True, help="Removed; folders are always read whole.")
@click.option("--ignore-unknown", is_flag=True, help="Documents that cannot be read do not fail.")
@click.option("-r", "--revision", default="default", help="Leave out objects labelled for another revision.")
@click.option("-i", "--istioNamespace", "istio_namespace", default="istio-system", help="The control plane's.")
@click.option("--remote-contexts", multiple=True, hidden=True)
@click.option("--analyzer", "analyzers", multiple=True, metavar="NAME", help="Run only this one; repeatable.")
@click.option("--since", default="", metavar="GITREV", help="Only what was not found at that revision.")
@click.option("--baseline", default="", metavar="FILE", help="Only what is not in that output of `-o json`.")
@options.namespace_option
def analyze(
    paths: tuple[str, ...],
    list_analyzers: bool,
    use_kube: bool,
    kubeconfig: str,
    context: str,
    color: bool | None,
    verbose: bool,
    failure_threshold: "Level",
    output_threshold: "Level",
    output: str,
    mesh_file: str,
    all_namespaces: bool,
    suppress: tuple[str, ...],
    timeout: str,
    recursive: bool,
    ignore_unknown: bool,
    revision: str,
    istio_namespace: str,
    remote_contexts: tuple[str, ...],
    analyzers: tuple[str, ...],
    since: str,
    baseline: str,
    namespace: str,
) -> None:
    """Find what is wrong, doubtful or without effect in manifests and in what runs."""
    from mizzen.analysis import reports
    from mizzen.cli import analysis_live, analysis_run

    del timeout, remote_contexts
    if list_analyzers:
        _list_analyzers()
        return
    if recursive:
        click.echo(_RECURSIVE)
        return
    live = analysis_live.read(kubeconfig, context) if use_kube else None
    _check_sources(paths, live, use_kube)
    asked = analysis_run.Asked(
        paths=paths,
        live=live or analysis_live.Live(),
        namespace=namespace or options.DEFAULT_NAMESPACE,
        all_namespaces=all_namespaces,
        revision=revision,
        istio_namespace=istio_namespace,
        mesh_file=mesh_file,
        analyzers=analyzers,
        suppressions=_suppressions(suppress),
        since=since,
        baseline=baseline,
    )
    answer = analysis_run.analyze(asked, _stdin(paths))
    _tell_reading(answer)
    if verbose:
        _tell_details(asked, answer)
    shown = [each for each in answer.findings if reports.is_at_least(each.finding, output_threshold)]
    click.echo(_render(output, shown, color), nl=False, color=True)
    unread = bool(answer.manifests.errors)
    if not shown:
        click.echo(_success(asked, unread), err=True)
    failed = any(reports.is_at_least(each.finding, failure_threshold) for each in answer.findings)
    if output == "log" and failed:
        raise _Failure(_found_issues(asked), EXIT_FOUND)
    if output == "log" and unread and not ignore_unknown:
        raise _Failure("Some files couldn't be parsed.", EXIT_UNREADABLE)


def _list_analyzers() -> None:
    from mizzen.analysis.analyzers import ANALYZERS

    for analyzer in ANALYZERS:
        click.echo(f"* {analyzer.name}:\n    {analyzer.description}")


def _check_sources(paths: Sequence[str], live: "Live | None", use_kube: bool) -> None:
    if live is None and not paths:
        raise MizzenError("at least one file and/or Kubernetes source must be provided")
    if live is None and use_kube:
        click.echo("No cluster is at hand, only the files are read; --use-kube=false says so.", err=True)


def _suppressions(written: Sequence[str]) -> "tuple[Suppression, ...]":
    from mizzen.analysis import reports

    parsed = tuple(reports.parse_suppression(text) for text in written)
    for code in dict.fromkeys(each.code for each in parsed if not reports.is_known(each.code)):
        text = f"Supplied message code '{code}' is an unknown message code and will not have any effect."
        click.echo(f"Warning: {text}", err=True)
    return parsed


def _stdin(paths: Sequence[str]) -> bytes:
    if STDIN not in paths:
        return b""
    if sys.stdin.isatty():
        click.echo("Reading from stdin:", err=True)
    return sys.stdin.buffer.read()


# -- what is printed ------------------------------------------------------------------------------------------------


def _tell_reading(answer: "Answer") -> None:
    for file in answer.manifests.skipped:
        click.echo(f"Skipping file {file}, recognized file extensions are: [.json .yaml .yml]", err=True)
    errors = answer.manifests.errors
    if errors:
        listed = errors[0] if len(errors) == 1 else "\n\t* ".join((f"{len(errors)} errors occurred:", *errors))
        click.echo(f"Error(s) adding files: {listed}", err=True)


def _tell_details(asked: "Asked", answer: "Answer") -> None:
    """Which analyzers ran, and what became of each document."""
    lines = [f"Analyzed resources in {asked.target}"]
    if answer.selection.skipped:
        lines += ["Skipped analyzers:", *(f"\t {analyzer.name}" for analyzer in answer.selection.skipped)]
    if answer.selection.executed:
        lines += ["Executed analyzers:", *(f"\t {analyzer.name}" for analyzer in answer.selection.executed)]
    lines += ["", "Documents:"]
    for account in answer.manifests.accounts:
        what = f" {account.subject}" if account.subject else ""
        detail = f" ({account.detail})" if account.detail else ""
        lines.append(f"\t {account.reference}:{what} {account.outcome}{detail}")
    counts = Counter(account.outcome for account in answer.manifests.accounts)
    listed = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    lines += [f"{counts.total()} documents: {listed}" if listed else "no documents", ""]
    click.echo("\n".join(lines), err=True)


def _render(output: str, shown: "Sequence[Placed]", color: bool | None) -> str:
    from mizzen.cli import analysis_output

    if output == "sarif":
        import importlib.metadata

        return analysis_output.render_sarif(shown, importlib.metadata.version("mizzen"))
    dumb = os.environ.get("TERM") == "dumb"
    return analysis_output.render(output, shown, colour=sys.stdout.isatty() and not dumb if color is None else color)


def _success(asked: "Asked", unread: bool) -> str:
    found = "No validation issues found when analyzing"
    if not asked.paths:
        target, listed = asked.target, ""
    elif len(asked.paths) == 1:
        target, listed = asked.paths[0], ""
    else:
        target, listed = "", "".join(f"\n  - {path}" for path in asked.paths)
    if unread:
        # The reference counts all that cannot be parsed as one.
        return f"{found} {target or ', '.join(asked.paths)} (but 1 file could not be parsed)."
    return f"\u2714 {found} {target}." if target else f"\u2714 {found}:{listed}"


def _found_issues(asked: "Asked") -> str:
    from mizzen.analysis.catalogue import DOCUMENTATION

    more = f"See {DOCUMENTATION} for more information about causes and resolutions."
    return f"Analyzers found issues when analyzing {asked.target}.\n{more}"
