"""Plain data to objects: what each document of a text comes to.

In: the text of a file or of a part of it. Out: an `Entry` per object, with its line, and Findings. A text that does not
parse, or an object that does not decode, gives an entry without an object, so that the caller can keep an earlier
version. A policy of security.istio.io is never just missing: its entry carries what to enforce instead (`api.closed`),
even when its text does not parse at all.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from mizzen.api.closed import EFFECTS, Closed
from mizzen.api.decode import unfold_lists
from mizzen.api.meta import Key, Object
from mizzen.api.problems import Problem
from mizzen.sources import documents
from mizzen.sources.documents import Document, DocumentError, Locator
from mizzen.sources.judgement import claims_to_be_object, close_namespace, judge

Outcome = Literal["decoded", "failed", "not-read", "not-an-object", "empty", "unreadable"]

# Enough of YAML and JSON to recognise a policy in a text that does not parse.
_BEFORE = r"""^[^#\n]*?(?:^|[\s{,])["']?"""
_POLICY_LINE = re.compile(rf"""{_BEFORE}kind["']?\s*:\s*["']?({"|".join(EFFECTS)})\b""", re.MULTILINE)
_NAME_LINE = re.compile(rf"""{_BEFORE}name["']?\s*:\s*["']?([a-z0-9.-]+)""", re.MULTILINE)
_NAMESPACE_LINE = re.compile(rf"""{_BEFORE}namespace["']?\s*:\s*["']?([a-z0-9.-]+)""", re.MULTILINE)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What one document, or one item of a List, comes to."""

    outcome: Outcome
    line: int
    """Counted from 1 within the text."""
    kind: str = ""
    """As written; also of kinds that are not read."""
    key: Key | None = None
    object: Object | None = None
    stand_in: Closed | None = None
    """What to serve when there is no earlier version of an object that failed."""
    problems: tuple[tuple[int, Problem], ...] = ()
    """Each with its line within the text."""

    @property
    def lost(self) -> bool:
        """Whether some object that was meant here is not known."""
        return self.outcome in ("failed", "unreadable")


def read_yaml(text: str) -> tuple[Entry, ...]:
    """The entries of one chunk of YAML."""
    return _read(text, documents.parse_yaml)


def read_json(text: str) -> tuple[Entry, ...]:
    """The entries of a JSON file."""
    return _read(text, documents.parse_json)


def _read(text: str, parse: Callable[[str], list[Document]]) -> tuple[Entry, ...]:
    try:
        found = parse(text)
    except DocumentError as error:
        return tuple(unreadable(text, error))
    return tuple(_entries(found, Locator(text)))


def _entries(found: list[Document], locator: Locator) -> Iterator[Entry]:
    for index, document in enumerate(found):
        repeated = tuple((line, _repeated(key)) for key, line in document.repeated)
        for entry in _document_entries(document, index, locator):
            yield msgspec.structs.replace(entry, problems=(*repeated, *entry.problems)) if repeated else entry
            repeated = ()


def _repeated(key: str) -> Problem:
    return Problem(code="repeated-key", message=f"{key!r} is written twice; the last one counts", level="warning")


def _document_entries(document: Document, index: int, locator: Locator) -> Iterator[Entry]:
    value = document.value
    if value is None:
        yield Entry(outcome="empty", line=document.line)
    elif not claims_to_be_object(value):
        yield Entry(outcome="not-an-object", line=document.line)
    else:
        items = list(unfold_lists(value))
        if len(items) == 1 and items[0] is value:
            yield _decode(value, document.line, index, locator, "")
        else:
            for position, item in enumerate(items):
                where = f"items[{position}]"
                yield _decode(item, locator.find_line(index, where), index, locator, where)


def _decode(value: object, line: int, index: int, locator: Locator, where: str) -> Entry:
    decoded, problems, stand_in = judge(value)
    kind = value.get("kind") if isinstance(value, dict) else ""
    return Entry(
        outcome=decoded.outcome,
        line=line,
        kind=str(kind),
        key=decoded.key,
        object=decoded.object,
        stand_in=stand_in,
        problems=tuple(_placed(problems, line, index, locator, where)),
    )


def _placed(
    problems: Iterable[Problem], line: int, index: int, locator: Locator, where: str
) -> Iterator[tuple[int, Problem]]:
    for problem in problems:
        path = ".".join(part for part in (where, problem.path) if part)
        yield (locator.find_line(index, path) if problem.path else line), problem


def unreadable(text: str, error: DocumentError) -> Iterator[Entry]:
    """A text that does not parse; for each policy that it seems to hold, one that is closed for its whole namespace."""
    found = list(_POLICY_LINE.finditer(text))
    if not found:
        problem = Problem(code="unreadable", message=error.message)
        yield Entry(outcome="unreadable", line=1, problems=((error.line, problem),))
    starts = [match.start() for match in found]
    for match, start, end in zip(found, [0, *starts[1:]], [*starts[1:], len(text)], strict=True) if found else ():
        part = text[start:end]
        name, namespace = _NAME_LINE.search(part), _NAMESPACE_LINE.search(part)
        stand_in = close_namespace(match[1], name and name.group(1), namespace and namespace.group(1))
        key = Key(match[1], stand_in.metadata.namespace, stand_in.metadata.name)
        yield Entry(
            outcome="unreadable",
            line=text.count("\n", 0, start) + 1,
            kind=match[1],
            key=key,
            stand_in=stand_in,
            problems=((error.line, Problem(key=key, code="unreadable", message=error.message)),),
        )
