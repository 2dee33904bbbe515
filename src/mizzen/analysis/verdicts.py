"""What the analyzers find about one object of Istio's kinds, for whoever keeps it beside the object.

In: an engine with a mesh. Out: queries, one for each object, so that a change analyses again what depends on it and
nothing else. What is found about other kinds is nobody's to note there.
"""

from collections.abc import Mapping

from mizzen.analysis import analyzers, objects, reports
from mizzen.analysis.findings import Finding
from mizzen.api.meta import Key, Object
from mizzen.incremental import Engine, query

KINDS = analyzers.MESH_KINDS
"""Those that have a status for it."""


def _build_table() -> Mapping[str, tuple[tuple[analyzers.Analyzer, analyzers.Check], ...]]:
    asked = [(kind, each, check) for each in analyzers.ANALYZERS for kinds, check in each.checks for kind in kinds]
    return {kind: tuple((each, check) for other, each, check in asked if other == kind) for kind in KINDS}


_CHECKS = _build_table()


@query
def keys(db: Engine) -> tuple[Key, ...]:
    """The objects, by kind, namespace and name."""
    return tuple(key for kind in KINDS for key in objects.keys(db, kind))


@query
def verdict(db: Engine, key: Key) -> tuple[Finding, ...]:
    """What is found about the object, but for what its annotation suppresses; the gravest first."""
    annotations = _annotations(db, key)
    found = [each for analyzer, check in _CHECKS[key.kind] for each in analyzers.attempt(check, db, key, analyzer)]
    own = (each for each in found if each.key == key)
    return tuple(reports.filter_findings(own, namespace="", suppressions=(), annotations=lambda _: annotations))


def _annotations(db: Engine, key: Key) -> Mapping[str, str]:
    found: Object | None = db.input(key)
    return found.metadata.annotations if found is not None else {}
