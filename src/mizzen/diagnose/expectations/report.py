"""Results as text, as JSON, and as JUnit's XML.

In: files with their results, and the coverage where it was asked for. Out: text. Tests that hold take one line in all;
those that do not are told in full, with the trace's tree where more is wanted.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from mizzen.diagnose.expectations.coverage import Coverage
from mizzen.diagnose.expectations.running import Result, failures
from mizzen.diagnose.trace import tree, verdict

_KINDS = (("route", "routes"), ("rule", "policy rules"))


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One file and its results."""

    file: str
    results: tuple[Result, ...]
    lines: tuple[int, ...]
    """Where each test stands in the file."""


def render(outcomes: Sequence[Outcome], coverage: Coverage | None, *, verbose: bool) -> str:
    """For people."""
    lines = [line for outcome in outcomes for line in _file(outcome, verbose=verbose)]
    if coverage is not None:
        lines += _coverage(coverage)
    return "".join(f"{line}\n" for line in (*lines, _summary(outcomes)))


def _file(outcome: Outcome, *, verbose: bool) -> Iterator[str]:
    failed = failures(outcome.results)
    total = len(outcome.results)
    yield f"{'FAIL' if failed else 'ok  '} {outcome.file}: {total - failed} of {total}"
    for result, line in zip(outcome.results, outcome.lines, strict=True):
        if not result.holds:
            yield f"  ✗ {result.case.title}  ({outcome.file}:{line})"
            yield from _why(result)
        elif verbose:
            yield f"  ✓ {result.case.title}"
        if verbose and result.seen is not None:
            yield from (f"      {text}" for text in tree.render(result.seen.trace).splitlines())


def _why(result: Result) -> Iterator[str]:
    if result.error:
        yield f"      {result.error}"
    for each in result.mismatches:
        yield f"      {each.field}: expected {each.expected}, is {each.actual}"
    trace = result.seen.trace if result.seen is not None else None
    if trace is None or not result.mismatches:
        return
    if trace.reason:
        yield f"      why: {trace.reason}"
    if trace.cause is not None:
        yield f"      by {trace.cause}"
    if not trace.certain:
        yield f"      depends on: {'; '.join(trace.depends_on)}"


def _summary(outcomes: Sequence[Outcome]) -> str:
    total = sum(len(outcome.results) for outcome in outcomes)
    failed = sum(failures(outcome.results) for outcome in outcomes)
    tests = f"{total} test{'' if total == 1 else 's'}"
    return f"{tests}, {failed} failed" if failed else f"{tests}, all hold"


def _coverage(coverage: Coverage) -> Iterator[str]:
    for kind, title in _KINDS:
        part = coverage.of(kind)  # type: ignore[arg-type]  # the table holds the two kinds there are
        count = len(part.items)
        yield f"{title}: {count - len(part.missed)} of {count} reached ({part.percentage:.0f} %)"
        yield from (f"  - {item}" for item in part.missed)


# -- programs ---------------------------------------------------------------------------------------------------------


def to_plain(outcomes: Sequence[Outcome], coverage: Coverage | None) -> dict[str, Any]:
    """For `-o json`."""
    tests = [
        {
            "file": outcome.file,
            "line": line,
            "name": result.case.title,
            "holds": result.holds,
            "error": result.error,
            "mismatches": msgspec.to_builtins(result.mismatches),
            "trace": verdict.to_json(result.seen.trace) if result.seen is not None else None,
        }
        for outcome in outcomes
        for result, line in zip(outcome.results, outcome.lines, strict=True)
    ]
    document: dict[str, Any] = {"tests": tests, "failed": sum(not test["holds"] for test in tests)}
    if coverage is not None:
        document["coverage"] = {title.replace(" ", "_"): _plain(coverage, kind) for kind, title in _KINDS}
    return document


def _plain(coverage: Coverage, kind: Any) -> dict[str, Any]:
    part = coverage.of(kind)
    return {
        "total": len(part.items),
        "reached": len(part.items) - len(part.missed),
        "percentage": round(part.percentage, 1),
        "missed": [str(item) for item in part.missed],
    }


def to_junit(outcomes: Sequence[Outcome]) -> str:
    """For the report of a CI; one suite for each file."""
    root = ElementTree.Element("testsuites")
    for outcome in outcomes:
        errors = sum(bool(result.error) for result in outcome.results)
        counts = {
            "tests": str(len(outcome.results)),
            "failures": str(failures(outcome.results) - errors),
            "errors": str(errors),
        }
        suite = ElementTree.SubElement(root, "testsuite", {"name": outcome.file, **counts})
        for result, line in zip(outcome.results, outcome.lines, strict=True):
            attributes = {"classname": outcome.file, "name": result.case.title, "file": outcome.file, "line": str(line)}
            test = ElementTree.SubElement(suite, "testcase", attributes)
            if not result.holds:
                why = list(_why(result))
                kind = "error" if result.error else "failure"
                ElementTree.SubElement(test, kind, message=_legal(why[0].strip())).text = _legal("\n".join(why))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _legal(text: str) -> str:
    """The text without control characters, which XML has no way to write."""
    return "".join(char if char in "\t\n" or char >= " " else "?" for char in text)
