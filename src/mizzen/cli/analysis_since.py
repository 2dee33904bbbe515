"""An older state of some paths, as git has it.

In: paths in a work tree, and a revision. Out: the same paths as they were, in a folder that goes away. A path that did
not exist then is left out; so is standard input.
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
def checked_out(paths: Sequence[str], revision: str) -> Iterator[list[str]]:
    """The paths as they were at a revision."""
    if revision.startswith("-"):
        raise MizzenError(f"{revision} is no revision")
    with tempfile.TemporaryDirectory(prefix="mizzen-since-") as folder:
        older = []
        for index, path in enumerate(paths):
            if path != _STDIN:
                into = pathlib.Path(folder, str(index))
                into.mkdir()
                older += _extract(pathlib.Path(path), revision, into)
        yield older


def _extract(path: pathlib.Path, revision: str, into: pathlib.Path) -> list[str]:
    """Put one path as it was into a folder; its place there, or nothing if it did not exist."""
    real = path.resolve()
    start = real if real.is_dir() else real.parent
    top = pathlib.Path(os.fsdecode(_git(start, "rev-parse", "--show-toplevel").rstrip(b"\n")))
    _git(top, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    inside = real.relative_to(top.resolve()).as_posix()
    if inside != "." and not _git(top, "ls-tree", "-z", "--full-tree", revision, "--", inside):
        return []
    archive = _git(top, "archive", "--format=tar", revision, *(() if inside == "." else ("--", inside)))
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(into, filter="data")
    return [str(into / inside)]


def _git(folder: pathlib.Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(("git", "-C", str(folder), *arguments), capture_output=True, check=True)
    except FileNotFoundError as error:
        raise MizzenError("--since needs git, which is not installed") from error
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode(errors="replace").strip() or f"git {' '.join(arguments)} found nothing"
        raise MizzenError(f"--since: {reason}") from error
    return done.stdout
