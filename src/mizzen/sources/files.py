"""Objects, Problems and origins of files and folders, kept up to date change by change.

In: paths, in the order of their rank. Out: `Contents`: the objects in force by key, where each stands, and every
Finding. `load` reads once, for offline commands; `FileTree.scan` looks again and reads only files that
changed: first by modification time, size and inode, then by content, and of those only the parts that differ.

    a later path replaces objects of an earlier one by key
    within one path an object that is there twice is a Problem, and the first in path order stays
    an object that no longer decodes keeps its last version, as do all of a file that can no longer be read
    of a file with a part that does not parse no object goes away, since nobody can tell which one it was
    nor does one of a file that has not a byte any more, as a full disk or a command at work leaves it
    nor of a path that is gone, or is another folder now and empty, as where something was mounted
"""

import hashlib
import itertools
import os
import pathlib
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from mizzen.api.closed import Closed, effect_of
from mizzen.api.meta import Key, Object, key_of
from mizzen.api.problems import Problem
from mizzen.errors import SourceError
from mizzen.sources import tree
from mizzen.sources.documents import split_yaml
from mizzen.sources.entries import Entry, read_json, read_yaml
from mizzen.sources.origins import Finding, Origin
from mizzen.sources.tree import Stamp, Unreadable

STDIN = "-"

_YOUNG = 0.1
"""Seconds within which a file may change again without a new stamp."""


class Placed(NamedTuple):
    """An object in force, and where it stands."""

    object: Object
    origin: Origin


class Read(NamedTuple):
    """What became of one document: for commands that account for every one."""

    origin: Origin
    entry: Entry


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """All that the paths hold."""

    objects: Mapping[Key, Object] = {}
    origins: Mapping[Key, Origin] = {}
    findings: tuple[Finding, ...] = ()
    documents: tuple[Read, ...] = ()


class _File(msgspec.Struct, kw_only=True):
    """What is known of one file."""

    stamp: Stamp
    digest: bytes = b""
    read_at: float = 0.0
    parts: dict[bytes, tuple[Entry, ...]] = {}
    """What each part of the text came to, by the part's digest."""
    documents: tuple[Read, ...] = ()
    objects: dict[Key, Placed] = {}
    """In force, in the order of the file."""
    real: set[Key] = set()
    """Those of `objects` that were read, now or earlier, and do not merely stand in."""
    stale: set[Key] = set()
    """Those of `objects` that were read earlier only."""
    findings: tuple[Finding, ...] = ()


def load(paths: Sequence[str], stdin: Callable[[], bytes] | None = None) -> Contents:
    """Everything under the paths, once. `-` reads `stdin`. Raises SourceError for a path that cannot be read."""
    roots: list[FileTree | _Stream] = []
    for path in paths:
        if path == STDIN:
            if stdin is None:
                raise SourceError("there is no standard input to read")
            roots.append(_Stream(stdin()))
        else:
            roots.append(FileTree(pathlib.Path(path)))
    for root in roots:
        root.scan()
    return merge(roots)


def merge(roots: Sequence["FileTree | _Stream"]) -> Contents:
    """What several paths hold together; the later ones replace objects of the earlier ones."""
    objects: dict[Key, Placed] = {}
    for root in roots:
        objects |= root.objects
    return Contents(
        objects={key: placed.object for key, placed in objects.items()},
        origins={key: placed.origin for key, placed in objects.items()},
        findings=tuple(itertools.chain.from_iterable(root.findings for root in roots)),
        documents=tuple(itertools.chain.from_iterable(root.documents for root in roots)),
    )


class FileTree:
    """One path, followed over time. Not for several threads at once."""

    def __init__(self, root: pathlib.Path, clock: Callable[[], float] = time.time) -> None:
        self.root = root
        self._clock = clock
        self._files: dict[str, _File] = {}
        self._listing: tuple[Finding, ...] = ()
        self._identity: tuple[int, int] | None = None
        self._started = False
        self.unsettled = False
        """Whether the last scan left a file alone that was being written."""
        self.parsed = 0
        """Files parsed since the start."""
        self.objects: Mapping[Key, Placed] = {}
        self.findings: tuple[Finding, ...] = ()

    @property
    def documents(self) -> Iterator[Read]:
        """What became of every document, in path order."""
        return itertools.chain.from_iterable(file.documents for file in self._files.values())

    def scan(self, quiet: float = 0.0, touched: Collection[str] | None = None) -> bool:
        """Look at every file, read what changed; whether anything did. Raises SourceError only the first time.

        A file written within the last `quiet` seconds may not be whole: it stays as it was, and `unsettled` says so.
        `touched` names the paths to look at, where somebody knows; it only saves time.
        """
        known = self._known_among(touched) if touched is not None and self._started else None
        if known is not None:
            return self._scan_known(known, quiet)
        try:
            listing = tree.list_files(self.root)
        except SourceError as error:
            if not self._started:
                raise
            return self._report_missing(str(error))
        if self._files and not listing.files and listing.identity != self._identity:
            return self._report_missing(f"{self.root} is another folder now, and empty")
        before, self._files = self._files, {}
        self.unsettled = False
        changed = listing.findings != self._listing
        for path, stamp in listing.files.items():
            changed = self._look_at(path, stamp, before.get(path), quiet) or changed
        changed = changed or list(before) != list(self._files)
        self._listing, self._identity, self._started = listing.findings, listing.identity, True
        if changed:
            self._join()
        return changed

    def _known_among(self, touched: Collection[str]) -> dict[str, Stamp] | None:
        """The known files among these paths; None when one of the paths may change what files there are."""
        known: dict[str, Stamp] = {}
        for path in touched:
            try:
                if path in self._files:
                    known[path] = Stamp.of(os.stat(path))
                elif not self._is_irrelevant(path):
                    return None
            except OSError:
                return None
        return known

    def _is_irrelevant(self, path: str) -> bool:
        """Whether the path, which is no known file, has no part in the tree: an editor's temporary file, say."""
        if not os.path.lexists(path):
            return not any(name.startswith(f"{path}/") for name in self._files)
        return stat.S_ISREG(os.lstat(path).st_mode) and not tree.is_wanted(os.path.basename(path))

    def _scan_known(self, known: Mapping[str, Stamp], quiet: float) -> bool:
        self.unsettled = False
        changed = False
        for path, stamp in known.items():
            changed = self._look_at(path, stamp, self._files[path], quiet) or changed
        if changed:
            self._join()
        return changed

    def _look_at(self, path: str, stamp: Stamp, known: _File | None, quiet: float) -> bool:
        """Bring one file up to date; whether it changed."""
        if self._is_being_written(stamp, known, quiet):
            self.unsettled = True
            if known is not None:
                self._files[path] = known
            return False
        self._files[path], changed = self._follow(path, stamp, known)
        return changed

    def _is_being_written(self, stamp: Stamp, known: _File | None, quiet: float) -> bool:
        age = self._clock() - stamp.modified_ns / 1e9
        return 0 <= age < quiet and (known is None or known.stamp != stamp)

    def _follow(self, path: str, stamp: Stamp, known: _File | None) -> tuple[_File, bool]:
        now = self._clock()
        if known is not None and known.stamp == stamp and known.read_at - stamp.modified_ns / 1e9 > _YOUNG:
            return known, False
        try:
            content = tree.read_bytes(path)
            digest = hashlib.blake2b(content, digest_size=16).digest()
            if known is not None and known.digest == digest:
                known.stamp, known.read_at = stamp, now
                return known, False
            if not content and known is not None and known.real:
                return _keep(path, stamp, known, tree.EMPTY, now)
            text = tree.decode_text(content)
        except Unreadable as error:
            return _keep(path, stamp, known, error.problem, now)
        self.parsed += 1
        return _parse(path, stamp, digest, text, known, now), True

    def _report_missing(self, message: str) -> bool:
        """The path itself is gone: everything stays, since that is rarely meant."""
        finding = Finding(Origin(str(self.root)), Problem(code="missing", message=message))
        if self._listing == (finding,):
            return False
        self._listing = (finding,)
        self._join()
        return True

    def _join(self) -> None:
        objects: dict[Key, Placed] = {}
        stale: dict[Key, Placed] = {}
        findings = list(self._listing)
        for file in self._files.values():
            findings += file.findings
            for key, placed in file.objects.items():
                if key in file.stale:
                    stale.setdefault(key, placed)
                    continue
                first = objects.setdefault(key, placed)
                if first is not placed:
                    findings.append(_duplicate(key, placed.origin, first.origin))
        for key, placed in stale.items():
            # What is kept from earlier gives way to what another file says now.
            objects.setdefault(key, placed)
        self.objects, self.findings = objects, tuple(findings)


class _Stream(FileTree):
    """Standard input, read once, as if it were a file."""

    def __init__(self, content: bytes) -> None:
        super().__init__(pathlib.Path(STDIN))
        self._content = content

    def scan(self, quiet: float = 0.0, touched: Collection[str] | None = None) -> bool:
        """Read it."""
        del quiet, touched
        try:
            text = tree.decode_text(self._content)
        except Unreadable as error:
            raise SourceError(f"cannot read standard input: {error}") from error
        stamp = Stamp(0, len(self._content), 0)
        self._files = {STDIN: _parse(STDIN, stamp, b"", text, None, 0.0)}
        self._join()
        return True


def _keep(path: str, stamp: Stamp, known: _File | None, problem: Problem, now: float) -> tuple[_File, bool]:
    """A file that cannot be read keeps what it held."""
    finding = Finding(Origin(path), problem)
    if known is None:
        return _File(stamp=stamp, read_at=now, findings=(finding,)), True
    differs = known.findings != (finding,)
    known.stamp, known.read_at, known.digest, known.findings = stamp, now, b"", (finding,)
    known.stale = set(known.real)
    return known, differs


def _parse(path: str, stamp: Stamp, digest: bytes, text: str, known: _File | None, now: float) -> _File:
    file = _File(stamp=stamp, digest=digest, read_at=now)
    documents: list[Read] = []
    findings: list[Finding] = []
    for line, entry in _read_parts(path, text, known, file):
        documents.append(Read(Origin(path, line + entry.line), entry))
        findings += (Finding(Origin(path, line + at), problem) for at, problem in entry.problems)
    file.documents = tuple(documents)
    findings += _take_objects(file, known)
    findings += _skipped(documents)
    file.findings = tuple(findings)
    return file


def _read_parts(path: str, text: str, known: _File | None, file: _File) -> Iterator[tuple[int, Entry]]:
    """The entries with the number of lines before their part; parts that were there before are not read again."""
    is_json = path.endswith(".json")
    file.parts = {}
    for chunk in ((text, 1),) if is_json else split_yaml(text):
        part, line = chunk
        digest = hashlib.blake2b(part.encode(errors="surrogatepass"), digest_size=16).digest()
        entries = known.parts.get(digest) if known is not None else None
        if entries is None:
            entries = read_json(part) if is_json else read_yaml(part)
        file.parts[digest] = entries
        for entry in entries:
            yield line - 1, entry


def _take_objects(file: _File, known: _File | None) -> Iterator[Finding]:
    """Put into force what was read, and what has to stay or to stand in where something could not be."""
    before = known.objects if known is not None else {}
    was_real = known.real if known is not None else set()
    file.objects, file.real, file.stale = {}, set(), set()
    for origin, entry in file.documents:
        if entry.object is not None and entry.key is not None:
            if entry.key in file.objects:
                yield _duplicate(entry.key, origin, file.objects[entry.key].origin)
                continue
            file.objects[entry.key] = Placed(_same_or(entry.object, before.get(entry.key)), origin)
            file.real.add(entry.key)
    lost = [read for read in file.documents if read.entry.lost]
    unknown = any(read.entry.key is None or read.entry.outcome == "unreadable" for read in lost)
    named = {read.entry.key for read in lost}
    for key in was_real:
        if key not in file.objects and (unknown or key in named):
            file.objects[key] = before[key]
            file.real.add(key)
            file.stale.add(key)
            yield Finding(before[key].origin, _stays(key))
    for origin, entry in lost:
        if entry.stand_in is not None:
            yield from _stand_in(file, origin, entry.stand_in)


def _stand_in(file: _File, origin: Origin, closed: Closed) -> Iterator[Finding]:
    key = key_of(closed)
    if key not in file.objects:
        file.objects[key] = Placed(closed, origin)
        effect = effect_of(closed)
        message = f"cannot be read; until it can, {effect.message}"
        yield Finding(origin, Problem(key=key, code=effect.code, message=message))


def _same_or(new: Object, before: Placed | None) -> Object:
    """The object as it was, where it did not change, so that whoever compares is done at once."""
    return before.object if before is not None and before.object == new else new


def _stays(key: Key) -> Problem:
    return Problem(key=key, code="stale", message="its last readable version stays in force")


def _duplicate(key: Key, here: Origin, first: Origin) -> Finding:
    message = f"is already defined at {first}, which stays in force; this one has no effect"
    return Finding(here, Problem(key=key, code="duplicate", message=message))


def _skipped(documents: Sequence[Read]) -> Iterator[Finding]:
    """One warning a file for all that is no object."""
    skipped = [read for read in documents if read.entry.outcome == "not-an-object"]
    if skipped:
        count = "a document" if len(skipped) == 1 else f"{len(skipped)} documents"
        message = f"{count} without apiVersion and kind skipped"
        yield Finding(skipped[0].origin, Problem(code="not-an-object", message=message, level="warning"))
