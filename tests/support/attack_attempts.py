"""What an attempt is: something legitimate, the one thing in it that is forged, and who must refuse it.

The legitimate call is the twin: it must get in, so a mesh that refuses everybody passes nothing. The attack is the same
call with `forged` in it; it must not get in, and it must be refused in the way that is meant: `answer` is what the
attacker is told, `details` what the Envoy that refused says of it in its access log, `counter` the Envoy's own count.
Whether something got in is never read from the answer: the program behind the sidecar is asked what arrived, a discovery
stream is searched for what was wanted.
"""

import re
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
from attack_mesh import AttackMesh
from eventually import eventually_blocking

_WIDTH = 48

_ENDED = "reset reason: connection termination"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one call."""

    let_in: bool
    answer: str
    """What the caller was told, as one line: status and body, TLS alert, gRPC code and text."""
    case: str = ""
    pod: str = ""
    """Whose Envoy decided."""


class Call(Protocol):
    """One call that may be made; all kinds of them are frozen Structs."""

    def perform(self, mesh: AttackMesh) -> Result: ...

    @property
    def pod(self) -> str:
        """The pod whose Envoy decides; empty if none does."""
        ...


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt and its allowed twin."""

    name: str
    twin: Any
    """The legitimate `Call`."""
    forged: Mapping[str, Any]
    """The fields of it that the attacker changes."""
    answer: str
    """Pattern of what the attacker is told."""
    details: str = ""
    """Pattern that the access log's line must hold."""
    counter: str = ""
    """Pattern of the counters of the Envoy that must rise."""
    normalization: str = "BASE"
    """The mesh's way with paths under which it is made."""

    @property
    def attack(self) -> Any:
        return msgspec.structs.replace(self.twin, **self.forged)

    @property
    def mechanism(self) -> str:
        """What refuses it, for the table."""
        return self.details or self.counter or self.answer


def by_policy(policy: str, rule: int = 0, namespace: str = "vault") -> str:
    """The access log's word for a denial by one rule."""
    return rf"rbac_access_denied_matched_policy\[ns\[{namespace}\]-policy\[{policy}\]-rule\[{rule}\]\]"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """How one attempt went."""

    attempt: Attempt
    attack: Result
    twin: Result
    counted: bool
    """Whether the counter rose, if one must."""

    @property
    def refused(self) -> bool:
        """Whether it was kept out by what is meant to; `details` are looked at apart, as logs come late."""
        return not self.attack.let_in and self.counted and bool(re.search(self.attempt.answer, self.attack.answer))

    @property
    def row(self) -> str:
        """One line of the table."""
        answer = self.attack.answer if len(self.attack.answer) <= _WIDTH else self.attack.answer[: _WIDTH - 1] + "…"
        mark = "LET IN" if self.attack.let_in else "refused" if self.refused else "failed"
        twin = "twin in" if self.twin.let_in else "TWIN OUT"
        return f"{self.attempt.name:46} {mark:8} {answer:{_WIDTH}} {self.attempt.mechanism[:60]:60} {twin}"


class Ledger:
    """Makes each attempt once and remembers how it went."""

    def __init__(self, mesh: AttackMesh) -> None:
        self.mesh = mesh
        self.records: dict[str, Record] = {}

    def make(self, attempt: Attempt) -> Record:
        if attempt.name not in self.records:
            self.records[attempt.name] = self._make(attempt)
        return self.records[attempt.name]

    def _make(self, attempt: Attempt) -> Record:
        self.mesh.normalize(attempt.normalization)
        pod = attempt.attack.pod
        before = self.mesh.count(pod, attempt.counter) if attempt.counter else 0
        attack = self._perform(attempt.attack, attempt.answer)
        counted = not attempt.counter or self._has_risen(pod, attempt.counter, before)
        return Record(attempt=attempt, attack=attack, twin=self._perform(attempt.twin), counted=counted)

    def _perform(self, call: Call, meant: str = "") -> Result:
        """A connection between proxies that ends with the listener which it came by was not judged: once more."""
        result = call.perform(self.mesh)
        unjudged = not result.let_in and _ENDED in result.answer
        if unjudged and not (meant and re.search(meant, result.answer)):
            result = call.perform(self.mesh)
        return result

    def _has_risen(self, pod: str, counter: str, before: int) -> bool:
        try:
            return eventually_blocking(lambda: self.mesh.count(pod, counter) > before)
        except AssertionError:
            return False
