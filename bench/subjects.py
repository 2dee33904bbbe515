"""The control planes that are measured: one that Mizzen starts, or any that runs already; and how objects get there.

In: documents to write and to remove. Out: the same work for every control plane, whether it watches a folder or an API
server that a command talks to.
"""

import json
import os
import pathlib
import subprocess
from collections.abc import Iterable
from typing import Protocol

import msgspec

from bench import serving
from bench.changes import identity
from bench.meshes import Document


class Place(Protocol):
    """Where a control plane reads its objects."""

    def write(self, documents: Iterable[Document]) -> None:
        """Put objects there, or others in their place."""
        ...

    def write_text(self, document: Document, text: str) -> None:
        """Put this text there, which says the same as the object."""
        ...

    def remove(self, documents: Iterable[Document]) -> None:
        """Take objects away."""
        ...


class Folder:
    """A watched folder: one file an object, renamed into place."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def write(self, documents: Iterable[Document]) -> None:
        """Each into its file."""
        for document in documents:
            self.write_text(document, json.dumps(document))

    def write_text(self, document: Document, text: str) -> None:
        """Write a finished file and rename it, so that nobody reads half of one."""
        path = self._path(document)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(text)
        os.replace(part, path)

    def remove(self, documents: Iterable[Document]) -> None:
        """Delete their files."""
        for document in documents:
            self._path(document).unlink()

    def _path(self, document: Document) -> pathlib.Path:
        kind, namespace, name = identity(document)
        return self.path / (namespace or "cluster") / f"{kind.lower()}-{name}.yaml"


class Commands:
    """Shell commands that read objects from standard input, such as `kubectl apply -f -` and `kubectl delete -f -`."""

    def __init__(self, write: str, remove: str) -> None:
        self._write = write
        self._remove = remove

    def write(self, documents: Iterable[Document]) -> None:
        """Hand them to the one command."""
        _run(self._write, _join(documents))

    def write_text(self, document: Document, text: str) -> None:
        """Hand the text to it."""
        del document
        _run(self._write, text)

    def remove(self, documents: Iterable[Document]) -> None:
        """Hand them to the other command."""
        _run(self._remove, _join(documents))


def _join(documents: Iterable[Document]) -> str:
    return "\n---\n".join(json.dumps(document) for document in documents)


def _run(command: str, text: str) -> None:
    subprocess.run(command, shell=True, input=text.encode(), stdout=subprocess.DEVNULL, check=True)


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One control plane at work."""

    target: str
    """Its plain gRPC port."""
    pid: int
    place: Place

    def usage(self) -> serving.Usage:
        """What it has used until now."""
        return serving.measure_usage(self.pid)
