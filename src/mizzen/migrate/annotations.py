"""Annotations of one Ingress, each judged once.

In: the Ingress's annotations. Out: typed values, and a finding for every annotation of ingress-nginx: those that no
reader judged are judged by the catalogue at the end.
"""

import re
from collections.abc import Iterable, Mapping

from mizzen.api.meta import Key
from mizzen.migrate.findings import Notes, Verdict

PREFIX = "nginx.ingress.kubernetes.io/"

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_VARIABLE = re.compile(r"\$\{?[A-Za-z_]")


def has_variable(text: str) -> bool:
    """Whether a text of nginx's has a variable in it, not counting what a regular expression captured."""
    return bool(_VARIABLE.search(text))


class Annotations:
    """What an Ingress says to ingress-nginx."""

    def __init__(self, ingress: Key, annotations: Mapping[str, str], notes: Notes) -> None:
        self.ingress = ingress
        self._notes = notes
        self._values = {name.removeprefix(PREFIX): v for name, v in annotations.items() if name.startswith(PREFIX)}
        self._judged: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str, default: str = "") -> str:
        """The value, without space around it."""
        return self._values.get(name, default).strip()

    def first(self, *names: str) -> tuple[str, str]:
        """The first of several names that is there, with its value; empty texts if none is."""
        return next(((name, self.text(name)) for name in names if name in self._values), ("", ""))

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean; what is none counts as absent, as for ingress-nginx."""
        text = self.text(name)
        return True if text in _TRUE else False if text in _FALSE else default

    def number(self, name: str) -> int | None:
        """A number without sign; None for anything else."""
        text = self.text(name)
        return int(text) if text.isdecimal() and text.isascii() else None

    def items(self, name: str, default: str = "") -> tuple[str, ...]:
        """The parts between commas."""
        return tuple(part.strip() for part in self.text(name, default).split(",") if part.strip())

    def exact(self, *names: str, how: str = "") -> None:
        """Those of the names that are there are migrated as they are."""
        self._judge(names, "exact", how)

    def approximated(self, *names: str, how: str) -> None:
        """Those of the names that are there are migrated to something alike."""
        self._judge(names, "approximated", how)

    def impossible(self, *names: str, how: str) -> None:
        """Those of the names that are there are lost."""
        self._judge(names, "impossible", how)

    @property
    def unjudged(self) -> tuple[str, ...]:
        """The annotations that nobody has judged yet, sorted."""
        return tuple(sorted(self._values.keys() - self._judged))

    def _judge(self, names: Iterable[str], verdict: Verdict, how: str) -> None:
        for name in names:
            if name in self._values and name not in self._judged:
                self._judged.add(name)
                self._notes.add(self.ingress, name, verdict, how, self._values[name])
