"""What the statuses of Istio's own kinds say: what is found about an object, and whether it is in force.

In: the engine, which analyses; the list of what is not in force. Out: a `Verdict` for each object, kept up to date, and
the fields of `status` that say it. Findings are `validationMessages`, by code and level alone; the condition
`Reconciled` is False with the reason in words where some of the object is not in force, be it that it cannot be
compiled or that a proxy of this replica has refused it. Objects about which there is nothing to say are not written to.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mizzen import observe
from mizzen.analysis import verdicts
from mizzen.analysis.catalogue import documentation
from mizzen.analysis.findings import Finding
from mizzen.api.meta import Key, Object
from mizzen.control.computed import Computed
from mizzen.control.status_merging import Document, Stamp, canonical, merge_conditions
from mizzen.control.statuses import Keeping
from mizzen.incremental import Engine, query
from mizzen.sources import origins

_WAITING = observe.Gauge(
    "mizzen_verdicts_waiting", "Objects of Istio's kinds whose statuses are to be compared or written."
)

MANAGER = "mizzen.io/verdicts"
"""Who writes."""
CONDITION = "Reconciled"

_LEAST = 0.1
"""Seconds between two looks, whatever is asked for."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a status is to say; None for what is not kept."""

    findings: tuple[Finding, ...] | None = None
    faults: tuple[str, ...] | None = None
    """Why some of the object is not in force."""


def keep_verdicts(
    db: Engine, *, analyses: bool, told: Callable[[], tuple[origins.Finding, ...]] | None, every: float
) -> Keeping[Verdict]:
    """Findings if it analyses, the condition if it is told what is not in force; looked at `every` so many seconds."""
    return Keeping(
        kinds=verdicts.KINDS,
        follow=lambda changed: _Verdicts(db, changed, analyses=analyses, told=told),
        merge=merge_verdict,
        manager=MANAGER,
        tell_waiting=_WAITING.set,
        every=max(every, _LEAST),
    )


@query
def _unanalysed(db: Engine, key: Key) -> tuple[Finding, ...] | None:
    """In place of an analysis that nobody wants; that it reads the object makes a change of it known."""
    db.input(key)
    return None


class _Verdicts:
    """Holds roots until it is released."""

    def __init__(
        self,
        db: Engine,
        changed: Callable[[Key], None],
        *,
        analyses: bool,
        told: Callable[[], tuple[origins.Finding, ...]] | None,
    ) -> None:
        self._changed, self._told = changed, told
        self._computed: Computed[tuple[Finding, ...]] = Computed(
            db, verdicts.keys, verdicts.verdict if analyses else _unanalysed, self._update
        )
        self._seen: tuple[origins.Finding, ...] = ()
        self._faults: Mapping[Key, tuple[str, ...]] = {}
        self.values: dict[Key, tuple[Object, Verdict | None]] = {}

    async def look(self) -> None:
        await self._computed.look()
        told = self._told() if self._told is not None else ()
        if told is self._seen:
            return
        before, self._faults, self._seen = self._faults, _by_object(told), told
        for key in before.keys() | self._faults.keys():
            if before.get(key) != self._faults.get(key):
                self._update(key)

    def _update(self, key: Key) -> None:
        computed = self._computed.values.get(key)
        if computed is None:
            if self.values.pop(key, None) is not None:
                self._changed(key)
            return
        faults = self._faults.get(key, ()) if self._told is not None else None
        now = computed[0], Verdict(findings=computed[1], faults=faults)
        if self.values.get(key) != now:
            self.values[key] = now
            self._changed(key)

    def release(self) -> None:
        self._computed.release()


def _by_object(told: tuple[origins.Finding, ...]) -> dict[Key, tuple[str, ...]]:
    faults: dict[Key, dict[str, None]] = {}
    for _, problem in told:
        if problem.level == "error" and problem.key is not None:
            text = f"{problem.path}: {problem.message}" if problem.path else problem.message
            faults.setdefault(problem.key, {})[text] = None
    return {key: tuple(sorted(texts)) for key, texts in faults.items()}


# -- fields -----------------------------------------------------------------------------------------------------------


def merge_verdict(wanted: Verdict, current: Document, *, generation: int, now: str) -> dict[str, Any]:
    """The fields of `status` that are to be another; None among them removes a field."""
    changed: dict[str, Any] = {}
    messages = [_message(each) for each in wanted.findings or ()]
    if wanted.findings is not None and canonical(messages) != canonical(current.get("validationMessages")):
        changed["validationMessages"] = messages or None
    if wanted.faults is not None:
        conditions = _conditions(wanted.faults, current.get("conditions"), Stamp(generation, now))
        if canonical(conditions) != canonical(current.get("conditions")):
            changed["conditions"] = conditions
    says_something = bool(messages) or wanted.faults is not None
    if (changed or says_something) and _generation(current) != generation:
        changed["observedGeneration"] = generation
    return changed


def _message(finding: Finding) -> dict[str, Any]:
    message = {"level": finding.level.upper(), "type": {"code": finding.code}}
    address = documentation(finding.code)
    return {**message, "documentationUrl": address} if address else message


def _conditions(faults: tuple[str, ...], old: Any, stamp: Stamp) -> list[dict[str, Any]]:
    condition = {
        "type": CONDITION,
        "status": "False" if faults else "True",
        "reason": "NotInForce" if faults else "InForce",
        "message": "; ".join(faults),
    }
    return merge_conditions([condition], old, stamp, (CONDITION,))


def _generation(current: Document) -> int:
    """The generation that was observed, which istiod writes as a text."""
    written = str(current.get("observedGeneration", ""))
    return int(written) if written.isdigit() else 0
