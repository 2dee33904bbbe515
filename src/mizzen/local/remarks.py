"""What there is to say of the manifests, told once, and told again when it is no longer so.

In: after every change, all that is wrong now, as lines. Out: the lines that are new, and those that were told and do
not hold any more. A place that has moved to another line of its file is the same place.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

_LINE = re.compile(r"(\.(?:ya?ml|json)):\d+")


class News(NamedTuple):
    """What has changed."""

    new: tuple[str, ...]
    gone: tuple[str, ...]


class Remarks:
    """What was told and still holds."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def update(self, lines: Iterable[str]) -> News:
        """These lines hold now, and no others."""
        current = {_LINE.sub(r"\1", line): line for line in lines}
        new = tuple(line for key, line in current.items() if key not in self._told)
        gone = tuple(line for key, line in self._told.items() if key not in current)
        self._told = current
        return News(new, gone)


def describe_emptiness(manifests: Iterable[str]) -> str:
    """Why a mesh has no pods."""
    kinds = "a Deployment, StatefulSet, DaemonSet, ReplicaSet or Pod"
    return f"there are no pods: nothing in {', '.join(manifests)} makes one ({kinds}); add some and the mesh follows"
