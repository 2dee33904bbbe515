"""What analysis says of the manifests while a mesh runs: references to what is not there, and the like.

In: the manifests' objects and where they were written. Out: the errors among the findings, as lines for a terminal.
Warnings and hints are left to `mizzen analyze`, which says everything.
"""

from collections.abc import Mapping

from mizzen.analysis import analyzers
from mizzen.api.meta import Key, Object
from mizzen.incremental import Engine
from mizzen.sources.origins import Origin


class Advice:
    """The analysis of a set of objects that changes now and then; only what a change touches runs again."""

    def __init__(self) -> None:
        self._db = Engine()
        self._known: set[Key] = set()

    def errors(self, objects: Mapping[Key, Object], origins: Mapping[Key, Origin]) -> list[str]:
        """One line for each object that refers to what is not there, or contradicts another."""
        for key, value in objects.items():
            self._db.set(key, value)
        for key in self._known - objects.keys():
            self._db.remove(key)
        self._known = set(objects)
        found = analyzers.run(self._db, analyzers.select(self._db).executed)
        lines = []
        for finding in found:
            if finding.level == "Error":
                origin = origins.get(finding.key) if finding.key is not None else None
                where = f"{origin}: " if origin is not None else ""
                lines.append(f"error: {where}{finding.origin}: {finding.message} [{finding.code}]")
        return lines
