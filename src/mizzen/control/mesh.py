"""The mesh config in force.

In: the ConfigMap `istio` (`istio-REVISION`) of the control plane's namespace, key `mesh`; for want of it the file of
`--meshConfig`; for want of both the defaults. Out: a `MeshConfig` over the defaults, and Findings. A text that does not
parse leaves the last good config in force; a field at fault keeps its default.
"""

import os
import time
from collections.abc import Mapping
from typing import Any

from mizzen.api.kube.data import ConfigMap
from mizzen.api.mesh.config import MeshConfig
from mizzen.api.mesh.merge import default_mesh_config, merge_mesh_config
from mizzen.api.meta import Key
from mizzen.api.problems import Problem
from mizzen.errors import SourceError
from mizzen.sources import tree
from mizzen.sources.documents import DocumentError, Locator, parse_yaml
from mizzen.sources.origins import Finding, Origin

_KEY = "mesh"
_QUIET = 0.05
"""Seconds after a write in which more may come."""


def config_map_key(namespace: str, revision: str) -> Key:
    """The ConfigMap that holds the mesh config."""
    name = "istio" if revision in ("", "default") else f"istio-{revision}"
    return Key("ConfigMap", namespace, name)


class MeshSettings:
    """Follows the sources of the mesh config."""

    def __init__(self, path: str = "") -> None:
        """With a path, reads it at once; raises SourceError when that does not work, for nobody means the defaults."""
        self._path = path
        self._from_map: MeshConfig | None = None
        self._from_file: MeshConfig | None = None
        self._map_findings: tuple[Finding, ...] = ()
        self._file_findings: tuple[Finding, ...] = ()
        self._stamp: tree.Stamp | None = None
        self._written_in_map: Mapping[str, Any] | None = None
        self._written_in_file: Mapping[str, Any] | None = None
        if path:
            self.reload()
            if self._from_file is None:
                raise SourceError("; ".join(f"--meshConfig: {finding}" for finding in self.findings))

    @property
    def config(self) -> MeshConfig:
        """The mesh config in force."""
        return self._from_map or self._from_file or default_mesh_config()

    @property
    def written(self) -> Mapping[str, Any]:
        """It as somebody wrote it, the last time that nothing was wrong with it."""
        return next((each for each in (self._written_in_map, self._written_in_file) if each is not None), {})

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with it."""
        return self._map_findings or self._file_findings

    def foresee(self, found: ConfigMap | None) -> MeshConfig:
        """What would be in force if the ConfigMap were this."""
        text = found.data.get(_KEY) if found is not None else None
        if found is None or text is None:
            return self._from_file or default_mesh_config()
        config, _ = _decode(text, Origin(""), Key("ConfigMap", found.metadata.namespace, found.metadata.name))
        return config or self.config

    def has_changed(self) -> bool:
        """Whether the file is another one than when it was read, and no longer being written."""
        stamp = _stamp(self._path)
        # A time in the future is that of a clock that was set back, or of another machine.
        return stamp != self._stamp and (stamp is None or not 0 <= time.time() - stamp.modified_ns / 1e9 <= _QUIET)

    def reload(self) -> None:
        """Read the file again."""
        origin = Origin(self._path)
        self._stamp = _stamp(self._path)
        try:
            text = tree.decode_text(tree.read_bytes(self._path))
        except tree.Unreadable as error:
            self._file_findings = (Finding(origin, error.problem),)
            return
        if not text and self._from_file is not None:
            self._file_findings = (Finding(origin, tree.EMPTY),)
            return
        config, self._file_findings = _decode(text, origin, None)
        self._from_file = config or self._from_file
        self._written_in_file = _keep_good(text, self._file_findings, self._written_in_file)

    def follow(self, found: ConfigMap | None, origin: Origin) -> None:
        """The ConfigMap is now this."""
        text = found.data.get(_KEY) if found is not None else None
        if found is None or text is None:
            self._from_map, self._map_findings, self._written_in_map = None, (), None
            return
        key = Key("ConfigMap", found.metadata.namespace, found.metadata.name)
        config, self._map_findings = _decode(text, origin, key)
        self._from_map = config or self._from_map or self.config
        self._written_in_map = _keep_good(text, self._map_findings, self._written_in_map)


def _stamp(path: str) -> tree.Stamp | None:
    try:
        return tree.Stamp.of(os.stat(path))
    except OSError:
        return None


def _keep_good(text: str, findings: tuple[Finding, ...], before: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """What a text holds; what was there before, where it is at fault."""
    if any(finding.problem.level == "error" for finding in findings):
        return before
    values = [document.value for document in parse_yaml(text) if isinstance(document.value, Mapping)]
    return values[0] if values else {}


def _decode(text: str, origin: Origin, key: Key | None) -> tuple[MeshConfig | None, tuple[Finding, ...]]:
    """The config of a text, or None where that does not parse. Lines are known for files only."""
    in_file = key is None
    try:
        documents = [document for document in parse_yaml(text) if document.value is not None]
    except DocumentError as error:
        problem = Problem(key=key, path="" if in_file else f"data[{_KEY}]", code="unreadable", message=error.message)
        return None, (Finding(Origin(origin.file, error.line) if in_file else origin, problem),)
    raw = documents[0].value if documents else None
    config, problems = merge_mesh_config(raw)
    locator = Locator(text)
    findings = tuple(
        Finding(
            Origin(origin.file, locator.find_line(0, problem.path)) if in_file else origin,
            Problem(key=key, path=problem.path, code=problem.code, message=problem.message, level=problem.level),
        )
        for problem in problems
    )
    return config, findings
