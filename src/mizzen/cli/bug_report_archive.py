"""The archive of a bug report: files under names, with what is secret cut out on the way in.

In: names and contents. Out: one `.tar.gz`, complete or not there at all. Every file goes through `diagnose.redaction`
unless it did so as objects, or secrets are asked for by name.
"""

import contextlib
import io
import os
import pathlib
import tarfile
import threading
import time
from collections.abc import Iterator

from mizzen.diagnose import redaction
from mizzen.errors import MizzenError

ROOT = "bug-report"


class Archive:
    """An archive that is being written; several threads may add to it."""

    def __init__(self, tar: tarfile.TarFile, *, full_secrets: bool) -> None:
        self.names: list[str] = []
        self._tar = tar
        self._full_secrets = full_secrets
        self._lock = threading.Lock()
        self._closed = False

    def add(self, name: str, content: bytes | str, *, clean: bool = False) -> None:
        """A file below the archive's folder; nothing is cut out of one that is `clean` already."""
        text = content if isinstance(content, str) else content.decode(errors="replace")
        data = (text if clean or self._full_secrets else redaction.redact_file(text)).encode(errors="replace")
        entry = tarfile.TarInfo(f"{ROOT}/{name}")
        entry.size, entry.mtime, entry.mode = len(data), int(time.time()), 0o600
        with self._lock:
            if not self._closed:
                self._tar.addfile(entry, io.BytesIO(data))
                self.names.append(name)

    def close(self) -> None:
        """What comes too late is dropped."""
        with self._lock:
            self._closed = True


@contextlib.contextmanager
def write_archive(path: pathlib.Path, *, full_secrets: bool) -> Iterator[Archive]:
    """The archive at `path`, readable by its owner only; an error on the way leaves none."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as failed:
        raise MizzenError(f"cannot write {path}: {failed.strerror}") from failed
    try:
        with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as tar:
            archive = Archive(tar, full_secrets=full_secrets)
            try:
                yield archive
            finally:
                archive.close()
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
