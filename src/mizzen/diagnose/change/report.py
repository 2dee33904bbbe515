"""All that a change does, and its JSON.

In: classes, pods, findings, probes. Out: `Report` and `to_json`, the contract of `mizzen diff -o json`. Text and
Markdown are made of the same report by `printing`.
"""

from typing import Any

import msgspec

from mizzen.diagnose.change.classes import ProxyClass
from mizzen.diagnose.change.disruption import Effect, Forecast, ListenerUpdate
from mizzen.diagnose.change.probes import Probed


class NewFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of the analysis that was not there before."""

    level: str
    code: str
    object: str
    message: str
    place: str = ""


class Pods(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that come and go, by `NAME.NAMESPACE`."""

    gone: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    pushed: int = 0
    """Bytes that new ones are sent."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything."""

    old: str
    new: str
    proxies: int = 0
    """All that are there in the new state."""
    edited: tuple[str, ...] = ()
    """Objects, each with what was done to it."""
    classes: tuple[ProxyClass, ...] = ()
    pods: Pods = Pods()
    findings: tuple[NewFinding, ...] = ()
    resolved: int = 0
    """Findings that are no longer there."""
    probes: tuple[Probed, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether no proxy, pod, finding or verdict is another."""
        changed = any(probe.is_changed for probe in self.probes)
        return not (self.classes or self.pods.gone or self.pods.new or self.findings or self.resolved or changed)

    @property
    def told(self) -> int:
        """Proxies that are sent something."""
        return sum(len(each.proxies) for each in self.classes if each.pushed)

    @property
    def pushed(self) -> int:
        """Bytes that are sent."""
        return sum(each.pushed for each in self.classes) + self.pods.pushed

    @property
    def cut(self) -> int:
        """Proxies at which open connections are cut."""
        return sum(len(each.proxies) for each in self.classes if each.forecast.cuts)


def to_json(report: Report) -> dict[str, Any]:
    """The report as `-o json` prints it."""
    return {
        "old": report.old,
        "new": report.new,
        "same": report.is_same,
        "edited": list(report.edited),
        "push": {"proxies": report.told, "of": report.proxies, "bytes": report.pushed},
        "connections": {"cutAtProxies": report.cut, "podsGone": list(report.pods.gone)},
        "pods": {"gone": list(report.pods.gone), "new": list(report.pods.new)},
        "classes": [_class(each) for each in report.classes],
        "findings": [msgspec.to_builtins(each) for each in report.findings],
        "resolvedFindings": report.resolved,
        "probes": [_probe(each) for each in report.probes],
    }


def _class(one: ProxyClass) -> dict[str, Any]:
    return {
        "name": one.name,
        "proxies": list(one.proxies),
        "bytes": one.pushed,
        "objects": list(one.objects),
        "changes": [msgspec.to_builtins(each) for each in one.changes],
        "forecast": _forecast(one.forecast),
    }


def _forecast(one: Forecast) -> dict[str, Any]:
    return {
        "effects": list(one.effects),
        "connectionsCut": one.cuts,
        "listeners": [_listener(each) for each in one.listeners],
        "warmed": list(one.warmed),
        "tls": list(one.tls),
    }


def _listener(one: ListenerUpdate) -> dict[str, Any]:
    return {
        "name": one.name,
        "address": one.address,
        "update": one.update,
        "because": list(one.because),
        "drained": list(one.drained),
        "kept": one.kept,
    }


def _probe(one: Probed) -> dict[str, Any]:
    return {**msgspec.to_builtins(one), "changed": one.is_changed}


def headline(forecast: Forecast) -> str:
    """The gravest effect in words, and whether new connections meet other TLS."""
    if not forecast.effects:
        return "nothing is sent"
    return _WORDS[forecast.effects[0]] + ("; TLS changes for new ones" if forecast.tls else "")


_WORDS: dict[Effect, str] = {
    "pod replaced": "the pods are replaced",
    "new listener": "new listener: connections of the old one are cut",
    "chains drain": "filter chains drain: their connections are cut",
    "in place": "in place: no connection is cut",
    "cluster warm-up": "cluster warm-up: no connection is cut",
    "route only": "route only: no connection is cut",
    "endpoint only": "endpoint only: no connection is cut",
    "secrets rotate": "secrets rotate: no connection is cut",
    "extension only": "extension only: no connection is cut",
}
