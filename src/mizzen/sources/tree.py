"""The files under the paths that a user gave, and what has changed among them.

In: paths of files and folders. Out: the regular files to read, in path order, each with a `Stamp` that tells whether
it may have changed; their text, at most 32 MiB of it; and Findings about what is not read (loops of links, links that
lead nowhere, files too large or not text). In a folder only `.yaml`, `.yml` and `.json` count, and nothing hidden; a
file that is named is read whatever it is called. A file that two links lead to is read once.
"""

import os
import pathlib
import stat
from collections.abc import Collection, Iterator
from typing import NamedTuple

from mizzen.api.problems import Level, Problem
from mizzen.errors import SourceError
from mizzen.sources.origins import Finding, Origin

LARGEST_FILE = 32 * 1024 * 1024

_ENDINGS = (".yaml", ".yml", ".json")

EMPTY = Problem(code="empty-file", message="the file has not a byte any more; what it held last stays in force")
"""A full disk leaves a file so, and so does a command that has yet to write. Who wants it empty leaves a comment."""


class Stamp(NamedTuple):
    """What a file's directory entry says; equal stamps mean equal content, unless the file is very young."""

    modified_ns: int
    size: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """The stamp of a file's status."""
        return cls(status.st_mtime_ns, status.st_size, status.st_ino)


class Listing(NamedTuple):
    """What was found under one path."""

    files: dict[str, Stamp]
    """In path order."""
    findings: tuple[Finding, ...]
    repeats: dict[str, str]
    """Files and folders that a link leads to as well, each with the name under which it is read."""
    identity: tuple[int, int]
    """Device and inode of the root."""


def list_files(root: pathlib.Path) -> Listing:
    """The files to read under `root`; raises SourceError when there is no such path, or it is not to be read."""
    try:
        status = root.stat()
        if not stat.S_ISDIR(status.st_mode):
            return Listing({str(root): Stamp.of(status)}, (), {}, _identity(status))
        walk = _Walk()
        files = dict(walk.files_in(str(root), (_identity(status),)))
    except OSError as error:
        raise SourceError(f"cannot read {root}: {error.strerror}") from error
    return Listing(files, tuple(walk.findings), walk.repeats, _identity(status))


def is_wanted(name: str) -> bool:
    """Whether a file of this name in a folder is read."""
    return name.endswith(_ENDINGS) and not name.startswith(".")


def other_files(root: str, known: Collection[str]) -> Iterator[str]:
    """The files under a folder that are not among those known, and not hidden, sorted."""
    for folder, below, names in os.walk(root):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            full = os.path.join(folder, name)
            if full not in known and not is_wanted(name) and not name.startswith("."):
                yield full


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


class _Walk:
    """One walk of a tree: every folder and file once, loops of links cut."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.repeats: dict[str, str] = {}
        self._seen: dict[tuple[int, int], str] = {}

    def files_in(self, folder: str, above: tuple[tuple[int, int], ...]) -> Iterator[tuple[str, Stamp]]:
        """The files of a folder and of those in it, sorted by name."""
        self._seen[above[-1]] = folder
        for name in sorted(os.listdir(folder)):
            if name.startswith("."):
                continue
            path = os.path.join(folder, name)
            status = self._status(path)
            if status is None:
                continue
            if stat.S_ISDIR(status.st_mode):
                yield from self._files_below(path, status, above)
            elif stat.S_ISREG(status.st_mode) and is_wanted(name):
                first = self._seen.setdefault(_identity(status), path)
                if first == path:
                    yield path, Stamp.of(status)
                else:
                    self.repeats[path] = first

    def _files_below(
        self, path: str, status: os.stat_result, above: tuple[tuple[int, int], ...]
    ) -> Iterator[tuple[str, Stamp]]:
        identity = _identity(status)
        if identity in above:
            self._report(path, "symlink-loop", "a link that leads back to a folder above it is not followed")
        elif identity not in self._seen:
            try:
                yield from self.files_in(path, (*above, identity))
            except OSError as error:
                self._report(path, "unreadable-file", f"the folder cannot be read: {error.strerror}", "error")
        else:
            self.repeats[path] = self._seen[identity]

    def _status(self, path: str) -> os.stat_result | None:
        try:
            return os.stat(path)
        except FileNotFoundError:
            if os.path.islink(path):
                self._report(path, "dangling-link", "a link that leads nowhere")
        except OSError as error:
            # A link to itself is ELOOP.
            self._report(path, "symlink-loop" if os.path.islink(path) else "unreadable-file", f"{error.strerror}")
        return None

    def _report(self, path: str, code: str, message: str, level: Level = "warning") -> None:
        self.findings.append(Finding(Origin(path), Problem(code=code, message=message, level=level)))


class Unreadable(Exception):
    """A file whose text cannot be had; `problem` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(code=code, message=message)


def read_bytes(path: str) -> bytes:
    """A file's bytes; raises Unreadable, also for files over the limit, of which no more is read than that."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            # A pipe has no size; a file may have grown since.
            content = b"" if size > LARGEST_FILE else file.read(size + 1 if size else LARGEST_FILE + 1)
            if size < len(content) <= LARGEST_FILE:
                content += file.read(LARGEST_FILE + 1 - len(content))
    except OSError as error:
        raise Unreadable("unreadable-file", f"the file cannot be read: {error.strerror}") from error
    size = max(size, len(content))
    if size > LARGEST_FILE:
        limit = LARGEST_FILE // 2**20
        raise Unreadable("too-large", f"has {size:,} bytes; files over {limit} MiB are not read, split it up")
    return content


def decode_text(content: bytes) -> str:
    """The bytes as text, with or without a byte order mark; raises Unreadable."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Unreadable("not-text", f"line {line} is not UTF-8 text") from error
