"""Files as the agent keeps and watches them: written whole or not at all, private, noticed when they change.

A reader sees the old content or the new one, never a part. Watching compares content, so it follows the symbolic
links that Kubernetes swaps below a mounted volume, and needs no notification from the kernel.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path


def write_file(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Replace `path` by a file of that content and mode; its folder is made, private, if missing."""
    make_private_folder(path.parent)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        os.fchmod(descriptor, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        scratch.replace(path)
    except OSError:
        scratch.unlink(missing_ok=True)
        raise


def make_private_folder(path: Path) -> None:
    """Make a folder for one user; whoever that is may pass those above that are missing, whatever the umask is."""
    if not path.is_dir():
        make_open_folder(path.parent)
        path.mkdir(exist_ok=True, mode=0o700)


def make_open_folder(path: Path) -> None:
    """Make a folder, and those above that are missing, into which everybody may look, whatever the umask is."""
    if not path.is_dir():
        make_open_folder(path.parent)
        path.mkdir(exist_ok=True)
        path.chmod(0o755)


def read_file(path: Path) -> bytes | None:
    """The content, or None where there is no such file, none can have that name, or it may not be read."""
    try:
        return path.read_bytes()
    except (OSError, ValueError):
        return None


async def watch_files(paths: Iterable[Path], *, interval: float) -> AsyncIterator[Mapping[Path, bytes | None]]:
    """The content of all `paths`, at once and again whenever one of them differs."""
    watched = tuple(paths)
    seen: Mapping[Path, bytes | None] | None = None
    while True:
        now = {path: read_file(path) for path in watched}
        if now != seen:
            seen = now
            yield now
        await asyncio.sleep(interval)
