"""`mizzen bug-report`: all that somebody needs who is to find out what is wrong, in one archive.

In: a local mesh, or control planes at addresses. Out: `bug-report.tar.gz` with logs, dumps, objects and findings;
private keys, passwords, tokens and the contents of Secrets are cut out. What cannot be fetched is said in the report's
own log.
"""

import concurrent.futures
import pathlib
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mizzen.cli import options, targets
from mizzen.cli.flags import Command
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.cli.bug_report_archive import Archive
    from mizzen.cli.bug_report_contents import Item

_NAME = "bug-report.tar.gz"
_WEIGHTS = (
    (re.compile(r"\b(?:fatal|critical)\b", re.IGNORECASE), 1000),
    (re.compile(r"\berror\b", re.IGNORECASE), 100),
    (re.compile(r"\bwarn(?:ing)?\b", re.IGNORECASE), 10),
)


@click.command("bug-report", cls=Command)
@click.option("--include", multiple=True, metavar="NAMESPACE[/POD],…", help="Only these pods; `*` is any text.")
@click.option("--exclude", multiple=True, metavar="NAMESPACE[/POD],…", help="All but these pods.")
@click.option("--tail", type=click.IntRange(min=0), default=0, metavar="N", help="Only the last N lines of each log.")
@click.option("--timeout", default="30m", show_default=True, metavar="DURATION", help="Give up after this time.")
@click.option("--output-dir", default=".", metavar="DIR", help="Where to write the archive.")
@click.option("--rq-concurrency", type=click.IntRange(min=1), default=32, show_default=True, help="Requests at a time.")
@click.option("--full-secrets", is_flag=True, help="Leave keys, tokens and Secrets in.")
@click.option("--dry-run", is_flag=True, help="Only list what would be in the archive.")
@click.option("--monitoring", multiple=True, metavar="HOST:PORT", help="Ask these control planes instead of a mesh.")
@options.mesh_option
def bug_report(
    *,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    tail: int,
    timeout: str,
    output_dir: str,
    rq_concurrency: int,
    full_secrets: bool,
    dry_run: bool,
    monitoring: tuple[str, ...],
    mesh: str,
) -> None:
    """Collect logs, dumps and objects in one archive, secrets cut out."""
    from mizzen.cli import bug_report_archive as archives
    from mizzen.cli import bug_report_contents as contents

    limit = options.parse_seconds("--timeout", timeout)
    choice = contents.Choice(include=_split(include), exclude=_split(exclude))
    if monitoring:
        items = list(contents.list_planes(targets.find_control_planes(mesh="", addresses=monitoring)))
    else:
        state = targets.read_state(mesh)
        layout = targets.find_layout(mesh)
        items = list(contents.list_mesh(state, layout, choice, tail=tail, full_secrets=full_secrets))
    if dry_run:
        click.echo("".join(f"{archives.ROOT}/{item.name}\n" for item in items), nl=False)
        return
    path = pathlib.Path(output_dir, _NAME)
    with archives.write_archive(path, full_secrets=full_secrets) as archive:
        log = _fetch_all(archive, items, limit=limit, workers=rq_concurrency)
        archive.add("bug-report.log", "\n".join(log) + "\n")
    failed = sum(line.startswith("missing") for line in log)
    missing = f"; {failed} could not be fetched, see bug-report.log in it" if failed else ""
    click.echo(f"Created an archive at {path.resolve()} with {len(archive.names)} files{missing}")


def _split(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _fetch_all(archive: "Archive", items: "Sequence[Item]", *, limit: float, workers: int) -> list[str]:
    """Fetch and add everything; the lines of the report's log, in the order of the list."""
    end = time.monotonic() + limit
    lines = [time.strftime("collected %Y-%m-%dT%H:%M:%SZ", time.gmtime())]
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=workers)
    try:
        running = [pool.submit(_fetch, archive, item) for item in items]
        for item, future in zip(items, running, strict=True):
            try:
                lines.append(future.result(timeout=max(0.0, end - time.monotonic())))
            except TimeoutError:
                lines.append(f"missing  {item.name}: not fetched within {limit:g} s")
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return lines


def _fetch(archive: "Archive", item: "Item") -> str:
    try:
        content = item.fetch()
    except (MizzenError, OSError, ValueError) as failed:
        return f"missing  {item.name}: {failed}"
    archive.add(item.name, content, clean=item.clean)
    if not item.name.endswith(".log"):
        return f"fetched  {item.name}"
    text = content if isinstance(content, str) else content.decode(errors="replace")
    return f"fetched  {item.name} importance {weigh(text)}"


def weigh(log: str) -> int:
    """How much a log is worth reading: errors count ten times as much as warnings, fatal ones ten times as errors."""
    return sum(weight * len(pattern.findall(log)) for pattern, weight in _WEIGHTS)
