"""Objects that are not, or not wholly, in force: `/debug/problems` in windows.

In: the findings of `control.inputs`. Out: one window of them, worst first, and how many there are of each level.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from mizzen.api.problems import Level
from mizzen.control.debug import clients
from mizzen.control.debug.console import Page, Query, Write
from mizzen.control.ui.paging import Window, read_window
from mizzen.sources.origins import Finding

_LEVELS: tuple[Level, ...] = ("error", "warning", "info")
_NOBODY: tuple[()] = ()


def page(findings: Callable[[], Iterable[Finding]]) -> Page:
    """The page of data."""

    def read(query: Query) -> Write:
        window, held = read_window(query), tuple(findings())
        return lambda: build_list(held, window)

    return Page("What is not in force, in windows.", read)


def build_list(findings: Iterable[Finding], window: Window) -> dict[str, Any]:
    """One window of the findings that the filter keeps; those of one level keep their order."""
    held = sorted(findings, key=lambda finding: _LEVELS.index(finding.problem.level))
    kept = [finding for finding in held if window.keeps(*_texts(finding))]
    levels = Counter(finding.problem.level for finding in held)
    return {
        **window.frame(len(kept)),
        "levels": {level: levels[level] for level in _LEVELS if levels[level]},
        "objects": clients.problems(window.cut(kept), _NOBODY)["objects"],
    }


def _texts(finding: Finding) -> tuple[str, ...]:
    problem = finding.problem
    return (problem.code, problem.message, problem.path, "/".join(problem.key or ()), str(finding.origin))
