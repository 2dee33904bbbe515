"""Findings: what became of each thing that an Ingress asks for."""

from typing import Literal

import msgspec

from mizzen.api.meta import Key

Verdict = Literal["exact", "approximated", "impossible"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One annotation, or one part of a spec."""

    ingress: Key
    subject: str
    """The annotation without its prefix, or a path such as `spec.tls`."""
    value: str = ""
    verdict: Verdict
    how: str = ""
    """What takes its place, or what is lost."""


class Notes:
    """Collects findings; the same thing is told once."""

    def __init__(self) -> None:
        self._found: dict[Finding, None] = {}

    def add(self, ingress: Key, subject: str, verdict: Verdict, how: str = "", value: str = "") -> None:
        """Note what became of something."""
        self._found[Finding(ingress=ingress, subject=subject, value=value, verdict=verdict, how=how)] = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them, by Ingress and subject."""
        return tuple(sorted(self._found, key=lambda f: (f.ingress.namespace, f.ingress.name, f.subject, f.how)))
