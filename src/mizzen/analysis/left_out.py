"""What the compiler leaves out, as findings: the list that a control plane tells of, for objects that none has yet.

In: an engine, and what the rules found. Out: MZ0005 and MZ0006, but for faults that a rule has told of already.
"""

from collections.abc import Iterable

from mizzen.analysis import own_codes
from mizzen.analysis.findings import Finding, report
from mizzen.api.meta import Key
from mizzen.api.problems import Problem
from mizzen.compile import problems
from mizzen.incremental import Engine

_TOLD_BY_RULES = ("Sidecar", "Telemetry")
"""Kinds of which the reference tells that several are for one namespace."""


def find(db: Engine, found: Iterable[Finding]) -> list[Finding]:
    """The findings."""
    roots = [db.root(problems.examine, *part) for part in problems.parts(db)]
    for root in roots:
        root.value()
    told: dict[Key | None, list[str]] = {}
    for finding in found:
        if finding.level == "Error" and finding.path:
            told.setdefault(finding.key, []).append(finding.path)
    left_out = [_finding(each) for each in problems.gather(db) if not _is_told(each, told.get(each.key, ()))]
    for root in roots:
        root.release()
    return left_out


def _is_told(problem: Problem, paths: Iterable[str]) -> bool:
    if problem.code == problems.SHADOWED and problem.key is not None and problem.key.kind in _TOLD_BY_RULES:
        return True
    path = problem.path
    return bool(path) and any(each.startswith(path) or path.startswith(each) for each in paths)


def _finding(problem: Problem) -> Finding:
    text = f"{problem.path}: {problem.message}" if problem.path else problem.message
    message = own_codes.LEFT_OUT if problem.code in problems.UNUSABLE else own_codes.WITHOUT_EFFECT
    return report(message, problem.key, text, path=problem.path)
