"""`mizzen test`: do requests meet what a table says they should; without a cluster, for CI.

In: YAML files with tests, each with the manifests it is about (or `-f` for all of them). Out: results as text, JSON or
JUnit, coverage, and with `--record` the files rewritten with what is true now. Exit codes: 0 where all holds, 1 where
something does not or an input cannot be read, 64 for a command line that makes no sense.
"""

import datetime
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from mizzen.cli import options
from mizzen.cli.flags import Command
from mizzen.errors import DecodeError, MizzenError, SourceError

if TYPE_CHECKING:
    from mizzen.diagnose.expectations.coverage import Coverage
    from mizzen.diagnose.expectations.report import Outcome
    from mizzen.diagnose.expectations.running import Result
    from mizzen.diagnose.expectations.tables import Suite
    from mizzen.diagnose.trace.world import World


@click.command("test", cls=Command)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@options.manifests_option(help="Manifests, for files that name none.")
@click.option("--mesh", default="", metavar="FILE", help="The mesh config, for files that name none.")
@click.option("--record", is_flag=True, help="Write what is true now into the files, as what they expect.")
@click.option("--coverage", "with_coverage", is_flag=True, help="Tell which routes and policy rules no test reaches.")
@click.option("--junit", default="", metavar="FILE", help="Write a JUnit report too.")
@click.option("-v", "--verbose", is_flag=True, help="Each test, with its trace.")
@options.output_option("text", "json", default="text")
def test(
    files: tuple[str, ...],
    paths: tuple[str, ...],
    mesh: str,
    record: bool,
    with_coverage: bool,
    junit: str,
    verbose: bool,
    output: str,
) -> int:
    """Hold routes and policies against tables of requests and what each should meet."""
    from mizzen.cli import render
    from mizzen.diagnose.expectations import report, running

    tables = [Table(file, paths, mesh) for file in files]
    worlds: dict[Any, World] = {}
    outcomes, measured = [], []
    for table in tables:
        outcome, coverage = table.run(worlds, record=record, with_coverage=with_coverage)
        outcomes.append(outcome)
        measured.append(coverage)
    reached = _merged(measured) if with_coverage else None
    if junit:
        _write(junit, report.to_junit(outcomes))
    if output == "json":
        click.echo(render.render_json(report.to_plain(outcomes, reached), indent=2), nl=False)
    else:
        click.echo(report.render(outcomes, reached, verbose=verbose), nl=False)
    return 1 if any(running.failures(outcome.results) for outcome in outcomes) else 0


def _merged(measured: "Sequence[Coverage | None]") -> "Coverage":
    from mizzen.diagnose.expectations import coverage

    return coverage.merge(each for each in measured if each is not None)


class Table:
    """One file, with the world that it is about."""

    def __init__(self, file: str, paths: Sequence[str] = (), mesh: str = "") -> None:
        from mizzen.sources.documents import Locator

        self.file = file
        self.text = _read(file)
        self._locator = Locator(self.text)
        self.suite = self._parse()
        self._paths = tuple(self._beside(path) for path in self.suite.manifests) or tuple(paths)
        self._mesh = self._beside(self.suite.mesh) if self.suite.mesh else mesh
        if not self._paths:
            raise MizzenError(f"{file}: names no `manifests`, and there is no -f")

    def run(
        self, worlds: "dict[Any, World]", *, record: bool, with_coverage: bool
    ) -> "tuple[Outcome, Coverage | None]":
        """The results; with `record` those after the file was rewritten."""
        from mizzen.diagnose.expectations import coverage, recording, report, running

        world = self.world(worlds)
        texts = self._texts()
        results = running.run(self.suite, world, texts)
        if record:
            self.text = recording.rewrite(self.text, [result.seen for result in results])
            _write(self.file, self.text)
            self.suite = self._parse()
            results = running.run(self.suite, world, texts)
        lines = tuple(self._locator.find_line(0, f"tests[{n}]") for n in range(len(results)))
        measured = coverage.measure(world, _seen(results)) if with_coverage else None
        return report.Outcome(file=self.file, results=tuple(results), lines=lines), measured

    def _parse(self) -> "Suite":
        from mizzen.diagnose.expectations import tables
        from mizzen.sources.documents import DocumentError, Locator, parse_yaml

        try:
            documents = parse_yaml(self.text)
        except DocumentError as wrong:
            raise MizzenError(f"{self.file}:{wrong.line}: {wrong}") from wrong
        self._locator = Locator(self.text)
        for document in documents[:1]:
            for key, line in document.repeated:
                raise MizzenError(f"{self.file}:{line}: key {key!r} is there twice")
        try:
            if len(documents) != 1:
                raise DecodeError("holds more than one document" if documents else "is empty")
            return tables.read_suite(documents[0].value)
        except DecodeError as wrong:
            line = self._locator.find_line(0, wrong.path)
            raise MizzenError(f"{self.file}:{line}: {wrong}") from wrong

    def world(self, worlds: "dict[Any, World]") -> "World":
        """The world of its manifests; `worlds` keeps those of files that name the same."""
        from mizzen.cli import trace_worlds

        now = self.suite.now or datetime.datetime.now(datetime.UTC)
        key = (self._paths, self._mesh, self.suite.dialect, self.suite.now)
        if key not in worlds:
            worlds[key] = trace_worlds.of_manifests(self._paths, self._mesh, self.suite.dialect, now)
        return worlds[key]

    def _texts(self) -> dict[str, str]:
        """The files that tests name: tokens and certificates."""
        from mizzen.diagnose.expectations import asking

        named = {name for case in self.suite.tests for name in asking.named_files(case, self.suite.defaults)}
        return {name: _read(self._beside(name)) for name in named}

    def _beside(self, path: str) -> str:
        """A path as it is meant in this file."""
        return os.path.normpath(os.path.join(os.path.dirname(self.file), path))


def _seen(results: "Sequence[Result]") -> list[Any]:
    return [result.seen for result in results if result.seen is not None]


def _read(path: str) -> str:
    from mizzen.sources import tree

    try:
        return tree.decode_text(tree.read_bytes(path))
    except tree.Unreadable as unreadable:
        raise SourceError(f"{path}: {unreadable}") from unreadable


def _write(path: str, text: str) -> None:
    try:
        pathlib.Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SourceError(f"cannot write {path}: {error}") from error
