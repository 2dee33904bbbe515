"""Reports: from everything that was found to what is said.

In: Findings, and what the user wants to hear. Out: Findings filtered by namespace, suppressed by annotation or by
`CODE=GLOB`, in the reference's order and each once; and which of them are new since an earlier report. Two findings are
the same if code, object and message are; lines move, so they do not count.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from mizzen.analysis.catalogue import CATALOGUE
from mizzen.analysis.findings import LEVELS, Finding, Level
from mizzen.analysis.own_codes import OWN_CODES
from mizzen.api.meta import Key
from mizzen.errors import MizzenError

SUPPRESS = "galley.istio.io/analyze-suppress"
Fingerprint = tuple[str, str, str]


class Suppression(NamedTuple):
    """One `CODE=GLOB`."""

    code: str
    glob: str

    def covers(self, finding: Finding) -> bool:
        """Whether the finding is not wanted; `Kind name.namespace` is taken as well as `Kind namespace/name`."""
        if finding.code != self.code or finding.key is None:
            return False
        _, namespace, name = finding.key
        dotted = f"{finding.origin.partition(' ')[0]} {name}.{namespace}" if namespace else ""
        return any(matches(self.glob, text) for text in (finding.origin, dotted) if text)


def parse_suppression(text: str) -> Suppression:
    """The suppression that a flag says; raises on anything but one `=`."""
    code, equals, glob = text.partition("=")
    if not equals or "=" in glob:
        raise MizzenError(f"{text} is not a valid suppression value. See mizzen analyze --help")
    return Suppression(code, glob)


def matches(glob: str, text: str) -> bool:
    """Whether `text` is like `glob`, in which only `*` is special."""
    return re.fullmatch(".*".join(map(re.escape, glob.split("*"))), text, re.DOTALL) is not None


def is_known(code: str) -> bool:
    """Whether there is such a code."""
    return code in CATALOGUE or code in OWN_CODES


def parse_level(text: str) -> Level | None:
    """The level of that name, in any case."""
    return next((level for level in LEVELS if level.lower() == text.lower()), None)


def is_at_least(finding: Finding, threshold: Level) -> bool:
    """Whether the finding is as grave as that, or graver."""
    return LEVELS.index(finding.level) <= LEVELS.index(threshold)


def filter_findings(
    findings: Iterable[Finding],
    *,
    namespace: str,
    suppressions: Sequence[Suppression],
    annotations: Callable[[Key], Mapping[str, str]],
) -> list[Finding]:
    """Those that are for this namespace (all, if it is empty) and not suppressed, in order, each once."""
    kept = (
        finding
        for finding in findings
        if _is_in(finding, namespace)
        and not _is_annotated(finding, annotations)
        and not any(suppression.covers(finding) for suppression in suppressions)
    )
    return list({_identity(finding): finding for finding in sorted(kept, key=_order)}.values())


def _is_in(finding: Finding, namespace: str) -> bool:
    if not namespace or finding.key is None:
        return True
    own = finding.key.name if finding.key.kind == "Namespace" else finding.key.namespace
    return own in ("", namespace)


def _is_annotated(finding: Finding, annotations: Callable[[Key], Mapping[str, str]]) -> bool:
    if finding.key is None:
        return False
    # Not trimmed: a space breaks the match, as it does in the reference.
    codes = annotations(finding.key).get(SUPPRESS, "").split(",")
    return "*" in codes or finding.code in codes


def _identity(finding: Finding) -> tuple[str, ...]:
    return (finding.cluster, finding.code, finding.origin, finding.message)


def _order(finding: Finding) -> tuple[Any, ...]:
    key = finding.key
    place = f"{finding.origin.partition(' ')[0]}/{key.name}/{key.namespace}" if key is not None else ""
    rank = LEVELS.index(finding.level)
    return (finding.cluster, rank, finding.code, key is not None, place, finding.message, finding.path)


# -- what is new ----------------------------------------------------------------------------------------------------


def fingerprint(finding: Finding) -> Fingerprint:
    """What makes a finding the same as one of an earlier report."""
    return (finding.code, finding.origin, finding.message)


class _Row(msgspec.Struct):
    """A finding in a report printed as JSON."""

    code: str
    message: str
    origin: str = ""


def read_baseline(content: bytes) -> Counter[Fingerprint]:
    """The findings of a report that `-o json` printed."""
    try:
        rows = msgspec.json.decode(content, type=list[_Row])
    except msgspec.MsgspecError as error:
        raise MizzenError(f"a baseline is the output of `-o json`: {error}") from error
    return Counter((row.code, row.origin, row.message) for row in rows)


def only_new(findings: Iterable[Finding], known: Mapping[Fingerprint, int]) -> list[Finding]:
    """The findings that were not there before."""
    left = Counter(known)
    new = []
    for finding in findings:
        mark = fingerprint(finding)
        if left[mark] > 0:
            left[mark] -= 1
        else:
            new.append(finding)
    return new
