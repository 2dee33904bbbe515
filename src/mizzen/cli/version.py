"""`mizzen version`: of this program, of the control planes and of the proxies they serve.

In: the installed package and, unless `--remote=false`, each control plane's `/version` and `/debug/syncz`. Out: lines
as istioctl prints them, or the same as JSON or YAML. A mesh that is not there is said on stderr and is no failure.
"""

import collections
import json
import platform
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from mizzen.cli import render
from mizzen.cli.flags import Command
from mizzen.cli.planes import Build, Plane, find_planes
from mizzen.cli.reach import Reach, reach_options
from mizzen.errors import MizzenError, UsageError


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of everything."""

    client: Build
    control_planes: tuple[tuple[str, Build], ...] = ()
    """Name and build of each control plane."""
    proxies: tuple[tuple[str, str], ...] = ()
    """Name and version of each proxy."""


@click.command("version", cls=Command)
@click.option("-s", "--short/--no-short", default=True, help="Only the version numbers (default).")
@click.option("-o", "--output", default="", metavar="json|yaml", help="Output format.")
@click.option("--remote/--no-remote", default=True, help="Ask the control plane and proxies too (default).")
@reach_options
def version(short: bool, output: str, remote: bool, reach: Reach) -> None:
    """Print the versions of client, control plane and proxies."""
    if output not in ("", "json", "yaml"):
        raise MizzenError("--output must be 'yaml' or 'json'")
    report = Report(client=client_build())
    if remote:
        try:
            report = _ask(report, find_planes(reach))
        except UsageError as unclear:
            click.echo(f"The control plane is not asked: {unclear}", err=True)
        except MizzenError as absent:
            click.echo(f"Mizzen is not running here: {absent}", err=True)
    if output:
        click.echo(render.render_as(output, _document(report), indent=2), nl=False)
        return
    click.echo("".join(f"{line}\n" for line in _lines(report, short=short, remote=remote)), nl=False)


def client_build() -> Build:
    """This program's own build."""
    import importlib.metadata

    return Build(version=importlib.metadata.version("mizzen"), python_version=platform.python_version())


def _ask(report: Report, planes: Sequence[Plane]) -> Report:
    builds = tuple(plane.release() for plane in planes)
    proxies = [(proxy.name, proxy.version) for plane in planes for proxy in plane.statuses("").proxies]
    return msgspec.structs.replace(report, control_planes=builds, proxies=tuple(sorted(proxies)))


def _lines(report: Report, *, short: bool, remote: bool) -> list[str]:
    lines = [f"client version: {_describe(report.client, short)}"]
    builds = dict.fromkeys(_describe(build, short) for _, build in report.control_planes)
    if len(builds) == 1:
        lines.append(f"control plane version: {next(iter(builds))}")
    else:
        lines.extend(f"{name} version: {_describe(build, short)}" for name, build in report.control_planes)
    if remote and report.control_planes:
        lines.append(f"data plane version: {_count(report.proxies)}")
    return lines


def _describe(build: Build, short: bool) -> str:
    return build.version if short else json.dumps(msgspec.to_builtins(build))


def _count(proxies: Sequence[tuple[str, str]]) -> str:
    counts = collections.Counter(version for _, version in proxies)
    return ", ".join(f"{version} ({n} proxies)" for version, n in sorted(counts.items())) or "none"


def _document(report: Report) -> dict[str, Any]:
    document: dict[str, Any] = {"clientVersion": msgspec.to_builtins(report.client)}
    if report.control_planes:
        document["meshVersion"] = [
            {"Component": name, "Info": msgspec.to_builtins(build)} for name, build in report.control_planes
        ]
        document["dataPlaneVersion"] = [{"ID": name, "IstioVersion": v} for name, v in report.proxies]
    return document
