"""Manifests as an engine, for commands that answer offline.

In: files, folders or stdin with objects, a mesh config, the settings of the environment. Out: the objects with their
origins, and an engine that holds them. Problems are told on stderr; a named file that cannot be read is fatal, and for
commands whose answer is about the whole, as a verdict or a comparison is, so is each part that cannot be.
"""

import atexit
import contextlib
import gc
import os
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from mizzen.errors import SourceError

if TYPE_CHECKING:
    from mizzen import settings
    from mizzen.api.mesh.config import MeshConfig
    from mizzen.api.problems import Problem
    from mizzen.incremental import Engine
    from mizzen.model.mesh import ControlPlane
    from mizzen.sources.files import Contents
    from mizzen.sources.origins import Finding

_NOT_READ = ("unreadable-file", "too-large", "not-text")
"""Codes of findings that leave a whole file out: fatal for a file that was named itself."""
_NOT_PARSED = "unreadable"
"""Code of findings that leave a document out."""


@contextlib.contextmanager
def collector_off() -> Iterator[None]:
    """Nearly everything that is made lives until the end, so looking for garbage costs a fifth of the time in vain.

    Nor is it looked for when the process ends.
    """
    was_on = gc.isenabled()
    gc.disable()
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def load(paths: Sequence[str], known: "Contents | None" = None) -> "Contents":
    """The objects under the paths; a named file that cannot be read is fatal, and other problems are told.

    Problems that `known` has too, an earlier state of the same objects, are told no second time.
    """
    return _load(paths, known, whole=False)


def load_whole(paths: Sequence[str], known: "Contents | None" = None) -> "Contents":
    """The same, where an answer about a part would be wrong: whatever cannot be read is fatal.

    What lies in a folder and claims to be no object (a template, a text of another kind) is told and fails nothing.
    """
    return _load(paths, known, whole=True)


def _load(paths: Sequence[str], known: "Contents | None", *, whole: bool) -> "Contents":
    from mizzen.sources import files

    contents = files.load(paths, sys.stdin.buffer.read)
    named = frozenset(str(pathlib.Path(path)) for path in paths)  # As origins spell them.
    fatal = next((each for each in contents.findings if _is_fatal(each, named, whole=whole)), None)
    for finding in contents.findings:
        is_new = known is None or all(finding.problem != each.problem for each in known.findings)
        if finding is not fatal and is_new:
            click.echo(f"{finding.problem.level}: {finding}", err=True)
    if fatal is not None:
        raise SourceError(str(fatal))
    return contents


def _is_fatal(finding: "Finding", named: frozenset[str], *, whole: bool) -> bool:
    is_lost = finding.problem.code in _NOT_READ or (whole and finding.problem.code == _NOT_PARSED)
    return is_lost and (finding.origin.file in named or (whole and _claims(finding)))


def _claims(finding: "Finding") -> bool:
    """Whether what could not be read, in a file that nobody named, seems to hold an object."""
    from mizzen.sources import bystanders, documents, tree

    try:
        content = tree.read_bytes(finding.origin.file)
    except tree.Unreadable:
        return True
    try:
        text = tree.decode_text(content)
    except tree.Unreadable:
        return bystanders.bytes_claim(content)
    is_json = finding.origin.file.endswith(".json")
    chunks = (documents.Chunk(text, 1),) if is_json else documents.split_yaml(text)
    part = ["", *(chunk.text for chunk in chunks if chunk.line <= max(finding.origin.line, 1))][-1]
    return bystanders.text_claims(part) and not bystanders.is_template_text(part)


def tell(problem: "Problem", contents: "Contents") -> None:
    """Say on stderr what is wrong, and where its object stands."""
    from mizzen.sources.origins import Finding, Origin

    origin = contents.origins.get(problem.key) if problem.key is not None else None
    click.echo(f"{problem.level}: {Finding(origin or Origin(''), problem)}", err=True)


def tell_excess(*states: "Contents") -> None:
    """Say on stderr of which workloads not all pods are foretold; what several states have in common, once."""
    from mizzen.local import workloads

    told: set[Problem] = set()
    for contents in states:
        for problem in workloads.excess(contents.objects.values()):
            if problem not in told:
                tell(problem, contents)
                told.add(problem)


def fill(contents: "Contents", mesh_file: str) -> "Engine":
    """An engine that holds all objects, the mesh config and the settings of the environment."""
    from mizzen import settings
    from mizzen.incremental import Engine
    from mizzen.model import mesh

    read, warnings = settings.load(os.environ)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    engine = Engine()
    for key, value in contents.objects.items():
        engine.set(key, value)
    engine.set(mesh.MESH, mesh_config(contents, mesh_file, read))
    engine.set(mesh.CONTROL_PLANE, control_plane(read))
    return engine


def control_plane(read: "settings.Settings") -> "ControlPlane":
    """What a control plane with these settings would decide about every answer."""
    from mizzen.model import mesh

    return mesh.ControlPlane(
        cluster_id=read.instance.cluster,
        dual_stack=read.features.dual_stack,
        http10=read.features.http10,
        trace_sampling=read.features.trace_sampling,
    )


def mesh_config(contents: "Contents", mesh_file: str, read: "settings.Settings") -> "MeshConfig":
    """The file's mesh config; without a file that of the ConfigMap among the objects, as the control plane takes it."""
    from mizzen.control import mesh
    from mizzen.sources.origins import Origin

    try:
        found = mesh.MeshSettings(mesh_file)
    except SourceError as bad:
        # The control plane names its own flag.
        raise SourceError(str(bad).replace("--meshConfig: ", "--mesh: ")) from bad
    key = mesh.config_map_key(read.instance.namespace, read.instance.revision)
    config_map: Any = contents.objects.get(key)
    if not mesh_file and config_map is not None:
        found.follow(config_map, contents.origins.get(key, Origin(str(key))))
    for finding in found.findings:
        click.echo(f"{finding.problem.level}: {finding}", err=True)
    return found.config
