"""States that git has, as folders that go away.

In: paths in a work tree and a revision, or a state as users write it: a path, `REV` or `REV:PATH`. Out: folders with
what stood there. Of several paths one that did not exist then is left out; so is standard input.
"""

import contextlib
import io
import os
import pathlib
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence

from mizzen.errors import MizzenError

_STDIN = "-"


@contextlib.contextmanager
def checked_out(paths: Sequence[str], revision: str, said: str = "--since") -> Iterator[list[str]]:
    """The paths as they were at a revision; errors begin with what was said."""
    if revision.startswith("-"):
        raise MizzenError(f"{revision} is no revision")
    with tempfile.TemporaryDirectory(prefix="mizzen-since-") as folder:
        older = []
        for index, path in enumerate(paths):
            if path != _STDIN:
                into = pathlib.Path(folder, str(index))
                into.mkdir()
                try:
                    older += _extract(pathlib.Path(path), revision, into)
                except MizzenError as error:
                    raise MizzenError(f"{said}: {error}") from error
        yield older


@contextlib.contextmanager
def state(written: str, other: str) -> Iterator[str]:
    """The folder or file of one state; `REV` alone is the place of the other state, as it was at that revision."""
    if os.path.exists(written):
        yield written
        return
    revision, colon, path = written.partition(":")
    if not colon:
        path = other if os.path.exists(other) else other.partition(":")[2]
    with checked_out((path or ".",), _known(written, revision), written) as found:
        if not found:
            raise MizzenError(f"{written}: {path} did not exist at {revision}")
        yield found[0]


def _known(written: str, revision: str) -> str:
    try:
        _git(pathlib.Path.cwd(), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except MizzenError as error:
        raise MizzenError(f"{written} is neither a path nor a git revision, REV or REV:PATH") from error
    return revision


def _extract(path: pathlib.Path, revision: str, into: pathlib.Path) -> list[str]:
    """Put one path as it was into a folder; its place there, or nothing if it did not exist."""
    real = path.resolve()
    start = _standing(real)
    top = pathlib.Path(os.fsdecode(_git(start, "rev-parse", "--show-toplevel").rstrip(b"\n")))
    _git(top, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    inside = real.relative_to(top.resolve()).as_posix()
    if inside != "." and not _git(top, "ls-tree", "-z", "--full-tree", revision, "--", inside):
        return []
    archive = _git(top, "archive", "--format=tar", revision, *(() if inside == "." else ("--", inside)))
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(into, filter="data")
    return [str(into / inside)]


def _standing(path: pathlib.Path) -> pathlib.Path:
    """The folder from which git is asked: the nearest that is there now."""
    return next(parent for parent in (path, *path.parents) if parent.is_dir())


def _git(folder: pathlib.Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(("git", "-C", str(folder), *arguments), capture_output=True, check=True)
    except FileNotFoundError as error:
        raise MizzenError("this needs git, which is not installed") from error
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode(errors="replace").strip() or f"git {' '.join(arguments)} found nothing"
        raise MizzenError(reason) from error
    return done.stdout
